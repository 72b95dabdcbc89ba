package kernel_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/leasehold/leasehold"
	"github.com/leasehold/leasehold/internal/core"
)

// together asks for so many resources at once.
func together(id string, resources int) *core.Acquire {
	c := &core.Acquire{Namespace: ns, Resource: "r0", ID: id + "0", Holder: id, TTL: time.Hour, Wait: time.Hour}
	for i := 1; i < resources; i++ {
		c.Also = append(c.Also, core.Item{Resource: fmt.Sprint("r", i), ID: fmt.Sprint(id, i)})
	}
	return c
}

// TestSoManyTogether holds how many resources can be acquired at once, and that those
// who wait for as many are granted in order.
func TestSoManyTogether(t *testing.T) {
	d := newDesk(t)
	d.refused(together("ann", leasehold.MaxTogether+1), leasehold.Invalid, "at most 64")
	d.must(together("ann", leasehold.MaxTogether))
	d.must(together("bob", leasehold.MaxTogether))
	d.must(together("cyd", leasehold.MaxTogether))
	for i := range leasehold.MaxTogether {
		d.must(&core.Release{Namespace: ns, ID: fmt.Sprint("ann", i)})
	}
	if got := d.must(together("bob", leasehold.MaxTogether)); len(got.Also) != leasehold.MaxTogether-1 {
		t.Fatalf("bob has %s", tellAnswer(got, 0))
	}
	if got := d.must(together("cyd", leasehold.MaxTogether)); got.Waiter == nil || got.Waiter.Position != 1 {
		t.Fatalf("cyd has %s", tellAnswer(got, 0))
	}
}

// TestSoManySlots tries slots and capacities at their limits and beyond.
func TestSoManySlots(t *testing.T) {
	d := newDesk(t)
	acquire := func(id string, slots, capacity int) *core.Acquire {
		return &core.Acquire{Namespace: ns, Resource: "pool", ID: id, Holder: id, TTL: time.Hour, Slots: slots, Capacity: capacity}
	}
	d.refused(acquire("a", leasehold.MaxCapacity+1, 0), leasehold.Invalid, "0 to 65536")
	d.refused(acquire("a", -1, 0), leasehold.Invalid, "0 to 65536")
	d.refused(acquire("a", 1, leasehold.MaxCapacity+1), leasehold.Invalid, "1 to 65536")
	d.refused(acquire("a", 0, 3), leasehold.Invalid, "for those who share")
	d.refused(acquire("a", 4, 3), leasehold.Invalid, "more than the capacity")
	d.must(acquire("a", leasehold.MaxCapacity-1, leasehold.MaxCapacity))
	d.must(acquire("b", 1, leasehold.MaxCapacity))
	d.refused(acquire("c", 1, 0), leasehold.Held, "65536 of 65536")
}

// TestSoManyUnits tries the units of a definition at their limits and beyond.
func TestSoManyUnits(t *testing.T) {
	names := func(n, size int) (list []string) {
		for i := range n {
			list = append(list, fmt.Sprintf("%0*d", size, i))
		}
		return list
	}
	define := func(units []string) *core.Define {
		return &core.Define{Namespace: ns, Definition: leasehold.Definition{Path: "pool", Units: units}}
	}
	d := newDesk(t)
	d.refused(define(names(leasehold.MaxUnits+1, 4)), leasehold.Invalid, "at most 1024")
	d.refused(define(append(names(leasehold.MaxUnits-1, 32), strings.Repeat("x", 33))), leasehold.Invalid, "at most 32768")
	d.refused(define([]string{"gpu0", "gpu0"}), leasehold.Invalid, "is named twice")
	d.refused(define([]string{""}), leasehold.Invalid, "unit is missing")
	d.must(define(names(leasehold.MaxUnits, 32)))
	lease := d.must(&core.Acquire{Namespace: ns, Resource: "pool", ID: "a", Holder: "ann", TTL: time.Hour}).Lease
	if len(lease.Units) != leasehold.MaxUnits {
		t.Fatalf("the lease on all has %d units", len(lease.Units))
	}
}

