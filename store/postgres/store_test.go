//go:build linux

package postgres

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/leasehold/leasehold"
	"github.com/leasehold/leasehold/store"
)

func request(resource, id string) store.Request {
	return store.Request{Resource: resource, ID: id, Holder: "holder of " + id, TTL: time.Minute}
}

func acquire(t testing.TB, s *Store, r store.Request) store.Grant {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	g, err := s.Acquire(ctx, r)
	if err != nil {
		t.Fatalf("%s for %s: %v", r.Resource, r.ID, err)
	}
	return g
}

func release(t testing.TB, s *Store, resource, id string) {
	t.Helper()
	err := s.Release(t.Context(), store.ReleaseRequest{Leases: []store.Ref{{Resource: resource, ID: id}}})
	if err != nil {
		t.Fatal(err)
	}
}

// enqueue puts a waiter in a queue, as a call does that is then lost.
func enqueue(t testing.TB, s *Store, r store.Request) {
	t.Helper()
	r.Wait = time.Minute
	if _, _, err := s.acquire(t.Context(), r); code(err) != leasehold.Held {
		t.Fatal(err)
	}
}

func code(err error) leasehold.Code {
	e, _ := errors.AsType[*leasehold.Error](err)
	if e == nil {
		return 0
	}
	return e.Code
}

func TestALease(t *testing.T) {
	s := newStore(t)
	r := store.Request{Resource: "reports/nightly", ID: "one", Holder: "Zoë \x00 🎈", Reason: "why\n", TTL: 30 * time.Second,
		Labels: leasehold.Labels{{Key: "host", Value: "a"}, {Key: "x", Value: "\"'\\"}}, Value: []byte{0, 1, 0xff}}
	g := acquire(t, s, r)
	if g.Token == 0 || g.Token != g.Floor || g.Remaining != 30*time.Second || g.Holder != r.Holder || g.Reason != r.Reason ||
		!reflect.DeepEqual(g.Labels, r.Labels) || g.State != leasehold.Leased || time.Until(g.Expires) > 31*time.Second {
		t.Errorf("granted %+v", g)
	}
	again := acquire(t, s, r)
	if again.Token != g.Token || again.Remaining >= 30*time.Second || again.Remaining < 10*time.Second {
		t.Errorf("the same id again: %+v", again)
	}
	_, err := s.Acquire(t.Context(), request("reports/nightly", "two"))
	held, _ := errors.AsType[*leasehold.Error](err)
	if code(err) != leasehold.Held || held.Lease.ID != "one" || held.Lease.Holder != r.Holder || held.Position != 0 {
		t.Errorf("for another: %v", err)
	}
	state, err := s.Read(t.Context(), "reports/nightly")
	if err != nil || state.State != leasehold.Leased || len(state.Holders) != 1 || state.Holders[0].Token != g.Token ||
		string(state.Value) != string(r.Value) || state.Holders[0].Reason != r.Reason {
		t.Errorf("read %+v, %v", state, err)
	}
	renewals, err := s.Renew(t.Context(), store.Ref{Resource: "reports/nightly", ID: "one"}, store.Ref{Resource: "x", ID: "y"})
	if err != nil || renewals[0].Remaining != 30*time.Second || renewals[0].Token != g.Token ||
		renewals[1].Ended == nil || renewals[1].Ended.How != 0 {
		t.Errorf("renewed: %+v, %v", renewals, err)
	}
	release(t, s, "reports/nightly", "one")
	release(t, s, "reports/nightly", "one")
	if _, err := s.Acquire(t.Context(), r); code(err) != leasehold.Lost {
		t.Errorf("a released id: %v", err)
	}
	next := acquire(t, s, request("reports/nightly", "two"))
	if next.Token <= g.Token {
		t.Errorf("token %d after %d", next.Token, g.Token)
	}
	renewals, err = s.Renew(t.Context(), store.Ref{Resource: "reports/nightly", ID: "one"})
	if err != nil || renewals[0].Ended == nil || renewals[0].Ended.How != leasehold.Released {
		t.Errorf("a released id renewed: %+v, %v", renewals, err)
	}
}

