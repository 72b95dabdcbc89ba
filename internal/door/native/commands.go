package native

import (
	"errors"
	"strconv"
	"sync"

	"github.com/leasehold/leasehold"
	"github.com/leasehold/leasehold/internal/core"
	"github.com/leasehold/leasehold/internal/door/native/encode"
)

func (c *call) renewed(_ *core.Renew, answer core.Answer) error {
	if w := answer.Waiter; w != nil {
		return c.stillWaits(w)
	}
	return c.sendLease(answer, encode.Grant{})
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

// atOnce is how many commands of one request are under way together: enough to share
// writes to the log, too few to crowd out others.
const atOnce = 64

// releaseMany carries out a request to release several leases, independently of each other. What has ended
// already is what was asked for. The first error, in their order, speaks for all.
func (c *call) releaseMany(_ *core.Release) (bool, error) {
	commands := c.released
	if commands == nil {
		return false, nil
	}
	failures := make([]error, len(commands))
	next := make(chan int)
	ctx := c.signed()
	var wg sync.WaitGroup
	for range min(atOnce, len(commands)) {
		wg.Go(func() {
			for i := range next {
				if _, err := c.carryOut(ctx, commands[i]); !errors.Is(err, leasehold.ErrLost) {
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
		c.noteDecided(err)
		return true, err
	}
	c.nothing()
	return true, nil
}

func (c *call) broken(_ *core.Break, answer core.Answer) error {
	return c.sendLease(answer, encode.Grant{Also: answer.Also})
}

func (c *call) moved(command *core.Move, answer core.Answer) error {
	if answer.Waiter == nil {
		// The same move was answered before, and its waiter has its lease by now.
		return &leasehold.Error{Code: leasehold.Refused, Message: "lease " + brief(command.ID) +
			" is held: it waits for nothing any more"}
	}
	c.send(func(b *encode.Buffer) { b.Waiter(answer.Waiter) })
	return nil
}

func (c *call) sessionOpened(command *core.OpenSession, answer core.Answer) error {
	return c.sendSession(answer.Session, warn(command.TTL))
}

func (c *call) sessionRenewed(_ *core.RenewSession, answer core.Answer) error {
	return c.sendSession(answer.Session, "")
}

// doNothingMore answers a command after which there is nothing to show.
func doNothingMore[C core.Command](c *call, _ C, _ core.Answer) error {
	c.nothing()
	return nil
}

// tellLease answers a command with a lease.
func tellLease[C core.Command](c *call, _ C, answer core.Answer) error {
	return c.sendLease(answer, encode.Grant{})
}

// tellAsked shows the lease of who was asked. To those who may ask and not read it shows nothing.
func tellAsked(c *call, _ *core.Ask, answer core.Answer) error {
	if answer.Lease == nil {
		c.nothing()
		return nil
	}
	return c.sendLease(answer, encode.Grant{})
}

func (c *call) sendLease(answer core.Answer, g encode.Grant) error {
	if answer.Lease == nil {
		return errors.New("the engine answered without a lease")
	}
	g.Counted = true
	b := c.begin()
	b.Lease(answer.Lease, g)
	c.end(b)
	return nil
}

func (c *call) sendSession(s *leasehold.Session, warning string) error {
	if s == nil {
		return errors.New("the engine answered without a session")
	}
	var seen uint64
	if text := c.query.Get("seen"); text != "" {
		var err error
		if seen, err = strconv.ParseUint(text, 10, 64); err != nil {
			return invalid("seen is %s: give the number of interventions that you know of, as an answer said it",
				brief(text))
		}
	}
	b := c.begin()
	b.Session(s, warning, &seen)
	c.end(b)
	return nil
}
