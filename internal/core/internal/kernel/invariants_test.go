package kernel

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/leasehold/leasehold"
)

// busy is a state with something of everything in it.
func busy(t *testing.T) (*State, *space) {
	s, at := newState(), time.Duration(0)
	for _, c := range []Command{
		&OpenSession{Namespace: "default", ID: "s1", TTL: time.Hour},
		&Acquire{Namespace: "default", Resource: "printer", ID: "a1", Holder: "ann", Session: "s1"},
		&Acquire{Namespace: "default", Resource: "printer", ID: "b1", Holder: "bob", TTL: time.Hour, Wait: time.Hour},
		&Acquire{Namespace: "default", Resource: "scanner", ID: "a2", Holder: "ann", TTL: time.Hour},
		&Acquire{Namespace: "default", Resource: "plotter", ID: "a3", Holder: "ann", TTL: time.Second, Grace: time.Hour},
		&Tick{}, // a3 has expired, and there is an alarm
		&Acquire{Namespace: "default", Resource: "plotter", ID: "b3", Holder: "bob", TTL: time.Hour, Wait: time.Hour},
		&Acquire{Namespace: "default", Resource: "idle", ID: "a4", Holder: "ann", TTL: time.Hour},
		&Release{Namespace: "default", ID: "a4"},
		&PutRecord{Namespace: "default", Path: "config", Value: "one"},
		&PutRecord{Namespace: "default", Path: "alive", Value: "yes", Session: "s1"},
		&PutRecord{Namespace: "default", Path: "state", Large: &leasehold.Large{Size: 7}, Keep: 3},
		&PutRecord{Namespace: "default", Path: "state", Value: "two"},
		&PutRecord{Namespace: "default", Path: "gone", Value: "one", Keep: 3},
		&DeleteRecord{Namespace: "default", Path: "gone"},
	} {
		if _, ok := c.(*Tick); ok {
			at += time.Second
		}
		if a := apply(t, s, at, c); a.Err != nil {
			t.Fatal(a.Err)
		}
	}
	if err := s.Check(); err != nil {
		t.Fatalf("a state that nobody has damaged: %v", err)
	}
	return s, s.space("default")
}

