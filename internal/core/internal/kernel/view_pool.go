package kernel

import (
	"strings"

	"github.com/leasehold/leasehold"
	"github.com/leasehold/leasehold/internal/core/pool"
)

// A PoolQuery says what to show of a pool.
type PoolQuery struct {
	After   string // the unit that the page before ended with, as PoolStatus.Next has it
	Most    int    // units
	Waiters int
}

// Pool shows units of a pool by host and name, and the first of those who wait for some, with what each of them waits
// for. ok is whether there is such a pool.
func (v *view) Pool(namespace, path string, q PoolQuery) (status leasehold.PoolStatus, ok bool) {
	sp := v.s.space(namespace)
	if sp == nil || !sp.pools.Has(path) {
		return status, false
	}
	r, known := sp.resources.Get(path)
	if !known {
		r = &Resource{Path: path}
	}
	d := sp.definition(path)
	status = leasehold.PoolStatus{Namespace: namespace, Resource: path, Total: sp.pools.Size(path).Units,
		Waiting: r.Waiting, Limits: d.Limits, Idle: d.Idle, IdleRelease: d.IdleRelease}
	v.countUnits(sp, r, &status)
	v.poolUnits(sp, r, q, &status)
	v.poolQueue(sp, r, q.Waiters, &status)
	return status, true
}

// poolUnits shows one page of units. One that is held as part of an exclusive lease is shown as held by that.
func (v *view) poolUnits(sp *space, r *Resource, q PoolQuery, status *leasehold.PoolStatus) {
	resting := restingUnits(r.more().resting(v.s.now))
	var after *pool.Unit
	if host, name, ok := strings.Cut(q.After, "\x00"); ok {
		after = &pool.Unit{Pool: r.Path, Host: host, Name: name}
	}
	sp.pools.Units(r.Path, after, func(u *pool.Unit) bool {
		if len(status.Units) == q.Most {
			last := status.Units[len(status.Units)-1]
			status.Next = last.Host + "\x00" + last.Name
			return false
		}
		shown := leasehold.PoolUnit{Name: u.Name, Host: u.Host, Labels: u.Labels, Lease: u.Lease, Holder: u.Holder,
			Unfit: u.Unfit, Drained: u.Drained, Removed: u.Removed, Freed: v.s.moment(u.Freed)}
		if r.Claim != "" && u.Lease == "" {
			claim, _ := sp.claims.Get(r.Claim)
			shown.Lease, shown.Holder = claim.ID, claim.Holder
		}
		shown.Use = v.unitUse(u.Use)
		shown.Rests = u.Lease == "" && resting.Contains(u.Name)
		v.unitLease(sp, &shown)
		status.Units = append(status.Units, shown)
		return true
	})
	v.work.take(len(status.Units) / PerUnit)
}

// unitUse shows how a unit is used.
func (v *view) unitUse(u *pool.Use) *leasehold.UnitUse {
	if u == nil {
		return nil
	}
	shown := &leasehold.UnitUse{At: v.s.moment(u.At), Percent: u.Percent, Memory: u.Memory, Busy: u.Busy,
		Idle: u.Unused, IdleSince: v.s.moment(u.Idle), Asked: v.s.moment(u.Asked)}
	for _, p := range u.Strangers {
		shown.Strangers = append(shown.Strangers, leasehold.UnitProcess(p))
	}
	return shown
}

// poolQueue shows the first waiters of a pool. Nothing is picked or kept for good by looking.
func (v *view) poolQueue(sp *space, r *Resource, most int, status *leasehold.PoolStatus) {
	l := v.s.newLine(sp, r.Path, false)
	var forecasts []leasehold.Waiter
	if r.Waiting > 0 {
		forecasts = v.s.forecasts(sp, r, most)
		v.work.take(v.s.forecastCost(sp, r))
	}
	for w := nextWaiting(sp, r.Path, beforeAll(r.Path)); w != nil; w = nextWaiting(sp, r.Path, w) {
		if len(status.Queue) == most || v.work.spent() {
			return
		}
		v.work.take(LeaseCost)
		waiter := leasehold.PoolWaiter{Waiter: v.s.waiter(sp, w, len(status.Queue)+1)}
		if i := len(status.Queue); i < len(forecasts) {
			waiter.Forecast, waiter.ForecastError = forecasts[i].Forecast, forecasts[i].ForecastError
		}
		if sel := w.terms().Select; sel != nil {
			waiter.Select = *sel
		}
		switch verdict := l.judge(w); {
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
