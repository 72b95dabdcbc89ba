package redis

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/leasehold/leasehold"
	"github.com/leasehold/leasehold/internal/peer"
	"github.com/leasehold/leasehold/store"
)

// An answer that is lost is found by asking again: nothing happens twice.
func TestLostReplies(t *testing.T) {
	t.Parallel()
	server := peer.StartRedis(t, peer.RedisConfig{})
	proxy := peer.StartProxy(t, server.Address)
	s := openAt(t, proxy.Address)
	// The server has all scripts: otherwise the answer that is lost says only that it lacks one.
	warm := store.Ref{Resource: "warm", ID: "warm"}
	mustAcquire(t, s, warm.Resource, warm.ID)
	_, _ = s.Break(t.Context(), store.BreakRequest{Ref: warm})
	_ = s.Release(t.Context(), store.ReleaseRequest{Leases: []store.Ref{warm}})
	r := store.Request{Resource: "r", ID: "a", Holder: "a", TTL: 10 * testTTL}
	lost := func(what string, call func(context.Context) error) {
		t.Helper()
		proxy.DropReplies()
		ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
		defer cancel()
		if err := call(ctx); !store.Transient(err) || errors.Is(err, leasehold.ErrUnavailable) {
			t.Errorf("%s whose answer was lost: %v", what, err)
		}
		proxy.Forward()
	}
	lost("an acquire", func(ctx context.Context) error { _, err := s.Acquire(ctx, r); return err })
	direct := openAt(t, server.Address)
	known, err := direct.Read(t.Context(), "r")
	if err != nil || known.Holding != 1 {
		t.Fatalf("the request has not arrived: %+v, %v", known, err)
	}
	grant, err := again(func() (store.Grant, error) { return s.Acquire(t.Context(), r) })
	if err != nil || grant.Token != known.Holders[0].Token {
		t.Errorf("asked again, it has token %d, %v: it was %d", grant.Token, err, known.Holders[0].Token)
	}
	a := store.Ref{Resource: "r", ID: "a"}
	lost("a break", func(ctx context.Context) error {
		_, err := s.Break(ctx, store.BreakRequest{Ref: a, By: "op", Reason: "test"})
		return err
	})
	renewals, err := again(func() ([]store.Renewal, error) { return s.Renew(t.Context(), a) })
	if err != nil || renewals[0].Ended == nil || renewals[0].Ended.By != "op" || renewals[0].Ended.Reason != "test" {
		t.Errorf("the holder of a broken lease learns %+v, %v", renewals, err)
	}
	b := store.Ref{Resource: "r", ID: "b"}
	lost("a release", func(ctx context.Context) error {
		return s.Release(ctx, store.ReleaseRequest{Leases: []store.Ref{b}, Withdraw: true})
	})
	r.ID = "b"
	if _, err := direct.Acquire(t.Context(), r); !errors.Is(err, leasehold.ErrLost) {
		t.Errorf("an id that was withdrawn before it was known: %v", err)
	}
}

// again repeats a call until the connection works.
func again[T any](call func() (T, error)) (answer T, err error) {
	for range 100 {
		if answer, err = call(); !store.Transient(err) {
			break
		}
		time.Sleep(20 * time.Millisecond)
	}
	return answer, err
}

// Without a server nothing can have happened.
func TestNobodyListens(t *testing.T) {
	t.Parallel()
	server := peer.StartRedis(t, peer.RedisConfig{})
	c := config(server.Address)
	c.Options.Username, c.Options.Password = "default", "hunter2"
	s := openWith(t, c)
	server.Kill()
	time.Sleep(50 * time.Millisecond)
	_, err := again(func() (struct{}, error) {
		_, err := acquire(t, s, "r", "a")
		if errors.Is(err, leasehold.ErrUnavailable) {
			return struct{}{}, nil
		}
		return struct{}{}, err
	})
	if err != nil {
		t.Errorf("nobody listens: %v", err)
	}
	if _, err := Open(t.Context(), c); !errors.Is(err, leasehold.ErrUnavailable) || strings.Contains(err.Error(), "hunter2") {
		t.Errorf("opened: %v", err)
	}
	_ = s.Close()
	if _, err := acquire(t, s, "r", "a"); !errors.Is(err, leasehold.ErrUnavailable) || !strings.Contains(err.Error(), "closed") {
		t.Errorf("after Close: %v", err)
	}
}