// TestCheckFinds damages a state in every way that Check is there for. An invariant that
// finds nothing would let every other test pass.
func TestCheckFinds(t *testing.T) {
	claim := func(sp *space, id string, change func(c *Claim)) {
		c, _ := sp.claims.Get(id)
		damaged := *c
		change(&damaged)
		sp.claims.Set(&damaged)
	}
	resource := func(sp *space, path string, change func(r *Resource)) {
		r, _ := sp.resources.Get(path)
		damaged := *r
		change(&damaged)
		sp.resources.Set(path, &damaged)
	}
	for _, test := range []struct {
		damage func(s *State, sp *space)
		says   string
	}{
		{func(_ *State, sp *space) { sp.resources.Delete("scanner") }, `its resource "scanner" is unknown`},
		{func(_ *State, sp *space) { claim(sp, "a2", func(c *Claim) { c.ID = "other" }) }, `other is held, but "scanner" is held by "a2"`},
		{func(_ *State, sp *space) {
			c, _ := sp.claims.Get("a2")
			sp.claims.put("a2", knownID{c, &EndedClaim{ID: "a2"}})
		}, "a2 has ended and is alive"},
		{func(_ *State, sp *space) { sp.sessions.Delete("s1") }, `bound to session "s1", which is not there`},
		{func(_ *State, sp *space) { sp.bound.Delete(binding{"s1", "a1"}) }, "a1 would not end with its session"},
		{func(_ *State, sp *space) { sp.bound.Set(binding{"s1", "a2"}) }, "1 claims have sessions, 2 bindings exist"},
		{func(_ *State, sp *space) {
			session, _ := sp.sessions.Get("s1")
			damaged := *session
			damaged.Claims = 7
			sp.sessions.Set("s1", &damaged)
		}, "session s1 counts 7 claims and has 2"},
		{func(_ *State, sp *space) {
			resource(sp, "idle", func(r *Resource) { more := *r.More; more.Usual = &Usual{Holds: "x"}; r.More = &more })
		}, "default/idle learned what cannot be"},
		{func(_ *State, sp *space) { claim(sp, "a2", func(c *Claim) { c.Long = 1 }) }, "a2 ends at 3600001100000, and time does not know"},
		{func(_ *State, sp *space) { sp.queue.Delete(first(sp, "printer")) }, "b1 waits, but stands in no queue"},
		{func(_ *State, sp *space) { resource(sp, "scanner", func(r *Resource) { r.Claim = "a1" }) }, `a2 is held, but "scanner" is held by "a1"`},
		{func(_ *State, sp *space) { resource(sp, "scanner", func(r *Resource) { r.Claim = "gone" }) }, `held by "gone", which is not there`},
		{func(_ *State, sp *space) { claim(sp, "a2", func(c *Claim) { c.Token = 99 }) }, "token 99 above"},
		{func(_ *State, sp *space) { claim(sp, "a2", func(c *Claim) { c.Token = 1 }) }, "the token 1 of"},
		{func(_ *State, sp *space) { resource(sp, "printer", func(r *Resource) { r.Waiting = 5 }) }, "counts 5 waiters and has 1"},
		{func(_ *State, sp *space) { resource(sp, "idle", func(r *Resource) { r.Idle = 0 }) }, "idle is true, its mark is 0"},
		{func(s *State, _ *space) { s.idle.PopMin() }, "is idle and not listed"},
		{func(_ *State, sp *space) {
			resource(sp, "plotter", func(r *Resource) { r.setMore(More{Last: r.More.Last}) })
		}, "plotter is free although 1 wait for it"},
		{func(_ *State, sp *space) { sp.history.pop() }, "bytes, 5247 are counted"},
		{func(s *State, _ *space) { s.totals.claims++ }, "claims:5 waiters:2 sessions:1"},
		{func(s *State, _ *space) { s.totals.waiters++ }, "claims:4 waiters:3 sessions:1"},
		{func(s *State, _ *space) { s.totals.sessions++ }, "waiters:2 sessions:2"},
		{func(s *State, _ *space) { s.totals.endings++ }, "endings:3"},
		{func(s *State, _ *space) { s.totals.outcomes++ }, "outcomes:1"},
		{func(_ *State, sp *space) { sp.endings.front().order = 9 }, "ended id 1 of the list comes after the next"},
		{func(_ *State, sp *space) { sp.endings.pop() }, "2 ids ended, 1 are listed"},
		{func(_ *State, sp *space) { sp.claims.alive++ }, "there are 4 claims, and 5 are counted"},
		{func(_ *State, sp *space) { sp.places[mostEndings] = 0 }, "in order 1, and the place 0"},
		{func(_ *State, sp *space) { sp.places[mostHistory] = 2 }, "thinks it is at 2 of order 0"},
		{func(s *State, _ *space) { s.rankings[oldestEnding] = nil }, "1 namespaces stand in order 3, which has 0"},
		{func(_ *State, sp *space) { sp.history.items[2] = sp.history.items[0] }, "event 1.0 comes after 2.0"},
		{func(_ *State, sp *space) { sp.revision = 3 }, "beyond revision 3"},
		{func(s *State, _ *space) { s.totals.historyBytes = maxHistory + 1 }, "history has 67108865 bytes"},
		{func(_ *State, sp *space) { claim(sp, "a2", func(c *Claim) { c.Expires++ }) }, "a2 ends at"},
		{func(_ *State, sp *space) { claim(sp, "a2", func(c *Claim) { c.Expires = 0 }) }, "a2 has no end and stands in time"},
		{func(s *State, sp *space) { s.due.Set(newTimer(dueSession, sp, "nobody"), s.now) }, "6 things end by time, 7 deadlines exist"},
		{func(s *State, sp *space) {
			sp.records.Timers(func(path string, t *Timer, _ Time) {
				if path == "gone" {
					s.due.Set(t, 0)
				}
			})
		}, "gone ends at 2595601000000000, and time does not know"},
	} {
		s, sp := busy(t)
		test.damage(s, sp)
		if err := s.Check(); err == nil || !strings.Contains(err.Error(), test.says) {
			t.Errorf("what says %q was found to be: %v", test.says, err)
		}
	}
}

// shared is a state with slots, units, and somebody who waits for several resources.
func shared(t *testing.T) (*State, *space) {
	s := newState()
	for _, c := range []Command{
		&Define{Namespace: "default", Definition: leasehold.Definition{Path: "pool", Units: []string{"gpu0", "gpu1", "gpu2"}}},
		&Acquire{Namespace: "default", Resource: "pool", ID: "a1", Holder: "ann", TTL: time.Hour, Slots: 1},
		&Acquire{Namespace: "default", Resource: "pool", ID: "b1", Holder: "bob", TTL: time.Hour, Slots: 1},
		&Acquire{Namespace: "default", Resource: "book", ID: "a2", Holder: "ann", TTL: time.Hour, Slots: 1},
		&Acquire{Namespace: "default", Resource: "printer", ID: "b2", Holder: "bob", TTL: time.Hour},
		&Acquire{
			Namespace: "default", Resource: "printer", ID: "c1", Holder: "cyd", TTL: time.Hour, Wait: time.Hour,
			Also: []Item{{Resource: "scanner", ID: "c2"}},
		},
	} {
		if a := apply(t, s, 0, c); a.Err != nil {
			t.Fatal(a.Err)
		}
	}
	if err := s.Check(); err != nil {
		t.Fatalf("a state that nobody has damaged: %v", err)
	}
	return s, s.space("default")
}

