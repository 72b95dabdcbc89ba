package kernel_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/leasehold/leasehold"
	"github.com/leasehold/leasehold/internal/core"
	"github.com/leasehold/leasehold/internal/core/reservation"
)

// littleWork is the budget of an entry that is less than a look at the largest pool takes.
const littleWork = 1000

// hardToFind makes a pool of which it takes more work to find a unit, or that none is free, than an entry has.
func (d *desk) hardToFind() *leasehold.Select {
	where := "special=yes"
	for i := range 7 {
		where += fmt.Sprint(", rack!=x", i)
	}
	for h := range 5 {
		c := hostUnits("gpu", fmt.Sprint("h", h), 1000)
		for i := range c.Units {
			c.Units[i].Labels = leasehold.Labels{{Key: "rack", Value: fmt.Sprint(i)}}
		}
		if h == 0 {
			c.Units[0].Labels = leasehold.Labels{{Key: "special", Value: "yes"}}
		}
		d.must(c)
	}
	d.open("s")
	d.state.SetWork(littleWork)
	return &leasehold.Select{Where: where, Spread: true}
}

// waitsFor has somebody wait for the unit that is hard to find and for something else.
func (d *desk) waitsFor(special *leasehold.Select, other core.Item) {
	d.must(&core.Acquire{Namespace: ns, Resource: "gpu", ID: "unit", Holder: "w", Session: "s", Slots: 1,
		Wait: 20 * time.Minute, Select: special, Also: []core.Item{other}})
}

// ticks lets chores be done that need no more than a few entries.
func (d *desk) ticks() {
	for range 20 {
		d.at(d.now + time.Second).must(&core.Tick{})
	}
}

// TestATurnThatTakesMoreThanAnEntry has somebody wait for a unit and a lock at once. To find the unit takes more work
// than an entry has, and it must be granted for all that.
func TestATurnThatTakesMoreThanAnEntry(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	special := d.hardToFind()
	for _, path := range []string{"lock", "other"} {
		d.must(&core.Acquire{Namespace: ns, Resource: path, ID: path, Holder: "h"})
	}
	d.waitsFor(special, core.Item{Resource: "lock", ID: "second"})
	d.must(&core.Renew{Namespace: ns, ID: "unit"}) // the queue of the pool was looked at, and is calm
	d.must(&core.Release{Namespace: ns, ID: "lock"})
	d.ticks()
	if status := d.state.View(0).Status(ns, "lock", 10); status.Waiting > 0 {
		t.Error("all that it waits for is free, and it waits")
	}
}

// TestBehindATurnThatTakesMoreThanAnEntry has somebody wait, in a pool and in an area, behind one whose unit elsewhere
// somebody has, which takes more work to find out than an entry has. Who is behind must be granted what is free.
func TestBehindATurnThatTakesMoreThanAnEntry(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name          string
		has           core.Acquire
		first, behind core.Item
	}{
		{
			"pool", core.Acquire{Resource: "small", Slots: 2, Select: spread},
			core.Item{Resource: "small", ID: "other", Slots: 1}, core.Item{Resource: "small", Slots: 1},
		},
		{
			"area", core.Acquire{Resource: "repo/web:src/**"},
			core.Item{Resource: "repo/web:src/a", ID: "other"}, core.Item{Resource: "repo/web:src/b"},
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			d := newDesk(t)
			special := d.hardToFind()
			d.must(hostUnits("small", "a", 1))
			d.must(hostUnits("small", "b", 1))
			d.must(&core.Acquire{Namespace: ns, Resource: "gpu", ID: "special", Holder: "h", Slots: 1, Select: special})
			c.has.Namespace, c.has.ID, c.has.Holder = ns, "all", "h"
			d.must(&c.has)
			d.waitsFor(special, c.first)
			d.must(&core.Acquire{Namespace: ns, Resource: c.behind.Resource, ID: "behind", Holder: "b", Session: "s",
				Slots: c.behind.Slots, Wait: 20 * time.Minute})
			d.must(&core.Release{Namespace: ns, ID: "all"})
			d.ticks()
			if lease := d.state.View(0).Claim(ns, "behind").Lease; lease == nil || d.state.Chores() > 0 {
				t.Errorf("what it waits for is free, and it has %v; %d chores are left", lease, d.state.Chores())
			}
		})
	}
}

// TestRaiseTokensIsOneTurn raises tokens at the moment at which a reservation begins. What the calendar does is part of
// that command: the record of the resource shows its new holder when the command is done.
func TestRaiseTokensIsOneTurn(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	d.must(&core.Reserve{Namespace: ns, ID: "r", Resource: "desk", Holder: "ann", Length: time.Hour,
		From: reservation.Moment(wallOf(10 * time.Second))})
	d.must(&core.PutRecord{Namespace: ns, Path: "desk", Value: "v",
		Link: &core.Link{Resource: "desk", Mirror: "desk", Stay: true}})
	d.must(&core.Acquire{Namespace: ns, Resource: "desk", ID: "l", Holder: "ann", Reservation: "r", Wait: time.Minute})
	d.at(10 * time.Second).must(&core.RaiseTokens{Namespace: ns, Above: 1000, Reason: "seen elsewhere"})
	r, err := d.state.View(0).Record(ns, "desk", 0)
	if lease := d.state.View(0).Claim(ns, "l").Lease; lease == nil || err != nil || r.Lease != "l" {
		t.Errorf("the record is %+v (%v), and the lease %+v", r, err, lease)
	}
}

