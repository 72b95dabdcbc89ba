package etcd

import (
	"context"
	"fmt"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	"go.etcd.io/etcd/server/v3/etcdserver/api/v3election/v3electionpb"
	"go.etcd.io/etcd/server/v3/etcdserver/api/v3lock/v3lockpb"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/leasehold/leasehold"
	"github.com/leasehold/leasehold/internal/core"
	"github.com/leasehold/leasehold/internal/door"
	"github.com/leasehold/leasehold/internal/door/doortest"
	"github.com/leasehold/leasehold/internal/engine"
	"github.com/leasehold/leasehold/internal/engine/memory"
)

func (w *world) status(resource string) (s leasehold.Status) {
	w.Helper()
	w.must(w.engine.Read(w.ctx, func(v core.View) { s = v.Status(leasehold.DefaultNamespace, resource, 10) }))
	return s
}

func (w *world) do(c core.Command) core.Answer {
	w.Helper()
	answer, err := w.engine.Do(w.ctx, c)
	w.must(err)
	return answer
}

// A lock of etcd is a lease of ours: its holder and queue are seen through every door, holders of other doors are in the
// same queue, and a break ends it.
func TestLockIsALease(t *testing.T) {
	inWorld(t, func(w *world) {
		native := func(holder string) *core.Acquire {
			return &core.Acquire{Namespace: leasehold.DefaultNamespace, Resource: "jobs/nightly", ID: holder, Holder: holder,
				TTL: time.Hour, Wait: time.Hour}
		}
		w.do(native("native"))
		mine := w.grant(60)
		got := make(chan error, 1)
		go func() {
			_, err := w.lock.Lock(w.ctx, &v3lockpb.LockRequest{Name: []byte("/jobs/nightly"), Lease: mine})
			got <- err
		}()
		synctest.Wait()
		if s := w.status("jobs/nightly"); s.Waiting != 1 || s.Holders[0].Holder != "native" {
			t.Fatalf("while it waits the resource is %+v", s)
		}
		below := &pb.RangeRequest{Key: []byte("/jobs/nightly/"), RangeEnd: prefixEnd("/jobs/nightly/"),
			SortTarget: pb.RangeRequest_CREATE, SortOrder: pb.RangeRequest_ASCEND}
		if want := fmt.Sprintf("/jobs/nightly/native /jobs/nightly/%x", mine); w.keys(below) != want {
			t.Errorf("the queue is %s, want %s", w.keys(below), want)
		}
		w.do(&core.Release{Namespace: leasehold.DefaultNamespace, ID: "native"})
		w.must(<-got)
		s := w.status("jobs/nightly")
		if len(s.Holders) != 1 || s.Holders[0].Session != sessionOf(mine) || s.Holders[0].Token == 0 ||
			!strings.HasPrefix(s.Holders[0].Holder, "etcd client") {
			t.Errorf("the holder is %+v", s.Holders)
		}
		w.do(&core.Break{Namespace: leasehold.DefaultNamespace, ID: s.Holders[0].ID, By: "op", Reason: "stuck"})
		if got := w.keys(below); got != "" {
			t.Errorf("after the break there is %s", got)
		}
	})
}

// The keys of two resources are never below one prefix: what is below it are the claims on one, and their order is that
// of its queue. So a resource whose keys are written with and without a slash in front has those of the first alone.
func TestAPrefixIsOfOneResource(t *testing.T) {
	seen := map[string]string{}
	for _, name := range []string{"a", "/a", "a/", "//a", "a/b", "/a/b/", "a//b", "b", "", "/"} {
		resource, prefix, ok := claimOf(name+"/ff", 0xff)
		if other, known := seen[prefix]; ok && known && other != resource {
			t.Errorf("%s and %s are both below %s", resource, other, prefix)
		}
		if seen[prefix] = resource; ok && strings.Trim(prefix, "/") != resource {
			t.Errorf("the claims on %s are below %s", resource, prefix)
		}
	}
	inWorld(t, func(w *world) {
		first, second := w.grant(60), w.grant(60)
		w.put(fmt.Sprintf("a/%x", first), "", first)
		_, err := w.kv.Put(w.ctx, &pb.PutRequest{Key: fmt.Appendf(nil, "/a/%x", second), Lease: second})
		if status.Code(err) != codes.FailedPrecondition {
			t.Errorf("the same resource below another prefix is answered %v", err)
		}
	})
}

// A resource that rests after an unclean end is not locked through etcd: the next client would not know that it does.
func TestNoLockOnWhatRests(t *testing.T) {
	inWorld(t, func(w *world) {
		w.do(&core.Define{Namespace: leasehold.DefaultNamespace, Definition: leasehold.Definition{Path: "a", Grace: time.Minute}})
		_, err := w.lock.Lock(w.ctx, &v3lockpb.LockRequest{Name: []byte("a"), Lease: w.grant(60)})
		if status.Code(err) != codes.FailedPrecondition || !strings.Contains(err.Error(), "rests after an unclean end") {
			t.Errorf("a lock is answered %v", err)
		}
	})
}

