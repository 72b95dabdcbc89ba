package kernel

import (
	"cmp"

	"github.com/leasehold/leasehold"
)

// acknowledge ends the rests that follow unclean ends, once somebody has looked at them. A rest
// whose lease has a larger token than the caller saw stays: nobody has looked at that end yet,
// and a retry must not release what happened after the first try.
func (t *turn) acknowledge(c *Acknowledge) Answer {
	sp := t.space(c.Namespace)
	var r *Resource
	if sp != nil {
		r = t.settle(sp, c.Resource)
	}
	if r == nil {
		return refuse(leasehold.NotFound, "%s has no unclean end to acknowledge", c.Resource)
	}
	rested, more := *r, r.more()
	more.Rests = nil
	for _, rest := range r.more().resting(t.now) {
		if rest.After.Token > c.Token {
			more.Rests = append(more.Rests, rest)
			continue
		}
		t.emit(sp, &leasehold.Event{
			Kind: leasehold.Acknowledged, Resource: r.Path, ID: rest.After.ID, Holder: rest.After.Holder,
			Token: rest.After.Token, By: c.By, Reason: c.Reason,
		})
	}
	// The alarm says that somebody should look, and somebody has.
	t.lookedAt(sp, r.Path, c.Token)
	rested.setMore(more)
	t.setResource(sp, &rested)
	// Slots that no longer rest may be what the first waiter needs.
	t.wakeQueue(sp, r.Path)
	return Answer{} // also if an earlier try did it
}

// acknowledgeAlarm clears an alarm that somebody has looked at. If it happened again since, it stays;
// if it is gone, an earlier try may have cleared it.
func (t *turn) acknowledgeAlarm(c *AcknowledgeAlarm) Answer {
	sp := t.space(c.Namespace)
	if sp == nil {
		return Answer{}
	}
	a, ok := sp.alarmOrder.Get(c.Order)
	if !ok || a.Kind != c.Kind || a.Resource != c.Resource {
		a = t.activeAlarm(sp, &Alarm{Kind: c.Kind, Resource: c.Resource, ID: c.ID, Session: c.Session})
	}
	switch {
	case a == nil || a.Quiet || !a.isActive(t.now):
		return Answer{}
	case c.Resource != "" && a.Resource != c.Resource:
		// Whether the caller may was judged by the resource that it named, so this one is as if it were gone.
		return Answer{}
	case a.Order != c.Order:
		return refuse(leasehold.Refused, "it happened again since you looked (%s): check that, then acknowledge it",
			a.Text)
	}
	t.dropAlarm(sp, a)
	if a.Kind == leasehold.LongQueue {
		// It is still long, and the next waiter must not raise the alarm again.
		quiet := *a
		quiet.Quiet = true
		t.fileAlarm(sp, &quiet)
	}
	t.untold = append(t.untold, untold{sp, &leasehold.Event{
		Kind: leasehold.AlarmCleared, Alarm: a.Kind, Resource: a.Resource, ID: a.ID, Holder: a.Holder, Token: a.Token,
		Session: a.Session, By: c.By, Reason: cmp.Or(c.Reason, a.Text),
	}})
	return Answer{}
}
