package kernel

import (
	"strings"

	"github.com/leasehold/leasehold"
)

// Status shows one resource, with at most the given number of its waiters. A resource that
// nothing is known of is available.
func (v *view) Status(namespace, path string, waiters int) leasehold.Status {
	status := v.statusAlone(namespace, path, waiters)
	if sp := v.s.space(namespace); sp != nil {
		status.Overlapping = v.overlapping(sp, path)
	}
	return status
}

func (v *view) statusAlone(namespace, path string, waiters int) leasehold.Status {
	if sp := v.s.space(namespace); sp != nil {
		if r, ok := sp.resources.Get(path); ok {
			return v.status(sp, r, maxHolders, waiters)
		}
		if d := sp.definition(path); d.Path != "" {
			return v.status(sp, &Resource{Path: path}, 0, 0)
		}
	}
	return leasehold.Status{
		Namespace: namespace, Resource: path, State: leasehold.Available, Capacity: 1,
		AvailableAt: v.s.moment(v.s.availableAfter()),
	}
}

// How many holders of a shared resource are shown: of a single resource, and of each in a list.
const (
	maxHolders    = 1000
	maxHoldersOne = 10
)

// A ListQuery says which resources to show.
type ListQuery struct {
	Prefix string // of their paths
	To     string // before which they end; empty: they do not
	After  string // the path that the page before ended with
	Most   int    // of them
	All    bool   // also those that are merely available
	Filter Filter
}

// List shows at most most resources whose path begins with prefix and comes after another path.
func (v *view) List(namespace, prefix, after string, most int, all bool) (list []leasehold.Status, next string) {
	return v.Find(namespace, ListQuery{Prefix: prefix, After: after, Most: most, All: all})
}

// Find shows resources in order, without their queues. Those that are merely available are left
// out unless all are asked for, or those in particular. next is where to continue, empty at the
// end; a page may be short, or empty, and still have a next one, because what a page may look at
// is bounded too.
func (v *view) Find(namespace string, q ListQuery) (list []leasehold.Status, next string) {
	sp := v.s.space(namespace)
	if sp == nil {
		return nil, ""
	}
	all, any := q.All || q.Filter.State == leasehold.Available, q.Filter.none()
	seen, last := 0, ""
	sp.resources.Ascend(max(q.Prefix, q.After), func(path string, r *Resource) bool {
		if path == q.After {
			return true
		}
		if !strings.HasPrefix(path, q.Prefix) || q.To != "" && path >= q.To {
			return false
		}
		if len(list) == q.Most || any && seen == q.Most+maxLook || seen > 0 && !v.fits(sp, r, &q.Filter) {
			next = last
			return false
		}
		before := last
		seen, last = seen+1, path
		if !any {
			may := v.mayShow(sp, r, &q.Filter)
			if seen > 1 && v.work.spent() {
				next = before // it may not have looked at all holders: the next page begins with this one
				return false
			}
			if !may {
				return true
			}
		}
		status, shown := v.filtered(sp, r, &q.Filter)
		if shown && (all || status.State != leasehold.Available || status.Waiting > 0) {
			list = append(list, status)
		}
		return true
	})
	return list, next
}

// maxLook is how many resources a page may pass over without showing them.
const maxLook = 1000

// overlapping shows leases on other names that overlap a path.
func (v *view) overlapping(sp *space, path string) (leases []leasehold.Lease) {
	looked := v.s.overlapping(sp, path, func(r *Resource) bool {
		sp.holders(r, func(c *Claim) bool {
			if _, _, over := v.s.isOver(sp, c); !over {
				leases = append(leases, v.lease(sp, c))
			}
			return len(leases) < maxHoldersOne
		})
		return len(leases) < maxHoldersOne
	})
	v.work.take(looked/LooksPerUnit + LeaseCost*len(leases))
	return leases
}

// lease shows a lease with what is left of it now, and not at the last stamp: a console would
// otherwise show a time that stands still between two entries.
func (v *view) lease(sp *space, c *Claim) leasehold.Lease {
	lease := v.s.leaseAbove(sp, c, v.floor(sp, c))
	lease.Remaining = max(0, lease.Remaining-v.passed)
	return lease
}

// floor is that of the state, which does not change while it is viewed.
func (v *view) floor(sp *space, c *Claim) leasehold.Token {
	if c.Slots == 0 {
		return c.Token
	}
	if r, _ := sp.resources.Get(c.Resource); r != v.shared.resource {
		lowest, looked := v.s.lowest(sp, r, maxFloor)
		v.work.take(looked / PerUnit)
		v.shared = sharing{r, lowest}
	}
	return min(v.shared.lowest, c.Token)
}

// status shows a resource as of the last stamp.
func (v *view) status(sp *space, r *Resource, holders, waiters int) leasehold.Status {
	status := v.statusOf(sp, r, holders, &Filter{})
	if waiters > 0 && r.Waiting > 0 {
		status.Queue = v.queue(sp, r, waiters)
	}
	return status
}

