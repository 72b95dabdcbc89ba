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
	if sp != nil {
		ended, ok := sp.ended.Get(c.ID)
		if ok && (ended.How == leasehold.Released || ended.How == leasehold.Withdrawn) {
			return Answer{} // an earlier try did it
		}
	}
	return s.noClaim(sp, c.ID)
}
