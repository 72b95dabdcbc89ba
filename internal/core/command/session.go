package command

import (
	"time"

	"github.com/leasehold/leasehold"
)

// OpenSession begins a session under an id that the caller proposes, so that a retry cannot
// open a second one.
type OpenSession struct {
	Namespace string
	ID        string
	TTL       time.Duration
	Labels    leasehold.Labels
	Request   Request
}

// RenewSession makes a session, and all that is bound to it, last for its TTL
// from now.
type RenewSession struct {
	Namespace string
	ID        string
}

// CloseSession ends a session and releases all that is bound to it.
type CloseSession struct {
	Namespace string
	ID        string
	Abandon   bool // its holder died: what it held ends uncleanly
	Request   Request
}

func (c *OpenSession) Validate() error {
	return firstError(name("namespace", c.Namespace), name("session id", c.ID), ttl(c.TTL), labels(c.Labels),
		c.Request.validate())
}

func (c *RenewSession) Validate() error {
	return firstError(name("namespace", c.Namespace), name("session id", c.ID))
}

func (c *CloseSession) Validate() error {
	return firstError(name("namespace", c.Namespace), name("session id", c.ID), c.Request.validate())
}
