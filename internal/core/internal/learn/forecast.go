package learn

import (
	"slices"
	"time"

	"github.com/leasehold/leasehold"
	"github.com/leasehold/leasehold/internal/btree"
	"github.com/leasehold/leasehold/internal/core/internal/kernel"
	"github.com/leasehold/leasehold/internal/core/pool"
	"github.com/leasehold/leasehold/internal/core/usage"
)

// Where the kinds of leases on a resource are known, a forecast is what the queue will do if everybody needs what its
// kind usually does: each waiter in its order takes the slots or units that become free first, and has them for as
// long. What is decided by a forecast is the same on every node, as all that is learned.

// A seat is some slots of a resource, or one unit of a pool, and when they become free.
type seat struct {
	unit  *pool.Unit // nil: not of a pool
	slots int
	free  usage.Guess // from now on
}

// How much a forecast looks at: beyond that nobody can tell. It is little enough for a command that is applied.
const (
	maxSeats     = 1024
	maxTurns     = 64
	maxSeatLooks = 16384 // seats, over all turns
)

// seats are those of one resource, the first to become free first.
type seats struct {
	kernel.Look
	r      *kernel.Resource
	list   []seat
	other  usage.Recent // of leases that are of no known kind
	looked int
	late   bool // somebody holds it for longer than anybody did
}

// newSeats returns the seats of a resource; nil if it has too many to look at.
func newSeats(l kernel.Look, r *kernel.Resource) *seats {
	if size(l.Namespace, r) > maxSeats {
		return nil
	}
	all := &seats{Look: l, r: r}
	if r.More != nil {
		all.other = r.More.Usual.Recent()
	}
	if l.IsPool(r.Path) {
		all.ofUnits()
	} else {
		all.ofSlots()
	}
	slices.SortStableFunc(all.list, func(a, b seat) int { return int(max(-1, min(1, a.free.Time-b.free.Time))) })
	return all
}

// size is how many seats a resource may have.
func size(n kernel.Namespace, r *kernel.Resource) int { return max(r.Sharers(), n.PoolSize(r.Path)) }

// ofSlots finds the seats of a resource whose slots are all alike: those of each lease, of each rest, and the free
// ones.
func (all *seats) ofSlots() {
	free := max(1, all.capacity())
	add := func(slots int, g usage.Guess, known bool) {
		if slots == 0 {
			slots = free
		}
		if free -= slots; known {
			all.list = append(all.list, seat{slots: slots, free: g})
		}
	}
	all.Holders(all.r, func(c *kernel.Claim) bool {
		g, known := all.left(c)
		add(int(c.Slots), g, known)
		return true
	})
	for _, rest := range all.Rests(all.r) {
		add(int(rest.Slots), usage.Guess{Time: time.Duration(rest.Until - all.Now())}, rest.Until != 0)
	}
	if free > 0 {
		all.list = append(all.list, seat{slots: free})
	}
}

func (all *seats) capacity() int { return all.Capacity(all.r.Path, all.r) }

// ofUnits finds the seats of a pool: the units that may be granted one day.
func (all *seats) ofUnits() {
	r := all.r
	var resting btree.Map[string, kernel.Time]
	for _, rest := range all.Rests(r) {
		for _, name := range rest.Units {
			resting.Set(name, rest.Until)
		}
	}
	var lease *kernel.Claim // that was looked at last: its units mostly follow one another
	var left usage.Guess
	known := true
	all.Units(r.Path, func(u *pool.Unit) bool {
		if !u.Fit() {
			return true
		}
		id := u.Lease
		if r.Claim != "" {
			id = r.Claim
		}
		until, rests := resting.Get(u.Name)
		switch {
		case id != "" && (lease == nil || lease.ID != id):
			lease = all.Claim(id)
			left, known = all.left(lease)
			fallthrough
		case id != "":
			if known {
				all.list = append(all.list, seat{u, 1, left})
			}
		case !rests:
			all.list = append(all.list, seat{unit: u, slots: 1})
		case until != 0:
			all.list = append(all.list, seat{u, 1, usage.Guess{Time: time.Duration(until - all.Now())}})
		}
		return true
	})
}

// recent returns what is known of the kind of a claim, or else of all leases on the resource.
func (all *seats) recent(c *kernel.Claim) usage.Recent {
	if recent := all.RecentOf(c); recent.Known() {
		return recent
	}
	return all.other
}

// left returns how much longer a lease will be held; false if nobody can tell.
func (all *seats) left(c *kernel.Claim) (usage.Guess, bool) {
	recent := all.recent(c)
	g, known := recent.Left(time.Duration(all.Now() - c.Since))
	end := c.EndsAt()
	if most := time.Duration(max(0, end-all.Now())); end != 0 && (!known || g.Time > most) {
		return usage.Guess{Time: most}, true
	}
	all.late = all.late || !known && recent.Known()
	return g, known
}

