package core

func (s *State) renew(c *Renew) Answer {
	sp := s.space(c.Namespace)
	claim := s.touch(sp, c.ID)
	switch {
	case claim == nil:
		return s.noClaim(sp, c.ID)
	case claim.waiting():
		return s.waiterAnswer(sp, s.stillWanted(sp, claim))
	case claim.Session != "":
		session, _ := sp.sessions.Get(claim.Session)
		s.extend(sp, session)
	case claim.TTL != 0:
		longer := *claim
		longer.Gap = max(longer.Gap, s.gap(claim.TTL, claim.Expires))
		longer.Expires = s.now.Add(claim.TTL)
		s.put(sp, &longer)
		s.lateLease(sp, claim, &longer)
		claim = &longer
	}
	return s.leaseAnswer(sp, claim)
}
