package client

import (
	"errors"
	"fmt"

	"github.com/leasehold/leasehold"
)

// How a hold was lost. Each is the cause of its context, wrapped in a *LostError, and each
// is an ErrLost.
var (
	// ErrLost matches every way to lose a hold.
	ErrLost error = leasehold.ErrLost

	// ErrExpired: the lease was not renewed in time, or reached its hold limit.
	ErrExpired = errors.New("the lease expired")

	// ErrBroken: an operator broke the lease. The LostError says who and why.
	ErrBroken = errors.New("the lease was broken")

	// ErrReleased: the lease was released.
	ErrReleased = errors.New("the lease was released")

	// ErrSessionClosed: the session of the lease was closed, by this client or on the server.
	ErrSessionClosed = errors.New("the session of the lease was closed")

	// ErrChanged: somebody gave the lease to another holder.
	ErrChanged = errors.New("the lease was given to another holder")
)

// ErrHeld is the error of an acquire whose resource somebody else holds. The *leasehold.Error,
// by errors.As, says who holds it, since when, until when and why.
var ErrHeld error = leasehold.ErrHeld

// A LostError says how a hold ended.
type LostError struct {
	How      leasehold.How
	Resource string
	Token    leasehold.Token
	By       string // who broke it, or has it now
	Reason   string // why it was broken
}

func (e *LostError) Error() string {
	s := fmt.Sprintf("%s: %v", e.Resource, e.sentinel())
	if e.Token != 0 {
		s += fmt.Sprintf(" (token %d)", e.Token)
	}
	if e.By != "" {
		s += " by " + e.By
	}
	if e.Reason != "" {
		s += ": " + e.Reason
	}
	return s
}

// Is makes a LostError match ErrLost and the sentinel of its kind.
func (e *LostError) Is(target error) bool { return target == ErrLost || target == e.sentinel() }

func (e *LostError) sentinel() error {
	switch e.How {
	case leasehold.ByBreak:
		return ErrBroken
	case leasehold.Released, leasehold.Withdrawn:
		return ErrReleased
	case leasehold.SessionClosed:
		return ErrSessionClosed
	case leasehold.IDChanged:
		return ErrChanged
	}
	return ErrExpired
}

// lostAs returns how a hold is lost whose lease ended.
func lostAs(e *leasehold.Ending) *LostError {
	return &LostError{How: e.How, By: e.By, Reason: e.Reason}
}

// isGone reports whether a server no longer knows a lease or a session.
func isGone(err error) bool {
	return errors.Is(err, leasehold.ErrLost) || errors.Is(err, leasehold.ErrNotFound)
}
