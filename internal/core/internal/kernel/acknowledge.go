package kernel

import "github.com/leasehold/leasehold"

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
	if t.totals.alarms > 0 {
		t.alarms.LookedAt(t.in(sp), r.Path, c.Token)
	}
	rested.setMore(more)
	t.setResource(sp, &rested)
	// Slots that no longer rest may be what the first waiter needs.
	t.wakeQueue(sp, r.Path)
	return Answer{} // also if an earlier try did it
}
