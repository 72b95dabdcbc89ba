package leasehold

import "time"

// Code is why a request was not granted. The set is closed: each door has one switch over all of
// them.
type Code uint8

// The codes. Wire formats number them: add at the end only.
const (
	Held        Code = iota + 1 // somebody else holds it
	Lost                        // it was yours, and no longer is
	NotFound                    // it does not exist
	Invalid                     // the request is malformed
	Denied                      // the caller has no right to it
	Limited                     // a limit is reached
	Unavailable                 // nothing happened; try again
	Undecided                   // it may have happened; ask again with the same id
	Refused                     // the request is well formed, but the state does not allow it
)

// Codes lists every code, for the tests that check that a door answers each.
var Codes = []Code{Held, Lost, NotFound, Invalid, Denied, Limited, Unavailable, Undecided, Refused}

var codeNames = [...]string{
	Held: "held", Lost: "lost", NotFound: "not-found", Invalid: "invalid", Denied: "denied", Limited: "limited",
	Unavailable: "unavailable", Undecided: "undecided", Refused: "refused",
}

func (c Code) String() string { return name(codeNames[:], int(c)) }

// CodeOf returns the code with a name; 0 if there is none.
func CodeOf(s string) Code {
	for _, c := range Codes {
		if c.String() == s {
			return c
		}
	}
	return 0
}

// An Error is why a request was not granted. The sentinels below are values of it, so
// errors.Is(err, ErrHeld) works through any wrapping, and errors.As gives the details.
type Error struct {
	Code    Code
	Message string // lower case, subject then reason, and what to do

	// With Held: the lease in the way, how many wait for the resource, and the
	// caller's place in the queue (0: it does not wait).
	Lease    *Lease
	Waiting  int
	Position int
	Forecast time.Duration // how long until a turn usually comes; 0: not known. With Limited: until there is room

	ForecastError time.Duration // how far the forecast may be off, four times of five; 0: not known

	// With Refused, if the wait would have been a deadlock: who waits for what, from the
	// caller around to somebody who waits for it.
	Cycle []Wait
}

// A Wait is one edge of a cycle: a holder that waits for a resource which the next holder has,
// or waits for before it.
type Wait struct{ Holder, Resource string }

// One sentinel for each code, to compare with errors.Is.
var (
	ErrHeld        = &Error{Code: Held}
	ErrLost        = &Error{Code: Lost}
	ErrNotFound    = &Error{Code: NotFound}
	ErrInvalid     = &Error{Code: Invalid}
	ErrDenied      = &Error{Code: Denied}
	ErrLimited     = &Error{Code: Limited}
	ErrUnavailable = &Error{Code: Unavailable}
	ErrUndecided   = &Error{Code: Undecided}
	ErrRefused     = &Error{Code: Refused}
)

func (e *Error) Error() string {
	if e.Message == "" {
		return e.Code.String()
	}
	return e.Message
}

// Is makes every error of a code match the sentinel of that code.
func (e *Error) Is(target error) bool {
	t, ok := target.(*Error)
	return ok && t.Message == "" && t.Code == e.Code
}
