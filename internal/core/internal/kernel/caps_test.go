package kernel

import (
	"fmt"
	"testing"
	"time"

	"github.com/leasehold/leasehold"
	"github.com/leasehold/leasehold/internal/core/reservation"
)

// The tables of what is remembered are large. These tests fill them from inside, with
// entries that stand for others, because to fill them by commands takes minutes.

func apply(t *testing.T, s *State, at time.Duration, c Command) Answer {
	t.Helper()
	result, err := s.Apply(Time(time.Hour+at), int64(at), []Command{c})
	if err != nil {
		t.Fatal(err)
	}
	return result.Answers[0]
}

func acquireNow(id string, request Request) *Acquire {
	return &Acquire{Namespace: "default", Resource: "printer", ID: id, Holder: "ann", TTL: time.Hour, Request: request}
}

// TestEndedIDsAreBounded ends one more than are remembered: the oldest is forgotten
// before its ten minutes are over, and no other.
func TestEndedIDsAreBounded(t *testing.T) {
	t.Parallel()
	s := newState()
	for i := range 3 {
		id := fmt.Sprint("a", i)
		apply(t, s, 0, acquireNow(id, Request{}))
		apply(t, s, 0, &Release{Namespace: "default", ID: id})
	}
	others := make([]endingRef, maxEnded-3)
	for i := range others {
		others[i] = endingRef{id: "somebody else", at: s.now}
	}
	for _, ref := range others {
		s.begin().pushEnding(s.space("default"), ref)
	}
	if a := apply(t, s, time.Minute, &Release{Namespace: "default", ID: "a0"}); a.Err != nil {
		t.Fatalf("an ended id is forgotten although all fit: %v", a.Err)
	}

	apply(t, s, time.Minute, acquireNow("b", Request{}))
	apply(t, s, time.Minute, &Release{Namespace: "default", ID: "b"})
	if s.totals.endings != maxEnded {
		t.Fatalf("%d ended ids are remembered", s.totals.endings)
	}
	if a := apply(t, s, time.Minute, &Release{Namespace: "default", ID: "a0"}); a.Err == nil || a.Err.Code != leasehold.NotFound {
		t.Fatalf("the oldest is still remembered: %v", a.Err)
	}
	if a := apply(t, s, time.Minute, &Release{Namespace: "default", ID: "a1"}); a.Err != nil {
		t.Fatalf("the second oldest is forgotten: %v", a.Err)
	}

	// However many end in one entry, there are never more.
	apply(t, s, time.Minute, &OpenSession{Namespace: "default", ID: "s", TTL: time.Hour})
	for i := range 200 {
		id := fmt.Sprint("c", i)
		apply(t, s, time.Minute, &Acquire{Namespace: "default", Resource: id, ID: id, Holder: "ann", Session: "s"})
	}
	apply(t, s, time.Minute, &CloseSession{Namespace: "default", ID: "s"})
	if s.totals.endings != maxEnded {
		t.Fatalf("%d ended ids are remembered", s.totals.endings)
	}
}

// TestOutcomesAreBounded answers one more request than are remembered.
func TestOutcomesAreBounded(t *testing.T) {
	s := newState()
	apply(t, s, 0, acquireNow("a", Request{}))
	for i := range 3 {
		apply(t, s, 0, acquireNow("b", Request{Key: fmt.Sprint("k", i)}))
	}
	for range maxOutcomes - 3 {
		s.begin().pushOutcome(s.space("default"), "ksomebody else", s.now)
	}
	apply(t, s, time.Minute, &Release{Namespace: "default", ID: "a"})

	if a := apply(t, s, time.Minute, acquireNow("c", Request{Key: "one more"})); a.Err != nil {
		t.Fatal(a.Err)
	}
	if s.totals.outcomes != maxOutcomes {
		t.Fatalf("%d outcomes are remembered", s.totals.outcomes)
	}
	if a := apply(t, s, time.Minute, acquireNow("b", Request{Key: "k1"})); a.Err == nil || a.Err.Lease.ID != "a" {
		t.Fatalf("the second oldest outcome is forgotten: %+v", a)
	}
	if a := apply(t, s, time.Minute, acquireNow("b", Request{Key: "k0"})); a.Err == nil || a.Err.Lease.ID != "c" {
		t.Fatalf("the oldest outcome is still remembered: %+v", a)
	}
}

// crowd is a state in which three namespaces have one of something each.
func crowd(do func(s *State, namespace, id string)) *State {
	s := newState()
	for _, namespace := range []string{"quiet", "b", "a"} {
		do(s, namespace, "first")
	}
	return s
}

