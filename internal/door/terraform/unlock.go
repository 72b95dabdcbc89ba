package terraform

import (
	"errors"
	"fmt"
	"net/http"

	"github.com/leasehold/leasehold"
	"github.com/leasehold/leasehold/internal/core"
	"github.com/leasehold/leasehold/internal/door"
	"github.com/leasehold/leasehold/internal/engine"
	"github.com/leasehold/leasehold/internal/tfstate"
)

// unlock frees a lock. Answering an unlock that was done before with anything but 200 would
// make Terraform report a failure after an apply that succeeded.
func (c *call) unlock() error {
	var err error
	if c.id, err = c.unlockID(); err != nil {
		return err
	}
	free := func() error { return c.free(c.id) }
	if c.id == "" {
		var seen leasehold.Token
		free = func() error { return c.force(&seen) }
	}
	if err := c.patiently(free); err != nil {
		return err
	}
	c.send(http.StatusOK, "application/json", struct{}{}) // exactly 200: Terraform takes no other
	return nil
}

// unlockID reads which lock to free: from the body, as Terraform sends it, or from the query,
// as GitLab's clients do. terraform force-unlock sends neither, whatever ID was typed.
func (c *call) unlockID() (string, error) {
	body, err := c.small()
	if err != nil {
		return "", err
	}
	id := ""
	if c.query.Has("ID") {
		if id, err = tfstate.ParseLockID(c.query.Get("ID")); err != nil {
			return "", err
		}
	}
	if len(body) == 0 {
		return id, nil
	}
	info, err := tfstate.ParseLockInfo(body)
	if err != nil {
		return "", err
	}
	c.version = info.Version
	if id != "" && id != info.ID {
		return "", door.Invalid("the query names lock %s and the body lock %s: name one", id, info.ID)
	}
	return info.ID, nil
}

// free gives back the lock of an ID, and no other. A place in the queue counts as well.
func (c *call) free(id string) error {
	for range maxLooks {
		s, err := c.see(id)
		if err != nil {
			return err
		}
		lease := s.waiter
		if s.mine {
			lease = s.holder.ID
		}
		if lease == "" {
			return c.notFreed(id, s)
		}
		_, err = c.do(&core.Release{Namespace: c.namespace, ID: lease})
		if !errors.Is(err, leasehold.ErrLost) && !errors.Is(err, leasehold.ErrNotFound) {
			return err
		}
	}
	return engine.Unavailable("the lock of " + c.state + " changes too often: try again")
}

// notFreed answers a client that gives back a lock it does not have. An earlier attempt may
// have freed it, and its answer been lost.
func (c *call) notFreed(id string, s sight) error {
	switch {
	case s.released:
		return nil
	case s.holder != nil:
		return c.held(s, fmt.Sprintf("%s is not locked with %s: nothing was unlocked", c.state, id))
	}
	return &leasehold.Error{Code: leasehold.Lost, Message: fmt.Sprintf(
		"%s is not locked with %s: that lock never existed, expired, was broken, or ended long ago", c.state, id)}
}

// held returns the error of a client that finds a lock in its way.
func (c *call) held(s sight, message string) error {
	return &leasehold.Error{Code: leasehold.Held, Message: message, Lease: s.holder, Waiting: s.status.Waiting}
}

// force frees any lock that is there: an operator said so. It names the token that was read
// first, so that a second attempt cannot hit the next holder.
func (c *call) force(seen *leasehold.Token) error {
	s, err := c.see("")
	if err != nil || s.holder == nil {
		return err // nothing is locked, which is what was asked for
	}
	if c.door.config.RequireID {
		return c.needsID(s)
	}
	if *seen == 0 {
		*seen = s.holder.Token
	}
	_, err = c.do(&core.Break{
		Namespace: c.namespace, Resource: c.path, Token: *seen, By: "force-unlock",
		Reason: "terraform force-unlock from " + c.r.RemoteAddr,
	})
	if errors.Is(err, leasehold.ErrLost) || errors.Is(err, leasehold.ErrNotFound) {
		return nil // the lock that was there is gone
	}
	return err
}

// needsID refuses to free a lock that is not named. Terraform never names one when it is forced;
// OpenTofu does from 1.10 on.
func (c *call) needsID(s sight) error {
	return &leasehold.Error{Code: leasehold.Denied, Message: fmt.Sprintf(
		"%s is locked by %s with the ID %s, and this server frees a lock only by its ID (%s is id), which "+
			"terraform force-unlock does not send: run leasehold state unlock %s%s --reason WHY",
		c.state, s.holder.Holder, lockOf(s.holder), forceUnlock, c.state, c.inNamespace())}
}