func TestALeaseEndsByItself(t *testing.T) {
	s := newStore(t)
	r := request("a", "one")
	r.TTL = 100 * time.Millisecond
	acquire(t, s, r)
	time.Sleep(110 * time.Millisecond)
	state, err := s.Read(t.Context(), "a")
	if err != nil || state.State != leasehold.Expired || state.Last.ID != "one" || state.Holding != 0 {
		t.Errorf("read %+v, %v", state, err)
	}
	if page, err := s.List(t.Context(), store.Query{}); err != nil || len(page.Items) != 0 {
		t.Errorf("listed %+v, %v", page, err)
	}
	for range 2 {
		renewals, err := s.Renew(t.Context(), store.Ref{Resource: "a", ID: "one"})
		if err != nil || renewals[0].Ended == nil || renewals[0].Ended.How != leasehold.ByTTL || renewals[0].Ended.Token == 0 {
			t.Errorf("renewed %+v, %v", renewals, err)
		}
	}
	if _, err := s.Acquire(t.Context(), r); code(err) != leasehold.Lost {
		t.Errorf("acquired again: %v", err)
	}
	acquire(t, s, request("a", "two"))
}

func TestReleaseOfAnUnknownID(t *testing.T) {
	s := newStore(t)
	release(t, s, "a", "one")
	if _, err := s.Acquire(t.Context(), request("a", "one")); code(err) != leasehold.Lost {
		t.Errorf("an acquire that came late: %v", err)
	}
	acquire(t, s, request("a", "two"))
	release(t, s, "a", "three")
	if _, err := s.Acquire(t.Context(), request("a", "three")); code(err) != leasehold.Lost {
		t.Errorf("an acquire that came late, while it is held: %v", err)
	}
}

func TestBreak(t *testing.T) {
	s := newStore(t)
	acquire(t, s, request("a", "one"))
	ref := store.Ref{Resource: "a", ID: "one"}
	_, err := s.Break(t.Context(), store.BreakRequest{Ref: store.Ref{Resource: "a", ID: "two"}})
	if code(err) != leasehold.NotFound {
		t.Errorf("of an unknown id: %v", err)
	}
	lease, err := s.Break(t.Context(), store.BreakRequest{Ref: ref, By: "op", Reason: "late", Period: 200 * time.Millisecond})
	if err != nil || lease.State != leasehold.Breaking || lease.Remaining != 200*time.Millisecond {
		t.Errorf("with a period: %+v, %v", lease, err)
	}
	lease, err = s.Break(t.Context(), store.BreakRequest{Ref: ref, By: "other", Period: time.Hour})
	if err != nil || lease.Remaining > 200*time.Millisecond {
		t.Errorf("with a longer one: %+v, %v", lease, err)
	}
	renewals, err := s.Renew(t.Context(), ref)
	if err != nil || renewals[0].Remaining > 200*time.Millisecond || renewals[0].State != leasehold.Breaking {
		t.Errorf("a renewal of it: %+v, %v", renewals, err)
	}
	time.Sleep(210 * time.Millisecond)
	state, err := s.Read(t.Context(), "a")
	if err != nil || state.State != leasehold.Broken || state.Last.By != "op" {
		t.Errorf("read: %+v, %v", state, err)
	}
	renewals, err = s.Renew(t.Context(), ref)
	if e := renewals[0].Ended; err != nil || e == nil || e.How != leasehold.ByBreak || e.By != "op" || e.Reason != "late" {
		t.Errorf("after it: %+v, %v", renewals, err)
	}
	if _, err := s.Break(t.Context(), store.BreakRequest{Ref: ref}); code(err) != leasehold.Lost {
		t.Errorf("of a broken one: %v", err)
	}
	acquire(t, s, request("a", "two"))
	lease, err = s.Break(t.Context(), store.BreakRequest{Ref: store.Ref{Resource: "a", ID: "two"}, By: "op"})
	if err != nil || lease.State != leasehold.Broken || lease.Token == 0 {
		t.Errorf("at once: %+v, %v", lease, err)
	}
	acquire(t, s, request("a", "three"))
}

func TestList(t *testing.T) {
	s := newStore(t)
	for _, name := range []string{"b/2", "a", "b/1", "b", "b/\xf4\x8f\xbf\xbf", "c", "b/\x00"} {
		acquire(t, s, request(name, "of "+name))
	}
	release(t, s, "c", "of c")
	var names []string
	for q := (store.Query{Prefix: "b/", Limit: 2}); ; {
		page, err := s.List(t.Context(), q)
		if err != nil {
			t.Fatal(err)
		}
		for _, item := range page.Items {
			names = append(names, item.Resource)
		}
		if q.After = page.Next; page.Next == "" {
			break
		}
	}
	if fmt.Sprintf("%q", names) != `["b/\x00" "b/1" "b/2" "b/\U0010ffff"]` {
		t.Errorf("listed %q", names)
	}
	if page, err := s.List(t.Context(), store.Query{}); err != nil || len(page.Items) != 6 {
		t.Errorf("listed %d of all, %v", len(page.Items), err)
	}
}