// TestLoudNamespaceForgetsItsOwnEndedIDs ends more ids than are remembered, nearly all of
// them in one namespace. What others ended before stays known.
func TestLoudNamespaceForgetsItsOwnEndedIDs(t *testing.T) {
	t.Parallel()
	end := func(s *State, namespace, id string) {
		apply(t, s, 0, &Acquire{Namespace: namespace, Resource: id, ID: id, Holder: "ann"})
		apply(t, s, 0, &Release{Namespace: namespace, ID: id})
	}
	s := crowd(end)
	for range maxEnded - 1 {
		s.begin().pushEnding(s.space("b"), endingRef{id: "somebody else", at: s.now})
	}
	end(s, "quiet", "second")
	if s.totals.endings != maxEnded {
		t.Fatalf("%d ended ids are remembered", s.totals.endings)
	}
	for _, namespace := range []string{"quiet", "a"} {
		if how := s.View(0).Ended(namespace, "first"); how != leasehold.Released {
			t.Errorf("the id that ended in %s is remembered as %v", namespace, how)
		}
	}
	if how := s.View(0).Ended("b", "first"); how != 0 {
		t.Error("the loud namespace keeps its oldest")
	}
}

// TestLoudNamespaceForgetsItsOwnAnswers is the same for the answers of requests.
func TestLoudNamespaceForgetsItsOwnAnswers(t *testing.T) {
	ask := func(s *State, namespace, key string) {
		apply(t, s, 0, &OpenSession{Namespace: namespace, ID: key, TTL: time.Hour, Request: Request{Key: key}})
	}
	s := crowd(ask)
	for range maxOutcomes - 1 {
		s.begin().pushOutcome(s.space("b"), "ksomebody else", s.now)
	}
	ask(s, "quiet", "second")
	if s.totals.outcomes != maxOutcomes {
		t.Fatalf("%d answers are remembered", s.totals.outcomes)
	}
	for _, namespace := range []string{"quiet", "a"} {
		if _, known := s.space(namespace).outcomes.Get("kfirst"); !known {
			t.Errorf("the answer in %s is forgotten", namespace)
		}
	}
	if _, known := s.space("b").outcomes.Get("kfirst"); known {
		t.Error("the loud namespace keeps its oldest")
	}
}

// TestEquallyLoudNamespaces lets the first of them by name lose something.
func TestEquallyLoudNamespaces(t *testing.T) {
	s := newState()
	for _, namespace := range []string{"c", "a", "b"} {
		apply(t, s, 0, &OpenSession{Namespace: namespace, ID: "s", TTL: time.Hour, Request: Request{Key: "one"}})
	}
	for range 3 {
		for by, want := range map[orderBy]string{mostOutcomes: "a", mostHistory: "a", oldestOutcome: "c"} {
			if got := s.rankings[by].first().name; got != want {
				t.Errorf("first in order %d is %s, not %s", by, got, want)
			}
		}
		s = thawed(t, s)
	}
	s.begin().forgetOutcome(s.space("a"))
	if got := s.rankings[mostOutcomes].first().name; got != "b" {
		t.Errorf("after a lost its only one, %s is first", got)
	}
}

// thawed is a state that was taken apart and put together again.
func thawed(t *testing.T, s *State) *State {
	t.Helper()
	again, err := Restore(func(yield func(Piece, error) bool) {
		for p := range s.Freeze().Pieces() {
			if !yield(p, nil) {
				return
			}
		}
	}, s.subjects)
	if err != nil {
		t.Fatal(err)
	}
	if err := again.Check(); err != nil {
		t.Fatal(err)
	}
	return again
}

// TestForgettingANamespaceIsSpread forgets a namespace with many resources: no entry drops
// all of them, and all are dropped after a few. Somebody who comes back meanwhile finds it.
func TestForgettingANamespaceIsSpread(t *testing.T) {
	const resources = 10*maxSweptIdle + 7
	s := newState()
	apply(t, s, 0, acquireNow("a", Request{}))
	apply(t, s, 0, &Release{Namespace: "default", ID: "a"})
	for i := range resources {
		s.begin().setResource(s.space("default"), &Resource{Path: fmt.Sprint("r", i)})
	}
	entries := 0
	for left := s.idle.Len(); s.space("default") != nil; left = s.idle.Len() {
		apply(t, s, memory, &Tick{})
		if entries++; left-s.idle.Len() > maxSweptIdle {
			t.Fatalf("one entry dropped %d resources", left-s.idle.Len())
		}
	}
	if entries < 11 || s.idle.Len() != 0 {
		t.Fatalf("after %d entries, %d resources are left", entries, s.idle.Len())
	}
	if s.totals != (totals{}) {
		t.Fatalf("%+v are counted", s.totals)
	}
	if a := apply(t, s, memory, acquireNow("a", Request{})); a.Lease.Token != 2 {
		t.Fatalf("the namespace began again with token %d", a.Lease.Token)
	}
	if err := s.Check(); err != nil {
		t.Fatal(err)
	}
}

