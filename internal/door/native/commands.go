package native

import (
	"errors"
	"net/http"
	"strconv"
	"sync"

	"github.com/leasehold/leasehold"
	v1 "github.com/leasehold/leasehold/api/v1"
	"github.com/leasehold/leasehold/internal/core"
)

func (c *call) renew() error {
	var body v1.RenewRequest
	if err := c.read(&body); err != nil {
		return err
	}
	command, err := c.toRenew(&body)
	if err != nil {
		return err
	}
	answer, err := c.do(command)
	if err == nil && answer.Waiter != nil {
		err = c.stillWaits(answer.Waiter)
	}
	if err != nil {
		return err
	}
	return c.sendLease(answer.Lease, grant{})
}

// stillWaits answers who renews what it does not have yet. The sign of life
// counted, but only a lease is a yes.
func (c *call) stillWaits(w *leasehold.Waiter) error {
	var held *leasehold.Error
	err := c.door.backend.Read(c.ctx, func(v core.View) { held = v.Held(w.Namespace, w.Resource) })
	if err != nil {
		return err
	}
	told := *held
	told.Position = w.Position
	return &told
}

func (c *call) release() error {
	var body v1.ReleaseRequest
	if err := c.read(&body); err != nil {
		return err
	}
	commands, err := c.toReleases(&body)
	if err != nil {
		return err
	}
	if len(commands) == 1 && body.ID != "" {
		return c.doNothingMore(commands[0])
	}
	return c.releaseMany(commands)
}

// atOnce is how many commands of one request are under way together: enough to share
// writes to the log, too few to crowd out others.
const atOnce = 64

// releaseMany carries out releases that are independent of each other. What has ended
// already is what was asked for. The first error, in their order, speaks for all.
func (c *call) releaseMany(commands []*core.Release) error {
	failures := make([]error, len(commands))
	next := make(chan int)
	var wg sync.WaitGroup
	for range min(atOnce, len(commands)) {
		wg.Go(func() {
			for i := range next {
				if _, err := c.carryOut(commands[i]); !errors.Is(err, leasehold.ErrLost) {
					failures[i] = err
				}
			}
		})
	}
	for i := range commands {
		next <- i
	}
	close(next)
	wg.Wait()
	if err := firstError(failures...); err != nil {
		errors.As(err, &c.decided)
		return err
	}
	write(c.w, jsonType, http.StatusOK, nothing)
	return nil
}

func (c *call) change() error {
	var body v1.ChangeRequest
	if err := c.read(&body); err != nil {
		return err
	}
	command, err := c.toChange(&body)
	if err != nil {
		return err
	}
	return c.doLease(command)
}

func (c *call) breakLease() error {
	var body v1.BreakRequest
	if err := c.read(&body); err != nil {
		return err
	}
	command, err := c.toBreak(&body)
	if err != nil {
		return err
	}
	answer, err := c.do(command)
	if err != nil {
		return err
	}
	return c.sendLease(answer.Lease, grant{also: answer.Also})
}

func (c *call) move() error {
	var body v1.MoveRequest
	if err := c.read(&body); err != nil {
		return err
	}
	command, err := c.toMove(&body)
	if err != nil {
		return err
	}
	answer, err := c.do(command)
	if err != nil {
		return err
	}
	if answer.Waiter == nil {
		// The same move was answered before, and its waiter has its lease by now.
		return &leasehold.Error{Code: leasehold.Refused, Message: "lease " + brief(body.ID) +
			" is held: it waits for nothing any more"}
	}
	c.send(func(b *jsonBuffer) { b.waiter(answer.Waiter) })
	return nil
}

func (c *call) ask() error {
	var body v1.AskRequest
	if err := c.read(&body); err != nil {
		return err
	}
	command, err := c.toAsk(&body)
	if err != nil {
		return err
	}
	return c.doLease(command)
}

func (c *call) acknowledge() error {
	var body v1.AcknowledgeRequest
	if err := c.read(&body); err != nil {
		return err
	}
	command, err := c.toAcknowledge(&body)
	if err != nil {
		return err
	}
	return c.doNothingMore(command)
}

func (c *call) openSession() error {
	var body v1.SessionRequest
	if err := c.readOptional(&body); err != nil {
		return err
	}
	command, err := c.toOpenSession(&body)
	if err != nil {
		return err
	}
	return c.doSession(command, warn(command.TTL))
}

func (c *call) renewSession() error {
	if err := c.readOptional(&v1.Nothing{}); err != nil {
		return err
	}
	command, err := c.toRenewSession()
	if err != nil {
		return err
	}
	return c.doSession(command, "")
}

func (c *call) closeSession() error {
	command, err := c.toCloseSession()
	if err != nil {
		return err
	}
	return c.doNothingMore(command)
}

// doLease carries out a command that is answered with a lease.
func (c *call) doLease(command core.Command) error {
	answer, err := c.do(command)
	if err != nil {
		return err
	}
	return c.sendLease(answer.Lease, grant{})
}

func (c *call) doSession(command core.Command, warning string) error {
	answer, err := c.do(command)
	if err != nil {
		return err
	}
	if answer.Session == nil {
		return errors.New("the engine answered without a session")
	}
	return c.sendSession(answer.Session, warning)
}

// doNothingMore carries out a command after which there is nothing to show. The
// answer is an object all the same: callers parse it as they do any other.
func (c *call) doNothingMore(command core.Command) error {
	if _, err := c.do(command); err != nil {
		return err
	}
	write(c.w, jsonType, http.StatusOK, nothing)
	return nil
}

var nothing = []byte("{}\n")

func (c *call) sendLease(l *leasehold.Lease, g grant) error {
	if l == nil {
		return errors.New("the engine answered without a lease")
	}
	g.counted = c.counts()
	c.send(func(b *jsonBuffer) { b.lease(l, g) })
	return nil
}

func (c *call) sendSession(s *leasehold.Session, warning string) error {
	var seen *uint64
	if c.counts() {
		seen = new(uint64)
		if text := c.query.Get("seen"); text != "" {
			n, err := strconv.ParseUint(text, 10, 64)
			if err != nil {
				return invalid("seen is %s: give the number of interventions that you know of, as an answer said it",
					brief(text))
			}
			*seen = n
		}
	}
	c.send(func(b *jsonBuffer) { b.session(s, warning, seen) })
	return nil
}

// counts reports whether the server counts what others do to the leases of a session.
func (c *call) counts() bool { return c.door.backend.Engine().Level() >= core.Level4 }

// answerBuffers are reused for answers on their way out.
var answerBuffers = sync.Pool{New: func() any { b := make(jsonBuffer, 0, 1<<10); return &b }}

// send writes one JSON value.
func (c *call) send(fill func(*jsonBuffer)) {
	b := answerBuffers.Get().(*jsonBuffer)
	*b = (*b)[:0]
	fill(b)
	*b = append(*b, '\n')
	write(c.w, jsonType, http.StatusOK, *b)
	if cap(*b) <= maxKept {
		answerBuffers.Put(b)
	}
}
