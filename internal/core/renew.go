package core

// renew makes a lease last for its TTL from the stamp. touch has ended the lease first if it
// was over by then, so a renewal never revives anything: its caller is told that the lease is
// lost, even if no tick has collected it yet. The end of a break and the hold limit are not
// moved; Claim.end takes the earliest of the three.
func (s *State) renew(c *Renew) Answer {
	sp := s.space(c.Namespace)
	claim := s.touch(sp, c.ID)
	if c.Note != nil && claim != nil && !claim.waiting() {
		claim = s.note(sp, claim, *c.Note)
	}
	switch {
	case claim == nil:
		return s.noClaim(sp, c.ID)
	case claim.waiting():
		return s.waiterAnswer(sp, s.stillWanted(sp, claim))
	case claim.Session != "":
		// The session's deadline is the only one that such a lease has: moving it renews
		// everything else that is bound to the session as well.
		session, _ := sp.sessions.Get(claim.Session)
		s.extend(sp, session)
	case claim.TTL != 0:
		// No revision and no event: renewals are most of what a cluster does, and they would
		// push everything else out of history.
		longer := *claim
		longer.Gap = max(longer.Gap, s.gap(claim.TTL, claim.Expires))
		longer.Expires = s.now.Add(claim.TTL)
		s.put(sp, &longer)
		s.lateLease(sp, claim, &longer)
		claim = &longer
	}
	return s.leaseAnswer(sp, claim)
}

// note keeps what a holder says of its work. Like the renewal that brought it, it is no event and
// has no revision: it is for people who look now.
func (s *State) note(sp *space, c *Claim, text string) *Claim {
	noted := *c
	t := c.terms()
	if t.Note, t.NotedWall = text, s.wall; text == "" {
		t.NotedWall = 0
	}
	noted.setTerms(t)
	s.put(sp, &noted)
	return &noted
}
