package terraform

import (
	"bytes"
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	"github.com/leasehold/leasehold"
	"github.com/leasehold/leasehold/internal/core"
	"github.com/leasehold/leasehold/internal/door"
	"github.com/leasehold/leasehold/internal/engine"
	"github.com/leasehold/leasehold/internal/tfstate"
)

// LOCK. Terraform sends a LOCK with an ID of its own making, and repeats it under the same ID
// if the connection breaks. It never renews. So a repeated LOCK has to find the lock that the
// first one got, or its place in the queue, and must not find "locked" by itself; and a copy
// that arrives after the client has unlocked again must not lock for nobody.

// A sight is what was read of one lock at one moment.
type sight struct {
	status     leasehold.Status
	definition leasehold.Definition
	holder     *leasehold.Lease // nil: nobody
	mine       bool             // the holder's lock has the ID
	waiter     string           // the lease id under which the ID waits; empty: it does not
	unused     string           // a lease id for the ID that nothing has, or had lately
	released   bool             // a lease of the ID has ended lately: its client gave it back
}

// maxQueue is how far into a queue a request looks for itself.
const maxQueue = 1000

// see reads the lock of the state. The ID may be empty.
func (c *call) see(id string) (s sight, err error) {
	err = c.look(func(v core.View) { s = c.seeIn(v, id) })
	return s, err
}

// seeIn finds who has the state locked, and where the lock of an id stands.
func (c *call) seeIn(v core.View, id string) (s sight) {
	waiters := maxQueue
	if id == "" {
		waiters = 0
	}
	s.status = v.Status(c.namespace, c.path, waiters)
	s.definition, _ = v.Definition(c.namespace, c.path)
	if len(s.status.Holders) > 0 {
		s.holder = &s.status.Holders[0]
		s.mine = id != "" && lockOf(s.holder) == id
	}
	if id == "" {
		return s
	}
	for i := range s.status.Queue {
		if w := &s.status.Queue[i]; w.Foreign == id {
			s.waiter = w.ID
		}
	}
	// A lease id of the core is used once, and a client may lock again under its ID, so an ID
	// has a few lease ids that are tried in order.
	for _, try := range c.leaseIDs(id) {
		s.released = s.released || c.gaveBack(v, try)
		if claim := v.Claim(c.namespace, try).Err; s.unused == "" && v.Ended(c.namespace, try) == 0 && claim != nil &&
			claim.Code == leasehold.NotFound {
			s.unused = try
		}
	}
	if s.unused == "" {
		s.unused = c.ownLeaseID(id)
	}
	if last := s.status.Last; lockEnded(last, id) && !strings.Contains(last.ID, withdrawn) {
		s.released = s.released || last.How == leasehold.Released
	}
	return s
}

// gaveBack reports whether a client has recently released the lease of an id. An end by
// withdrawal is the door's own doing and does not count.
func (c *call) gaveBack(v core.View, id string) bool {
	last, end := v.EndedAs(c.namespace, id)
	return end == leasehold.Released && !strings.Contains(last, withdrawn)
}

func (c *call) lock() error {
	info, verbatim, err := c.readLockInfo()
	if err != nil {
		return err
	}
	c.version, c.id = info.Version, info.ID
	var lease *leasehold.Lease
	var ended error
	err = c.patiently(func() (err error) {
		lease, err = c.acquire(&info, verbatim)
		if c.proof != nil && c.waited && door.Unsure(err) {
			ended, err = err, nil // nobody may wait here for longer; Terraform asks again, and keeps its place
		}
		return err
	})
	if err = cmp.Or(err, ended); err != nil {
		return err
	}
	told := &tfstate.Lock{}
	describeLock(told, lease)
	c.send(http.StatusOK, "application/json", told)
	return nil
}

// readLockInfo reads a body that has to be there.
func (c *call) readLockInfo() (info tfstate.LockInfo, verbatim []byte, err error) {
	verbatim, err = c.small()
	if err != nil {
		return info, nil, err
	}
	info, err = tfstate.ParseLockInfo(verbatim)
	return info, verbatim, err
}

