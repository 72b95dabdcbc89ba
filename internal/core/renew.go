package core

import "github.com/leasehold/leasehold"

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

// noClaim is the answer to whoever names a lease that is not there.
func (s *State) noClaim(sp *space, id string) Answer {
	if sp != nil {
		if ended, ok := sp.ended.Get(id); ok {
			return lostClaim(id, ended.Resource, ended.How)
		}
	}
	return refuse(leasehold.NotFound, "lease %q is unknown: it never was, or it ended long ago", id)
}

func lostClaim(id, resource string, how leasehold.How) Answer {
	if resource == "" {
		return refuse(leasehold.Lost, "lease %q has ended (%v) before it was asked for: acquire again under another id", id, how)
	}
	return refuse(leasehold.Lost, "lease %q on %s has ended (%v): acquire again under another id", id, resource, how)
}