// TestManyNamespacesAreForgotten begins as many as there can be, and forgets them a few at a
// time; then there is room again.
func TestManyNamespacesAreForgotten(t *testing.T) {
	t.Parallel()
	s := newState()
	for i := range leasehold.MaxNamespaces {
		apply(t, s, 0, &PutRecord{Namespace: fmt.Sprint("n", i), Path: "a"})
	}
	more := &PutRecord{Namespace: "more", Path: "a"}
	if a := apply(t, s, 0, more); a.Err == nil || a.Err.Code != leasehold.Limited {
		t.Fatalf("there is room: %+v", a)
	}
	for i := range leasehold.MaxNamespaces {
		if i%2 == 0 {
			apply(t, s, 0, &DeleteRecord{Namespace: fmt.Sprint("n", i), Path: "a"})
		}
	}
	for range leasehold.MaxNamespaces / maxSwept {
		before := s.spaces.Len()
		apply(t, s, memory, &Tick{})
		if gone := before - s.spaces.Len(); gone > maxSwept || gone != len(s.View(0).Forgot()) {
			t.Fatalf("one entry forgot %d namespaces, and says %d", gone, len(s.View(0).Forgot()))
		}
	}
	if n := s.spaces.Len(); n != leasehold.MaxNamespaces/2 {
		t.Fatalf("%d namespaces are left", n)
	}
	if a := apply(t, s, memory, more); a.Err != nil || a.Record.Create != 3 {
		t.Fatalf("the next namespace begins with %+v", a)
	}
}

// TestOldPositionsOfAForgottenNamespace holds what a watcher is told who followed a namespace
// that was forgotten, while it is gone and after it began again.
func TestOldPositionsOfAForgottenNamespace(t *testing.T) {
	s := newState()
	for _, namespace := range []string{"default", "default", "other"} {
		apply(t, s, 0, &PutRecord{Namespace: namespace, Path: "a"})
	}
	for _, namespace := range []string{"default", "other"} {
		apply(t, s, 0, &DeleteRecord{Namespace: namespace, Path: "a"})
	}
	told := func(when string) {
		t.Helper()
		for _, namespace := range []string{"default", "other"} {
			history := s.View(0).History(namespace)
			for revision := range leasehold.Revision(3) {
				if _, known := history.After(revision, AllOf); known {
					t.Errorf("%s, a watcher of %s at %d is said to know all", when, namespace, revision)
				}
			}
			if _, known := history.After(3, 0); known {
				t.Errorf("%s, a watcher of %s within 3 is said to know all", when, namespace)
			}
			if _, known := history.After(3, AllOf); !known {
				t.Errorf("%s, a watcher of %s cannot go on from here", when, namespace)
			}
		}
	}
	apply(t, s, memory, &Tick{})
	if s.spaces.Len() != 0 {
		t.Fatal("nothing was forgotten")
	}
	told("while it is gone")
	if _, failure := s.View(0).Records("default", RecordQuery{Revision: 2}); failure == nil || failure.Code != leasehold.Lost {
		t.Errorf("a revision of before is read: %v", failure)
	}
	if page, failure := s.View(0).Records("default", RecordQuery{}); failure != nil || page.Revision != 3 {
		t.Errorf("it is read at %d: %v", page.Revision, failure)
	}
	s = thawed(t, s)
	for _, namespace := range []string{"default", "other"} {
		apply(t, s, memory, &PutRecord{Namespace: namespace, Path: "b"})
	}
	told("after it began again")
	if events, _ := s.View(0).History("other").After(3, AllOf); len(events) != 1 || events[0].Revision != 4 {
		t.Errorf("what happened next is %v", events)
	}
}