// statusOf shows a resource without its queue, with those of its holders that a filter picks.
func (v *view) statusOf(sp *space, r *Resource, holders int, f *Filter) leasehold.Status {
	v.work.take(statusCost)
	more := r.more()
	d := sp.definition(r.Path)
	status := leasehold.Status{Namespace: sp.name, Resource: r.Path, Capacity: max(1, sp.capacity(r.Path, r, d)),
		Waiting: r.Waiting}
	last, rests := v.showHolders(sp, r, &status, holders, f)
	if status.Holding == 0 {
		status.State = stateAfter(last)
	}
	v.showRests(&status, rests)
	status.Last = last.shown()
	if sp.isPool(r.Path) {
		d.Units = nil // there may be thousands: see Pool
	}
	resting := restingUnits(rests)
	for _, unit := range named(more.shares().Units, d.Units) {
		shown := leasehold.Unit{Name: unit.Name, Lease: unit.lease, Holder: unit.Holder}
		shown.Rests = unit.lease == "" && resting.Contains(unit.Name)
		status.Units = append(status.Units, shown)
	}
	v.work.take(len(status.Units) / PerUnit)
	status.Usual = more.Usual.Shown()
	return status
}

// showHolders counts and shows those who have a resource, and returns what is
// remembered of those who had it: a lease may be over at the stamp although nobody has
// collected it yet. While very many end at once, there may be more of these than a read
// can look at: those that it does not come to are counted as if they were alive.
func (v *view) showHolders(
	sp *space, r *Resource, status *leasehold.Status, most int, f *Filter,
) (last *Ending, rests []Rest) {
	last, rests = r.more().Last, r.more().resting(v.s.now)
	status.Holding, status.Used = r.Sharers(), r.more().shares().used
	if r.Claim != "" {
		status.Holding, status.Used = 1, status.Capacity
	}
	if junior := sp.junior(r); junior != nil {
		status.State = junior.state()
	}
	collected := v.collected(sp, r)
	newest, looked := status.State, 0
	sp.holders(r, func(c *Claim) bool {
		if looked++; !v.work.take(LookCost) && looked > most {
			newest = status.State
			return false
		}
		if at, how, over := v.s.isOver(sp, c); over {
			status.Holding--
			status.Used -= int(c.Slots)
			ending := new(Ending)
			rest, follows := v.s.ending(ending, sp, c, how, at)
			if last = ending; follows {
				rests = append(rests, rest)
			}
			return true
		}
		newest = c.state()
		if len(status.Holders) < most && picks(f, c) {
			v.work.take(LeaseCost)
			status.Holders = append(status.Holders, v.lease(sp, c))
		}
		return !collected || len(status.Holders) < most && (f.none() || looked < maxFiltered)
	})
	switch {
	case r.Claim != "" && status.Holding == 0:
		status.Used = 0
	case !collected:
		status.State = newest
	}
	return last, rests
}

// collected reports whether no lease on a resource can be over at the stamp.
func (v *view) collected(sp *space, r *Resource) bool {
	soonest := r.more().shares().soonest
	return (v.calm || r.Claim == "" && (soonest == 0 || soonest > v.s.now)) && !sp.leaving()
}

// fits reports whether a resource can be shown with the work that is left.
func (v *view) fits(sp *space, r *Resource, f *Filter) bool {
	looks := statusCost
	if !f.none() {
		looks += LookCost + 2*LookCost*min(r.Sharers(), maxFiltered) // once to find them, once to show them
	}
	if !v.collected(sp, r) {
		looks += LookCost * r.Sharers()
	}
	return v.work.done+looks <= v.work.most
}

// showRests sets when something of the resource is free again, unless something is free now.
func (v *view) showRests(status *leasehold.Status, rests []Rest) {
	resting, all := 0, false
	var next Time
	for _, rest := range rests {
		resting, all = resting+int(rest.Slots), all || rest.Slots == 0
		if rest.Until == 0 {
			status.Unacknowledged = rest.After.shown()
		} else if next == 0 || rest.Until < next {
			next = rest.Until
		}
	}
	if !all && (status.Holding > 0 || resting < status.Capacity) {
		next = 0
	}
	if status.Holding == 0 {
		next = max(next, v.s.availableAfter())
	}
	status.AvailableAt = v.s.moment(next)
}

// queue shows the first waiters of a resource.
func (v *view) queue(sp *space, r *Resource, most int) (queue []leasehold.Waiter) {
	forecasts := v.s.forecasts(sp, r, most)
	sp.queue.Ascend(beforeAll(r.Path), func(c *Claim) bool {
		if c.Resource != r.Path || len(queue) == most {
			return false
		}
		waiter := v.s.waiter(sp, c, len(queue)+1+v.s.overlappingAhead(sp, c, &v.work))
		if i := len(queue); i < len(forecasts) {
			waiter.Forecast, waiter.ForecastError = forecasts[i].Forecast, forecasts[i].ForecastError
		}
		queue = append(queue, waiter)
		return true
	})
	v.work.take(LeaseCost*len(queue) + v.s.forecastCost(sp, r))
	return queue
}
