package core

// Planted are mistakes that the simulator must find. They are off in a server, and
// nothing but the simulator's own tests can set one.
type Planted struct {
	// RenewRevives renews a lease that is over and that no tick has ended yet.
	RenewRevives bool
	// GrantToGone grants to a waiter whatever became of its session.
	GrantToGone bool
	// TokenFromLive counts tokens on from the largest that is still held, not from the
	// largest that there was, when a state is read back.
	TokenFromLive bool
	// ResumeLate lets a watch that resumes miss the next event.
	ResumeLate bool
	// DoAgain does a request again that was answered before.
	DoAgain bool
	// Oversubscribe grants slots that rest.
	Oversubscribe bool
	// UnitTwice gives units that somebody has.
	UnitTwice bool
	// TxnAnyway does the first list of a transaction, whatever its comparisons say.
	TxnAnyway bool
	// FreeNamed frees a large value when the first of those who name it does not any more.
	FreeNamed bool
	// IgnoreHoldLimit lets a lease be held for longer than its definition allows.
	IgnoreHoldLimit bool
	// NoCount does not count what others did to the leases of a session.
	NoCount bool
	// NoMark forgets that an id was withdrawn which nobody knew yet.
	NoMark bool
	// WaitHopeless lets a waiter stay that needs more slots than there are.
	WaitHopeless bool
	// RestoreKeepsTokens goes on with the tokens of a backup when it is restored.
	RestoreKeepsTokens bool
	// NoQuarantine grants at once what a backup does not know of.
	NoQuarantine bool
}

// Plant sets mistakes in a state that was just made or read.
func (s *State) Plant(p Planted) {
	s.planted = p
	if p.FreeNamed {
		s.records.FreeNamed()
	}
	if !p.TokenFromLive {
		return
	}
	s.spaces.Scan(func(_ string, sp *space) bool {
		sp.token = 0
		sp.claims.Scan(func(_ string, c *Claim) bool {
			sp.token = max(sp.token, c.Token)
			return true
		})
		return true
	})
}
