package kernel

import (
	"fmt"
	"time"

	"github.com/leasehold/leasehold"
	"github.com/leasehold/leasehold/internal/core/access"
	"github.com/leasehold/leasehold/internal/core/waitgraph"
)

// What a refusal tells of others is only what the asker may read.

// How those are called that the asker may not know.
const (
	somebody     = "somebody"
	anotherParty = "another party"
)

// sees reports whether the asker may know about a claim.
func (l *look) sees(sp *space, id, path string) bool {
	if l.permit == nil {
		return true
	}
	owner := sp.claimOwner(id)
	if ended, ok := sp.claims.Ended(id); ok {
		owner = ended.Owner
	}
	return l.permit.May(access.Read, sp.name, path, owner) || owner != nil && l.permit.Owns(owner)
}

// nameOf returns a holder as the asker may know it.
func (l *look) nameOf(sp *space, c *Claim) string {
	if l.sees(sp, c.ID, c.Resource) {
		return c.Holder
	}
	return somebody
}

// seesAll reports whether the asker may know all that is in the way on a resource.
func (l *look) seesAll(sp *space, r *Resource) bool {
	switch {
	case l.permit == nil || l.permit.May(access.Read, sp.name, r.Path, nil):
		return true
	case r.Held() && r.Waiting == 0 && r.Sharers() <= 1 && len(r.more().resting(l.now)) == 0:
		senior := sp.senior(r)
		return l.sees(sp, senior.ID, r.Path)
	}
	return false
}

// heldUnseen is held for those who may not know who has a resource, nor who wants it.
func (s *State) heldUnseen(sp *space, r *Resource, position int) Answer {
	failure := &leasehold.Error{Code: leasehold.Held, Position: position, Message: r.Path + " is not free"}
	if r.Held() {
		senior := sp.senior(r)
		shown := &leasehold.Lease{Namespace: sp.name, Resource: r.Path, Holder: somebody, State: senior.state()}
		failure.Message = fmt.Sprintf("%s is held by %s", r.Path, somebody)
		if at := s.deadlineOf(sp, senior); at != 0 {
			shown.Remaining, shown.Expires = time.Duration(max(0, at-s.now)), s.moment(at)
			failure.Message += " for another " + left(Time(shown.Remaining))
		}
		failure.Lease = shown
	}
	return Answer{Err: failure}
}

// cycleSeen is a cycle as the asker may know it. Its own first step it knows.
func (l *look) cycleSeen(sp *space, cycle []leasehold.Wait) *leasehold.Error {
	if l.permit != nil {
		for i := range cycle[1:] {
			if w := &cycle[1+i]; !l.permit.May(access.Read, sp.name, w.Resource, nil) {
				*w = leasehold.Wait{Holder: anotherParty}
			}
		}
	}
	return &leasehold.Error{Code: leasehold.Refused, Message: waitgraph.Explain(cycle),
		Cycle: waitgraph.Told(cycle)}
}

// allowed leaves of the leases that a command would do something to those to which the asker may do it. It may be one
// that may do so to its own only. missing is why one is left out; nil if it cannot be seen.
func (l *look) allowedOf(v access.Verb, sp *space, claims []*Claim) (may []*Claim, missing *leasehold.Error) {
	if l.permit == nil {
		return claims, nil
	}
	for _, c := range claims {
		switch {
		case l.permit.May(v, sp.name, c.Resource, sp.claimOwner(c.ID)):
			may = append(may, c)
		case l.sees(sp, c.ID, c.Resource):
			missing = l.deny(v, sp.name, c.Resource)
		}
	}
	return may, missing
}
