package redis

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/leasehold/leasehold"
	"github.com/leasehold/leasehold/internal/peer"
	"github.com/leasehold/leasehold/store"
)

// When memory is full, nothing new is granted, but what is held goes on and can be given back.
func TestFullMemory(t *testing.T) {
	t.Parallel()
	server := peer.StartRedis(t, peer.RedisConfig{})
	s := openAt(t, server.Address)
	held := mustAcquire(t, s, "r", "a")
	a := store.Ref{Resource: "r", ID: "a"}
	b := store.Request{Resource: "r", ID: "b", TTL: testTTL, Wait: time.Minute}
	ctx, cancel := context.WithTimeout(t.Context(), testTTL/5)
	defer cancel()
	if _, err := s.Acquire(ctx, b); !store.Transient(err) { // its place outlives the call
		t.Fatal(err)
	}
	b.Wait = 0
	server.Do("CONFIG", "SET", "maxmemory", "1kb")
	if _, err := acquire(t, s, "new", "c"); !errors.Is(err, leasehold.ErrLimited) || !strings.Contains(err.Error(), "maxmemory") {
		t.Errorf("a new lease: %v", err)
	}
	again, err := acquire(t, s, "r", "a")
	if err != nil || again.Token != held.Token {
		t.Errorf("the holder asks again: %+v, %v", again, err)
	}
	var e *leasehold.Error
	if _, err := s.Acquire(t.Context(), b); !errors.As(err, &e) || e.Code != leasehold.Held || e.Position != 1 {
		t.Errorf("the waiter asks again: %v", err)
	}
	if r, err := s.Renew(t.Context(), a); err != nil || r[0].Ended != nil {
		t.Errorf("a renewal: %+v, %v", r, err)
	}
	if r, err := s.Read(t.Context(), "r"); err != nil || r.Holding != 1 {
		t.Errorf("a look: %+v, %v", r, err)
	}
	if err := s.Release(t.Context(), store.ReleaseRequest{Leases: []store.Ref{a, {Resource: "x", ID: "unknown"}}}); err != nil {
		t.Errorf("a release: %v", err)
	}
	if _, err := acquire(t, s, "r", "a"); !errors.Is(err, leasehold.ErrLost) {
		t.Errorf("the released id: %v", err)
	}
}

// The server may forget its scripts at any time.
func TestScriptFlushInMidRun(t *testing.T) {
	t.Parallel()
	server := peer.StartRedis(t, peer.RedisConfig{})
	s := openAt(t, server.Address)
	var stop atomic.Bool
	done := make(chan int)
	go func() {
		n := 0
		for ; !stop.Load(); n++ {
			server.Do("SCRIPT", "FLUSH")
		}
		done <- n
	}()
	for i := range 300 {
		id := fmt.Sprint(i)
		ref := store.Ref{Resource: "r", ID: id}
		mustAcquire(t, s, "r", id)
		if r, err := s.Renew(t.Context(), ref); err != nil || r[0].Ended != nil {
			t.Fatalf("a renewal: %+v, %v", r, err)
		}
		if err := s.Release(t.Context(), store.ReleaseRequest{Leases: []store.Ref{ref}}); err != nil {
			t.Fatal(err)
		}
	}
	stop.Store(true)
	if n := <-done; n == 0 {
		t.Error("the scripts were never flushed")
	}
}

func TestOnlyWithoutEviction(t *testing.T) {
	t.Parallel()
	server := peer.StartRedis(t, peer.RedisConfig{Args: []string{"--maxmemory-policy", "allkeys-lru"}})
	_, err := Open(t.Context(), config(server.Address))
	if !errors.Is(err, leasehold.ErrRefused) || !strings.Contains(err.Error(), "CONFIG SET maxmemory-policy noeviction") {
		t.Fatalf("opened: %v", err)
	}
	server.Do("CONFIG", "SET", "maxmemory-policy", "noeviction")
	mustAcquire(t, openAt(t, server.Address), "r", "a")
}

// TestPermissions uses the ACL of docs/stores/redis.md, and then one that lacks a command.
func TestPermissions(t *testing.T) {
	t.Parallel()
	server := peer.StartRedis(t, peer.RedisConfig{})
	server.Do(append([]string{"ACL", "SETUSER", "jobs"}, strings.Fields(documentedACL(t))...)...)
	address := "redis://jobs:secret@" + server.Address + "?init=true"
	opened, err := store.Open(t.Context(), address, store.Settings{})
	if err != nil {
		t.Fatal(err)
	}
	defer opened.Close()
	s := opened.(*Store)
	mustAcquire(t, s, "r", "a")
	if _, err := s.Acquire(t.Context(), store.Request{Resource: "r", ID: "b", TTL: testTTL, Wait: 10 * testTTL}); err != nil {
		t.Errorf("a wait: %v", err)
	}
	if _, err := s.Break(t.Context(), store.BreakRequest{Ref: store.Ref{Resource: "r", ID: "b"}}); err != nil {
		t.Errorf("a break: %v", err)
	}
	if page, err := s.List(t.Context(), store.Query{}); err != nil || len(page.Items) != 0 {
		t.Errorf("listed %+v, %v", page, err)
	}

	server.Do("ACL", "SETUSER", "jobs", "-zadd", "-del")
	_, err = store.Open(t.Context(), address, store.Settings{})
	if !errors.Is(err, leasehold.ErrDenied) || !strings.Contains(err.Error(), "(DEL, ZADD: ") || strings.Contains(err.Error(), "secret") {
		t.Errorf("without ZADD: %v", err)
	}
	_, err = store.Open(t.Context(), "redis://jobs:wrong-one@"+server.Address, store.Settings{})
	if !errors.Is(err, leasehold.ErrDenied) || strings.Contains(err.Error(), "wrong-one") {
		t.Errorf("with a wrong password: %v", err)
	}
}

