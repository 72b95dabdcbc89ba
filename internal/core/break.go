package core

import "github.com/leasehold/leasehold"

func (s *State) breakLease(c *Break) Answer {
	sp := s.space(c.Namespace)
	claim, refusal := s.toBreak(sp, c)
	if claim == nil {
		return refusal
	}
	if claim.waiting() {
		return s.breakWaiter(sp, claim, c)
	}
	at := s.now.add(c.Period)
	if end := s.deadlineOf(sp, claim); c.Remains && end != 0 {
		at = end
	}
	// A break only ever shortens: what it promised first, it keeps.
	if t := claim.terms(); t.BreakAt == 0 || at < t.BreakAt {
		claim = s.setBreak(sp, claim, c, at)
	}
	if at > s.now {
		return s.leaseAnswer(sp, claim)
	}
	s.finish(sp, claim, leasehold.ByBreak, s.now)
	return s.broken(sp, claim)
}

// breakWaiter takes a waiter out of the queue: it has nothing that could last for
// another while.
func (s *State) breakWaiter(sp *space, claim *Claim, c *Break) Answer {
	gone := *claim
	t := claim.terms()
	t.BreakBy, t.BreakReason = c.By, c.Reason
	gone.setTerms(t)
	s.finish(sp, &gone, leasehold.ByBreak, s.now)
	ended, _ := sp.ended.Get(claim.ID)
	return s.brokenBefore(sp, ended)
}

func (s *State) setBreak(sp *space, claim *Claim, c *Break, at Time) *Claim {
	breaking := *claim
	t := claim.terms()
	t.BreakAt, t.BreakBy, t.BreakReason = at, c.By, c.Reason
	breaking.setTerms(t)
	breaking.Revision = s.revise(sp)
	s.put(sp, &breaking)
	if at > s.now {
		event := s.event(sp, &breaking, leasehold.BreakSet)
		event.By, event.Reason, event.Until = c.By, c.Reason, s.moment(at)
		s.emit(sp, event)
	}
	return &breaking
}

// breakAgain answers a break of an id that is gone: an earlier try may have ended it.
func (s *State) breakAgain(sp *space, id string) Answer {
	if sp != nil {
		if ended, ok := sp.ended.Get(id); ok && ended.How == leasehold.ByBreak {
			return s.brokenBefore(sp, ended)
		}
	}
	return s.noClaim(sp, id)
}

// toBreak finds the lease that a break means, or what to answer instead.
func (s *State) toBreak(sp *space, c *Break) (*Claim, Answer) {
	if c.ID != "" {
		if claim := s.touch(sp, c.ID); claim != nil {
			return claim, Answer{}
		}
		return nil, s.breakAgain(sp, c.ID)
	}
	if sp == nil {
		return nil, refuse(leasehold.NotFound, "%s is not held: there is nothing to break", c.Resource)
	}
	r := s.settle(sp, c.Resource)
	if r == nil {
		return nil, refuse(leasehold.NotFound, "%s is not held: there is nothing to break", c.Resource)
	}
	if claim, ok := sp.claims.Get(r.Claim); ok && claim.Token == c.Token {
		return claim, Answer{}
	}
	if r.Last != nil && r.Last.Token == c.Token && r.Last.How == leasehold.ByBreak {
		if ended, ok := sp.ended.Get(r.Last.ID); ok {
			return nil, s.brokenBefore(sp, ended)
		}
	}
	if claim, ok := sp.claims.Get(r.Claim); ok {
		return nil, refuse(leasehold.Lost, "%s is not held with token %d any more: %s holds it with token %d; look again before you break that", c.Resource, c.Token, claim.Holder, claim.Token)
	}
	return nil, refuse(leasehold.NotFound, "%s is not held: there is nothing to break", c.Resource)
}
