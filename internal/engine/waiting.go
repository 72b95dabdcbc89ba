package engine

import (
	"context"
	"errors"
	"time"

	"github.com/leasehold/leasehold"
	"github.com/leasehold/leasehold/internal/core"
	"github.com/leasehold/leasehold/internal/core/access"
)

// signOfLife is how often a node tells the core that somebody still waits behind
// a connection; the core takes the waiter for gone after three times that.
const signOfLife = 5 * time.Second

// Acquire asks for a resource and, if the command says so, stays until the wait
// is over one way or the other.
//
// proposed says that the client made the lease's id. If the server did, nobody can ask again
// for what a caller that went away was waiting for, so it is withdrawn. What has
// an id that the client proposed, or a request key, ends with its session alone:
// the client may be about to ask again on another connection.
func Acquire(ctx context.Context, e Engine, c *core.Acquire, proposed bool) (core.Answer, error) {
	answer, err := e.Do(ctx, c)
	ours := !proposed && c.Request == (core.Request{})
	if err != nil {
		if ours && errors.Is(err, leasehold.ErrUndecided) {
			Withdraw(ctx, e, c)
		}
		return answer, err
	}
	if answer.Waiter == nil {
		return answer, nil
	}
	staying, leave := Stay(ctx, e)
	defer leave()
	answer, err = await(context.WithValue(staying, waitKey{}, true), e, c, answer.Waiter)
	switch {
	case err == nil:
	case ctx.Err() == nil && !wasDecided(err) && !e.Feed().Closed():
		return answer, unheard(ctx, e, c, ours)
	case !ours:
	case errors.Is(err, leasehold.ErrDenied): // its asker may no longer do anything: the server takes it back by itself
		Withdraw(WithAsker(ctx, &access.System), e, c)
	case ctx.Err() != nil:
		Withdraw(ctx, e, c)
	}
	return answer, err
}

// unheard ends a wait at a server that hears of no leader. What the client can ask for again keeps its place.
func unheard(ctx context.Context, e Engine, c *core.Acquire, ours bool) error {
	if !ours {
		return Undecided("no leader answers this server: ask another one, with the same id or key")
	}
	// The caller need not wait until there is a leader again, and by then its right may be gone.
	go withdrawLater(WithAsker(context.WithoutCancel(ctx), &access.System), e, c)
	return Undecided("no leader answers this server, so the wait is over: ask another one")
}

type waitKey struct{}

// Waits reports whether something is done for a request that waits, which did not ask for it.
func Waits(ctx context.Context) bool { return ctx.Value(waitKey{}) != nil }

// await returns when a waiter has its lease or will not get it.
func await(ctx context.Context, e Engine, c *core.Acquire, w *leasehold.Waiter) (core.Answer, error) {
	life := time.NewTicker(signOfLife)
	defer life.Stop()
	feed := e.Feed()
	for {
		changed, turn := feed.Changed(), feed.Turn(c)
		// Only now look: what happens from here on, the turn tells.
		answer, err := outcome(ctx, e, c, w)
		if err != nil || answer.Waiter == nil {
			turn.Stop()
			return answer, err
		}
	events:
		for {
			select {
			case <-turn.Came():
				if answer, granted := turn.Granted(); granted {
					turn.Stop()
					return answer, nil
				}
			case <-changed:
				changed = feed.Changed()
				if err = feed.mayWait(ctx, c); err == nil {
					continue events // nothing else happened: many wait, and need not all read the state
				}
			case <-life.C:
				if w.Session == "" {
					_, err = e.Do(ctx, &core.Renew{Namespace: w.Namespace, ID: w.ID})
				}
			case <-ctx.Done():
				err = Undecided("the request ended while it waited for " + w.Resource)
			}
			break
		}
		turn.Stop()
		if err != nil && (!wasDecided(err) || errors.Is(err, leasehold.ErrDenied)) {
			return core.Answer{}, err
		}
	}
}

// outcome reads what became of a waiter.
func outcome(ctx context.Context, e Engine, c *core.Acquire, w *leasehold.Waiter) (answer core.Answer, err error) {
	var held *leasehold.Error
	failed := e.Read(ctx, func(v core.View) {
		answer = v.Claims(c)
		if answer.Err != nil && v.Ended(w.Namespace, w.ID) == leasehold.WaitOver {
			held = v.Held(w.Namespace, resources(c)...)
		}
	})
	switch {
	case failed != nil:
		return core.Answer{}, failed
	case held != nil:
		return core.Answer{}, held
	}
	return Decided(answer)
}

func resources(c *core.Acquire) []string {
	paths := []string{c.Resource}
	for _, item := range c.Also {
		paths = append(paths, item.Resource)
	}
	return paths
}

// Withdraw takes back a request that nobody waits for. What was granted just
// now is released.
func Withdraw(ctx context.Context, e Engine, c *core.Acquire) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), signOfLife)
	defer cancel()
	// If this fails too, the waiter leaves for want of a sign of life, and the
	// lease ends with its TTL.
	_ = withdraw(ctx, e, c)
}

// withdrawLater withdraws as soon as there is a leader, unless the waiter has left by then for want of a sign of life.
func withdrawLater(ctx context.Context, e Engine, c *core.Acquire) {
	ctx, cancel := context.WithTimeout(ctx, 3*signOfLife)
	defer cancel()
	pause := time.NewTicker(signOfLife / 20)
	defer pause.Stop()
	for feed := e.Feed(); withdraw(ctx, e, c) != nil && ctx.Err() == nil && !feed.Closed(); {
		select {
		case <-pause.C:
		case <-feed.Changed(): // the engine has ended
		}
	}
}

// withdraw returns an error if it cannot know that all of a request is taken back.
func withdraw(ctx context.Context, e Engine, c *core.Acquire) (unsure error) {
	release := func(id string) {
		// Withdraw: the request itself may still be on its way to the leader.
		r := &core.Release{Namespace: c.Namespace, ID: id, Session: c.Session, Withdraw: true}
		if _, err := e.Do(ctx, r); err != nil && !wasDecided(err) {
			unsure = err
		}
	}
	release(c.ID)
	for _, item := range c.Also {
		release(item.ID)
	}
	return unsure
}

// wasDecided reports whether the core itself refused.
func wasDecided(err error) bool {
	return !errors.Is(err, leasehold.ErrUndecided) && !errors.Is(err, leasehold.ErrUnavailable)
}
