package kernel

import (
	"fmt"
	"slices"

	"github.com/leasehold/leasehold"
	"github.com/leasehold/leasehold/internal/core/access"
)

// When somebody loses a role that ends leases, what it has by that role ends as if an operator had broken it, unless it
// may still renew it by another role. That may be very much, so ticks get it done, a part at a time. What they have
// not come to yet cannot be renewed, since that is decided by the policy of now; and who gets the role back before
// then keeps the rest.

// A Revocation is what a change of access took away, and how far ticks have come with it. It is never changed in place.
type Revocation struct {
	Order     uint64 // smallest first
	By        string // who changed it
	Space, ID string // the claim that was looked at last

	losses access.Losses // each is a piece of a snapshot by itself: there may be very many
}

// A Loss is a part of a revocation, as a piece of a snapshot.
type Loss struct {
	Order uint64
	access.Loss
}

// revokedReason is why leases end.
const revokedReason = "access revoked"

// loses begins to end what those have who lose a role by a change, or says why that cannot be now.
func (t *turn) loses(c *ChangeAccess, changed *access.Policy, tokens []string) *leasehold.Error {
	losses := t.policy.Losses(changed, slices.Concat(tokens, (&access.Items{Tokens: c.Put.Tokens}).Keys().Tokens))
	t.work.take(len(losses) / PerUnit)
	pending := 0
	t.revocations.Scan(func(_ uint64, r *Revocation) bool {
		pending += len(r.losses)
		return true
	})
	switch {
	case len(losses) == 0:
		return nil
	case len(losses) > access.MaxLosses:
		return refuse(leasehold.Limited, "this takes away more than %d rights by roles that end leases: change it in "+
			"parts", access.MaxLosses).Err
	case pending > 0 && pending+len(losses) > access.MaxLosses:
		return refuse(leasehold.Unavailable, "leases are still being ended because of earlier changes: try again in a "+
			"moment").Err
	}
	last, _, _ := t.revocations.Max()
	t.revocations.Set(last+1, &Revocation{Order: last + 1, By: t.changer(c), losses: losses})
	return nil
}

// changer returns who changes access.
func (t *turn) changer(c *ChangeAccess) string {
	if t.asker != nil {
		return t.asker.Principal
	}
	return c.By
}

// doRevocation looks at some of the claims that the first revocation has not come to. It reports whether there was one.
func (t *turn) doRevocation() bool {
	_, r, ok := t.revocations.Min()
	if !ok {
		return false
	}
	at := *r
	for range choreStep {
		if t.work.spent() {
			break
		}
		t.work.take(LookCost)
		if !t.step(&at) {
			t.revocations.Delete(at.Order)
			return true
		}
	}
	t.revocations.Set(at.Order, &at)
	return true
}

// step goes on to the next claim that somebody owns, or to the next namespace. It reports whether there was any.
func (t *turn) step(at *Revocation) (more bool) {
	if sp := t.space(at.Space); sp != nil {
		var id string
		var owner *access.Owner
		sp.claimOwners.Ascend(at.ID+"\x00", func(key string, o *access.Owner) bool {
			id, owner = key, o
			return false
		})
		if owner != nil {
			at.ID = id
			t.revoke(sp, id, owner, at)
			return true
		}
	}
	at.ID = ""
	at.Space, more = t.spaceAfter(at.Space)
	return more
}

// revoke ends a claim if its owner lost the right to it.
func (t *turn) revoke(sp *space, id string, owner *access.Owner, r *Revocation) {
	path := ""
	if claim, ok := sp.claims.Get(id); ok {
		path = claim.Resource
	}
	met, looked := r.losses.Meet(owner, sp.name, path)
	t.work.take(looked / PerUnit)
	if !met {
		return
	}
	keeps, looked := t.policy.MayKeep(owner, sp.name, path)
	t.work.take(looked / PerUnit)
	if keeps {
		return
	}
	claim := t.touch(sp, id)
	command := &Break{Namespace: sp.name, ID: id, By: r.By, Reason: revokedReason}
	switch {
	case claim == nil: // it was over
	case claim.Waiting():
		t.breakWaiter(sp, claim, command)
	default:
		t.breakOne(sp, claim, command)
	}
}

// revocationPieces writes what is still to be ended.
func (s *State) revocationPieces(yield func(Piece) bool) (more bool) {
	more = true
	if s.withdrawal != nil && !yield(Piece{Value: s.withdrawal}) {
		return false
	}
	s.revocations.Scan(func(order uint64, r *Revocation) bool {
		more = yield(Piece{Value: r})
		for i := 0; more && i < len(r.losses); i++ {
			more = yield(Piece{Value: &Loss{order, r.losses[i]}})
		}
		return more
	})
	return more
}

func (t *turn) restoreRevocation(r *Revocation) error {
	if _, twice := t.revocations.Set(r.Order, r); twice || t.policy == nil {
		return fmt.Errorf("snapshot has revocation %d twice, or without a policy", r.Order)
	}
	return nil
}

// restoreLoss takes over a part of a revocation, which nobody has seen yet.
func (s *State) restoreLoss(l *Loss) error {
	r, ok := s.revocations.Get(l.Order)
	if !ok {
		return fmt.Errorf("snapshot has a part of revocation %d, which is not there", l.Order)
	}
	r.losses = append(r.losses, l.Loss)
	return nil
}

// revocations checks that each is about something, and in order.
func (c *checker) revocations(s *State) {
	s.revocations.Scan(func(order uint64, r *Revocation) bool {
		c.that(order == r.Order && s.policy != nil, "revocation %d is filed under %d, or without a policy", r.Order,
			order)
		c.that(len(r.losses) > 0 && len(r.losses) <= access.MaxLosses && r.losses.Sorted(),
			"revocation %d takes away %d rights, or not in order", order, len(r.losses))
		c.that(r.ID == "" || r.Space != "", "revocation %d has come to lease %q of no namespace", order, r.ID)
		return true
	})
}
