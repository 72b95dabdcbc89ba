package kernel

import (
	"math"

	"github.com/leasehold/leasehold"
)

// A fencing token is larger than every one that was granted before it in its namespace: across
// release, delete, restart, failover and restore. A namespace that is forgotten leaves its token
// behind (see start), and a restored cluster counts on from above all that its backup knows (see
// rebase).

// nextToken allocates the token of a grant.
func (sp *space) nextToken() leasehold.Token {
	sp.token++
	return sp.token
}

// How many leases a floor looks at that are over and not collected yet. Behind more than that it is
// the token of one of them: lower than it could be, and no worse than before that lease ended.
const (
	// maxFloor is for a view, which looks once for each resource.
	maxFloor = 1024

	// maxAnswerFloor is for the answer to a command. An entry has thousands of them: with 1,024
	// here, 4,000 renewals held the state for 350 ms beside 2,000 leases that were over.
	maxAnswerFloor = 8
)

// floor returns the smallest token that is alive on the resource of a lease. What is over
// no longer counts, collected or not: a guard that heard of it would let a late holder in.
func (s *State) floor(sp *space, c *Claim) leasehold.Token {
	if c.Slots == 0 {
		return c.Token
	}
	r, _ := sp.resources.Get(c.Resource)
	lowest, _ := s.lowest(sp, r, maxAnswerFloor)
	return min(lowest, c.Token)
}

// lowest returns the smallest token that is alive among those who share a resource, and how many
// it looked at, passing at most most that are over; the largest there is if nobody is alive.
func (s *State) lowest(sp *space, r *Resource, most int) (lowest leasehold.Token, looked int) {
	lowest = math.MaxUint64
	sp.holders(r, func(holder *Claim) bool {
		if _, _, over := s.isOver(sp, holder); over && looked < most {
			looked++
			return true
		}
		lowest = holder.Token
		return false
	})
	return lowest, looked + 1
}

// raiseTokens makes the tokens of a namespace go on above one that was seen elsewhere. It is idempotent:
// tokens that are above it, by an earlier try or by grants, stay as they are.
func (t *turn) raiseTokens(c *RaiseTokens) Answer {
	if t.newestToken(c.Namespace) >= c.Above {
		return Answer{} // and no namespace is begun for it
	}
	return Answer{Err: t.liftTokens(c.Namespace, c.Above)}
}

// newestToken returns a token that is at least as large as every one that was granted in a namespace: the
// next is larger. It is the same before a namespace begins and after it is forgotten.
func (s *State) newestToken(namespace string) leasehold.Token {
	if sp := s.space(namespace); sp != nil {
		return sp.token
	}
	return max(s.forgotten.token, leasehold.Token(s.base()))
}

// LiftTokens makes the tokens of a namespace go on above one that somebody has seen. For an
// engine that keeps no log it is, like Raise and FromBackup, no command.
func (s *State) LiftTokens(namespace string, above leasehold.Token) *leasehold.Error {
	if above >= leasehold.MaxToken {
		return refuse(leasehold.Invalid, "floor %d is out of range: no token is above %d", above,
			leasehold.MaxToken).Err
	}
	return s.begin().liftTokens(namespace, above)
}

func (t *turn) liftTokens(namespace string, above leasehold.Token) *leasehold.Error {
	sp, failure := t.makeSpace(namespace)
	if failure == nil {
		sp.token = max(sp.token, above)
	}
	return failure
}

// NewestTokenIn returns a token that is at least as large as every one that was granted in a namespace.
func (v *view) NewestTokenIn(namespace string) leasehold.Token { return v.s.newestToken(namespace) }

// NewestToken returns a token that is at least as large as every one that was granted, in any
// namespace.
func (v *view) NewestToken() leasehold.Token {
	newest := max(v.s.forgotten.token, leasehold.Token(v.s.base()))
	v.s.spaces.Scan(func(_ string, sp *space) bool {
		newest = max(newest, sp.token)
		return true
	})
	return newest
}
