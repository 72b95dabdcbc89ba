package etcd

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/mvccpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	"go.etcd.io/etcd/server/v3/etcdserver/api/v3election/v3electionpb"
	"go.etcd.io/etcd/server/v3/etcdserver/api/v3lock/v3lockpb"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/status"

	"github.com/leasehold/leasehold/internal/core"
	"github.com/leasehold/leasehold/internal/door"
	"github.com/leasehold/leasehold/internal/door/doortest"
	"github.com/leasehold/leasehold/internal/engine"
	"github.com/leasehold/leasehold/internal/engine/memory"
)

// A world is a server with the door at a port of its own, in a bubble of virtual time, and a client.
type world struct {
	*testing.T
	engine *memory.Engine
	// leaderless is true while the server has nobody to ask what others were answered.
	leaderless atomic.Bool
	pipe       *doortest.Pipe
	ctx        context.Context
	door       *Door
	stop       func() // the server; it drains

	kv          pb.KVClient
	lease       pb.LeaseClient
	watch       pb.WatchClient
	maintenance pb.MaintenanceClient
	lock        v3lockpb.LockClient
	election    v3electionpb.ElectionClient
	health      grpc_health_v1.HealthClient
}

// A server is an engine that can lose its leader.
type server struct {
	*memory.Engine
	leaderless *atomic.Bool
}

func (s *server) Read(ctx context.Context, fn func(core.View)) error {
	if s.leaderless.Load() && !engine.IsStale(ctx) {
		return engine.Unavailable("no leader is known")
	}
	return s.Engine.Read(ctx, fn)
}

func inWorld(t *testing.T, story func(*world)) { inWorldWith(t, door.Options{}, story) }

func inWorldWith(t *testing.T, options door.Options, story func(*world)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		w := &world{T: t, engine: memory.Start(engine.NewGoClock()), pipe: doortest.NewPipe(), ctx: t.Context()}
		b := door.NewBackend(&server{w.engine, &w.leaderless}, options)
		w.door = New(b, Config{})
		host := door.NewOwnHost(b, door.HostConfig{}, w.door.Port(""))
		ctx, stop := context.WithCancel(context.Background())
		w.stop = stop
		ended := make(chan error, 1)
		go func() { ended <- host.Serve(ctx, w.pipe) }()
		conn := dial(t, w.pipe.Dial)
		w.kv, w.lease, w.watch = pb.NewKVClient(conn), pb.NewLeaseClient(conn), pb.NewWatchClient(conn)
		w.maintenance, w.lock = pb.NewMaintenanceClient(conn), v3lockpb.NewLockClient(conn)
		w.election, w.health = v3electionpb.NewElectionClient(conn), grpc_health_v1.NewHealthClient(conn)
		story(w)
		_ = conn.Close()
		stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
		if err := w.engine.Check(); err != nil {
			t.Errorf("the state contradicts itself: %v", err)
		}
		_ = w.engine.Close()
	})
}

// settle waits until nothing is left to do.
func (w *world) settle() { synctest.Wait() }

func dial(t testing.TB, dial doortest.Dialer, more ...grpc.DialOption) *grpc.ClientConn {
	t.Helper()
	conn, err := grpc.NewClient("passthrough:///server", append(more,
		grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithContextDialer(func(ctx context.Context, address string) (net.Conn, error) {
			return dial(ctx, "tcp", address)
		}))...)
	if err != nil {
		t.Fatal(err)
	}
	return conn
}

func (w *world) put(key, value string, lease int64) *pb.PutResponse {
	w.Helper()
	answer, err := w.kv.Put(w.ctx, &pb.PutRequest{Key: []byte(key), Value: []byte(value), Lease: lease})
	w.must(err)
	return answer
}

func (w *world) must(err error) {
	w.Helper()
	if err != nil {
		w.Fatal(err)
	}
}

func (w *world) grant(ttl int64) int64 {
	w.Helper()
	answer, err := w.lease.LeaseGrant(w.ctx, &pb.LeaseGrantRequest{TTL: ttl})
	w.must(err)
	if answer.TTL != ttl {
		w.Errorf("a TTL of %d was granted, not %d", answer.TTL, ttl)
	}
	return answer.ID
}

func (w *world) keys(r *pb.RangeRequest) string {
	w.Helper()
	answer, err := w.kv.Range(w.ctx, r)
	w.must(err)
	return keysOfAnswer(answer.Kvs)
}

func keysOfAnswer(kvs []*mvccpb.KeyValue) string {
	var all []string
	for _, kv := range kvs {
		all = append(all, string(kv.Key))
	}
	return strings.Join(all, " ")
}

// is fails unless an error is the one of etcd.
func (w *world) is(err, want error) {
	w.Helper()
	if status.Code(err) != status.Code(want) || status.Convert(err).Message() != status.Convert(want).Message() {
		w.Errorf("the error is %v, want %v", err, want)
	}
}

