package replica

import (
	"fmt"
	"slices"

	"go.etcd.io/raft/v3/tracker"

	"github.com/leasehold/leasehold"
	"github.com/leasehold/leasehold/internal/engine"
)

// A leader considers a change of the members before it proposes it: what the log holds is
// applied by all, so whatever could harm the cluster has to be refused here. What Roster.with
// checks again is only what two leaders in a row could have decided differently.

// consider decides what a change means for the roster as it is: the change to propose, or that
// nothing has to be changed, or why it is refused.
func (n *Node) consider(c Change) (_ Change, needed bool, err error) {
	m, known := n.roster.Member(c.Member.ID)
	switch c.Kind {
	case Add:
		return n.considerAdd(c)
	case Sum:
		return Change{Kind: Sum, Member: Member{ID: n.id}}, true, nil
	case Raise:
		return n.considerRaise(c)
	case Announce, Promote, Remove:
	default:
		return c, false, &leasehold.Error{Code: leasehold.Invalid,
			Message: fmt.Sprintf("there is no such change as %v", c.Kind)}
	}
	switch {
	case !known && slices.Contains(n.roster.Removed, c.Member.ID) && c.Kind == Remove:
		return c, false, nil // asked again
	case !known && slices.Contains(n.roster.Removed, c.Member.ID):
		return c, false, ErrRemoved
	case !known:
		return c, false, &leasehold.Error{Code: leasehold.NotFound,
			Message: fmt.Sprintf("the cluster has no server %d", c.Member.ID)}
	}
	switch c.Kind {
	case Announce:
		return n.considerAnnounce(c, m)
	case Promote:
		if m.Voter {
			return Change{Kind: Promote, Member: m}, false, nil
		}
		return Change{Kind: Promote, Member: m}, true, n.mayPromote(m)
	}
	return Change{Kind: Remove, Member: m}, true, n.mayRemove(m)
}

// considerAdd decides on a new member. Adding the same one again is no error: it may have been
// asked for twice, because the first answer was lost.
func (n *Node) considerAdd(c Change) (Change, bool, error) {
	// A vote comes later, when it has the log: see promoteNext.
	c.Member.Voter = false
	for _, m := range n.roster.Members {
		switch {
		case m.Name == c.Member.Name && m.Peer == c.Member.Peer:
			c.Member.ID = m.ID // it is there already, and may know more of itself
			return n.considerAnnounce(Change{Kind: Announce, Member: c.Member}, m)
		case m.Name == c.Member.Name:
			return c, false, engine.Refused("the cluster has a server %s already, at %s: remove that one first, or "+
				"choose another name", m.Name, m.Peer)
		case m.Peer == c.Member.Peer:
			return c, false, engine.Refused(
				"the server %s is at %s already: remove that one first, or choose another address", m.Name, m.Peer)
		}
	}
	if !n.roster.fits(c.Member) {
		return c, false, n.misfit(c.Member)
	}
	if at := slices.IndexFunc(n.roster.Members, func(m Member) bool { return m.Peer == "" }); at >= 0 {
		// That server could not talk to the new one, and would have to stop.
		return c, false, engine.Refused(
			"server %s has no address for other servers: start it again with --peer-listen first, then add %s",
			n.roster.Members[at].Name, c.Member.Name)
	}
	switch {
	case len(n.roster.Members) >= maxMembers:
		return c, false, engine.Refused("the cluster has %d servers already, which is as many as there may be",
			maxMembers)
	case c.Member.ID == 0:
		c.Member.ID = max(1, n.roster.Next)
	// An id of the past would bring its votes and its place in everybody's progress with it.
	case c.Member.ID < n.roster.Next:
		return c, false, engine.Refused("the id %d was given before, and no id is given twice", c.Member.ID)
	}
	return c, true, nil
}

// considerAnnounce decides on what a member says of itself at its start: address, version,
// levels.
func (n *Node) considerAnnounce(c Change, m Member) (Change, bool, error) {
	c.Member.Voter = m.Voter
	next := m.Announced(c.Member)
	if c.Member.Dir != "" {
		if err := n.roster.Admit(m.ID, c.Member.Dir); err != nil {
			return c, false, err
		}
	}
	if !n.roster.fits(next) {
		return c, false, n.misfit(next)
	}
	for _, o := range n.roster.Members {
		if o.ID != m.ID && (o.Name == next.Name && next.Name != "" || o.Peer == next.Peer && next.Peer != "") {
			return c, false, engine.Refused("the cluster has a server %s at %s already: choose another name or address",
				o.Name, o.Peer)
		}
	}
	return Change{Kind: Announce, Member: next}, next != m, nil
}

// misfit is the refusal of a server that does not know the cluster's level.
func (n *Node) misfit(m Member) error {
	return engine.Refused("server %s knows %v, and the cluster is at level %d: start it with another version", m.Name,
		m.Levels, n.roster.Active())
}

// mayPromote returns why a member cannot have its vote yet.
func (n *Node) mayPromote(m Member) error {
	if !n.caughtUp(m.ID) {
		return engine.Refused("server %s does not run, or is too far behind to have a vote: it gets one when it "+
			"has caught up", m.Name)
	}
	return nil
}

// caughtUp reports whether a member is there and has nearly all of the log, and all the large
// values that the state names. The vote of one that is behind would raise the majority that is
// needed, and the member could not help to reach it.
func (n *Node) caughtUp(id uint64) bool {
	status := n.raft.Status()
	p, ok := status.Progress[id]
	return ok && p.State == tracker.StateReplicate && p.Match+PromoteLag >= status.HardState.GetCommit() &&
		n.Reachable(id) && (n.config.Complete == nil || n.config.Complete(id))
}

// lookedAround reports whether it is known which voters would be left without a member. The
// others have to be there now: if one of them was lost a moment ago with all its data, removing
// another could leave no majority for good. So they get an election timeout to be heard from.
func (n *Node) lookedAround(without uint64) bool {
	if m, _ := n.roster.Member(without); !m.Voter {
		return true
	}
	if n.changes.since == 0 {
		n.changes.since = n.ticks
	}
	there, others := n.remaining(without, n.heardSince)
	maybe, _ := n.remaining(without, n.Reachable)
	return there > others/2 || maybe <= others/2 || n.ticks-n.changes.since > electionTicks
}

// remaining counts the voters other than a member, and how many of them are there.
func (n *Node) remaining(without uint64, there func(id uint64) bool) (are, others int) {
	for _, id := range n.roster.Voters() {
		if id == without {
			continue
		}
		others++
		if there(id) {
			are++
		}
	}
	return are, others
}

// mayRemove returns why a member cannot go.
func (n *Node) mayRemove(m Member) error {
	if !m.Voter {
		return nil
	}
	there, others := n.remaining(m.ID, n.heardSince)
	switch {
	case others == 0:
		return engine.Refused("server %s is the only one with a vote: without it there is no cluster", m.Name)
	case there <= others/2:
		return engine.Refused("without server %s, only %d of %d servers with a vote could be reached, and that is no "+
			"majority: bring others back first, or add one", m.Name, there, others)
	case m.ID == n.id:
		// Once removed it stops, and could be the only one to know that the removal is
		// committed.
		n.giveLead(0)
		return engine.Unavailable("the server gives the lead away before it goes: ask the next leader")
	}
	return nil
}
