package core

import "github.com/leasehold/leasehold"

func (s *State) release(c *Release) Answer {
	sp := s.space(c.Namespace)
	claim := s.touch(sp, c.ID)
	if claim != nil {
		how := leasehold.Released
		if claim.waiting() {
			how = leasehold.Withdrawn
		}
		s.finish(sp, claim, how, s.now)
		return Answer{}
	}
	if s.wasReleased(sp, c.ID) {
		return Answer{} // by an earlier try
	}
	return s.noClaim(sp, c.ID)
}

func (s *State) wasReleased(sp *space, id string) bool {
	if sp == nil {
		return false
	}
	ended, ok := sp.ended.Get(id)
	return ok && (ended.How == leasehold.Released || ended.How == leasehold.Withdrawn)
}
