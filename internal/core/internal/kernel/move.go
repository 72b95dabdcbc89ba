package kernel

import "github.com/leasehold/leasehold"

// move gives a waiter another priority. It goes behind those that have that priority already,
// so an operator who moves two waiters one after the other also decides their order.
func (t *turn) move(c *Move) Answer {
	sp := t.space(c.Namespace)
	claim := t.touch(sp, c.ID)
	switch {
	case claim == nil:
		return t.noClaim(sp, c.ID)
	case !claim.Waiting():
		return refuse(leasehold.Refused, "lease %q on %s is held: it waits for nothing any more", c.ID, claim.Resource)
	case claim.terms().Reservation != "":
		return refuse(leasehold.Refused, "%s waits for its reservation, which gives it its place", c.ID)
	case claim.Wait.Priority == c.Priority:
		return t.waiterAnswer(sp, claim) // an earlier try did it
	}
	if failure := t.staysInOrder(sp, claim, "nobody goes before others"); failure != nil {
		return Answer{Err: failure}
	}
	// All waiters of one request share one place in the order of arrival. If each had its own,
	// two requests for the same resources could each be first in one queue and wait for the
	// other forever.
	sp.arrivals++
	together := t.together(sp, claim)
	for _, one := range together {
		t.moveOne(sp, one, c)
	}
	for _, one := range together {
		t.wakeQueue(sp, one.Resource) // it, or who stood behind it, may be the first now
	}
	if claim, _ = sp.claims.Get(c.ID); claim.Waiting() {
		return t.waiterAnswer(sp, claim)
	}
	return t.leaseAnswer(sp, claim)
}

// moveOne moves one of the waiters of a request. The queue is a tree ordered by priority and
// arrival, so the waiter leaves it under the old key before it is stored under the new one.
func (t *turn) moveOne(sp *space, claim *Claim, c *Move) {
	moved, wait := *claim, *claim.Wait
	wait.Priority, wait.Order = c.Priority, sp.arrivals
	moved.Wait = &wait
	moved.Revision = t.revise(sp)
	t.dequeue(sp, claim)
	t.put(sp, &moved)
	event := t.event(sp, &moved, leasehold.Moved)
	event.By, event.Reason = c.By, c.Reason
	t.emit(sp, event)
}
