package unit

import (
	"cmp"
	"strings"
	"time"

	"github.com/leasehold/leasehold"
	"github.com/leasehold/leasehold/internal/core/internal/kernel"
	"github.com/leasehold/leasehold/internal/core/pool"
)

// Show shows units of a pool by host and name, and the first of those who wait for some, with what each of them waits
// for.
func (p *pools) Show(l kernel.Look, path string, q kernel.PoolQuery) leasehold.PoolStatus {
	r, d := resource(l, path), l.Definition(path)
	status := leasehold.PoolStatus{Namespace: l.Name(), Resource: path, Total: p.Size(path), Waiting: r.Waiting,
		Limits: d.Limits, Idle: d.Idle, IdleRelease: d.IdleRelease}
	p.countUnits(l, r, &status)
	p.showUnits(l, r, q, &status)
	p.showQueue(l, r, q.Waiters, &status)
	return status
}

// resource returns what is known of a resource.
func resource(l kernel.Look, path string) *kernel.Resource {
	if r := l.Resource(path); r != nil {
		return r
	}
	return &kernel.Resource{Path: path}
}

// showUnits shows one page of units. One that is held as part of an exclusive lease is shown as held by that.
func (p *pools) showUnits(l kernel.Look, r *kernel.Resource, q kernel.PoolQuery, status *leasehold.PoolStatus) {
	resting := l.Resting(r.Path)
	var after *pool.Unit
	if host, name, ok := strings.Cut(q.After, "\x00"); ok {
		after = &pool.Unit{Pool: r.Path, Host: host, Name: name}
	}
	p.units.Units(r.Path, after, func(u *pool.Unit) bool {
		if len(status.Units) == q.Most {
			last := status.Units[len(status.Units)-1]
			status.Next = last.Host + "\x00" + last.Name
			return false
		}
		shown := leasehold.PoolUnit{Name: u.Name, Host: u.Host, Labels: u.Labels, Lease: u.Lease, Holder: u.Holder,
			Unfit: u.Unfit, Drained: u.Drained, Removed: u.Removed, Freed: l.Moment(u.Freed)}
		if r.Claim != "" && u.Lease == "" {
			claim := l.Claim(r.Claim)
			shown.Lease, shown.Holder = claim.ID, claim.Holder
		}
		shown.Use = unitUse(l, u.Use)
		shown.Rests = u.Lease == "" && resting.Contains(u.Name)
		unitLease(l, &shown)
		status.Units = append(status.Units, shown)
		return true
	})
	l.Take(len(status.Units) / kernel.PerUnit)
}

// unitUse shows how a unit is used.
func unitUse(l kernel.Look, u *pool.Use) *leasehold.UnitUse {
	if u == nil {
		return nil
	}
	shown := &leasehold.UnitUse{At: l.Moment(u.At), Percent: u.Percent, Memory: u.Memory, Busy: u.Busy,
		Idle: u.Unused, IdleSince: l.Moment(u.Idle), Asked: l.Moment(u.Asked)}
	for _, p := range u.Strangers {
		shown.Strangers = append(shown.Strangers, leasehold.UnitProcess(p))
	}
	return shown
}

// showQueue shows the first waiters of a pool. Nothing is picked or kept for good by looking.
func (p *pools) showQueue(l kernel.Look, r *kernel.Resource, most int, status *leasehold.PoolStatus) {
	queue := p.newLine(l, r.Path, false)
	var forecasts []leasehold.Waiter
	if r.Waiting > 0 {
		forecasts = l.Forecasts(r, most)
	}
	for w := l.NextWaiting(r.Path, nil); w != nil; w = l.NextWaiting(r.Path, w) {
		if len(status.Queue) == most || l.Spent() {
			return
		}
		l.Take(kernel.LeaseCost)
		waiter := leasehold.PoolWaiter{Waiter: l.Waiter(w, len(status.Queue)+1)}
		if i := len(status.Queue); i < len(forecasts) {
			waiter.Forecast, waiter.ForecastError = forecasts[i].Forecast, forecasts[i].ForecastError
		}
		if w.Terms != nil && w.Terms.Select != nil {
			waiter.Select = *w.Terms.Select
		}
		switch verdict := queue.judge(w); {
		case r.Claim != "":
			waiter.Why = "waits for the end of an exclusive lease"
		case verdict.grant:
			waiter.Why = "can have it now"
		default:
			waiter.Why = verdict.why()
		}
		status.Queue = append(status.Queue, waiter)
	}
}

// List lists pools by path, with how many units they have but without the units. A page may be short and still have a
// next one: each pool may have thousands of units to count.
func (p *pools) List(
	l kernel.Look, prefix, after string, most int,
) (list []leasehold.PoolStatus, next string) {
	p.units.Pools(max(prefix, after), func(path string, size pool.Size) bool {
		switch {
		case path == after:
			return true
		case !strings.HasPrefix(path, prefix):
			return false
		case len(list) == most || len(list) > 0 && l.Spent():
			next = list[len(list)-1].Resource
			return false
		}
		r := resource(l, path)
		status := leasehold.PoolStatus{Namespace: l.Name(), Resource: path, Total: size.Units, Waiting: r.Waiting}
		p.units.Hosts(path, func(*pool.Host) bool {
			status.Hosts++
			return true
		})
		p.countUnits(l, r, &status)
		list = append(list, status)
		return true
	})
	return list, next
}

// countUnits counts the units of a pool by what they are. All of them are looked at, since which of them rest after an
// unclean end depends on the time and is counted nowhere.
func (p *pools) countUnits(l kernel.Look, r *kernel.Resource, status *leasehold.PoolStatus) {
	resting := l.Resting(r.Path)
	p.units.Units(r.Path, nil, func(u *pool.Unit) bool {
		switch {
		case u.Lease != "" || r.Claim != "":
			status.Held++
		case u.Fit() && !resting.Contains(u.Name):
			status.Free++
		default:
			status.Out++
		}
		return true
	})
	l.Take(status.Total / kernel.PerUnit)
}

// unitLease shows since when and until when somebody has a unit, and why. After a change of holder it is since the
// change, as in the journal: what came before was somebody else's.
func unitLease(l kernel.Look, u *leasehold.PoolUnit) {
	c := l.Claim(u.Lease)
	if c == nil {
		return
	}
	since := c.SinceWall
	if c.Terms != nil {
		since, u.Reason = cmp.Or(c.Terms.ChangedWall, since), c.Terms.Reason
	}
	u.Since, u.Until = time.Unix(0, since).UTC(), l.Moment(l.DeadlineOf(c))
}
