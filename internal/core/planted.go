package core

import "github.com/leasehold/leasehold/internal/core/internal/kernel"

// A Mistake is a bug in the real code path that the simulator must find.
type Mistake = kernel.Mistake

// The mistakes: see where they are made.
const (
	AllIsOwn           = kernel.AllIsOwn
	BorrowBlind        = kernel.BorrowBlind
	CancelledIsMade    = kernel.CancelledIsMade
	CountGone          = kernel.CountGone
	DoAgain            = kernel.DoAgain
	FaceOutlives       = kernel.FaceOutlives
	FinishLate         = kernel.FinishLate
	ForgetTokens       = kernel.ForgetTokens
	FormerPolicy       = kernel.FormerPolicy
	FreeNamed          = kernel.FreeNamed
	GrantDrained       = kernel.GrantDrained
	GrantInPart        = kernel.GrantInPart
	GrantToGone        = kernel.GrantToGone
	GrantToRevoked     = kernel.GrantToRevoked
	HalfTxn            = kernel.HalfTxn
	IgnoreHoldLimit    = kernel.IgnoreHoldLimit
	KeepLost           = kernel.KeepLost
	KeepNothing        = kernel.KeepNothing
	LoseCalm           = kernel.LoseCalm
	LoseReservations   = kernel.LoseReservations
	MirrorMisses       = kernel.MirrorMisses
	MissOverlap        = kernel.MissOverlap
	NoAttempt          = kernel.NoAttempt
	NoCount            = kernel.NoCount
	NoMark             = kernel.NoMark
	NoQuarantine       = kernel.NoQuarantine
	OfferDone          = kernel.OfferDone
	Oversubscribe      = kernel.Oversubscribe
	PassInArea         = kernel.PassInArea
	PassInPool         = kernel.PassInPool
	RenewRevives       = kernel.RenewRevives
	RestoreKeepsTokens = kernel.RestoreKeepsTokens
	ResumeLate         = kernel.ResumeLate
	TokenFromLive      = kernel.TokenFromLive
	TxnAnyway          = kernel.TxnAnyway
	UnitTwice          = kernel.UnitTwice
	WaitHopeless       = kernel.WaitHopeless
)
