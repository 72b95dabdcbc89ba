package sim

import (
	"github.com/leasehold/leasehold"
	"github.com/leasehold/leasehold/internal/core"
	"github.com/leasehold/leasehold/internal/core/command"
	"github.com/leasehold/leasehold/internal/engine/replica"
)

// turnsAway refuses a command as the edge of a real server does, before its node sees it, and
// reports whether it did: because there is little room on the disk of the leader, or
// because it names a large value that a majority does not have. What keeps a lease, or gives
// it back, is never refused for lack of room.
func (s *server) turnsAway(a *attempt, done func(core.Answer, error)) bool {
	w := s.world
	leader := w.leader(s)
	switch {
	case s.node != nil && s.paused && len(core.LargeOf(a.command)) > 0:
		return true // it would be looked at when the server wakes, which is left out: the connection is lost
	case s.node == nil || s.paused:
		return false
	case !s.canName(a.command):
		w.count("large values that are not there")
		a.turned = true
		done(core.Answer{}, &leasehold.Error{Code: leasehold.Invalid, Message: "the large value is not here"})
		return true
	case leader.low <= w.now || command.ClassOf(a.command) != command.Adds:
		return false
	}
	w.count("refused for lack of room")
	a.turned = true
	done(core.Answer{}, &leasehold.Error{Code: leasehold.Limited, Message: "the disk is nearly full"})
	if leader.node != nil && w.chance(20) {
		leader.deliver(edge, replica.Transfer{To: w.roomiest(leader).id})
	}
	return true
}

// roomiest returns a server whose disk has room; the same one if there is no other.
func (w *World) roomiest(s *server) *server {
	for _, o := range w.servers {
		if o.low <= w.now && o.node != nil {
			return o
		}
	}
	return s
}