// idleTown has as many resources that nobody has or wants as are remembered. The first
// of them rests for an hour after the unclean end of its lease.
func idleTown(t *testing.T) *State {
	s := newState()
	apply(t, s, 0, &Acquire{Namespace: "default", Resource: "rests", ID: "rests", Holder: "ann", TTL: time.Hour, Grace: time.Hour})
	apply(t, s, 0, &Break{Namespace: "default", ID: "rests"})
	for i := range maxIdle - 1 {
		s.begin().setResource(s.space("default"), &Resource{Path: fmt.Sprint("r", i)})
	}
	return s
}

// TestIdleResourcesAreBounded has one more resource that nobody has or wants than are
// remembered. The longest idle is forgotten, unless a grace runs on it.
func TestIdleResourcesAreBounded(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		at        time.Duration
		forgotten string
		kept      string
	}{
		{59 * time.Minute, "r0", "rests"},
		{60 * time.Minute, "rests", "r0"},
	} {
		s := idleTown(t)
		sp := s.space("default")
		apply(t, s, test.at, acquireNow("a", Request{}))
		apply(t, s, test.at, &Release{Namespace: "default", ID: "a"})
		if _, ok := sp.resources.Get(test.forgotten); ok || s.idle.Len() != maxIdle {
			t.Errorf("at %v, %d idle resources are remembered, %s among them: %v", test.at, s.idle.Len(), test.forgotten, ok)
		}
		if _, ok := sp.resources.Get(test.kept); !ok {
			t.Errorf("at %v, %s is forgotten", test.at, test.kept)
		}
		if err := s.Check(); err != nil {
			t.Error(err)
		}
	}
}

// TestARestThatSomebodyWaitsForIsNotForgotten lets a rest be over, and its resource be the one to forget, before a tick
// came: those who wait for it still get their turn.
func TestARestThatSomebodyWaitsForIsNotForgotten(t *testing.T) {
	t.Parallel()
	s := newState()
	grace := time.Hour
	apply(t, s, 0, &PutTask{Namespace: "default", Path: "jobs/x"})
	apply(t, s, 0, &Acquire{Namespace: "default", Resource: "jobs/", Task: true, ID: "a", Holder: "ann", TTL: time.Hour, Grace: grace})
	apply(t, s, 0, &Acquire{Namespace: "default", Resource: "repo/web:src/a", ID: "b", Holder: "ann", TTL: time.Hour, Grace: grace})
	for _, id := range []string{"a", "b"} {
		apply(t, s, 0, &Break{Namespace: "default", ID: id})
	}
	apply(t, s, 0, &OpenSession{Namespace: "default", ID: "s", TTL: 10 * time.Hour})
	for _, path := range []string{"jobs/", "repo/web:src"} {
		apply(t, s, 0, &Acquire{Namespace: "default", Resource: path, Task: path == "jobs/", ID: path, Holder: "bob", Session: "s", Wait: 9 * time.Hour})
	}
	sp := s.space("default")
	for i := range maxIdle {
		s.begin().setResource(sp, &Resource{Path: fmt.Sprint("r", i)})
	}
	apply(t, s, grace, acquireNow("c", Request{}))
	apply(t, s, grace, &Release{Namespace: "default", ID: "c"})
	if err := s.Check(); err != nil {
		t.Error(err)
	}
	apply(t, s, grace, &Tick{})
	for _, id := range []string{"jobs/", "repo/web:src"} {
		if c, _ := sp.claims.Get(id); c.Waiting() {
			t.Errorf("%s waits for what is free", id)
		}
	}
}

// TestALeaseIsGrantedWhileAReservationIsLate has so many reservations that begin that an entry does not come to all of
// them. A resource whose own has not begun yet is anybody's until it does, and the lease ends then.
func TestALeaseIsGrantedWhileAReservationIsLate(t *testing.T) {
	s := newState()
	start := time.Hour
	apply(t, s, 0, &Define{Namespace: "default", Definition: leasehold.Definition{Path: "room", OnReservation: leasehold.EndAtStart}})
	apply(t, s, 0, &Reserve{Namespace: "default", ID: "r", Resource: "room", Holder: "ann", From: reservation.Moment(start), Length: time.Hour})
	apply(t, s, start-time.Minute, &Tick{})
	s.smallWork = 1
	a := apply(t, s, start, &Acquire{Namespace: "default", Resource: "room", ID: "b", Holder: "bob", TTL: time.Minute})
	if a.Err != nil || a.Lease == nil {
		t.Fatalf("the answer is %+v", a)
	}
	s.smallWork = 0
	apply(t, s, start, &Tick{})
	if _, held := s.space("default").claims.Get("b"); held {
		t.Error("bob has what is reserved")
	}
	if err := s.Check(); err != nil {
		t.Error(err)
	}
}

