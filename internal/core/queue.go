package core

import "github.com/leasehold/leasehold"

// enqueue puts a claim in the queue of a resource, behind those of its priority.
func (s *State) enqueue(sp *space, r *Resource, claim *Claim, until Time) *Claim {
	sp.arrivals++
	waiter := *claim
	waiter.Order = sp.arrivals
	t := waiter.terms()
	t.WaitUntil = until
	waiter.setTerms(t)
	if waiter.Session == "" {
		waiter.Expires = s.now.add(waiterTTL)
	}
	longer := *r
	longer.Waiting++
	s.setResource(sp, &longer)
	waiter.Revision = s.revise(sp)
	s.put(sp, &waiter)
	event := s.event(sp, &waiter, leasehold.Queued)
	event.Reason, event.Until = waiter.Reason, s.moment(until)
	s.emit(sp, event)
	return &waiter
}

// stillWanted takes a sign of life of a waiter that has no session.
func (s *State) stillWanted(sp *space, claim *Claim) *Claim {
	if claim.Session != "" {
		return claim
	}
	waiter := *claim
	waiter.Expires = s.now.add(waiterTTL)
	s.put(sp, &waiter)
	return &waiter
}

// settle ends what is over on a resource at the stamp, lets the first live waiter
// have it if it is free then, and returns it; nil if nothing is known of it.
func (s *State) settle(sp *space, path string) *Resource {
	r, ok := sp.resources.Get(path)
	if !ok {
		return nil
	}
	if claim, ok := sp.claims.Get(r.Claim); ok {
		s.settleClaim(sp, claim)
	} else {
		s.handOver(sp, path)
	}
	r, _ = sp.resources.Get(path)
	return r
}

// settleClaim ends a claim that is over at the stamp, by whatever ended it first,
// and tells whether it did.
func (s *State) settleClaim(sp *space, claim *Claim) bool {
	at, how, over := s.over(sp, claim)
	switch {
	case !over:
	case how == leasehold.SessionExpired:
		session, _ := sp.sessions.Get(claim.Session)
		s.endSession(sp, session, how)
	default:
		s.finish(sp, claim, how, at)
	}
	return over
}

// over tells whether a claim is over at the stamp, collected or not; and if so,
// when and by what it ended. A session that ends at the very moment of the claim's
// own end is not the reason: a break that was promised is called a break.
func (s *State) over(sp *space, claim *Claim) (Time, leasehold.How, bool) {
	at, how := claim.end()
	over := at != 0 && at <= s.now
	if claim.Session == "" {
		return at, how, over
	}
	session, ok := sp.sessions.Get(claim.Session)
	if ok && session.Expires <= s.now && (!over || session.Expires < at) {
		return session.Expires, leasehold.SessionExpired, true
	}
	return at, how, over
}

// handOver grants a free resource to the first waiter that is still alive. The
// ones before it that are not leave the queue here; the rest of what their
// sessions had ends when those are settled.
func (s *State) handOver(sp *space, path string) {
	for {
		r, ok := sp.resources.Get(path)
		if !ok || r.Claim != "" || r.Waiting == 0 || r.AvailableAt > s.now {
			return
		}
		waiter := first(sp, path)
		if how, gone := s.gone(sp, waiter); gone {
			s.finish(sp, waiter, how, s.now)
			continue
		}
		sp.queue.Delete(waiter)
		taken := *r
		taken.Waiting--
		s.grant(sp, taken, waiter)
	}
}

// gone tells whether a waiter may not be granted any more at the stamp, and why.
func (s *State) gone(sp *space, waiter *Claim) (leasehold.How, bool) {
	_, how, over := s.over(sp, waiter)
	if over || waiter.Session == "" {
		return how, over
	}
	if _, ok := sp.sessions.Get(waiter.Session); ok {
		return 0, false
	}
	// Its session is ending right now, in this very command.
	ended, _ := sp.endedSessions.Get(waiter.Session)
	return ended.How, true
}

func first(sp *space, path string) (waiter *Claim) {
	sp.queue.Ascend(beforeAll(path), func(c *Claim) bool {
		waiter = c
		return false
	})
	return waiter
}

// beforeAll stands before every waiter of a resource.
func beforeAll(path string) *Claim {
	return &Claim{Resource: path, Priority: leasehold.MaxPriority}
}

// position returns the place of a waiter, 1 for the next. It counts by halving
// over the ranks of the tree, so a long queue costs no more than a short one.
func (s *State) position(sp *space, waiter *Claim) int {
	return rank(sp, waiter) - rank(sp, beforeAll(waiter.Resource)) + 1
}

// rank counts the waiters of a namespace that stand before c.
func rank(sp *space, c *Claim) int {
	low, high := 0, sp.queue.Len()
	for low < high {
		middle := (low + high) / 2
		if at, _ := sp.queue.GetAt(middle); sp.queue.Less(at, c) {
			low = middle + 1
		} else {
			high = middle
		}
	}
	return low
}
