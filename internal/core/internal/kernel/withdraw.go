package kernel

import (
	"errors"

	"github.com/leasehold/leasehold"
	"github.com/leasehold/leasehold/internal/core/access"
)

// Who may no longer take a resource must not get it because it asked earlier. After a change that takes something
// away, waits end of those who could not ask for the same any more, as if an operator had broken them. That may be
// very many, so ticks get it done, a part at a time. What they have not come to yet is over all the same (see isOver):
// it is not granted, and in nobody's way.

// A Withdrawal is how far ticks have come with the waiters since access was last taken from somebody. There is one at
// most, since it judges everybody: a later change begins it again. It is never changed in place.
type Withdrawal struct {
	By string // who changed it
	At Time

	// The waiter that was looked at last.
	Space    string
	Resource string
	Priority int
	Order    uint64
}

// withdraws begins to end the waits of those who may not have what they wait for after a change.
func (t *turn) withdraws(c *ChangeAccess, before *access.Policy, removed access.Keys) {
	if t.totals.waiters > 0 && before.TakesAway(removed, c.Put) {
		t.withdrawal = &Withdrawal{By: t.changer(c), At: t.now}
	}
}

// withdrawn reports whether a waiter is one that may not be granted, for itself or for what is wanted together with it.
// It is asked only while there is a withdrawal: nobody else can be.
func (s *State) withdrawn(sp *space, waiter *Claim) bool {
	for _, c := range s.together(sp, waiter) {
		if may, _ := s.mayTake(sp, c); !may {
			return true
		}
	}
	return false
}

// mayTake reports whether the owner of a claim could ask for it now. What nobody owns is nobody's to lose.
func (s *State) mayTake(sp *space, c *Claim) (may bool, looked int) {
	owner := sp.claimOwner(c.ID)
	if owner == nil {
		return true, 0
	}
	return s.policy.MayTake(owner, takeVerb(int(c.Slots)), sp.name, c.Resource, c.Holder)
}

// dismissed returns a claim that ends by itself as its end tells of it: a waiter is broken by nobody but a withdrawal.
func (s *State) dismissed(c *Claim, how leasehold.How) *Claim {
	if !c.Waiting() || how != leasehold.ByBreak {
		return c
	}
	gone, t := *c, c.terms()
	t.BreakBy, t.BreakReason = s.withdrawal.By, revokedReason
	gone.setTerms(t)
	return &gone
}

// doWithdrawal looks at some of the waiters that a withdrawal has not come to. It reports whether there was one.
func (t *turn) doWithdrawal() bool {
	if t.withdrawal == nil {
		return false
	}
	at := *t.withdrawal
	for range choreStep {
		if t.work.spent() {
			break
		}
		t.work.take(LookCost)
		if !t.withdrawNext(&at) {
			t.withdrawal = nil
			return true
		}
	}
	t.withdrawal = &at
	return true
}

// withdrawNext goes on to the next waiter, or to the next namespace. It reports whether there was any.
func (t *turn) withdrawNext(at *Withdrawal) (more bool) {
	if sp := t.space(at.Space); sp != nil {
		var next *Claim
		last := &Claim{Resource: at.Resource, Wait: &Wait{Priority: at.Priority, Order: at.Order}}
		sp.queue.Ascend(last, func(c *Claim) bool {
			if sp.queue.Less(last, c) {
				next = c
			}
			return next == nil
		})
		if next != nil {
			at.Resource, at.Priority, at.Order = next.Resource, next.Wait.Priority, next.Wait.Order
			_, looked := t.mayTake(sp, next)
			t.work.take(looked / PerUnit)
			if t.withdrawn(sp, next) {
				t.settleClaim(sp, next)
			}
			return true
		}
	}
	name, more := t.spaceAfter(at.Space)
	*at = Withdrawal{By: at.By, At: at.At, Space: name}
	return more
}

// spaceAfter returns the next namespace, and reports whether there is one.
func (s *State) spaceAfter(name string) (next string, found bool) {
	s.spaces.Ascend(name+"\x00", func(name string, _ *space) bool {
		next, found = name, true
		return false
	})
	return next, found
}

func (t *turn) restoreWithdrawal(w *Withdrawal) error {
	if t.policy == nil || t.withdrawal != nil {
		return errors.New("snapshot has two withdrawals, or one without a policy")
	}
	t.withdrawal = w
	return nil
}

// withdrawal checks that nobody waits for what it may not have, unless a withdrawal is on its way.
func (c *checker) withdrawal(s *State) {
	if w := s.withdrawal; w != nil {
		c.that(s.policy != nil && (w.Space != "" || w.Resource == ""),
			"waits are withdrawn without a policy, or have come to %q of no namespace", w.Resource)
		return
	}
	s.spaces.Scan(func(_ string, sp *space) bool {
		sp.queue.Scan(func(waiter *Claim) bool {
			may, _ := s.mayTake(sp, waiter)
			c.that(may, "%s/%s waits for %s, which its owner may not have", sp.name, waiter.ID, waiter.Resource)
			return true
		})
		return true
	})
}
