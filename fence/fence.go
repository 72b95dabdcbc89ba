// Package fence is for what a lease protects. A guard stands before a resource, keeps
// the largest floor that it saw, and refuses every token below it: a holder that slept
// through the end of its lease and woke up in the middle of a write is turned away,
// whatever its clock says.
//
// No lease can do this alone. Between the line that asks whether the lease is valid and
// the line that writes, a process may be paused for any length of time; when it goes on,
// the resource is somebody else's. Tokens grow with every grant, so who is late shows a
// smaller one.
//
// A holder shows a [Pass], which it gets from its hold:
//
//	pass := fence.Pass{Token: h.Token(), Floor: h.Floor()}
//
// A guard has one namespace's tokens: those of two namespaces can not be compared.
//
// [Memory] guards what lives in one process, [SQL] what a database keeps, in the same
// transaction as the write. [Handler] is a guard before an HTTP service, and
// fence/fencegrpc one before a gRPC service.
package fence

import (
	"context"
	"fmt"

	"github.com/leasehold/leasehold"
)

// A Guard lets holders in that are not late.
type Guard interface {
	// Do calls fn if the pass is good. While fn runs no newer holder is let in, so that
	// nothing of an older one comes after it. The error is a *LateError for who is late,
	// and else what fn returned.
	Do(ctx context.Context, resource string, pass Pass, fn func(ctx context.Context) error) error
}

// A Pass is what a holder shows.
type Pass struct {
	Token leasehold.Token // of its lease
	Floor leasehold.Token // the smallest that was alive on the resource when it got its own; 0: Token
}

// floor is what the guard learns from the pass.
func (p Pass) floor() leasehold.Token {
	if p.Floor == 0 || p.Floor > p.Token {
		return p.Token
	}
	return p.Floor
}

// A LateError is the refusal of a holder whose lease is somebody else's by now. It is
// an ErrLost.
type LateError struct {
	Resource string
	Token    leasehold.Token // that was shown
	Floor    leasehold.Token // that the guard has seen
}

func (e *LateError) Error() string {
	if e.Token == 0 {
		return fmt.Sprintf("%s: no token was shown, and token %d was seen: acquire the resource, and show the token of the lease", e.Resource, e.Floor)
	}
	return fmt.Sprintf("%s: token %d is late: token %d was seen; stop, and acquire the resource again", e.Resource, e.Token, e.Floor)
}

// Is makes a LateError match leasehold.ErrLost.
func (e *LateError) Is(target error) bool { return target == error(leasehold.ErrLost) }
