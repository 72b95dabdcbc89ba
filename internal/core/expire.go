package core

import "github.com/leasehold/leasehold"

// tick does what time alone makes due: it ends what nobody renewed, and gets chores done. It is
// the only way in which something ends that no command touches.
func (s *State) tick(c *Tick) {
	if s.tickWithin(); c.Short {
		s.forgetHistory()
	}
}

// tickWithin gets chores done, and lets time do what is due, in turn, until the budget is spent
// or nothing is left. Taking turns keeps a huge session that is being collected from delaying
// the expiry of everybody else's leases, and the other way round.
func (s *State) tickWithin() {
	for more := true; more && !s.work.spent(); {
		more = s.doWithdrawal()
		more = s.doRevocation() || more
		more = s.doChore() || more
		for range choreStep {
			t := s.due.Due(s.now)
			if t == nil || s.work.spent() {
				break
			}
			s.expire(t)
			more = true
		}
	}
}

// expire lets time do to one thing what is due.
func (s *State) expire(t *timer) {
	sp, key := t.Of.space, t.Of.key
	s.work.take(lookCost)
	switch t.Of.kind {
	case dueClaim:
		claim, _ := sp.claims.Get(key)
		if !s.settleClaim(sp, claim) {
			s.overdue(sp, claim)
		}
	case dueSession:
		session, _ := sp.sessions.Get(key)
		s.endSession(sp, session, leasehold.SessionExpired)
	case dueResource:
		s.ends++
		// Whether or not somebody alive waits for it, the rest is over.
		r, _ := sp.resources.Get(key)
		// setResource sets the timer to the earliest rest that the resource has, so one that is
		// over has to go first: it would be due again at once, and forever.
		over, more := *r, r.more()
		more.Rests = more.resting(s.now)
		over.setMore(more)
		s.setResource(sp, &over)
		s.stir(sp, key)
	case dueQuarantine:
		s.resume()
	case dueShelf:
		shelf, _ := sp.records.Shelf(key)
		versions := s.records.DropShelf(&sp.records, shelf)
		s.timeShelf(sp, key)
		s.ends += 1 + versions
		s.work.take(versions)
	}
}