// A lease lasts a second longer than its client was told, by which time the client has given it up; its keys end with
// it.
func TestLeaseEndsASecondLate(t *testing.T) {
	inWorld(t, func(w *world) {
		lease := w.grant(5)
		w.put("a", "1", lease)
		time.Sleep(5*time.Second + 900*time.Millisecond)
		if got := w.keys(&pb.RangeRequest{Key: []byte("a")}); got != "a" {
			t.Errorf("%q is there when the TTL has passed, want the key", got)
		}
		time.Sleep(200 * time.Millisecond)
		if got := w.keys(&pb.RangeRequest{Key: []byte("a")}); got != "" {
			t.Errorf("%q is there a second later", got)
		}
		left, err := w.lease.LeaseTimeToLive(w.ctx, &pb.LeaseTimeToLiveRequest{ID: lease})
		w.must(err)
		if left.TTL != -1 || left.GrantedTTL != 0 {
			t.Errorf("what is left of it: %v", left)
		}
		_, err = w.lease.LeaseRevoke(w.ctx, &pb.LeaseRevokeRequest{ID: lease})
		w.is(err, rpctypes.ErrGRPCLeaseNotFound)
		_, err = w.kv.Put(w.ctx, &pb.PutRequest{Key: []byte("a"), Lease: lease})
		w.is(err, rpctypes.ErrGRPCLeaseNotFound)
	})
}

// A keep-alive renews; of a lease that is not there it answers a TTL of 0, and the stream goes on.
func TestKeepAlive(t *testing.T) {
	inWorld(t, func(w *world) {
		lease := w.grant(5)
		stream, err := w.lease.LeaseKeepAlive(w.ctx)
		w.must(err)
		for range 5 {
			time.Sleep(4 * time.Second)
			w.must(stream.Send(&pb.LeaseKeepAliveRequest{ID: lease}))
			answer, err := stream.Recv()
			w.must(err)
			if answer.TTL != 5 || answer.ID != lease {
				t.Errorf("the keep-alive answers %v", answer)
			}
		}
		for _, id := range []int64{lease + 1, 0, lease} {
			w.must(stream.Send(&pb.LeaseKeepAliveRequest{ID: id}))
		}
		for _, want := range []int64{0, 0, 5} {
			answer, err := stream.Recv()
			w.must(err)
			if answer.TTL != want {
				t.Errorf("the keep-alive of %d answers %d, want %d", answer.ID, answer.TTL, want)
			}
		}
		w.must(stream.CloseSend())
		if _, err := stream.Recv(); !errors.Is(err, io.EOF) {
			t.Errorf("the stream ends with %v", err)
		}
	})
}

// What etcdctl prints of a lease is the id of its session.
func TestNewLeasesHaveAllDigits(t *testing.T) {
	for range 1000 {
		if id := newLease(); id <= 0 || fmt.Sprintf("%x", id) != sessionOf(id) {
			t.Fatalf("the lease %x is the session %s", id, sessionOf(id))
		}
	}
}

func TestLeasesAreListedByWhatIsLeft(t *testing.T) {
	inWorld(t, func(w *world) {
		long, short, middle := w.grant(60), w.grant(5), w.grant(30)
		answer, err := w.lease.LeaseLeases(w.ctx, &pb.LeaseLeasesRequest{})
		w.must(err)
		var got []int64
		for _, l := range answer.Leases {
			got = append(got, l.ID)
		}
		if !slices.Equal(got, []int64{short, middle, long}) {
			t.Errorf("listed are %v", got)
		}
		_, err = w.lease.LeaseGrant(w.ctx, &pb.LeaseGrantRequest{ID: long, TTL: 60})
		w.is(err, rpctypes.ErrGRPCLeaseExist)
		_, err = w.lease.LeaseGrant(w.ctx, &pb.LeaseGrantRequest{TTL: maxTTL + 1})
		w.is(err, rpctypes.ErrGRPCLeaseTTLTooLarge)
	})
}

// A watch that begins in the past shows everything since, one that begins now what follows; both in order, each once.
func TestWatch(t *testing.T) {
	inWorld(t, func(w *world) {
		begin := w.put("a", "0", 0).Header.Revision
		stream, err := w.watch.Watch(w.ctx)
		w.must(err)
		create := func(r *pb.WatchCreateRequest) *pb.WatchResponse {
			w.must(stream.Send(&pb.WatchRequest{RequestUnion: &pb.WatchRequest_CreateRequest{CreateRequest: r}}))
			answer, err := stream.Recv()
			w.must(err)
			return answer
		}
		if answer := create(&pb.WatchCreateRequest{Key: []byte("b"), RangeEnd: []byte("a")}); !answer.Canceled ||
			!answer.Created || answer.WatchId != noWatch {
			t.Errorf("an empty range is answered %v", answer)
		}
		now := create(&pb.WatchCreateRequest{Key: []byte("a"), PrevKv: true})
		if !now.Created || now.WatchId != 0 {
			t.Errorf("it begins with %v", now)
		}
		w.put("a", "1", 0)
		w.put("b", "1", 0)
		answer, err := stream.Recv()
		w.must(err)
		if len(answer.Events) != 1 || string(answer.Events[0].PrevKv.GetValue()) != "0" {
			t.Errorf("the watch shows %v", answer)
		}
		past := create(&pb.WatchCreateRequest{Key: []byte{0}, RangeEnd: []byte{0}, StartRevision: begin})
		answer, err = stream.Recv()
		w.must(err)
		if answer.WatchId != past.WatchId || len(answer.Events) != 3 {
			t.Errorf("the watch from the beginning shows %v", answer)
		}
		w.must(stream.Send(&pb.WatchRequest{RequestUnion: &pb.WatchRequest_ProgressRequest{
			ProgressRequest: &pb.WatchProgressRequest{}}}))
		answer, err = stream.Recv()
		w.must(err)
		if answer.WatchId != noWatch || answer.Header.Revision != begin+2 {
			t.Errorf("the progress is %v", answer)
		}
		w.must(stream.Send(&pb.WatchRequest{RequestUnion: &pb.WatchRequest_CancelRequest{
			CancelRequest: &pb.WatchCancelRequest{WatchId: past.WatchId}}}))
		answer, err = stream.Recv()
		w.must(err)
		if !answer.Canceled || answer.WatchId != past.WatchId {
			t.Errorf("the cancel is answered %v", answer)
		}
		w.put("b", "2", 0)
		w.put("a", "2", 0)
		answer, err = stream.Recv()
		w.must(err)
		if answer.WatchId != now.WatchId || len(answer.Events) != 1 || string(answer.Events[0].Kv.Value) != "2" {
			t.Errorf("after the cancel the other watch shows %v", answer)
		}
	})
}

