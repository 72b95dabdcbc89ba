package fencegrpc_test

import (
	"context"
	"net"
	"strings"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/health"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/status"
	"google.golang.org/grpc/test/bufconn"

	"github.com/leasehold/leasehold"
	"github.com/leasehold/leasehold/fence"
	"github.com/leasehold/leasehold/fence/fencegrpc"
)

// A hold stands for a client.Hold, of which only the pass is needed.
type hold fence.Pass

func (h hold) Pass() fence.Pass { return fence.Pass(h) }

// The health service stands for any: one call with an answer, one stream.
func TestInterceptors(t *testing.T) {
	resource := func(_ context.Context, method string, _ any) string {
		if strings.HasSuffix(method, "/List") {
			return ""
		}
		return "disk"
	}
	guard := fence.NewMemory()
	listener := bufconn.Listen(1 << 16)
	server := grpc.NewServer(grpc.UnaryInterceptor(fencegrpc.Unary(guard, resource)), grpc.StreamInterceptor(fencegrpc.Stream(guard, resource)))
	healthpb.RegisterHealthServer(server, health.NewServer())
	go func() { _ = server.Serve(listener) }()
	defer server.Stop()
	conn, err := grpc.NewClient("passthrough:///memory", grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) { return listener.DialContext(ctx) }))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	c := healthpb.NewHealthClient(conn)
	check := func(token leasehold.Token) error {
		ctx, h := t.Context(), hold{Token: token, Resource: "disk"}
		if token != 0 {
			ctx = fencegrpc.With(ctx, h.Pass())
		}
		_, err := c.Check(ctx, &healthpb.HealthCheckRequest{})
		return err
	}
	again := fencegrpc.With(fencegrpc.With(t.Context(), fence.Pass{Token: 4, Floor: 3}), fence.Pass{Token: 4})
	if _, err := c.Check(again, &healthpb.HealthCheckRequest{}); err != nil || guard.Floor("disk") != 4 {
		t.Errorf("a pass in the place of another: %v, and the floor is %d", err, guard.Floor("disk"))
	}
	other := fencegrpc.With(t.Context(), fence.Pass{Token: 99, Resource: "other"})
	if _, err := c.Check(other, &healthpb.HealthCheckRequest{}); status.Code(err) != codes.InvalidArgument {
		t.Errorf("a pass of another resource: %v", err)
	}
	for _, step := range []struct {
		token leasehold.Token
		code  codes.Code
		says  string
	}{
		{0, codes.FailedPrecondition, "no token"},
		{3, codes.FailedPrecondition, "token 3 is late"},
		{5, codes.OK, ""},
		{7, codes.OK, ""},
		{6, codes.FailedPrecondition, "token 6 is late: token 7 was seen"},
	} {
		if err := check(step.token); status.Code(err) != step.code || err != nil && !strings.Contains(err.Error(), step.says) {
			t.Errorf("token %d: %v", step.token, err)
		}
	}
	// A stream of an older holder ends when a newer one comes.
	stream, err := c.Watch(fencegrpc.With(t.Context(), fence.Pass{Token: 8}), &healthpb.HealthCheckRequest{})
	if err == nil {
		_, err = stream.Recv()
	}
	if err != nil {
		t.Fatal(err)
	}
	if err := check(9); err != nil {
		t.Errorf("the newer holder: %v", err)
	}
	if _, err := stream.Recv(); err == nil {
		t.Error("the older holder's stream goes on")
	}
}
