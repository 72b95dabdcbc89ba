package kernel_test

import (
	"cmp"
	"flag"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/leasehold/leasehold"
	"github.com/leasehold/leasehold/internal/core"
)

var schedules = flag.Int("schedules", 10000, "random schedules to try for deadlocks")

// TestCycleIsFound closes a circle of so many parties: the very request that closes it
// is refused, and told who waits for whom, in order.
func TestCycleIsFound(t *testing.T) {
	for _, parties := range []int{2, 3, 50, 1000} {
		d := newDesk(t)
		ask := func(holder, resource int, wait time.Duration) core.Command {
			return &core.Acquire{
				Namespace: ns, Resource: fmt.Sprint("r", resource), ID: fmt.Sprint(holder, "-", resource), Holder: fmt.Sprint("h", holder), Wait: wait,
			}
		}
		for i := range parties {
			d.must(ask(i, i, 0))
		}
		for i := range parties - 1 {
			d.must(ask(i, i+1, time.Hour))
		}
		answer := d.do(ask(parties-1, 0, time.Hour))
		if answer.Err == nil || answer.Err.Code != leasehold.Refused || len(answer.Err.Cycle) != parties {
			t.Fatalf("the last of %d: %s", parties, tellAnswer(answer, 0))
		}
		for i, wait := range answer.Err.Cycle {
			holder := (parties - 1 + i) % parties
			if want := (leasehold.Wait{Holder: fmt.Sprint("h", holder), Resource: fmt.Sprint("r", (holder+1)%parties)}); wait != want {
				t.Fatalf("step %d of %d is %v and not %v", i, parties, wait, want)
			}
		}
		// It stands in nobody's way: once it goes, all others can have what they wait for.
		d.must(&core.Release{Namespace: ns, ID: fmt.Sprint(parties-1, "-", parties-1)})
		if n := d.state.View(0).Counts(); n.Waiters != max(0, parties-2) {
			t.Fatalf("of %d parties %d wait after one has gone", parties, n.Waiters)
		}
	}
}

// TestLongChain lets each wait for the one before it, under names in the worst order: to
// look at a chain takes time in proportion to its length.
func TestLongChain(t *testing.T) {
	const parties = 500
	d := newDesk(t)
	for i := range parties {
		name := fmt.Sprintf("h%04d", parties-i)
		d.must(&core.Acquire{Namespace: ns, Resource: fmt.Sprint("r", i), ID: fmt.Sprint("l", i), Holder: name})
		if i > 0 {
			d.must(&core.Acquire{Namespace: ns, Resource: fmt.Sprint("r", i-1), ID: fmt.Sprint("w", i), Holder: name, Wait: time.Hour})
		}
	}
	first := &core.Acquire{Namespace: ns, Resource: fmt.Sprint("r", parties-1), ID: "last", Holder: fmt.Sprintf("h%04d", parties), Wait: time.Hour}
	if answer := d.do(first); answer.Err == nil || len(answer.Err.Cycle) != parties {
		t.Fatalf("%d parties wait for each other: %s", parties, tellAnswer(answer, 0))
	}
}

// TestDeadlockIsFoundExactly makes up schedules of a few parties that hold and want a few
// resources. A request is refused if, and only if, it would wait for ever although
// everybody who waits for nothing finishes.
func TestDeadlockIsFoundExactly(t *testing.T) {
	t.Parallel()
	refused, schedules := 0, *schedules
	if testing.Short() {
		schedules /= 5
	}
	for i := range uint64(schedules) {
		w := newCrossing(t, *seedFrom+i)
		for range 24 {
			w.step()
		}
		refused += w.refused
	}
	if schedules >= 1000 && refused < schedules/20 {
		t.Errorf("%d schedules had %d deadlocks, which is too few to prove anything", schedules, refused)
	}
}

// A crossing is a small world in which parties get in each other's way, with an account
// of its own of who has and wants what.
type crossing struct {
	*desk
	seed       uint64
	pick       func(n int) int
	capacities []int
	waiting    []*errand // in the order in which they came
	holding    []grip
	made       int
	log        []string
	refused    int
}

// An errand is a request that waits.
type errand struct {
	party    int
	priority int
	grips    []grip // that it wants, all at once
}

// A grip is a lease, had or wanted.
type grip struct {
	party, resource int
	slots           int // 0: all
	id              string
}

func newCrossing(t *testing.T, seed uint64) *crossing {
	w := &crossing{desk: &desk{TB: t, state: core.NewAt(core.NewestLevel)}, seed: seed, pick: seeded(seed)}
	for range 2 + w.pick(4) {
		w.capacities = append(w.capacities, 1+w.pick(3))
	}
	for _, party := range []int{1, 4} {
		w.must(&core.OpenSession{Namespace: ns, ID: fmt.Sprint("s", party), TTL: time.Hour})
	}
	return w
}

func (w *crossing) step() {
	party := w.pick(6)
	if slices.ContainsFunc(w.waiting, func(e *errand) bool { return e.party == party }) {
		return // it stands still
	}
	held := slices.DeleteFunc(slices.Clone(w.holding), func(g grip) bool { return g.party != party })
	if len(held) > 0 && w.pick(4) == 0 {
		w.carryOut(&core.Release{Namespace: ns, ID: held[w.pick(len(held))].id})
		return
	}
	e := w.errand(party, held)
	if len(e.grips) == 0 {
		return
	}
	expected := w.wouldWaitForever(e)
	answer := w.carryOut(w.request(e))
	if is := answer.Err != nil; is != expected {
		w.Fatalf("seed %d: %s\nwould wait for ever: %v, was told %s", w.seed, w.log, expected, tellAnswer(answer, 0))
	}
	if answer.Waiter != nil {
		w.waiting = append(w.waiting, e)
	}
	if answer.Err != nil {
		w.refused++
	}
}

