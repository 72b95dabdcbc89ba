package kernel

import (
	"github.com/leasehold/leasehold"
	"github.com/leasehold/leasehold/internal/core/usage"
	"github.com/leasehold/leasehold/internal/pattern"
)

// An end is how a claim ends.
type end struct {
	how leasehold.How
	// The moment that ended it, which may be before the stamp: a grace counts from there, because
	// that is when the holder's right ended, and not from when somebody noticed.
	at      Time
	own     bool   // its own session ends it: no intervention
	outcome string // of the task that it was a lease on
}

// finish ends a claim and hands its resource on.
func (t *turn) finish(sp *space, c *Claim, e end) {
	how, at := e.how, e.at
	if c.Waiting() {
		t.leave(sp, c, how)
		return
	}
	if !e.own {
		t.intervene(sp, c)
	}
	t.remove(sp, c, how)
	r, _ := sp.resources.Get(c.Resource)
	kept := &afterEnd{free: *r, more: r.more()}
	free, more, last := &kept.free, &kept.more, &kept.last
	rest, rests := t.ending(last, sp, c, how, at)
	more.Last = last
	// Whether this end is unusual is judged by what was learned before it.
	learned := more.usual()
	kept.usual = t.learnHold(sp, more.usual(), c, how, at)
	more.Usual = &kept.usual
	t.learnKind(sp, c, how, at)
	hold := t.hold(sp, c, at) // before its units forget what was counted
	t.vacate(sp, free, more, c)
	more.Rests = more.resting(t.now)
	if rests {
		more.Rests = merged(append(more.Rests, rest))
	}
	free.More = more
	told := &struct {
		event leasehold.Event
		hold  leasehold.Hold
	}{t.eventOf(sp, c, leasehold.Ended), hold}
	event := &told.event
	event.How, event.By, event.Reason, event.Hold = how, last.By, last.Reason, &told.hold
	if e.outcome != "" {
		event.Reason = e.outcome
	}
	event.Own = e.own && c.Session != ""
	t.emit(sp, event)
	t.endLinked(sp, c, how)
	sp.tasks.Ended(t.in(sp), c, how)
	if c.Overdue || !how.Clean() {
		t.alarms.Ended(t.in(sp), c, how, learned.LostBefore)
	}
	// The resource is stored, and the end is in history, before the queue is woken: the next
	// grant must find the resource free, and its event must come after this one.
	t.setResource(sp, free)
	t.unclaim(sp, c, how)
	if free.Waiting > 0 || sp.tasks.Get(c.Resource) != nil || pattern.In(c.Resource) {
		t.wakeQueue(sp, c.Resource)
	}
}

// An afterEnd is a resource and what it keeps of a lease that ended, in one piece of memory.
type afterEnd struct {
	free  Resource
	more  More
	usual usage.Usual
	last  Ending
}

// remove takes a claim out of everything but its resource, and remembers its id, so that a late
// retry is told what became of it.
func (t *turn) remove(sp *space, c *Claim, how leasehold.How) {
	t.work.take(EndCost)
	if c.Waiting() {
		t.work.take(leaveCost - EndCost)
	}
	t.due.Set(c.timer, 0)
	t.reuse(c.timer)
	t.unbind(sp, c)
	t.endClaim(sp, &EndedClaim{ID: c.ID, How: how, At: t.now, Resource: c.Resource, Holder: c.Holder, Token: c.Token})
}

// leave takes a waiter out of the queue without a lease, and with it all that was wanted at the
// same time. First all of them leave and then the queues move on; else a queue could find a
// part of the same request at its head.
func (t *turn) leave(sp *space, c *Claim, how leasehold.How) {
	by, reason := c.terms().BreakBy, c.terms().BreakReason
	together := t.together(sp, c)
	for _, c := range together {
		t.work.take(t.poolCost(sp, c.Resource))
		t.remove(sp, c, how)
		t.dequeue(sp, c)
		r, _ := sp.resources.Get(c.Resource)
		shorter := *r
		shorter.Waiting--
		t.setResource(sp, &shorter)
		event := t.event(sp, c, leasehold.Left)
		event.How = how
		if how == leasehold.ByBreak {
			event.By, event.Reason = by, reason
		}
		t.emit(sp, event)
		t.endLinked(sp, c, how)
		t.shortened(sp, c.Resource)
	}
	for _, c := range together {
		t.unclaim(sp, c, how)
		t.wakeQueue(sp, c.Resource)
	}
}

// ending sets what a resource remembers of a lease that ended at some moment, and returns the rest
// that follows, and whether one does.
func (s *State) ending(e *Ending, sp *space, c *Claim, how leasehold.How, at Time) (rest Rest, rests bool) {
	*e = Ending{ID: c.ID, Holder: c.Holder, Token: c.Token, How: how, Wall: s.wall}
	t := c.terms()
	e.Foreign, e.TTL = t.Foreign, c.TTL
	if how == leasehold.ByBreak {
		e.By, e.Reason = t.BreakBy, t.BreakReason
	}
	if how.Clean() {
		return rest, false
	}
	d := sp.definition(c.Resource)
	rest = Rest{Slots: c.Slots, Units: t.Units, After: e}
	if d.Unclean == leasehold.AwaitAcknowledgement {
		return rest, true
	}
	rest.Until = at.Add(max(t.Grace, d.Grace))
	// Else the grace is over already, or there is none.
	return rest, rest.Until > s.now && rest.Until != at
}

// hold describes what the holder had of a lease that ends at some moment. After a change of
// holder it counts from there: what came before was somebody else's.
func (t *turn) hold(sp *space, c *Claim, at Time) leasehold.Hold {
	terms := c.terms()
	t.noteShare(sp, c)
	busy, idle := sp.used(c)
	since := c.SinceWall
	if terms.ChangedWall != 0 {
		since = terms.ChangedWall
	}
	return leasehold.Hold{ID: c.ID, Holder: c.Holder, Token: c.Token, Since: calendar(since), Until: t.moment(at),
		Waited: terms.Waited, Busy: busy, Idle: idle}
}
