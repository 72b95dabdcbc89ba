package kernel

import (
	"github.com/tidwall/btree"
)

// A Mistake is a bug in the real code path that the simulator must find: it is worth as much as
// the bugs that it would find. No server makes any of them: only the simulator's own tests plant
// one.
type Mistake uint8

// plants reports whether the state makes a mistake on purpose.
func (s *State) plants(m Mistake) bool { return s.planted == m }

// The mistakes.
const (
	// RenewRevives renews a lease that is over and that no tick has ended yet.
	RenewRevives Mistake = iota + 1
	// GrantToGone grants to a waiter whatever became of its session.
	GrantToGone
	// TokenFromLive counts tokens on from the largest that is still held, not from the
	// largest that there was, when a state is read back.
	TokenFromLive
	// ResumeLate lets a watch that resumes miss the next event.
	ResumeLate
	// DoAgain does a request again that was answered before.
	DoAgain
	// Oversubscribe grants slots that rest.
	Oversubscribe
	// UnitTwice gives units that somebody has.
	UnitTwice
	// TxnAnyway does the first list of a transaction, whatever its comparisons say.
	TxnAnyway
	// FreeNamed frees a large value when the first of those who name it does not any longer.
	FreeNamed
	// IgnoreHoldLimit lets a lease be held for longer than its definition allows.
	IgnoreHoldLimit
	// NoCount does not count what others did to the leases of a session.
	NoCount
	// NoMark forgets that an id was withdrawn which nobody knew yet.
	NoMark
	// WaitHopeless lets a waiter stay that needs more slots than there are.
	WaitHopeless
	// RestoreKeepsTokens goes on with the tokens of a backup when it is restored.
	RestoreKeepsTokens
	// NoQuarantine grants at once what a backup does not know of.
	NoQuarantine
	// ForgetTokens forgets how far the tokens of a namespace had come together with it.
	ForgetTokens
	// FormerPolicy judges by the policy before the last change.
	FormerPolicy
	// AllIsOwn takes the leases of others for the asker's own.
	AllIsOwn
	// CountGone goes on counting leases for a quota that are over.
	CountGone
	// GrantToRevoked grants to a waiter that may not have what it waits for any more, if no tick ended the wait before.
	GrantToRevoked
	// FaceOutlives leaves the record of a claim as it is when the claim ends.
	FaceOutlives
	// MirrorMisses makes no record for a claim on a mirrored resource.
	MirrorMisses
	// MissOverlap grants a name of an area whatever overlaps it.
	MissOverlap
	// PassInArea lets those in an area who wait for a part go before those who wait for more.
	PassInArea
	// OfferDone offers a task again that is done.
	OfferDone
	// KeepLost does not offer a task to those who wait when the lease of its worker has ended.
	KeepLost
	// NoAttempt does not count the attempts of a task.
	NoAttempt
	// FinishLate lets a worker finish a task whose lease has ended.
	FinishLate
	// GrantInPart grants several resources that were asked for at once but for the last.
	GrantInPart
	// LoseCalm forgets, when a state is read back, until when the queue of a pool is calm.
	LoseCalm
	// GrantDrained grants units that are drained.
	GrantDrained
	// PassInPool lets a newcomer have units that are kept for those who wait.
	PassInPool
	// BorrowBlind lends units to those of whom nobody knows how long they need them.
	BorrowBlind
	// LoseReservations forgets reservations that have not begun when a state is read back.
	LoseReservations
	// CancelledIsMade answers that a reservation is made which was cancelled.
	CancelledIsMade
	// KeepNothing grants to others what is reserved.
	KeepNothing
	// HalfTxn does a transaction up to its first operation.
	HalfTxn
)

// Plant makes a state that was just made or read make a mistake from now on.
func (s *State) Plant(m Mistake) {
	s.planted = m
	switch m {
	case FreeNamed:
		s.records.FreeNamed()
	case TokenFromLive:
		s.countTokensFromLive()
	case LoseCalm, LoseReservations:
		s.begin().losePlans()
	}
}

// splitOff is what GrantInPart does: the last of those who wait together goes on alone.
func (t *turn) splitOff(sp *space, together []*Claim) []*Claim {
	last := together[len(together)-1]
	alone, wait := *last, *last.Wait
	wait.With, alone.Wait = nil, &wait
	t.dequeue(sp, last)
	t.put(sp, &alone)
	return together[:len(together)-1]
}

// losePlans is what LoseCalm and LoseReservations do.
func (t *turn) losePlans() {
	t.spaces.Scan(func(_ string, sp *space) bool {
		if t.plants(LoseCalm) {
			sp.quiet = btree.Map[string, Time]{}
			return true
		}
		t.reservations.Lose(t.in(sp))
		return true
	})
}

// countTokensFromLive is what TokenFromLive does.
func (s *State) countTokensFromLive() {
	s.spaces.Scan(func(_ string, sp *space) bool {
		sp.token = 0
		sp.claims.Scan(func(_ string, c *Claim) bool {
			sp.token = max(sp.token, c.Token)
			return true
		})
		return true
	})
}
