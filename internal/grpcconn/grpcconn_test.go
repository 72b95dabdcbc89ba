package grpcconn

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/leasehold/leasehold/internal/limit"
)

const (
	testPing  = 30 * time.Second
	testSlow  = 20 * time.Second
	testDrain = time.Second
	testMost  = 2 << 20

	testUnsent = 32 << 20
)

// An echo answers with what it is sent.
type echo struct {
	pb.UnimplementedKVServer
	pb.UnimplementedWatchServer

	mu     sync.Mutex
	ended  int           // calls whose context ended
	begun  int           // calls that wait
	let    chan struct{} // lets those go on that wait; nil: nobody waits
	agents []string      // what clients call themselves
	bodies []error       // what came of bodies, and of answers
}

func (e *echo) Range(ctx context.Context, r *pb.RangeRequest) (*pb.RangeResponse, error) {
	e.mu.Lock()
	e.agents = append(e.agents, FromContext(ctx).Sent("agent"))
	e.begun++
	let := e.let
	e.mu.Unlock()
	if let != nil {
		select {
		case <-let:
		case <-ctx.Done():
			e.mu.Lock()
			e.ended++
			e.mu.Unlock()
			return nil, ctx.Err()
		}
	}
	if text := string(r.RangeEnd); text != "" {
		s, _ := status.New(codes.FailedPrecondition, text).WithDetails(durationpb.New(time.Second))
		return nil, s.Err()
	}
	return &pb.RangeResponse{Kvs: nil, Count: r.Limit, Header: &pb.ResponseHeader{}, More: len(r.Key) > 0}, nil
}

// Put answers with as many bytes as it is told.
func (e *echo) Put(_ context.Context, r *pb.PutRequest) (*pb.PutResponse, error) {
	return &pb.PutResponse{PrevKv: keyValue(r.Value, int(r.Lease))}, nil
}

func (e *echo) Watch(stream grpc.BidiStreamingServer[pb.WatchRequest, pb.WatchResponse]) error {
	for {
		r, err := stream.Recv()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		id := r.GetCancelRequest().GetWatchId()
		if id < 0 {
			return status.Error(codes.Aborted, "enough")
		}
		if err := stream.Send(&pb.WatchResponse{WatchId: id, CancelReason: r.GetCreateRequest().String()}); err != nil {
			return err
		}
	}
}

// A site is a server, in virtual time, and what tells how it goes.
type site struct {
	*testing.T
	server *Server
	echo   *echo
	ctx    context.Context // of the server
	stop   context.CancelFunc
	served sync.WaitGroup
}

func inBubble(t *testing.T, do func(s *site)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		e := &echo{}
		s := &site{T: t, echo: e, server: NewServer(Config{
			Services: []Service{{&pb.KV_ServiceDesc, e}, {&pb.Watch_ServiceDesc, e}},
			Unary: func(ctx context.Context, r any, _ *grpc.UnaryServerInfo, next grpc.UnaryHandler) (any, error) {
				return next(ctx, r)
			},
			Stream: func(impl any, s grpc.ServerStream, _ *grpc.StreamServerInfo, next grpc.StreamHandler) error {
				return next(impl, s)
			},
			Strangers:  &limit.Budget{Most: 64 << 20, Alone: 63 << 20},
			MaxRequest: testMost, MaxStreams: 64, MaxUnsent: testUnsent, PingTime: testPing, SlowTime: testSlow, DrainTime: testDrain,
			Greeted: func(net.Conn) {}, Plain: e.plain, ReadTime: testRead, WriteTime: testWrite,
		})}
		s.ctx, s.stop = context.WithCancel(t.Context())
		do(s)
		s.stop()
		s.served.Wait()
	})
}

// connect returns the client's end of a new connection.
func (s *site) connect() net.Conn {
	here, there := net.Pipe()
	s.served.Go(func() {
		s.server.Serve(s.ctx, there)
		_ = there.Close()
	})
	return here
}

// dial returns a client of grpc-go.
func (s *site) dial(options ...grpc.DialOption) *grpc.ClientConn {
	s.Helper()
	options = append(options, grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithContextDialer(func(context.Context, string) (net.Conn, error) { return s.connect(), nil }),
		grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(1<<30), grpc.MaxCallSendMsgSize(1<<30)))
	conn, err := grpc.NewClient("passthrough:x", options...)
	if err != nil {
		s.Fatal(err)
	}
	s.Cleanup(func() { _ = conn.Close() })
	return conn
}

// Calls of all sizes, one after the other and at once, are answered on one connection.
func TestCalls(t *testing.T) {
	inBubble(t, func(s *site) {
		conn := s.dial()
		defer conn.Close()
		kv := pb.NewKVClient(conn)
		var all sync.WaitGroup
		for i, n := range []int{0, 1, 100, 16 << 10, 70000, 1 << 20, 1500 << 10, 3, 1 << 20, 900 << 10} {
			all.Go(func() {
				value := bytes.Repeat([]byte{byte('a' + i)}, n)
				answer, err := kv.Put(s.Context(), &pb.PutRequest{Value: value, Lease: 3})
				if err != nil || !bytes.Equal(answer.PrevKv.Value, bytes.Repeat(value, 3)) {
					s.Errorf("%d bytes: %v", n, err)
				}
			})
		}
		all.Wait()
		for i := range 100 {
			ctx := metadata.AppendToOutgoingContext(s.Context(), "agent", fmt.Sprint(i/10))
			if answer, err := kv.Range(ctx, &pb.RangeRequest{Limit: int64(i)}); err != nil || answer.Count != int64(i) {
				s.Fatal(answer, err)
			}
			if s.echo.agents[i] != fmt.Sprint(i/10) {
				s.Fatalf("call %d came with %q", i, s.echo.agents[i])
			}
		}
	})
}