// Without a leader a server goes on to show what it has to who asks for no more: by serializable reads, and by watches,
// which show the rest when it comes.
func TestWithoutLeader(t *testing.T) {
	inWorld(t, func(w *world) {
		first := w.put("a", "1", 0).Header.Revision
		w.put("a", "2", 0)
		w.leaderless.Store(true)
		_, err := w.kv.Range(w.ctx, &pb.RangeRequest{Key: []byte("a")})
		w.is(err, rpctypes.ErrGRPCNoLeader)
		for revision, want := range map[int64]string{0: "2", first: "1"} {
			answer, err := w.kv.Range(w.ctx, &pb.RangeRequest{Key: []byte("a"), Serializable: true, Revision: revision})
			w.must(err)
			if len(answer.Kvs) != 1 || string(answer.Kvs[0].Value) != want {
				t.Errorf("at revision %d it reads %v, want %s", revision, answer.Kvs, want)
			}
		}
		past := w.follow(w.watch, &pb.WatchCreateRequest{Key: []byte("a"), StartRevision: first})
		answer, err := past.Recv()
		w.must(err)
		if len(answer.Events) != 2 {
			t.Errorf("a watch from the past shows %v", answer.Events)
		}
		now := w.follow(w.watch, &pb.WatchCreateRequest{Key: []byte("a")})
		w.must(now.Send(&pb.WatchRequest{RequestUnion: &pb.WatchRequest_ProgressRequest{
			ProgressRequest: &pb.WatchProgressRequest{}}}))
		if answer, err = now.Recv(); err != nil || answer.Header.Revision != first+1 {
			t.Errorf("its progress is %v, %v", answer, err)
		}
		w.leaderless.Store(false)
		w.put("a", "3", 0)
		for _, stream := range []pb.Watch_WatchClient{past, now} {
			if answer, err = stream.Recv(); err != nil || len(answer.Events) != 1 {
				t.Errorf("it goes on with %v, %v", answer, err)
			}
		}
	})
}

func TestCompaction(t *testing.T) {
	inWorld(t, func(w *world) {
		for _, value := range []string{"1", "2", "3"} {
			w.put("a", value, 0)
		}
		now := w.put("a", "4", 0).Header.Revision
		_, err := w.kv.Compact(w.ctx, &pb.CompactionRequest{Revision: now + 1})
		w.is(err, rpctypes.ErrGRPCFutureRev)
		_, err = w.kv.Compact(w.ctx, &pb.CompactionRequest{Revision: now - 1})
		w.must(err)
		_, err = w.kv.Compact(w.ctx, &pb.CompactionRequest{Revision: now - 1})
		w.is(err, rpctypes.ErrGRPCCompacted)
		_, err = w.kv.Range(w.ctx, &pb.RangeRequest{Key: []byte("a"), Revision: now - 2})
		w.is(err, rpctypes.ErrGRPCCompacted)
		answer, err := w.kv.Range(w.ctx, &pb.RangeRequest{Key: []byte("a"), Revision: now - 1})
		w.must(err)
		if string(answer.Kvs[0].Value) != "3" {
			t.Errorf("at the compacted revision it is %v", answer.Kvs)
		}
		stream, err := w.watch.Watch(w.ctx)
		w.must(err)
		w.must(stream.Send(&pb.WatchRequest{RequestUnion: &pb.WatchRequest_CreateRequest{
			CreateRequest: &pb.WatchCreateRequest{Key: []byte("a"), StartRevision: 1}}}))
		_, err = stream.Recv()
		w.must(err)
		last, err := stream.Recv()
		w.must(err)
		if !last.Canceled || last.CompactRevision != now-1 {
			t.Errorf("a watch of what was compacted ends with %v", last)
		}
	})
}
