// Package fence protects resources from holders whose lease has ended. A guard remembers
// the largest floor it saw, and refuses every token below it: a holder that was paused past
// the end of its lease, and goes on in the middle of a write, is refused, whatever its clock
// says.
//
// No lease can do this alone. Between the line that checks the lease and the line that
// writes, a process can be paused for any length of time; when it goes on, the resource is
// somebody else's. Tokens grow with every grant, so a late holder shows a smaller one.
//
// A holder shows a [Pass], which its hold returns:
//
//	err := guard.Do(ctx, "reports/nightly", h.Pass(), write)
//
// Use a guard for one namespace: tokens of two namespaces cannot be compared.
//
// [Memory] guards what lives in one process; [SQL] what a database keeps, in the same
// transaction as the write; [Redis] what a Redis server keeps, in the same script; [Files]
// the files of a directory. [Handler] guards an HTTP service, and fence/fencegrpc a gRPC
// service.
package fence

import (
	"context"
	"fmt"

	"github.com/leasehold/leasehold"
)

// A Guard refuses late holders.
type Guard interface {
	// Do calls fn unless the holder is late. While fn runs no newer holder is let in, so
	// that no write of an older one comes after it. The error is a *LateError if the holder
	// is late, and what fn returned otherwise.
	Do(ctx context.Context, resource string, pass Pass, fn func(ctx context.Context) error) error
}

// A Pass is what a holder shows to a guard. The client's Hold.Pass returns it.
type Pass struct {
	Token    leasehold.Token // of its lease; 0: the lease is lost
	Floor    leasehold.Token // the smallest token alive on the resource at the grant; 0: Token
	Resource string          // that the lease is of; empty: not known
}

// For returns the pass for something else that the same lease protects, such as one of many
// files. Everybody who writes there must hold that lease.
func (p Pass) For(resource string) Pass {
	p.Resource = resource
	return p
}

// floor returns the floor that the guard learns from the pass.
func (p Pass) floor() leasehold.Token {
	if p.Floor == 0 || p.Floor > p.Token {
		return p.Token
	}
	return p.Floor
}

// check refuses a late pass, one without a token, and one that is wrong: of another resource, or too
// large a token. Without that, a mistyped name would raise the floor of somebody else's resource and
// shut its holder out.
func (p Pass) check(resource string, floor leasehold.Token) error {
	switch {
	case p.Resource != "" && p.Resource != resource:
		return &MismatchError{Resource: resource, Pass: p.Resource}
	case p.Token > leasehold.MaxToken:
		return &leasehold.Error{Code: leasehold.Invalid,
			Message: fmt.Sprintf("%s: %d is not a token: it is above %d", resource, p.Token, leasehold.MaxToken)}
	case p.Token == 0 || p.Token < floor:
		return &LateError{resource, p.Token, floor}
	}
	return nil
}

// A MismatchError refuses a pass that was issued for another resource. It is an ErrInvalid.
type MismatchError struct {
	Resource string // that is guarded
	Pass     string // that the pass is for
}

func (e *MismatchError) Error() string {
	return fmt.Sprintf("%s: the pass is for %s; acquire %s, or show Pass.For(%q) if one lease protects both",
		e.Resource, e.Pass, e.Resource, e.Resource)
}

// Is makes a MismatchError match leasehold.ErrInvalid.
func (e *MismatchError) Is(target error) bool { return target == error(leasehold.ErrInvalid) }

// A LateError refuses a holder whose resource was granted to somebody else since. It is an
// ErrLost.
type LateError struct {
	Resource string
	Token    leasehold.Token // the one that was shown
	Floor    leasehold.Token // the largest that the guard has seen; 0: none, or it did not look
}

func (e *LateError) Error() string {
	if e.Token == 0 {
		seen := ""
		if e.Floor != 0 { // else it was refused before the guard looked
			seen = fmt.Sprintf(" (the largest token seen is %d)", e.Floor)
		}
		return fmt.Sprintf("%s: no token: the lease is lost, or was never acquired%s; acquire the resource, and show "+
			"the pass of that hold", e.Resource, seen)
	}
	return fmt.Sprintf("%s: token %d is late: token %d was seen; stop, and acquire the resource again",
		e.Resource, e.Token, e.Floor)
}

// Is makes a LateError match leasehold.ErrLost.
func (e *LateError) Is(target error) bool { return target == error(leasehold.ErrLost) }
