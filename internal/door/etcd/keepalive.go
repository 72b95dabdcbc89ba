package etcd

import (
	"context"
	"errors"
	"io"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"google.golang.org/grpc"

	"github.com/leasehold/leasehold"
	"github.com/leasehold/leasehold/internal/core"
	"github.com/leasehold/leasehold/internal/engine"
)

// maxRenewals is how many renewals of one stream may be under way. A client that sends more waits.
const maxRenewals = 64

// A renewal is one keep-alive that was asked for.
type renewal struct {
	lease  int64
	answer core.Answer
	err    error
	done   chan struct{} // closed when the two above are set

	batch [1]engine.Submission // by which it is submitted
}

// finish takes what the renewal came to.
func (r *renewal) finish(answer core.Answer, err error) {
	r.answer, r.err = answer, err
	close(r.done)
}

// LeaseKeepAlive renews sessions. A client with many leases sends many renewals at once: they are put in the log
// together, and answered in the order in which they came.
func (s leaseServer) LeaseKeepAlive(
	stream grpc.BidiStreamingServer[pb.LeaseKeepAliveRequest, pb.LeaseKeepAliveResponse],
) error {
	leave, err := s.backend.StayRenewing(stream.Context())
	if err != nil {
		return err
	}
	defer leave()
	ctx, cancel := s.staying(stream.Context())
	defer cancel()
	renewals, ended := make(chan *renewal, maxRenewals), make(chan error, 1)
	go func() {
		ended <- s.takeRenewals(ctx, stream.Recv, renewals)
		close(renewals)
	}()
	for err == nil {
		select {
		case r, more := <-renewals:
			if !more {
				return s.streamEnded(ctx, <-ended)
			}
			err = s.answerRenewal(ctx, stream, r)
		case <-ctx.Done():
			err = ctx.Err()
		}
	}
	return s.streamEnded(ctx, err)
}

// takeRenewals submits what comes, until nothing does any more. It may outlive the call by a moment: the end of that
// ends the stream, and with it what waits for the next.
func (s leaseServer) takeRenewals(
	ctx context.Context, next func() (*pb.LeaseKeepAliveRequest, error), renewals chan<- *renewal,
) error {
	var lease int64
	var command *core.RenewSession // of that lease: most streams renew one, again and again
	for {
		request, err := next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		if command == nil || lease != request.ID {
			lease = request.ID
			command = &core.RenewSession{Namespace: s.config.Namespace, ID: sessionOf(lease)}
		}
		r := &renewal{lease: lease, done: make(chan struct{})}
		select {
		case renewals <- r:
			s.submit(ctx, r, command)
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// submit puts a renewal in the log.
func (s leaseServer) submit(ctx context.Context, r *renewal, command *core.RenewSession) {
	if command.ID == "" {
		r.finish(core.Answer{}, leasehold.ErrNotFound)
		return
	}
	r.batch[0] = engine.Submission{Ctx: ctx, Command: command, Done: r.finish}
	s.backend.Submit(r.batch[:])
}

// answerRenewal tells what a renewal came to. A lease that is not there has a TTL of 0, which is no error.
func (s leaseServer) answerRenewal(
	ctx context.Context, stream grpc.ServerStreamingServer[pb.LeaseKeepAliveResponse], r *renewal,
) error {
	select {
	case <-r.done:
	case <-ctx.Done():
		return ctx.Err()
	}
	callOf(ctx).heard(r.err)
	answer := &pb.LeaseKeepAliveResponse{Header: s.header(s.known()), ID: r.lease}
	switch {
	case r.err == nil:
		answer.TTL = secondsOf(r.answer.Session.TTL)
	case errors.Is(r.err, leasehold.ErrNotFound), errors.Is(r.err, leasehold.ErrLost):
	default:
		return r.err
	}
	return stream.Send(answer)
}