// A replica answers nothing, not even a look.
func TestReplicasAreNeverRead(t *testing.T) {
	t.Parallel()
	primary := peer.StartRedis(t, peer.RedisConfig{})
	replica := primary.StartReplica(t, peer.RedisConfig{})
	if _, err := Open(t.Context(), config(replica.Address)); !errors.Is(err, leasehold.ErrUnavailable) {
		t.Errorf("a replica was opened: %v", err)
	}
	s := openAt(t, primary.Address)
	mustAcquire(t, s, "r", "a")
	primary.Do("REPLICAOF", strings.Replace(replica.Address, ":", " ", 1)[:strings.Index(replica.Address, ":")],
		replica.Address[strings.Index(replica.Address, ":")+1:])
	if _, err := s.Read(t.Context(), "r"); !errors.Is(err, leasehold.ErrUnavailable) {
		t.Errorf("the primary is a replica now, and is read: %v", err)
	}
}

// First use looks like lost memory, and waits unless it is told that it is the first.
func TestFirstUse(t *testing.T) {
	t.Parallel()
	server := peer.StartRedis(t, peer.RedisConfig{})
	c := shortConfig(server.Address)
	s := openWith(t, c)
	if _, err := acquire(t, s, "r", "a"); !errors.Is(err, leasehold.ErrUnavailable) || !strings.Contains(err.Error(), "init=true") {
		t.Fatalf("the first lease: %v", err)
	}
	c.Namespace = "second"
	other := openWith(t, c)
	if err := other.Init(t.Context()); err != nil {
		t.Fatal(err)
	}
	mustAcquire(t, other, "r", "a")
	// Init does not end a wait that has begun.
	if err := s.Init(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, err := acquire(t, s, "r", "b"); !errors.Is(err, leasehold.ErrUnavailable) {
		t.Errorf("after a late init: %v", err)
	}
	began := time.Now()
	if _, err := s.Acquire(t.Context(), store.Request{Resource: "r", ID: "c", TTL: testTTL, Wait: 10 * short}); err != nil {
		t.Errorf("a wait for the first lease: %v after %v", err, time.Since(began))
	}
}

// Everything that the server had is deleted while somebody holds a lease.
func TestFlush(t *testing.T) {
	t.Parallel()
	server := peer.StartRedis(t, peer.RedisConfig{})
	c := shortConfig(server.Address)
	c.Init = true
	s := openWith(t, c)
	before := mustAcquire(t, s, "r", "a")
	server.Do("FLUSHALL")
	if _, err := acquire(t, s, "r", "b"); !errors.Is(err, leasehold.ErrUnavailable) {
		t.Fatalf("after the flush: %v", err)
	}
	grant, err := s.Acquire(t.Context(), store.Request{Resource: "r", ID: "c", TTL: testTTL, Wait: 10 * short})
	if err != nil || grant.Token <= before.Token {
		t.Errorf("the token is %d after %d: %v", grant.Token, before.Token, err)
	}
}

// Names of resources whose leases ended by time do not stay in the index for ever.
func TestTheIndexIsSwept(t *testing.T) {
	t.Parallel()
	server := peer.StartRedis(t, peer.RedisConfig{})
	s := openAt(t, server.Address)
	for i := range 50 {
		r := store.Request{Resource: fmt.Sprint("old/", i), ID: fmt.Sprint(i), TTL: 20 * time.Millisecond}
		if _, err := s.Acquire(t.Context(), r); err != nil {
			t.Fatal(err)
		}
	}
	time.Sleep(50 * time.Millisecond)
	for i := range 10 * sweepEvery {
		id := fmt.Sprint("new", i)
		mustAcquire(t, s, "r", id)
		if err := s.Release(t.Context(), store.ReleaseRequest{Leases: []store.Ref{{Resource: "r", ID: id}}}); err != nil {
			t.Fatal(err)
		}
	}
	if got := server.Do("ZCARD", s.names.index()); got != "0" {
		t.Errorf("the index still has %s names", got)
	}
}

// If every lease is on another resource and ends by time, the index grows no further once the sweep removes as
// many names as are added. Programs that acquire once and end sweep, too.
func TestTheIndexIsBounded(t *testing.T) {
	t.Parallel()
	server := peer.StartRedis(t, peer.RedisConfig{})
	s, many := openAt(t, server.Address), 6000
	for i := range many {
		r := store.Request{Resource: fmt.Sprint("r", i), ID: strconv.Itoa(i), TTL: time.Millisecond}
		if _, err := s.Acquire(t.Context(), r); err != nil {
			t.Fatal(err)
		}
	}
	if n, _ := strconv.Atoi(server.Do("ZCARD", s.names.index())); n > many/6 {
		t.Errorf("the index has %d names after %d grants, of which none lives", n, many)
	}
}

// Keys that are no longer needed expire, ten minutes after the lease.
func TestKeysExpire(t *testing.T) {
	t.Parallel()
	server := peer.StartRedis(t, peer.RedisConfig{})
	s := openAt(t, server.Address)
	mustAcquire(t, s, "r", "a")
	if _, err := s.Acquire(t.Context(), store.Request{Resource: "r", ID: "b", TTL: testTTL, Wait: time.Millisecond}); err == nil {
		t.Fatal("granted twice")
	}
	for _, key := range strings.Fields(server.Do("KEYS", "*")) {
		ttl := server.Do("TTL", key)
		forever := key == s.names.record() || key == s.names.index()
		if (ttl == "-1") != forever || !forever && ttl != "600" && ttl != "601" {
			t.Errorf("%s expires in %s s", key, ttl)
		}
	}
}