// small reads the body of a request that is about a lock.
func (c *call) small() ([]byte, error) {
	var body bytes.Buffer
	_, err := io.Copy(&body, io.LimitReader(c.r.Body, tfstate.MaxLockInfo+1))
	if err != nil {
		return nil, door.Invalid("the body cannot be read: %v", err)
	}
	return body.Bytes(), checkMD5(c.r.Header, body.Bytes())
}

// maxLooks is how often a request reads again because something changed before it could act.
// Every decision is a command that compares what was read, so reading again is safe and never
// loses a race twice to the same change.
const maxLooks = 10

// acquire takes the lock, or finds that it has it.
func (c *call) acquire(info *tfstate.LockInfo, verbatim []byte) (*leasehold.Lease, error) {
	for range maxLooks {
		s, err := c.see(info.ID)
		if err != nil {
			return nil, err
		}
		if s.mine {
			lease, err := c.takeOver(c.signed(), s.holder.ID, s.unused)
			if !errors.Is(err, errLookAgain) {
				return lease, err
			}
			continue
		}
		if s.released {
			return nil, &leasehold.Error{Code: leasehold.Lost, Message: fmt.Sprintf(
				"lock %s was released: this is a late copy of the request for it; lock again with another ID",
				info.ID)}
		}
		command, err := c.toAcquire(info, verbatim, s.definition)
		if err != nil {
			return nil, err
		}
		command.Foreign = info.ID
		// An earlier request of this client is in the queue: this one takes its place, not a
		// second one.
		if command.ID = s.unused; s.waiter != "" {
			command.ID = s.waiter
		}
		lease, err := c.ask(command, s.waiter != "")
		if !errors.Is(err, errLookAgain) {
			return lease, err
		}
	}
	return nil, engine.Unavailable("the lock of " + c.state + " changes too often: try again")
}

// errLookAgain says that something changed between what a request read and what it did.
var errLookAgain = errors.New("look again")

// ask asks for the lease, and stays connected if it has to wait. Joined says that an earlier
// request waits under the command's id.
func (c *call) ask(command *core.Acquire, joined bool) (*leasehold.Lease, error) {
	if command.Wait == 0 {
		answer, err := c.do(command)
		if err == nil && joined {
			return c.receiveLock(command.ID)
		}
		return answer.Lease, c.unlessGone(err, command.ID)
	}
	leave, err := c.door.backend.Stay(c.signed())
	if err != nil {
		return nil, err
	}
	defer leave()
	// A wait may last longer than the port allows for an answer.
	door.Unhurried(c.w)
	ctx, cancel := c.door.backend.Staying(c.signed(), c.proof)
	defer cancel()

	try := &attempt{Engine: c.engine}
	_, err = engine.Acquire(ctx, try, command, true)
	c.waited = c.waited || try.queued
	ended := c.door.backend.Ended(ctx, c.proof, err)
	switch {
	// Nobody is there to hold the lock: it must not be granted to this request later.
	case c.r.Context().Err() != nil:
		c.withdraw(command.ID)
		return nil, c.left()
	case ended != nil:
		c.withdraw(command.ID)
		return nil, ended
	case ctx.Err() != nil:
		return nil,
			engine.Unavailable("the server is stopping; this request keeps its place in the queue for a while: send " +
				"it again")
	case err != nil:
		return nil, c.unlessGone(err, command.ID)
	}
	return c.receiveLock(command.ID)
}

func (c *call) left() error {
	return engine.Undecided("the client disconnected while it waited for the lock of " + c.state)
}

// receiveLock takes a lock that this request, or an earlier one of its client, waited for: the
// earlier one may be about to take it back. A grant at once is no proof that nobody waited: the
// earlier one may have joined the queue, and come to its head, since this one looked.
// It takes the lock even if the client has left: otherwise a client that leaves at this very
// moment would leave a lock behind that nobody holds.
func (c *call) receiveLock(granted string) (*leasehold.Lease, error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(c.signed()), farewell)
	defer cancel()
	own := c.ownLeaseID(c.id)
	lease, err := c.takeOver(ctx, granted, own)
	if c.r.Context().Err() == nil {
		return lease, err
	}
	c.withdraw(granted)
	c.withdraw(own)
	return nil, c.left()
}