// TestThereAreSoManyDefinitions sets them all. One that is there can be changed, and what
// is taken away makes room.
func TestThereAreSoManyDefinitions(t *testing.T) {
	d := newDesk(t)
	define := func(i, capacity int) *core.Define {
		return &core.Define{Namespace: ns, Definition: leasehold.Definition{Path: fmt.Sprint("p", i), Capacity: capacity}}
	}
	for i := range leasehold.MaxDefinitions {
		d.must(define(i, 1))
	}
	d.refused(define(leasehold.MaxDefinitions, 1), leasehold.Limited, "10000")
	d.must(define(7, 2))
	d.state = reloaded(t, d.state)
	d.refused(define(leasehold.MaxDefinitions, 1), leasehold.Limited, "10000")
	d.must(&core.Undefine{Namespace: ns, Path: "p7"})
	d.must(define(leasehold.MaxDefinitions, 1))
}

// TestBreakEndsSoMany holds how many of those who share one command breaks.
func TestBreakEndsSoMany(t *testing.T) {
	const most = 64
	d := newDesk(t)
	for i := range most + 1 {
		d.must(&core.Acquire{Namespace: ns, Resource: "pool", ID: fmt.Sprint("l", i), Holder: "ann", TTL: time.Hour, Slots: 1, Capacity: 5000})
	}
	d.refused(&core.Break{Namespace: ns, Resource: "pool", Token: leasehold.Token(most + 1), All: true}, leasehold.Limited,
		fmt.Sprintf("more than %d holders", most))
	if n := d.state.View(0).Counts().Leases; n != most+1 {
		t.Fatalf("a break that was refused left %d", n)
	}
	ended := d.must(&core.Break{Namespace: ns, Resource: "pool", Token: leasehold.Token(most), All: true})
	if len(ended.Also) != most-1 {
		t.Errorf("the answer lists %d leases beside the newest", len(ended.Also))
	}
	if n := d.state.View(0).Counts().Leases; n != 1 {
		t.Fatalf("the break left %d", n)
	}
}

// TestRestsAreMerged ends more leases uncleanly than rests are told apart: it may be late
// for some slots that they are free, and is never early.
func TestRestsAreMerged(t *testing.T) {
	const leases = 200
	d := newDesk(t)
	for i := range leases {
		d.must(&core.Acquire{
			Namespace: ns, Resource: "pool", ID: fmt.Sprint("l", i), Holder: "ann", Slots: 1, Capacity: leases, Grace: time.Duration(i+1) * time.Second,
		})
	}
	for i := range leases {
		d.must(&core.Break{Namespace: ns, ID: fmt.Sprint("l", i)})
	}
	got := 0
	for second := range leases + 1 {
		d.at(time.Duration(second) * time.Second)
		for {
			c := &core.Acquire{Namespace: ns, Resource: "pool", ID: fmt.Sprint("m", got), Holder: "bob", Slots: 1, Capacity: leases}
			if d.do(c).Err != nil {
				break
			}
			got++
		}
		if got > second {
			t.Fatalf("after %ds %d slots were granted again", second, got)
		}
	}
	if got != leases {
		t.Fatalf("in the end %d of %d slots were granted again", got, leases)
	}
}

// TestBreakSparesTheDead has more sharers expire in one moment than an entry collects. A break of
// the one that lives must neither count the others as holders nor end them as broken.
func TestBreakSparesTheDead(t *testing.T) {
	const dead = 1030
	d := newDesk(t)
	share := func(id string, ttl time.Duration) *core.Acquire {
		return &core.Acquire{Namespace: ns, Resource: "pool", ID: id, Holder: id, TTL: ttl, Slots: 1, Capacity: 5000}
	}
	for i := range dead {
		d.must(share(fmt.Sprint("dead", i), time.Minute))
	}
	token := d.must(share("ann", time.Hour)).Lease.Token
	d.at(time.Minute)
	meant := &core.Break{Namespace: ns, Resource: "pool", Token: token}
	d.refused(meant, leasehold.Unavailable, "try again")
	if a := d.must(meant); a.Lease.ID != "ann" || len(a.Also) != 0 {
		t.Errorf("broken is %s, with %d others", a.Lease.ID, len(a.Also))
	}
	if n := d.state.View(0).Counts().Leases; n != 0 {
		t.Errorf("%d leases are left", n)
	}
}
