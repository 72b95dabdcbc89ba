package etcd

import (
	"context"
	"errors"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	"google.golang.org/grpc"
	"google.golang.org/grpc/health/grpc_health_v1"

	"github.com/leasehold/leasehold/internal/access/credential"
)

type authServer struct {
	pb.UnimplementedAuthServer
	*Door
}

// Authenticate takes a token of ours, or a JWT, as the password of any user, or as the name of a user with any
// password, and returns it as what to send with every call.
func (s authServer) Authenticate(ctx context.Context, r *pb.AuthenticateRequest) (*pb.AuthenticateResponse, error) {
	if !s.backend.AccessOn() {
		return nil, rpctypes.ErrGRPCAuthNotEnabled
	}
	secret := r.Password
	err := s.prove(ctx, secret)
	if refusal := (*credential.Refusal)(nil); errors.As(err, &refusal) && refusal.Reason == credential.Malformed {
		secret = r.Name
		err = s.prove(ctx, secret)
	}
	switch refusal := (*credential.Refusal)(nil); {
	case errors.As(err, &refusal) && refusal.Reason != credential.Slowed && refusal.Reason != credential.Unreachable:
		return nil, rpctypes.ErrGRPCAuthFailed
	case err != nil:
		return nil, err
	}
	return &pb.AuthenticateResponse{Header: s.header(s.known()), Token: secret}, nil
}

func (s authServer) prove(ctx context.Context, secret string) error {
	_, err := s.backend.Prove(ctx, credential.Shown{Secret: secret, From: callOf(ctx).address})
	return err
}

// AuthStatus reports whether access is on.
func (s authServer) AuthStatus(context.Context, *pb.AuthStatusRequest) (*pb.AuthStatusResponse, error) {
	now := s.known()
	if s.backend.AccessOn() {
		now = 0 // anybody asks, and how often something is written is not for anybody
	}
	return &pb.AuthStatusResponse{Header: s.header(now), Enabled: s.backend.AccessOn(), AuthRevision: 1}, nil
}

type healthServer struct {
	grpc_health_v1.UnimplementedHealthServer
	*Door
}

// Check reports whether the server can answer.
func (s healthServer) Check(
	ctx context.Context, _ *grpc_health_v1.HealthCheckRequest,
) (*grpc_health_v1.HealthCheckResponse, error) {
	return &grpc_health_v1.HealthCheckResponse{Status: s.healthy(ctx)}, nil
}

func (d *Door) healthy(ctx context.Context) grpc_health_v1.HealthCheckResponse_ServingStatus {
	ctx, cancel := context.WithTimeout(ctx, leaderTime)
	defer cancel()
	if d.backend.Ready(ctx) != nil {
		return grpc_health_v1.HealthCheckResponse_NOT_SERVING
	}
	return grpc_health_v1.HealthCheckResponse_SERVING
}

// Watch reports whether the server can answer, now and at each change.
func (s healthServer) Watch(
	_ *grpc_health_v1.HealthCheckRequest, stream grpc.ServerStreamingServer[grpc_health_v1.HealthCheckResponse],
) error {
	leave, err := s.backend.StayChecking(stream.Context())
	if err != nil {
		return err
	}
	defer leave()
	ctx, cancel := s.staying(stream.Context())
	defer cancel()
	for last := grpc_health_v1.HealthCheckResponse_UNKNOWN; ; {
		if now := s.healthy(ctx); now != last && ctx.Err() == nil {
			if err := stream.Send(&grpc_health_v1.HealthCheckResponse{Status: now}); err != nil {
				return err
			}
			last = now
		}
		if !s.backend.Pause(ctx, leaderLook) {
			return s.streamEnded(ctx, context.Canceled)
		}
	}
}
