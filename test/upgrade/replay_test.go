//go:build linux

package upgrade

import (
	"fmt"
	"math/rand/v2"
	"syscall"
	"testing"
	"time"

	v1 "github.com/leasehold/leasehold/api/v1"
)

// Both versions come to the same state by a log that the release wrote, from its beginning or
// from a snapshot. Servers of this tree go on with it at its level, and what they write leads the
// release to the same state too, until the level is raised.
func TestBothVersionsReplayTheSameState(t *testing.T) {
	old, tree := build(t)
	s := newServer(t, "alone")
	s.start(old)
	s.ready()
	for round := range 2 {
		everything(t, s, fmt.Sprint("release", round))
		s.end(syscall.SIGKILL)
		sameReplay(t, old, tree, s.data)
		s.start(old)
		s.ready()
	}
	bulk(t, s)
	s.end(syscall.SIGTERM)
	if found := sameReplay(t, old, tree, s.data); found.Snapshot == 0 {
		t.Errorf("there is no snapshot: %+v", found)
	}

	s.data = copyData(t, s.data)
	s.start(tree)
	s.ready()
	wantLevel(t, s, oldLevel)
	everything(t, s, "tree")
	s.end(syscall.SIGKILL)
	sameReplay(t, old, tree, s.data)
	s.start(old)
	s.ready()
	everything(t, s, "back")
	s.end(syscall.SIGTERM)
	sameReplay(t, old, tree, s.data)

	s.start(tree)
	s.ready()
	wantLevel(t, s, oldLevel)
	if out, ok := run(t, tree, "cluster", "upgrade", "--server", s.url()); !ok {
		t.Fatalf("cluster upgrade: %s", out)
	}
	wantLevel(t, s, newLevel)
	everything(t, s, "raised")
	s.end(syscall.SIGKILL)
	check(t, tree, s.data)
	s.start(tree)
	s.ready()
	wantLevel(t, s, newLevel)
	s.end(syscall.SIGTERM)
	s.start(old)
	s.endsWith("use the newer version")
}

func wantLevel(t *testing.T, s *server, want uint64) {
	t.Helper()
	if level, err := s.level(); level != want || err != nil {
		t.Errorf("%s says level %d, %v; want %d", s.name, level, err, want)
	}
}

// everything does one of each thing, in a namespace of its own.
func everything(t *testing.T, s *server, namespace string) {
	t.Helper()
	ctx := t.Context()
	c, err := v1.NewCaller(v1.CallerConfig{Server: s.url(), Namespace: namespace, Timeout: 10 * time.Second})
	if err != nil {
		t.Fatal(err)
	}
	defer c.CloseIdle()
	must := func(_ any, err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	acquire := func(r v1.AcquireRequest) {
		t.Helper()
		r.Holder = "holder"
		if r.Session == "" {
			r.TTL = ttl(time.Hour)
		}
		must(c.Acquire(ctx, r))
	}
	must(c.Define(ctx, "shared/", v1.DefinitionRequest{Capacity: 3}))
	must(c.OpenSession(ctx, v1.SessionRequest{ID: "lives", TTL: ttl(time.Hour)}))
	must(c.OpenSession(ctx, v1.SessionRequest{ID: "closes", TTL: ttl(time.Hour)}))
	for n := range 3 {
		acquire(v1.AcquireRequest{Resource: "shared/a", ID: fmt.Sprint("shared", n), Shared: true})
		acquire(v1.AcquireRequest{Resource: fmt.Sprint("one/", n), ID: fmt.Sprint("one", n), Session: "lives"})
		acquire(v1.AcquireRequest{Resource: fmt.Sprint("gone/", n), ID: fmt.Sprint("gone", n), Session: "closes"})
	}
	also := []v1.AcquireItem{{Resource: "all/1", ID: "all1"}}
	acquire(v1.AcquireRequest{Resource: "all/0", ID: "all0", Session: "lives", Also: also})
	must(c.Renew(ctx, v1.RenewRequest{ID: "shared0"}))
	must(nil, c.Release(ctx, v1.ReleaseRequest{ID: "shared1"}))
	must(c.Change(ctx, v1.ChangeRequest{ID: "one0", Holder: "another", NewID: "one0b"}))
	var now v1.Duration
	must(c.Break(ctx, v1.BreakRequest{ID: "one1", Period: &now, By: "operator", Reason: "test"}))
	must(c.Break(ctx, v1.BreakRequest{ID: "one2", By: "operator"}))
	must(c.RenewSession(ctx, "lives"))
	// Somebody waits, gives up, and the queue moves on.
	_, err = c.Acquire(ctx, v1.AcquireRequest{Resource: "all/0", ID: "waits", Holder: "waiter", TTL: ttl(time.Hour),
		Wait: v1.Duration(50 * time.Millisecond)})
	if err == nil {
		t.Fatal("a lease on what is taken was granted")
	}
	must(c.PutRecord(ctx, v1.PutRequest{Path: "record", Value: []byte("first")}))
	must(c.PutRecord(ctx, v1.PutRequest{Path: "record", Value: []byte("second")}))
	must(c.Txn(ctx, v1.TxnRequest{
		If:   []v1.Compare{{Record: "record", Field: "value", Value: []byte("second")}},
		Then: []v1.Op{{Do: "put", Path: "record", Value: []byte("third")}, {Do: "put", Path: "other", Value: []byte("1")}},
	}))
	must(nil, c.CloseSession(ctx, "closes"))
	// What ends by time ends by a tick.
	must(c.Acquire(ctx, v1.AcquireRequest{Resource: "short", ID: "short", Holder: "holder", TTL: ttl(time.Second)}))
	until(t, "a lease ends by time", func() error {
		r, err := c.Resource(ctx, "short", 0)
		if err == nil && len(r.Holders) > 0 {
			return fmt.Errorf("it is held: %+v", r)
		}
		return err
	})
}

// bulk writes so much that snapshots are taken.
func bulk(t *testing.T, s *server) {
	t.Helper()
	value := make([]byte, 60<<10)
	for i := range value {
		value[i] = byte(rand.N(256))
	}
	c := s.caller()
	for n := range 40 {
		if _, err := c.PutRecord(t.Context(), v1.PutRequest{Path: fmt.Sprint("bulk/", n%7), Value: value}); err != nil {
			t.Fatal(err)
		}
	}
}
