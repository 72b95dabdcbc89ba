package engine

import (
	"context"

	"github.com/leasehold/leasehold"
	"github.com/leasehold/leasehold/internal/core/access"
)

type askerKey struct{}

// WithAsker says who was proven to ask for what is done with a context. The engine sends it with each command, and
// the state decides by it. Like an origin it also belongs to what a request does after its caller has left.
func WithAsker(ctx context.Context, a *access.Asker) context.Context {
	return context.WithValue(ctx, askerKey{}, a)
}

// AskerOf returns who was proven to ask; nil: nobody was.
func AskerOf(ctx context.Context) *access.Asker {
	a, _ := ctx.Value(askerKey{}).(*access.Asker)
	return a
}

// CheckAsker says what is wrong with an asker. It is not cut to size: half of a name is somebody else's.
func CheckAsker(a *access.Asker) error {
	if a == nil {
		return nil
	}
	if err := a.Check(); err != nil {
		return &leasehold.Error{Code: leasehold.Invalid, Message: "the credential is too long: " + err.Error()}
	}
	return nil
}

// Policy returns who may do what, as of the newest entry that was applied here; nil: access is off.
func (f *Feed) Policy() *access.Policy { return f.policy.Load() }

// PolicyOf returns who may do what, as this node has applied it; nil: access is off. Nothing is waited for, so another
// node may know a newer one.
func PolicyOf(e Engine) *access.Policy {
	feed := e.Feed()
	if feed == nil {
		return nil // some engines of tests have none
	}
	return feed.Policy()
}