// A period ends a lease no later than it says, and the holder learns who wanted it.
func TestABreakWithAPeriod(t *testing.T) {
	t.Parallel()
	server := peer.StartRedis(t, peer.RedisConfig{})
	s := openAt(t, server.Address)
	r := store.Request{Resource: "r", ID: "a", Holder: "a", TTL: 5 * testTTL, Value: []byte{0, 255, '\n'}}
	if _, err := s.Acquire(t.Context(), r); err != nil {
		t.Fatal(err)
	}
	a := store.Ref{Resource: "r", ID: "a"}
	sent := time.Now()
	l, err := s.Break(t.Context(), store.BreakRequest{Ref: a, By: "op", Reason: "why", Period: testTTL})
	if err != nil || l.State != leasehold.Breaking || l.Remaining > testTTL {
		t.Fatalf("the break: %+v, %v", l, err)
	}
	// A longer one does not give time back, and a renewal neither.
	if l, err := s.Break(t.Context(), store.BreakRequest{Ref: a, By: "op", Reason: "why", Period: 4 * testTTL}); err != nil ||
		l.Remaining > testTTL {
		t.Errorf("the second break: %+v, %v", l, err)
	}
	if all, err := s.Renew(t.Context(), a); err != nil || all[0].Remaining > testTTL || all[0].State != leasehold.Breaking {
		t.Errorf("a renewal: %+v, %v", all, err)
	}
	shown, err := s.Read(t.Context(), "r")
	if err != nil || shown.State != leasehold.Breaking || string(shown.Value) != string(r.Value) {
		t.Errorf("it is shown as %+v, %v", shown, err)
	}
	next, err := s.Acquire(t.Context(), store.Request{Resource: "r", ID: "b", Holder: "b", TTL: testTTL, Wait: 10 * testTTL})
	if err != nil || time.Since(sent) < testTTL || time.Since(sent) > 4*testTTL {
		t.Errorf("the next one: %+v, %v after %v", next, err, time.Since(sent))
	}
	all, err := s.Renew(t.Context(), a)
	if err != nil || all[0].Ended == nil || all[0].Ended.How != leasehold.ByBreak || all[0].Ended.By != "op" ||
		all[0].Ended.Reason != "why" || all[0].Ended.Holder != "a" {
		t.Errorf("the holder learns %+v, %v", all[0].Ended, err)
	}
}

// More leases than one script takes are renewed and released in parts.
func TestManyAtOnce(t *testing.T) {
	t.Parallel()
	server := peer.StartRedis(t, peer.RedisConfig{})
	s := openAt(t, server.Address)
	var refs []store.Ref
	for i := range 2*chunk + 1 {
		id := strings.Repeat("x", i+1)
		if _, err := s.Acquire(t.Context(), store.Request{Resource: id, ID: id, TTL: 10 * testTTL}); err != nil {
			t.Fatal(err)
		}
		refs = append(refs, store.Ref{Resource: id, ID: id})
	}
	all, err := s.Renew(t.Context(), append(refs, store.Ref{Resource: "r", ID: "unknown"})...)
	if err != nil || len(all) != len(refs)+1 {
		t.Fatalf("renewed %d, %v", len(all), err)
	}
	for i, r := range all[:len(refs)] {
		if r.Ended != nil || r.ID != refs[i].ID {
			t.Errorf("number %d: %+v", i, r)
		}
	}
	if e := all[len(refs)].Ended; e == nil || e.How != 0 {
		t.Errorf("an unknown id: %+v", e)
	}
	page, err := s.List(t.Context(), store.Query{Limit: 2*chunk + 1})
	if err != nil || len(page.Items) != len(refs) || page.Next != "" {
		t.Errorf("listed %d, next %q, %v", len(page.Items), page.Next, err)
	}
	if err := s.Release(t.Context(), store.ReleaseRequest{Leases: refs}); err != nil {
		t.Fatal(err)
	}
	if page, err := s.List(t.Context(), store.Query{}); err != nil || len(page.Items) != 0 {
		t.Errorf("listed %d, %v", len(page.Items), err)
	}
}
