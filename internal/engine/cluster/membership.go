package cluster

import (
	"context"
	"errors"
	"fmt"

	"github.com/leasehold/leasehold"
	"github.com/leasehold/leasehold/internal/core"
	"github.com/leasehold/leasehold/internal/engine"
	"github.com/leasehold/leasehold/internal/engine/replica"
)

// Add takes in a server by its name and the address at which the others reach it.
func (e *Engine) Add(ctx context.Context, name, address string) (engine.Server, error) {
	if name == "" || address == "" {
		return engine.Server{}, &leasehold.Error{Code: leasehold.Invalid, Message: "a server needs a name, and an " +
			"address at which the others reach it"}
	}
	roster, err := e.freshRoster(ctx)
	if err != nil {
		return engine.Server{}, err
	}
	if m, ok := roster.Named(name); ok && m.Peer == address {
		return serverOf(m), nil
	}
	a, err := e.change(ctx, replica.Change{Kind: replica.Add, Member: replica.Member{Name: name, Peer: address}})
	return serverOf(a.Member), err
}

// Promote gives a server its vote.
func (e *Engine) Promote(ctx context.Context, name string) error {
	return e.changeNamed(ctx, replica.Promote, name)
}

// Remove ends a membership for good.
func (e *Engine) Remove(ctx context.Context, name string) error {
	return e.changeNamed(ctx, replica.Remove, name)
}

func (e *Engine) changeNamed(ctx context.Context, kind replica.ChangeKind, name string) error {
	m, err := e.named(ctx, name)
	if err == nil {
		_, err = e.change(ctx, replica.Change{Kind: kind, Member: replica.Member{ID: m.ID}})
	}
	return err
}

// Upgrade raises the level to the newest that any server knows. While some know less, a rolling
// upgrade is not over, and the leader's refusal says which servers are missing.
func (e *Engine) Upgrade(ctx context.Context) (core.Level, error) {
	roster, err := e.freshRoster(ctx)
	if err != nil {
		return 0, err
	}
	newest := roster.Active()
	for _, m := range roster.Members {
		newest = max(newest, m.Levels.Newest)
	}
	if _, err = e.change(ctx, replica.Change{Kind: replica.Raise, Level: newest}); err != nil {
		return 0, err
	}
	// The caller may use the new level here next, and this server may not have applied it yet.
	err = e.Read(ctx, func(core.View) {})
	return e.Level(), err
}

// freshRoster returns who belongs to the cluster, including every change that was answered
// before.
func (e *Engine) freshRoster(ctx context.Context) (*replica.Roster, error) {
	if err := e.Read(ctx, func(core.View) {}); err != nil {
		return nil, err
	}
	return e.network.current(), nil // which hears of each change as it is applied
}

// named returns the member of a name, after everything that was decided before.
func (e *Engine) named(ctx context.Context, name string) (replica.Member, error) {
	roster, err := e.freshRoster(ctx)
	if err != nil {
		return replica.Member{}, err
	}
	m, ok := roster.Named(name)
	if !ok {
		return replica.Member{},
			&leasehold.Error{Code: leasehold.NotFound, Message: fmt.Sprintf("the cluster has no server %q", name)}
	}
	return m, nil
}

// change asks the leader to change the members. A change that may have happened can be asked
// for again: it names a server by its id, or by name and data directory, so doing it twice is
// harmless.
func (e *Engine) change(ctx context.Context, c replica.Change) (changeAnswer, error) {
	ctx, cancel := context.WithTimeout(ctx, changeWithin)
	defer cancel()
	var undecided error // what became of an earlier try
	for {
		a, err := e.changeOnce(ctx, c)
		switch {
		case errors.Is(err, leasehold.ErrUndecided):
			undecided = err
		case !errors.Is(err, leasehold.ErrUnavailable):
			return a, err
		}
		if e.waitForLead(ctx) {
			continue
		}
		if undecided != nil {
			err = undecided // that this try came to nothing says nothing of that one
		}
		return a, err
	}
}

// changeOnce asks the leader, as far as it is known, for a change.
func (e *Engine) changeOnce(ctx context.Context, c replica.Change) (changeAnswer, error) {
	switch leader := e.view.Load().leader; leader {
	case 0:
		return changeAnswer{}, errNoLeader
	case e.id:
		return e.changeHere(ctx, c)
	default:
		return askServer[replica.Change, changeAnswer](ctx, e.network, leader, askChange, c)
	}
}

// changeHere changes the members, if this server leads.
func (e *Engine) changeHere(ctx context.Context, c replica.Change) (changeAnswer, error) {
	type result struct {
		changeAnswer
		err error
	}
	done := make(chan result, 1)
	event := replica.Reconfigure{Change: c,
		Done: func(m replica.Member, index uint64, err error) { done <- result{changeAnswer{m, index}, err} }}
	select {
	case e.events <- event:
	case <-e.stopped:
		return changeAnswer{}, errStopping
	case <-ctx.Done():
		return changeAnswer{}, engine.Unavailable("the request ended before the members were changed")
	}
	select {
	case r := <-done:
		return r.changeAnswer, r.err
	case <-ctx.Done():
	case <-e.stopped:
	}
	return changeAnswer{}, engine.Undecided(
		"the request ended before it was known whether the members changed: see leasehold cluster status")
}
