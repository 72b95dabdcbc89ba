package grpcconn

import (
	"bytes"
	"context"
	"errors"
	"io"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// Clients with small windows and more calls than they may have at once, some of which they give up, get all their
// answers, and leave nothing behind.
func TestManyClients(t *testing.T) {
	inBubble(t, func(s *site) {
		s.server.MaxStreams = 8
		var all sync.WaitGroup
		for seed := range uint64(3) {
			window := int32(64<<10) << (2 * seed)
			conn := s.dial(grpc.WithInitialWindowSize(window), grpc.WithInitialConnWindowSize(window))
			defer conn.Close()
			for i := range uint64(16) {
				all.Go(func() {
					r := rand.New(rand.NewPCG(seed, i))
					for range 10 {
						s.somePut(conn, r)
						s.someWatch(conn, r)
					}
				})
			}
		}
		all.Wait()
		if n := s.server.lent.Load(); n != 0 {
			t.Errorf("%d bytes are held", n)
		}
	})
}

// somePut makes a call with an answer of up to a megabyte, and may give it up.
func (s *site) somePut(conn *grpc.ClientConn, r *rand.Rand) {
	ctx, cancel := context.WithCancel(s.Context())
	defer cancel()
	givesUp := r.IntN(4) == 0
	if givesUp {
		stop := time.AfterFunc(time.Duration(r.IntN(50))*time.Millisecond, cancel)
		defer stop.Stop()
	}
	value := bytes.Repeat([]byte{byte(r.Int())}, r.IntN(1<<r.IntN(20)))
	answer, err := pb.NewKVClient(conn).Put(ctx, &pb.PutRequest{Value: value, Lease: 2})
	switch {
	case givesUp && status.Code(err) == codes.Canceled:
	case err != nil:
		s.Error(err)
	case !bytes.Equal(answer.PrevKv.Value, bytes.Repeat(value, 2)):
		s.Error("another answer came")
	}
}

// someWatch sends some messages on a stream, and gets as many.
func (s *site) someWatch(conn *grpc.ClientConn, r *rand.Rand) {
	ctx, cancel := context.WithCancel(s.Context())
	defer cancel()
	stream, err := pb.NewWatchClient(conn).Watch(ctx)
	if err != nil {
		s.Error(err)
		return
	}
	n := r.Int64N(20)
	go func() {
		for i := range n {
			_ = stream.Send(&pb.WatchRequest{RequestUnion: &pb.WatchRequest_CancelRequest{
				CancelRequest: &pb.WatchCancelRequest{WatchId: i}}})
		}
		_ = stream.CloseSend()
	}()
	for i := range n {
		if answer, err := stream.Recv(); err != nil || answer.WatchId != i {
			s.Error(i, answer, err)
			return
		}
	}
	if r.IntN(2) > 0 {
		if _, err := stream.Recv(); !errors.Is(err, io.EOF) {
			s.Error(err)
		}
	}
}
