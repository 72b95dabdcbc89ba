package cluster

import (
	"context"
	"errors"

	"github.com/leasehold/leasehold"
	"github.com/leasehold/leasehold/internal/engine"
	"github.com/leasehold/leasehold/internal/engine/replica"
)

// Transfer gives the lead to a server, or to whichever is best.
func (e *Engine) Transfer(ctx context.Context, name string) (string, error) {
	to := uint64(0)
	if name != "" {
		m, err := e.named(ctx, name)
		if err != nil {
			return "", err
		}
		if !m.Voter {
			return "", engine.Refused("server %s has no vote yet, and cannot lead", name)
		}
		to = m.ID
	}
	ctx, cancel := context.WithTimeout(ctx, changeWithin)
	defer cancel()
	for {
		leader, err := e.transferOnce(ctx, to)
		if err == nil {
			return e.network.nameOf(leader), nil
		}
		if !errors.Is(err, leasehold.ErrUnavailable) && !errors.Is(err, leasehold.ErrUndecided) || !e.waitForLead(ctx) {
			return "", err
		}
	}
}

// transferOnce asks the leader, as far as it is known, to hand over.
func (e *Engine) transferOnce(ctx context.Context, to uint64) (uint64, error) {
	switch leader := e.view.Load().leader; {
	case leader == 0:
		return 0, errNoLeader
	case leader == to:
		return to, nil
	case leader == e.id:
		return e.transferHere(ctx, to)
	default:
		return askServer[uint64, uint64](ctx, e.network, leader, askTransfer, to)
	}
}

// transferHere gives the lead away, if this server has it, and returns who leads then. It waits
// for a leader to be known, so that the operator who asked is told the outcome and not the
// attempt.
func (e *Engine) transferHere(ctx context.Context, to uint64) (uint64, error) {
	var err error
	if failed := e.inspect(ctx, func(n *replica.Node) {
		best := to
		if best == 0 {
			best = n.Successor()
		}
		switch {
		case !n.Serving():
			err = errNoLeader
		case best == 0:
			err = engine.Refused("no other server could lead at the moment")
		// Raft would wait for it, and take no proposals meanwhile.
		case best != e.id && !n.Reachable(best):
			err = engine.Refused("server %d has been silent for too long to lead", best)
		default:
			n.Step(replica.Transfer{To: best})
		}
	}); failed != nil {
		return 0, failed
	}
	if err != nil {
		return 0, err
	}
	ctx, cancel := context.WithTimeout(ctx, transferWithin)
	defer cancel()
	for {
		v := e.view.Load()
		if v.leader != 0 && v.leader != e.id || to == e.id {
			return v.leader, nil
		}
		select {
		case <-v.changed:
		case <-ctx.Done():
			return 0, engine.Unavailable("leadership could not be handed over in time: try again")
		case <-e.stopped:
			return 0, errStopping
		}
	}
}