// TestWhoLooksAtAQueueCountsIt lets many locks end at once, each of which is wanted together with a unit of a pool whose
// queue is long. To look at all of it for each of them is work, though nobody in it may have a unit.
func TestWhoLooksAtAQueueCountsIt(t *testing.T) {
	t.Parallel()
	const waiters, locks = 500, 20
	d := newDesk(t)
	d.must(hostUnits("gpu", "h", 4))
	d.must(&core.Define{Namespace: ns, Definition: leasehold.Definition{Path: "gpu",
		Limits: []leasehold.UnitLimit{{By: leasehold.EachHolder, Most: 3}}}})
	d.open("s")
	d.must(&core.Acquire{Namespace: ns, Resource: "gpu", ID: "most", Holder: "h", Slots: 3})
	for i := range waiters {
		d.must(&core.Acquire{Namespace: ns, Resource: "gpu", ID: fmt.Sprint("w", i), Holder: "h", Session: "s", Slots: 3,
			Wait: time.Hour})
	}
	for i := range locks {
		lock := fmt.Sprint("lock", i)
		d.must(&core.Acquire{Namespace: ns, Resource: lock, ID: lock, Holder: "h", TTL: time.Second})
		d.must(&core.Acquire{Namespace: ns, Resource: lock, ID: lock + "'s next", Holder: "h", Session: "s",
			Wait: time.Hour, Also: []core.Item{{Resource: "gpu", ID: lock + "'s unit", Slots: 3}}})
	}
	d.at(2 * time.Second).must(&core.Tick{})
	if work := d.state.Work(); work < locks*waiters/10 {
		t.Errorf("%d times %d waiters were looked at in %d units of work", locks, waiters, work)
	}
}

// TestManyWhoWaitElsewhere has many wait, in a pool and in an area, each for the same unit elsewhere, which somebody has.
// To find out takes more work than an entry has, for each of them: no entry does it for many. The last in the area, whose
// unit is free, must be granted what it waits for; in a pool units are kept for those before it.
func TestManyWhoWaitElsewhere(t *testing.T) {
	t.Parallel()
	const waiters = 24
	for name, has := range map[string]core.Acquire{
		"pool": {Resource: "small", Slots: waiters + 1, Select: spread},
		"area": {Resource: "repo/web:src/**"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := newDesk(t)
			special := d.hardToFind()
			d.must(hostUnits("small", "a", waiters+1))
			d.must(hostUnits("easy", "e", 1))
			d.must(&core.Acquire{Namespace: ns, Resource: "gpu", ID: "special", Holder: "h", Slots: 1, Select: special})
			has.Namespace, has.ID, has.Holder = ns, "all", "h"
			d.must(&has)
			wait := func(id string, elsewhere core.Item) {
				c := &core.Acquire{Namespace: ns, Resource: "small", Slots: 1, ID: id, Holder: id, Session: "s",
					Select: &leasehold.Select{Where: "model!=" + id, Spread: true}, Wait: 20 * time.Minute, Also: []core.Item{elsewhere}}
				if name == "area" {
					c.Resource, c.Slots, c.Select = "repo/web:src/"+id, 0, nil
				}
				d.must(c)
			}
			for i := range waiters {
				id := fmt.Sprint("w", i)
				wait(id, core.Item{Resource: "gpu", ID: id + "'s unit", Slots: 1, Select: special})
			}
			wait("last", core.Item{Resource: "easy", ID: "easy unit", Slots: 1})
			d.must(&core.Release{Namespace: ns, ID: "all"})
			for range 2 * waiters {
				if work := d.state.Work(); work > 4*littleWork {
					t.Fatalf("an entry took %d units of work", work)
				}
				d.at(d.now + time.Second).mustAgree(&core.Tick{}) // a server that read a snapshot goes on at the same waiter
			}
			if lease := d.state.View(0).Claim(ns, "last").Lease; lease == nil && name == "area" || d.state.Chores() > 0 {
				t.Errorf("what it waits for is free, and it has %v; %d chores are left", lease, d.state.Chores())
			}
			d.must(&core.Release{Namespace: ns, ID: "special"})
			d.ticks()
			if lease := d.state.View(0).Claim(ns, "w0").Lease; lease == nil {
				t.Error("the unit is free, and the first who waits for it has nothing")
			}
		})
	}
}

// TestFarBackInALine has as many wait for a drained unit of a pool as are looked at. Who comes behind them has to wait,
// although another unit is free, and gets it when enough of them have left: with a unit of a second pool, an equal part
// of them is looked at in each.
func TestFarBackInALine(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		waiters int
		also    []core.Item
	}{
		"one pool":  {4096, nil},
		"two pools": {2048, []core.Item{{Resource: "other", ID: "also", Slots: 1}}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := newDesk(t)
			d.open("s", "t")
			d.must(hostUnits("other", "h", 1))
			d.must(hostUnits("gpu", "h", 2))
			d.must(&core.Drain{Namespace: ns, Resource: "gpu", Units: []string{"h-0000"}, Why: "fan"})
			for i := range c.waiters {
				d.waits(&core.Acquire{Namespace: ns, Resource: "gpu", ID: fmt.Sprint("w", i), Holder: "w", Session: "s", Slots: 1,
					Wait: time.Hour, Select: &leasehold.Select{Units: []string{"h-0000"}}})
			}
			d.waits(&core.Acquire{Namespace: ns, Resource: "gpu", ID: "last", Holder: "l", Session: "t", Slots: 1, Wait: time.Hour,
				Also: c.also})
			d.mustAgree(&core.Release{Namespace: ns, ID: "w7"})
			d.ticks()
			if lease := d.state.View(0).Claim(ns, "last").Lease; lease == nil {
				t.Error("no more are before it than are looked at, a unit is free, and it waits")
			}
		})
	}
}