// An attempt notices, on the way to the engine, whether an acquire had to queue.
type attempt struct {
	engine.Engine
	queued bool
}

func (a *attempt) Do(ctx context.Context, command core.Command) (core.Answer, error) {
	answer, err := a.Engine.Do(ctx, command)
	if _, ok := command.(*core.Acquire); ok {
		a.queued = answer.Waiter != nil
	}
	return answer, err
}

// unlessGone returns the error, or errLookAgain if it says that an id has ended under which a
// request only waited, or which was exchanged for another.
func (c *call) unlessGone(err error, lease string) error {
	if !errors.Is(err, leasehold.ErrLost) {
		return err
	}
	var how leasehold.How
	if failed := c.look(func(v core.View) { how = v.Ended(c.namespace, lease) }); failed != nil {
		return failed
	}
	switch how {
	case leasehold.Withdrawn, leasehold.IDChanged:
		return errLookAgain
	}
	return err
}

// takeOver gives a lease that is this client's, or became so while it waited, an id that no
// other request knows.
//
// A client whose connection broke asks again on another one, perhaps of another server. The
// request that it left behind is going to withdraw what it waited for. By its old id it cannot
// take away what the new request has got: either it comes first, and the new one finds nothing
// to take over; or it comes too late, and finds nothing itself.
func (c *call) takeOver(ctx context.Context, from, to string) (*leasehold.Lease, error) {
	answer, err := c.engine.Do(ctx,
		&core.Change{Namespace: c.namespace, ID: from, NewID: to, Foreign: c.id})
	if errors.Is(err, leasehold.ErrLost) || errors.Is(err, leasehold.ErrNotFound) ||
		errors.Is(err, leasehold.ErrRefused) {
		return nil, errLookAgain
	}
	if err != nil {
		return nil, err
	}
	if answer.Lease.TTL != 0 {
		answer, err = c.engine.Do(ctx, &core.Renew{Namespace: c.namespace, ID: to})
	}
	return answer.Lease, err
}

// farewell is how long the door tries to withdraw the wait of a client that has left.
const farewell = 5 * time.Second

// withdraw ends the wait of a client that has left. If the lock has been granted by then, its
// lease gets another id before it is released: under its own id the end would look as if the
// client had given the lock back, and the client would be refused when it asks again.
func (c *call) withdraw(id string) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(c.signed()), farewell)
	defer cancel()
	gone := id + withdrawn + strings.ToLower(rand.Text()[:10])
	// If this fails, the wait ends by itself: its session is no longer renewed.
	for range maxLooks {
		leave := &core.Txn{
			Namespace: c.namespace,
			If:        []core.Compare{{What: core.LeaseID, Is: core.NotEqual, Path: c.path, Text: id}},
			Then:      []core.Op{{Do: core.ReleaseLease, ID: id}},
		}
		if answer, err := c.insist(ctx, leave); err != nil || answer.Txn.Succeeded {
			return
		}
		if _, err := c.insist(ctx, &core.Change{Namespace: c.namespace, ID: id, NewID: gone}); err == nil {
			_, _ = c.insist(ctx, &core.Release{Namespace: c.namespace, ID: gone})
			return
		}
	}
}

// insist repeats an idempotent command until it is decided.
func (c *call) insist(ctx context.Context, command core.Command) (core.Answer, error) {
	for {
		answer, err := c.engine.Do(ctx, command)
		if !door.Unsure(err) || ctx.Err() != nil {
			return answer, err
		}
		select {
		case <-time.After(door.Pause):
		case <-ctx.Done():
		}
	}
}

func (c *call) showLock() error {
	s, err := c.see("")
	if err != nil {
		return err
	}
	if s.holder == nil {
		return &leasehold.Error{Code: leasehold.NotFound, Message: c.state + " is not locked"}
	}
	told := &tfstate.Lock{Waiting: s.status.Waiting}
	describeLock(told, s.holder)
	c.w.Header().Set(lockHeader, told.Lock)
	c.send(http.StatusOK, "application/json", told)
	return nil
}