// TestManyGraces has more resources at rest than idle ones are remembered. All of them
// are kept, and nothing is wrong with that.
func TestManyGraces(t *testing.T) {
	t.Parallel()
	const graces = maxIdle + 2048
	s := newState()
	apply(t, s, 0, acquireNow("a", Request{}))
	sp := s.space("default")
	for i := range graces {
		last := &Ending{How: leasehold.ByTTL}
		s.begin().setResource(sp, &Resource{Path: fmt.Sprint("r", i), More: &More{Last: last, Rests: []Rest{{Until: s.now.Add(time.Hour), After: last}}}})
	}
	for range 100 {
		apply(t, s, time.Minute, &Renew{Namespace: "default", ID: "a"})
	}
	if s.idle.Len() != graces {
		t.Fatalf("%d of %d graces are left", s.idle.Len(), graces)
	}
	if err := s.Check(); err != nil {
		t.Fatal(err)
	}
}

// TestSequenceWindow counts what is remembered of a session's requests, through holes in
// their numbers, up to the largest there are, and after the session.
func TestSequenceWindow(t *testing.T) {
	t.Parallel()
	for _, step := range []uint64{1, 2, 700, sequenceSpan, 5000, 1 << 62} {
		s := newState()
		apply(t, s, 0, &OpenSession{Namespace: "default", ID: "s", TTL: time.Hour})
		sp := s.space("default")
		number := uint64(1)
		for range 1500 {
			request := Request{Session: "s", Sequence: number}
			first := apply(t, s, 0, &Release{Namespace: "default", ID: "nobody", Request: request})
			again := apply(t, s, 0, &Release{Namespace: "default", ID: "nobody", Request: request})
			if first.Err == nil || again.Err != first.Err {
				t.Fatalf("request %d was not answered in the same way again: %v", number, again.Err)
			}
			if number+step < number {
				break
			}
			number += step
		}
		if most := int(sequenceSpan/step) + 1; sp.outcomes.Len() > most {
			t.Errorf("with every %dth number, %d outcomes are remembered", step, sp.outcomes.Len())
		}
		apply(t, s, 0, &CloseSession{Namespace: "default", ID: "s"})
		if sp.outcomes.Len() != 0 {
			t.Errorf("with every %dth number, %d outcomes outlived the session", step, sp.outcomes.Len())
		}
	}
}

// TestSessionsOfAnyName ends a session whose requests would stand among those of another
// if names were simply put together. What is remembered of the one must go, and of the
// other stay, or it would answer the requests of a session that is opened under its name
// later.
func TestSessionsOfAnyName(t *testing.T) {
	s := newState()
	names := []string{"s", "s\x00\x00\x00\x00\x00\x00\x00\x00\x01", "s\x00", "\x00s"}
	for _, name := range names {
		apply(t, s, 0, &OpenSession{Namespace: "default", ID: name, TTL: time.Hour})
		for i := range uint64(3) {
			apply(t, s, 0, &Release{Namespace: "default", ID: "nobody", Request: Request{Session: name, Sequence: i + 1}})
		}
	}
	sp := s.space("default")
	for i, name := range names {
		apply(t, s, 0, &CloseSession{Namespace: "default", ID: name})
		if want := 3 * (len(names) - i - 1); sp.outcomes.Len() != want {
			t.Fatalf("after the end of session %q, %d outcomes are remembered and not %d", name, sp.outcomes.Len(), want)
		}
	}
}

// TestForgettingIsSpread lets much become old at once: no entry forgets all of it, and
// all of it is forgotten after a few.
func TestForgettingIsSpread(t *testing.T) {
	s := newState()
	for i := range 1000 {
		id := fmt.Sprint("a", i)
		apply(t, s, 0, acquireNow(id, Request{Key: id}))
		apply(t, s, 0, &Release{Namespace: "default", ID: id})
	}
	sp := s.space("default")
	for before := 1000; before > 0; before = sp.claims.endedLen() {
		apply(t, s, memory, &Tick{})
		if forgot := before - sp.claims.endedLen(); forgot == 0 || forgot > 100 {
			t.Fatalf("one entry forgot %d of %d ended ids", forgot, before)
		}
	}
	if sp.outcomes.Len() != 0 || s.totals.outcomes != 0 || s.totals.endings != 0 {
		t.Fatalf("%d outcomes are left", sp.outcomes.Len())
	}
}