// errand is for one to three resources that the party does not have.
func (w *crossing) errand(party int, held []grip) *errand {
	e := &errand{party: party, priority: max(0, w.pick(6)-4)}
	for range 1 + w.pick(3)*w.pick(2) {
		g := grip{party: party, resource: w.pick(len(w.capacities))}
		if slices.ContainsFunc(slices.Concat(held, e.grips), func(other grip) bool { return other.resource == g.resource }) {
			continue
		}
		w.made++
		g.slots, g.id = w.pick(w.capacities[g.resource]+1), fmt.Sprint("n", w.made)
		e.grips = append(e.grips, g)
	}
	return e
}

// request asks for an errand, in the name of a holder, a session or a party.
func (w *crossing) request(e *errand) *core.Acquire {
	c := &core.Acquire{Namespace: ns, Holder: fmt.Sprint("h", e.party), Wait: time.Hour, Priority: e.priority}
	switch e.party {
	case 1, 4:
		c.Session, c.Holder = fmt.Sprint("s", e.party), oneName(w)
	case 2:
		c.Party, c.Holder = "p2", oneName(w)
	}
	for i, g := range e.grips {
		item := core.Item{Resource: fmt.Sprint("r", g.resource), ID: g.id, Slots: g.slots}
		if g.slots > 0 {
			item.Capacity = w.capacities[g.resource]
		}
		if i == 0 {
			c.Resource, c.ID, c.Slots, c.Capacity = item.Resource, item.ID, item.Slots, item.Capacity
		} else {
			c.Also = append(c.Also, item)
		}
	}
	return c
}

// oneName is one that a party may use that is known otherwise.
func oneName(w *crossing) string { return []string{"ann", "bob", "h0"}[w.pick(3)] }

// carryOut tells the core, and keeps account of what happened.
func (w *crossing) carryOut(c core.Command) core.Answer {
	w.log = append(w.log, "\n0s "+writeCommand(c))
	result := w.apply(c)
	if a, ok := c.(*core.Acquire); ok && result.Answers[0].Lease != nil {
		w.granted(a)
	}
	for _, e := range result.Events {
		if e.Kind == leasehold.Ended {
			w.holding = slices.DeleteFunc(w.holding, func(g grip) bool { return g.id == e.ID })
		}
	}
	for _, e := range result.Events {
		i := slices.IndexFunc(w.waiting, func(waits *errand) bool { return waits.grips[0].id == e.ID })
		if e.Kind == leasehold.Acquired && i >= 0 {
			w.holding = append(w.holding, w.waiting[i].grips...)
			w.waiting = slices.Delete(w.waiting, i, i+1)
		}
	}
	return result.Answers[0]
}

// granted notes an errand that did not wait.
func (w *crossing) granted(a *core.Acquire) {
	party := 0
	switch {
	case a.Session != "":
		_, _ = fmt.Sscanf(a.Session, "s%d", &party)
	case a.Party != "":
		party = 2
	default:
		_, _ = fmt.Sscanf(a.Holder, "h%d", &party)
	}
	for _, item := range itemsOf(a) {
		g := grip{party: party, slots: item.Slots, id: item.ID}
		_, _ = fmt.Sscanf(item.Resource, "r%d", &g.resource)
		w.holding = append(w.holding, g)
	}
}

// wouldWaitForever plays the world to its end: whoever waits for nothing gives back all
// it has, again and again, and queues move. It is stuck if it still waits then.
func (w *crossing) wouldWaitForever(e *errand) bool {
	end := &crossing{capacities: w.capacities, holding: slices.Clone(w.holding), waiting: append(slices.Clone(w.waiting), e)}
	slices.SortStableFunc(end.waiting, func(a, b *errand) int { return cmp.Compare(b.priority, a.priority) })
	for end.moveQueues() || end.letGo() {
	}
	return slices.Contains(end.waiting, e)
}

// moveQueues grants one errand whose turn it is everywhere; false if there is none.
func (w *crossing) moveQueues() bool {
	for i, e := range w.waiting {
		if !slices.ContainsFunc(e.grips, func(g grip) bool { return w.behind(e, g) || !w.room(g) }) {
			w.holding = append(w.holding, e.grips...)
			w.waiting = slices.Delete(w.waiting, i, i+1)
			return true
		}
	}
	return false
}

// behind reports whether somebody stands before an errand for a resource.
func (w *crossing) behind(e *errand, g grip) bool {
	for _, other := range w.waiting {
		if other == e {
			return false
		}
		if slices.ContainsFunc(other.grips, func(o grip) bool { return o.resource == g.resource }) {
			return true
		}
	}
	return false
}

func (w *crossing) room(g grip) bool {
	room := w.capacities[g.resource]
	for _, other := range w.holding {
		if other.resource != g.resource {
			continue
		}
		if room -= other.slots; g.slots == 0 || other.slots == 0 {
			return false
		}
	}
	return room >= g.slots
}

// letGo lets all who wait for nothing give back what they have; false if nobody does.
func (w *crossing) letGo() bool {
	before := len(w.holding)
	w.holding = slices.DeleteFunc(w.holding, func(g grip) bool {
		return !slices.ContainsFunc(w.waiting, func(e *errand) bool { return e.party == g.party })
	})
	return len(w.holding) < before
}