// forecast makes a forecast of a turn.
func (all *seats) forecast(turn usage.Guess, known bool) usage.Forecast {
	return usage.Forecast{Known: known, Late: !known && all.late, First: turn.Time, Error: turn.Error}
}

// take finds when a request has its turn, and lets it have its seats; false if nobody can tell. hold is for how long it
// will have them.
func (all *seats) take(ask *pool.Ask, hold usage.Guess, holds bool) (usage.Guess, bool) {
	if all.looked += len(all.list) + 1; all.looked > maxSeatLooks {
		return usage.Guess{}, false
	}
	n := ask.N
	if ask.All {
		n = max(1, all.capacity())
	}
	taken, turn := all.soonest(ask, n)
	if taken == nil {
		return usage.Guess{}, false
	}
	turn.Time = max(turn.Time, time.Duration(all.AvailableAfter()-all.Now()))
	all.give(taken, n, turn.Then(hold), holds)
	return turn, true
}

// soonest returns the places in the list of the first seats that together are enough for a request, and when all of
// them are free.
func (all *seats) soonest(ask *pool.Ask, n int) (taken []int, turn usage.Guess) {
	type host struct {
		name  string
		slots int
		taken []int
	}
	var hosts []host
	for i, seat := range all.list {
		name := ""
		if seat.unit != nil {
			if !ask.Wants(seat.unit) {
				continue
			}
			if ask.OneHost() {
				name = seat.unit.Host
			}
		}
		at := slices.IndexFunc(hosts, func(h host) bool { return h.name == name })
		if at < 0 {
			at, hosts = len(hosts), append(hosts, host{name: name})
		}
		h := &hosts[at]
		h.slots, h.taken = h.slots+seat.slots, append(h.taken, i)
		if h.slots >= n {
			return h.taken, seat.free
		}
	}
	return nil, usage.Guess{}
}

// give lets somebody have slots of the seats at some places until a moment; for ever, if nobody can tell.
func (all *seats) give(taken []int, n int, until usage.Guess, known bool) {
	var given []seat
	for _, i := range slices.Backward(taken) {
		one := all.list[i]
		all.list = slices.Delete(all.list, i, i+1)
		given = append(given, one)
	}
	slices.Reverse(given)
	for _, one := range given {
		used := min(n, one.slots)
		n -= used
		if known {
			all.put(seat{one.unit, used, until})
		}
		if rest := one.slots - used; rest > 0 {
			all.put(seat{one.unit, rest, one.free})
		}
	}
}

// put adds a seat at its place.
func (all *seats) put(one seat) {
	at, _ := slices.BinarySearchFunc(all.list, one, func(a, b seat) int {
		if a.free.Time <= b.free.Time {
			return -1
		}
		return 1
	})
	all.list = slices.Insert(all.list, at, one)
}

// turns calls yield with the waiters of a resource in their order, each with its forecast, until it returns false. It
// reports whether all of them had a turn.
func (all *seats) turns(yield func(c *kernel.Claim, f usage.Forecast) bool) bool {
	path, n := all.r.Path, 0
	over := all.OverLimit(path)
	for c := all.NextWaiting(path, nil); c != nil; c = all.NextWaiting(path, c) {
		var f usage.Forecast
		if !over(c) {
			hold, holds := all.recent(c).Hold()
			f = all.forecast(all.take(c.Asks(), hold, holds))
		}
		if n++; !yield(c, f) || n == maxTurns {
			return false
		}
	}
	return true
}

func (s *learned) Forecast(l kernel.Look, r *kernel.Resource, c *kernel.Claim) (found usage.Forecast, ok bool) {
	all := newSeats(l, r)
	if all == nil {
		return found, false
	}
	end := all.turns(func(waiter *kernel.Claim, f usage.Forecast) bool {
		if waiter == c {
			found = f
		}
		return waiter != c
	})
	if c == nil && end {
		found = all.forecast(all.take(&pool.Ask{N: 1, All: r.Claim != ""}, usage.Guess{}, true))
	}
	return found, true
}

func (s *learned) Forecasts(l kernel.Look, r *kernel.Resource, most int) (list []leasehold.Waiter, ok bool) {
	all := newSeats(l, r)
	if all == nil {
		return nil, false
	}
	all.turns(func(_ *kernel.Claim, f usage.Forecast) bool {
		if len(list) < most {
			list = append(list, leasehold.Waiter{Forecast: f.After(0), ForecastError: f.ErrorShown()})
		}
		return len(list) < most
	})
	return list, true
}

// Cost is what it takes to make a forecast of a resource.
func (s *learned) Cost(n kernel.Namespace, r *kernel.Resource) int {
	return min(maxSeatLooks, (size(n, r)+1)*(min(r.Waiting, maxTurns)+2)) / kernel.PerUnit
}
