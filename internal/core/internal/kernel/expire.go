package kernel

import "github.com/leasehold/leasehold"

// tick does what time alone makes due: it ends what nobody renewed, and gets chores done. It is
// the only way in which something ends that no command touches.
func (t *turn) tick(c *Tick) {
	if t.tickWithin(); c.Short {
		t.forgetHistory()
	}
}

// tickWithin gets chores done, and lets time do what is due, in turn, until the budget is spent
// or nothing is left. Taking turns keeps a huge session that is being collected from delaying
// the expiry of everybody else's leases, and the other way round.
func (t *turn) tickWithin() {
	for more := true; more && !t.work.spent(); {
		more = t.doWithdrawal()
		more = t.doRevocation() || more
		more = t.doChore() || more
		for range choreStep {
			due := t.due.Due(t.now)
			if due == nil || t.work.spent() {
				break
			}
			t.expire(due)
			more = true
		}
	}
}

// expire lets time do to one thing what is due.
func (t *turn) expire(due *timer) {
	sp, key := due.Of.space, due.Of.key
	t.work.take(LookCost)
	switch due.Of.kind {
	case dueClaim:
		claim, _ := sp.claims.Get(key)
		if !t.settleClaim(sp, claim) {
			t.overdue(sp, claim)
		}
	case dueSession:
		session, _ := sp.sessions.Get(key)
		t.endSession(sp, session, leasehold.SessionExpired)
	case dueResource:
		// Whether or not somebody alive waits for it, the rest is over.
		r, _ := sp.resources.Get(key)
		// setResource sets the timer to the earliest rest that the resource has, so one that is
		// over has to go first: it would be due again at once, and forever.
		over, more := *r, r.more()
		more.Rests = more.resting(t.now)
		over.setMore(more)
		t.setResource(sp, &over)
		t.wakeQueue(sp, key)
	case dueQuarantine:
		t.resume()
	case dueShelf:
		sp.records.DropFormer(t.in(sp), key)
	}
}
