package encode

import (
	"fmt"

	"github.com/leasehold/leasehold"
	"github.com/leasehold/leasehold/internal/core/pool"
)

// limits writes limits of units, if there are any.
func (b *Buffer) limits(list []leasehold.UnitLimit) {
	texts := make([]string, 0, len(list))
	for _, l := range list {
		texts = append(texts, pool.LimitText(l))
	}
	b.Names("limits", texts)
}

// Pool writes units of a pool, and who waits for some. next is where the next page begins.
func (b *Buffer) Pool(p *leasehold.PoolStatus, next string) {
	b.Open()
	b.Text("namespace", p.Namespace)
	b.Text("resource", p.Resource)
	b.poolCounts(p)
	b.limits(p.Limits)
	b.SomeSpan("idle", p.Idle)
	b.SomeSpan("idle_release", p.IdleRelease)
	b.Key("units")
	b.OpenList()
	for i := range p.Units {
		b.Next()
		b.poolUnit(&p.Units[i])
	}
	b.CloseList()
	b.Some("next", next)
	b.Number("waiting", uint64(p.Waiting))
	if len(p.Queue) > 0 {
		b.Key("queue")
		b.OpenList()
		for i := range p.Queue {
			b.Next()
			b.poolWaiter(&p.Queue[i])
		}
		b.CloseList()
	}
	b.Close()
}

// PoolCounts writes a pool without its units, as lists show it.
func (b *Buffer) PoolCounts(p *leasehold.PoolStatus) {
	b.Open()
	b.Text("namespace", p.Namespace)
	b.Text("resource", p.Resource)
	b.Number("hosts", uint64(p.Hosts))
	b.poolCounts(p)
	b.Number("waiting", uint64(p.Waiting))
	b.Close()
}

func (b *Buffer) poolCounts(p *leasehold.PoolStatus) {
	b.Number("total", uint64(p.Total))
	b.Number("free", uint64(p.Free))
	b.Number("held", uint64(p.Held))
	b.Number("out", uint64(p.Out))
}

// poolUnit writes one unit. Its state is the first of these that applies: somebody has it, an operator drained it, its
// host calls it unfit, somebody uses it without a lease, it rests after an unclean end, it is free.
func (b *Buffer) poolUnit(u *leasehold.PoolUnit) {
	state, why := "free", ""
	switch {
	case u.Lease != "":
		state, why = "held", u.Drained+u.Unfit
	case u.Drained != "":
		state, why = "drained", u.Drained
	case u.Unfit != "":
		state, why = "unfit", u.Unfit
	case u.Use != nil && len(u.Use.Strangers) > 0:
		p := u.Use.Strangers[0]
		state, why = "taken", fmt.Sprintf("used without a lease by process %d of %s (%s)", p.PID, p.User, p.Name)
	case u.Rests:
		state = "resting"
	}
	b.Open()
	b.Text("name", u.Name)
	b.Some("host", u.Host)
	b.labels(u.Labels)
	b.Text("state", state)
	b.Some("lease", u.Lease)
	b.Some("holder", u.Holder)
	if !u.Since.IsZero() {
		b.Moment("since", u.Since)
		b.Moment("until", u.Until)
	}
	b.Some("reason", u.Reason)
	b.Some("why", why)
	if u.Removed {
		b.Flag("removed", true)
	}
	if u.Use != nil {
		b.Key("use")
		b.unitUse(u.Use)
	}
	b.Close()
}

// unitUse writes how a unit is used. What its host cannot tell is left out, and so is what was not counted yet.
func (b *Buffer) unitUse(u *leasehold.UnitUse) {
	b.Open()
	b.Moment("at", u.At)
	if u.Percent != pool.UnknownPercent {
		b.Number("percent", uint64(u.Percent))
	}
	b.Number("memory_mib", uint64(u.Memory))
	if len(u.Strangers) > 0 {
		b.Key("strangers")
		b.OpenList()
		for _, p := range u.Strangers {
			b.Next()
			b.Open()
			b.Number("pid", uint64(p.PID))
			b.Some("user", p.User)
			b.Some("name", p.Name)
			b.Close()
		}
		b.CloseList()
	}
	if u.Busy != 0 || u.Idle != 0 {
		b.Millis("busy_ms", u.Busy)
		b.Millis("idle_ms", u.Idle)
	}
	if !u.IdleSince.IsZero() {
		b.Moment("idle_since", u.IdleSince)
	}
	if !u.Asked.IsZero() {
		b.Moment("asked", u.Asked)
	}
	b.Close()
}

// poolWaiter writes one waiter, with what it asks for and why it waits.
func (b *Buffer) poolWaiter(w *leasehold.PoolWaiter) {
	b.Open()
	b.Text("id", w.ID)
	b.Text("holder", w.Holder)
	b.Number("position", uint64(w.Position))
	b.Count("slots", w.Slots)
	b.Some("where", w.Select.Where)
	if w.Select.Spread {
		b.Flag("spread", true)
	}
	b.Names("units", w.Select.Units)
	b.Moment("since", w.Since)
	b.Text("why", w.Why)
	b.forecast(&w.Waiter)
	b.Close()
}