// Who waits for a lock, or campaigns, is told at once when its lease ends.
func TestWaitEndsWithItsLease(t *testing.T) {
	inWorld(t, func(w *world) {
		first, second, third := w.grant(3600), w.grant(5), w.grant(3600)
		_, err := w.lock.Lock(w.ctx, &v3lockpb.LockRequest{Name: []byte("a"), Lease: first})
		w.must(err)
		began := time.Now()
		_, err = w.lock.Lock(w.ctx, &v3lockpb.LockRequest{Name: []byte("a"), Lease: second})
		w.is(err, rpctypes.ErrGRPCLeaseNotFound)
		if took := time.Since(began); took < 5*time.Second || took > 7*time.Second {
			t.Errorf("the wait ended after %v", took)
		}
		got := make(chan error, 1)
		go func() {
			_, err := w.election.Campaign(w.ctx, &v3electionpb.CampaignRequest{Name: []byte("a"), Lease: third})
			got <- err
		}()
		synctest.Wait()
		_, err = w.lease.LeaseRevoke(w.ctx, &pb.LeaseRevokeRequest{ID: third})
		w.must(err)
		w.is(<-got, rpctypes.ErrGRPCLeaseNotFound)
	})
}

// A key that is a claim keeps its place whatever is put there, and what would take its lease away is refused.
func TestPutOnAClaim(t *testing.T) {
	inWorld(t, func(w *world) {
		mine, other := w.grant(60), w.grant(60)
		key := fmt.Sprintf("e/%x", mine)
		w.put(key, "candidate", mine)
		if s := w.status("e"); len(s.Holders) != 1 || s.Holders[0].Holder != "candidate" {
			t.Fatalf("the resource is %+v", s)
		}
		w.put(key, "changed", mine)
		_, err := w.kv.Put(w.ctx, &pb.PutRequest{Key: []byte(key), Value: []byte("x"), IgnoreLease: true})
		w.must(err)
		for _, lease := range []int64{0, other} {
			_, err := w.kv.Put(w.ctx, &pb.PutRequest{Key: []byte(key), Lease: lease})
			if status.Code(err) != codes.FailedPrecondition {
				t.Errorf("a put with lease %d is answered %v", lease, err)
			}
		}
		if s := w.status("e"); len(s.Holders) != 1 {
			t.Errorf("the resource is %+v", s)
		}
		// What cannot be the name of a resource stays a key and nothing else.
		w.put(fmt.Sprintf("a//b/%x", mine), "", mine)
		w.put(fmt.Sprintf("\xff/%x", mine), "", mine)
		if s := w.status("a//b"); len(s.Holders) != 0 {
			t.Errorf("a//b is %+v", s)
		}
	})
}

// Watches that nothing happens to cost little, with their clients: ten thousand of them less than 100 MB where a hundred
// share a connection.
func TestIdleWatches(t *testing.T) {
	t.Run("shared connections", func(t *testing.T) { idle(t, 100, 100, 10<<10) })
	t.Run("a connection each", func(t *testing.T) { idle(t, 200, 1, mostPerConnection) })
}

// idle opens watches, and fails if one of them costs more than so many bytes.
func idle(t *testing.T, conns, each int, most int64) {
	t.Helper()
	e := memory.Start(engine.NewGoClock())
	defer e.Close()
	b, pipe := door.NewBackend(e, door.Options{}), doortest.NewPipe()
	host := door.NewOwnHost(b, door.HostConfig{DrainTimeout: time.Second}, New(b, Config{}).Port(""))
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- host.Serve(ctx, pipe) }()
	used := func() uint64 {
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return m.HeapInuse + m.StackInuse
	}
	before := used()
	for i := range conns {
		conn := dial(t, pipe.Dial, grpc.WithReadBufferSize(0), grpc.WithWriteBufferSize(0)) // the server's are what counts
		defer conn.Close()
		stream, err := pb.NewWatchClient(conn).Watch(ctx)
		if err != nil {
			t.Fatal(err)
		}
		for j := range each {
			err := stream.Send(&pb.WatchRequest{RequestUnion: &pb.WatchRequest_CreateRequest{
				CreateRequest: &pb.WatchCreateRequest{Key: fmt.Appendf(nil, "idle/%d/%d", i, j)}}})
			if err != nil {
				t.Fatal(err)
			}
			if _, err := stream.Recv(); err != nil {
				t.Fatal(err)
			}
		}
	}
	cost := (int64(used()) - int64(before)) / int64(conns*each)
	t.Logf("each of %d watches on %d connections costs %d bytes, with its client", conns*each, conns, cost)
	if cost > most {
		t.Errorf("it costs %d bytes", cost)
	}
	stop()
	<-ended
}
