package core

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
)

// Plant makes a state that was just made or read make a mistake from now on.
func (s *State) Plant(m Mistake) {
	s.planted = m
	switch m {
	case FreeNamed:
		s.records.FreeNamed()
	case TokenFromLive:
		s.countTokensFromLive()
	}
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