// What is wrong is told in the words of grpc-go.
func TestErrors(t *testing.T) {
	inBubble(t, func(s *site) {
		conn := s.dial()
		defer conn.Close()
		kv := pb.NewKVClient(conn)
		text := "50 % of \"ü\"\n" + strings.Repeat("x", 100)
		_, err := kv.Range(s.Context(), &pb.RangeRequest{RangeEnd: []byte(text)})
		got := status.Convert(err)
		if got.Code() != codes.FailedPrecondition || got.Message() != text || len(got.Details()) != 1 {
			s.Errorf("got %v with %v", err, got.Details())
		}
		_, err = kv.Put(s.Context(), &pb.PutRequest{Value: make([]byte, testMost)})
		want := fmt.Sprintf("grpc: received message larger than max (%d vs. %d)", testMost+5, testMost)
		if got := status.Convert(err); got.Code() != codes.ResourceExhausted || got.Message() != want {
			s.Errorf("got %v", err)
		}
		for method, want := range map[string]string{
			"/etcdserverpb.KV/Nothing": "unknown method Nothing for service etcdserverpb.KV",
			"/nothing.KV/Range":        "unknown service nothing.KV",
		} {
			err := conn.Invoke(s.Context(), method, &pb.RangeRequest{}, &pb.RangeResponse{})
			if got := status.Convert(err); got.Code() != codes.Unimplemented || got.Message() != want {
				s.Errorf("got %v", err)
			}
		}
		if _, err := kv.Range(s.Context(), &pb.RangeRequest{}); err != nil {
			s.Errorf("after all of them: %v", err)
		}
	})
}

// A call ends with its deadline, and when its client gives it up.
func TestCallsEnd(t *testing.T) {
	inBubble(t, func(s *site) {
		s.echo.let = make(chan struct{})
		conn := s.dial()
		defer conn.Close()
		kv := pb.NewKVClient(conn)
		ctx, cancel := context.WithTimeout(s.Context(), time.Second)
		defer cancel()
		if _, err := kv.Range(ctx, &pb.RangeRequest{}); status.Code(err) != codes.DeadlineExceeded {
			s.Error(err)
		}
		ctx, cancel = context.WithCancel(s.Context())
		time.AfterFunc(time.Second, cancel)
		if _, err := kv.Range(ctx, &pb.RangeRequest{}); status.Code(err) != codes.Canceled {
			s.Error(err)
		}
		synctest.Wait()
		if s.echo.ended != 2 {
			s.Errorf("%d calls ended", s.echo.ended)
		}
		close(s.echo.let)
		if _, err := kv.Range(s.Context(), &pb.RangeRequest{}); err != nil {
			s.Error(err)
		}
	})
}

// Streams carry messages both ways, until one of the two sides ends them.
func TestStreams(t *testing.T) {
	inBubble(t, func(s *site) {
		conn := s.dial()
		defer conn.Close()
		open := func() pb.Watch_WatchClient {
			stream, err := pb.NewWatchClient(conn).Watch(s.Context())
			if err != nil {
				s.Fatal(err)
			}
			return stream
		}
		say := func(stream pb.Watch_WatchClient, id int64) error {
			return stream.Send(&pb.WatchRequest{RequestUnion: &pb.WatchRequest_CancelRequest{
				CancelRequest: &pb.WatchCancelRequest{WatchId: id}}})
		}
		stream := open()
		go func() {
			for i := range int64(1000) {
				if err := say(stream, i); err != nil {
					s.Error(err)
				}
			}
			_ = stream.CloseSend()
		}()
		for i := range int64(1000) {
			if answer, err := stream.Recv(); err != nil || answer.WatchId != i {
				s.Fatal(i, answer, err)
			}
		}
		if _, err := stream.Recv(); err != io.EOF {
			s.Errorf("at the end, %v", err)
		}
		stream = open()
		_ = say(stream, -1)
		if _, err := stream.Recv(); status.Code(err) != codes.Aborted {
			s.Errorf("the server's end: %v", err)
		}
		// What is sent faster than it is taken waits, and does not pile up.
		stream = open()
		big := &pb.WatchRequest{RequestUnion: &pb.WatchRequest_CreateRequest{
			CreateRequest: &pb.WatchCreateRequest{Key: make([]byte, 1500<<10)}}}
		for range 4 {
			go func() { _ = stream.Send(big) }()
			if answer, err := stream.Recv(); err != nil || len(answer.CancelReason) < 1500<<10 {
				s.Fatal(err)
			}
		}
	})
}

// A server that stops finishes what is under way, and sends clients elsewhere.
func TestDrain(t *testing.T) {
	inBubble(t, func(s *site) {
		s.echo.let = make(chan struct{})
		conn := s.dial()
		defer conn.Close()
		done := make(chan error)
		go func() {
			_, err := pb.NewKVClient(conn).Range(s.Context(), &pb.RangeRequest{})
			done <- err
		}()
		synctest.Wait()
		s.stop()
		time.Sleep(2 * testDrain)
		close(s.echo.let)
		if err := <-done; err != nil {
			s.Error(err)
		}
		s.served.Wait()
	})
}