// TestCheckFindsShares damages what is there for slots, units and several at once.
func TestCheckFindsShares(t *testing.T) {
	shares := func(sp *space, path string, change func(s *Shares)) {
		r, _ := sp.resources.Get(path)
		damaged, more, inner := *r, *r.More, *r.More.Shares
		inner.Units = slices.Clone(inner.Units)
		change(&inner)
		more.Shares, damaged.More = &inner, &more
		sp.resources.Set(path, &damaged)
	}
	wait := func(sp *space, id string, change func(w *Wait)) {
		c, _ := sp.claims.Get(id)
		damaged, inner := *c, *c.Wait
		change(&inner)
		damaged.Wait = &inner
		sp.claims.Set(&damaged)
	}
	for _, test := range []struct {
		damage func(s *State, sp *space)
		says   string
	}{
		{func(_ *State, sp *space) { sp.parties.Delete(binding{"hcyd", "c1"}) }, "c1 waits, and its party does not know"},
		{func(_ *State, sp *space) { sp.parties.Set(binding{"hann", "a1"}) }, "2 wait, parties have 3"},
		{func(_ *State, sp *space) { sp.joint.Delete(first(sp, "scanner")) }, "c2: waits with 2 others, listed among such: false"},
		{func(_ *State, sp *space) { wait(sp, "c2", func(w *Wait) { w.Order++ }) }, "c1 waits together with c2, which does not"},
		{func(_ *State, sp *space) { wait(sp, "c2", func(w *Wait) { w.With = []string{"c2"} }) }, "c1 waits together with c2, which does not"},
		{func(_ *State, sp *space) { sp.sharers.Delete(sharer{"pool", 1, "a1"}) }, `a1 has slots of "pool"`},
		{func(_ *State, sp *space) { sp.sharers.Set(sharer{"pool", 9, "x1"}) }, "resources count 3 leases on slots, 4 are listed"},
		{func(_ *State, sp *space) { shares(sp, "pool", func(s *Shares) { s.soonest += Time(time.Hour) }) }, "when somebody looks"},
		{func(_ *State, sp *space) { shares(sp, "pool", func(s *Shares) { s.used++ }) }, "pool counts 3 slots of 2 holders, and has 2 of 2"},
		{func(_ *State, sp *space) { shares(sp, "pool", func(s *Shares) { s.holders-- }) }, "pool counts 2 slots of 1 holders, and has 2 of 2"},
		{func(_ *State, sp *space) { shares(sp, "book", func(s *Shares) { s.Capacity = 0 }) }, "book is shared, and nobody said by how many"},
		{func(_ *State, sp *space) { shares(sp, "pool", func(s *Shares) { s.Units[0].lease = "" }) }, `a1 has unit "gpu0", which does not know`},
		{func(_ *State, sp *space) { shares(sp, "pool", func(s *Shares) { s.Units[2].lease = "a1" }) }, `unit "gpu2" is of "a1", which does not know`},
		{func(_ *State, sp *space) {
			r, _ := sp.resources.Get("pool")
			damaged := *r
			damaged.Claim = "a1"
			sp.resources.Set("pool", &damaged)
		}, "pool is exclusive and has 2 holders"},
		{func(s *State, sp *space) { s.hand.woken = []wakeup{{space: sp, path: "pool"}} }, "hand-over is not finished"},
	} {
		s, sp := shared(t)
		test.damage(s, sp)
		if err := s.Check(); err == nil || !strings.Contains(err.Error(), test.says) {
			t.Errorf("what says %q was found to be: %v", test.says, err)
		}
	}
}

// TestCheckIsBrief holds that a state which is wrong all over is not told at length.
func TestCheckIsBrief(t *testing.T) {
	s, sp := busy(t)
	for i := range 1000 {
		sp.history.push(&leasehold.Event{Namespace: "other", Revision: leasehold.Revision(1000 - i)})
	}
	if lines := strings.Count(s.Check().Error(), "\n") + 1; lines > 100 {
		t.Errorf("it says %d things", lines)
	}
}
