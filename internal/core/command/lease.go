package command

import (
	"time"

	"github.com/leasehold/leasehold"
)

// Renew makes a lease last for its TTL from now. For a waiter without a session
// it is the sign that somebody still wants the lease; for a lease that is bound
// to a session it renews the session.
type Renew struct {
	Namespace string
	ID        string
	Note      *string // how far the holder is, for people; empty: none any more, nil: as it was
}

// Release gives a lease back, or leaves the queue.
type Release struct {
	Namespace string
	ID        string
	Request   Request

	// Session is whose lease it is, as the one who asks says. A release that does not say so
	// counts as somebody else's, of which the session has to hear.
	Session string
	// Withdraw makes sure that the acquire of an id which nobody knows yet is refused when it
	// comes: for as long as the session lasts, or, without one, as ended ids are remembered.
	Withdraw bool
}

// Change hands a lease to another holder, or to another id, without a gap.
type Change struct {
	Namespace string
	ID        string
	Holder    string // empty: as it is
	NewID     string // empty: as it is
	Foreign   string // that goes with NewID; a new id drops the former one
	About     *About // instead of all these
	Request   Request
}

// About is what a holder says about itself after the grant: some protocols take the lease first
// and name the holder in a second request. It replaces what was said with the acquire. The
// holder is the same, so its token stays.
type About struct {
	Holder string
	Reason string
	Labels leasehold.Labels
}

// Break ends a lease in the name of an operator. It names either the lease, or
// the resource together with the token that the operator saw, so that a retry
// can never hit the next holder. A lease that is named with a token is not ended
// if it was handed to another holder since; one that is named as a waiter, not if its turn has
// come since. Of a resource that several share it ends those that were there then, only if it
// says All.
type Break struct {
	Namespace string
	ID        string
	Resource  string
	Token     leasehold.Token
	All       bool          // also if they are several
	Waiting   bool          // only while the id waits
	Period    time.Duration // how long the holder may still have it
	Remains   bool          // instead of Period: whatever it has left; at once if it has no end
	By        string
	Reason    string
	Request   Request
}

func (c *Renew) Validate() error {
	return firstError(name("namespace", c.Namespace), name("lease id", c.ID), note(c.Note))
}

func (c *Release) Validate() error {
	return firstError(name("namespace", c.Namespace), name("lease id", c.ID), text("session", c.Session),
		c.Request.validate())
}

func (c *Change) Validate() error {
	if c.About != nil {
		return c.validateAbout()
	}
	if c.Holder == "" && c.NewID == "" {
		return invalid("change needs a new holder, a new id, or both")
	}
	if c.Foreign != "" && c.NewID == "" {
		return invalid("a foreign id can only be changed together with the lease's own: give a new id")
	}
	return firstError(foreign(c.Foreign), name("namespace", c.Namespace), name("lease id", c.ID),
		text("holder", c.Holder), text("new id", c.NewID), c.Request.validate())
}

func (c *Change) validateAbout() error {
	if c.Holder != "" || c.NewID != "" || c.Foreign != "" {
		return invalid("change takes what the holder says about itself, or a new holder or id, not both")
	}
	return firstError(name("namespace", c.Namespace), name("lease id", c.ID), name("holder", c.About.Holder),
		text("reason", c.About.Reason), labels(c.About.Labels), c.Request.validate())
}

func (c *Break) Validate() error {
	switch {
	case c.ID == "" && (c.Resource == "" || c.Token == 0):
		return invalid("break names a lease id, or a resource together with the token that you saw")
	case c.ID != "" && c.Resource != "":
		return invalid("break names a lease id or a resource, not both")
	case c.ID != "" && c.All:
		return invalid("break of a lease id ends that lease alone: all goes with a resource")
	case c.Waiting && (c.ID == "" || c.Token != 0):
		return invalid("break of a waiter names its id alone: it has no token yet")
	case c.Remains && c.Period != 0:
		return invalid("break takes a period or what remains, not both")
	}
	return firstError(name("namespace", c.Namespace), text("lease id", c.ID), text("resource", c.Resource),
		within("period", c.Period, leasehold.MaxTTL), text("by", c.By), text("reason", c.Reason), c.Request.validate())
}