func TestTheQueueIsFair(t *testing.T) {
	s := newStore(t)
	acquire(t, s, request("a", "holder"))
	var mu sync.Mutex
	var order []string
	var waiters sync.WaitGroup
	for i := range 5 {
		r := request("a", fmt.Sprint(i))
		r.Wait = time.Minute
		waiters.Go(func() {
			g, err := s.Acquire(t.Context(), r)
			if err != nil || !g.Waited {
				t.Errorf("%s: %+v, %v", r.ID, g, err)
			}
			mu.Lock()
			order = append(order, r.ID)
			mu.Unlock()
			release(t, s, "a", r.ID)
		})
		waitFor(t, func() bool {
			state, err := s.Read(t.Context(), "a")
			return err == nil && state.Waiting == i+1
		})
	}
	state, err := s.Read(t.Context(), "a")
	if err != nil || len(state.Queue) != 5 || state.Queue[0].ID != "0" || state.Queue[4].Position != 5 {
		t.Errorf("the queue is %+v, %v", state.Queue, err)
	}
	_, err = s.Acquire(t.Context(), request("a", "3"))
	if e, _ := errors.AsType[*leasehold.Error](err); e == nil || e.Position != 4 || e.Waiting != 5 {
		t.Errorf("a waiter asks for its place: %+v", e)
	}
	began := time.Now()
	release(t, s, "a", "holder")
	waiters.Wait()
	if got := strings.Join(order, ""); got != "01234" {
		t.Errorf("granted in the order %s", got)
	}
	t.Logf("five hand-overs took %v", time.Since(began))
}

func TestDeadAndWithdrawnWaitersAreSkipped(t *testing.T) {
	s := newStore(t)
	acquire(t, s, request("a", "holder"))
	for _, id := range []string{"dead", "withdrawn", "alive"} {
		r := request("a", id)
		if id == "dead" {
			r.TTL = 100 * time.Millisecond
		}
		enqueue(t, s, r)
	}
	release(t, s, "a", "withdrawn")
	release(t, s, "a", "holder")
	time.Sleep(100 * time.Millisecond)
	if _, err := s.Acquire(t.Context(), request("a", "new")); code(err) != leasehold.Held {
		t.Errorf("somebody new got it before the waiter: %v", err)
	}
	acquire(t, s, request("a", "alive"))
	release(t, s, "a", "alive")
	if _, err := s.Acquire(t.Context(), request("a", "withdrawn")); code(err) != leasehold.Lost {
		t.Errorf("a withdrawn waiter: %v", err)
	}
}

func TestTheHeadWakesWhenTheLeaseEnds(t *testing.T) {
	s := newStore(t)
	r := request("a", "dead")
	r.TTL = 300 * time.Millisecond
	began := time.Now()
	acquire(t, s, r)
	r = request("a", "next")
	r.Wait = time.Minute
	acquire(t, s, r)
	if took := time.Since(began); took < 300*time.Millisecond || took > 800*time.Millisecond {
		t.Errorf("granted after %v", took)
	}
}

func waitFor(t testing.TB, done func() bool) {
	t.Helper()
	for deadline := time.Now().Add(20 * time.Second); !done(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("it does not happen")
		}
	}
}

// Waits of a TTL, behind waits of a TTL that were over, must not add up.
func TestAWaitThatIsOverIsInNobodysWay(t *testing.T) {
	s := newStore(t)
	acquire(t, s, request("a", "holder"))
	r := request("a", "over")
	r.Wait = 10 * time.Millisecond
	_, err := s.Acquire(t.Context(), r)
	if e, _ := errors.AsType[*leasehold.Error](err); e == nil || e.Code != leasehold.Held || e.Position != 0 || e.Waiting != 0 {
		t.Errorf("a wait that is over: %+v", e)
	}
	release(t, s, "a", "holder")
	acquire(t, s, request("a", "next"))
	release(t, s, "a", "next")
	acquire(t, s, r)
}
