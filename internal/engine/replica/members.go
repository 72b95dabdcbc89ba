package replica

import (
	"fmt"
	"slices"
	"time"

	"go.etcd.io/raft/v3"
	"go.etcd.io/raft/v3/raftpb"
	"go.etcd.io/raft/v3/tracker"
	"google.golang.org/protobuf/proto"

	"github.com/leasehold/leasehold"
	"github.com/leasehold/leasehold/internal/engine"
)

// Members come and go through the log, one change after the other. Raft counts votes by a
// change as soon as a node knows that it is committed, but it does not write that
// knowledge down: a node that starts again would count as before, and maybe wait for ever
// for one that was removed and turned off. So a change of votes is followed by an entry
// that settles it. It is proposed when the change is applied, and whoever has it on disk
// has with it, in raft's hard state, that the change was committed. When it is committed
// itself, a majority of the new voters can not forget; only then the change is answered,
// and only then one that was removed may stop.

// PromoteLag is by how many entries a member may be behind that gets its vote.
const PromoteLag = 128

// maxChanges is how many changes may wait for the one in flight.
const maxChanges = 64

// ErrRemoved is why a node stopped that does not belong to the cluster any more.
var ErrRemoved = engine.Refused("this server was removed from the cluster: it takes no part any more. To take part again, it has to join as a new one, with an empty data directory, in a place that leasehold cluster add prepared")

type (
	// Reconfigure changes the members. Only a leader that serves takes it. Done is called
	// when the change is applied and can not be forgotten, with the member as it is then
	// and the change's place in the log; 0: nothing had to be changed.
	Reconfigure struct {
		Change Change
		Done   func(m Member, index uint64, err error)
	}
	// Expelled ends this node's part in the cluster, since another member or an operator
	// knows better; nil: it was removed for good.
	Expelled struct{ Err error }
)

func (Reconfigure) event() {}
func (Expelled) event()    {}

// changes are those that this node was asked for, as the leader.
type changes struct {
	queue    []Reconfigure
	current  *Reconfigure // proposed, and not answered yet
	index    uint64       // where it stands, once it is applied
	since    uint64       // the tick at which the removal that is next was looked at first; 0: it was not
	unplaced bool         // something was proposed, and has no place in the log yet
	placed   uint64       // where that stands, until it is applied; 0: nothing is in flight
}

// Roster returns who belongs to the cluster, as far as this node has come in the log.
func (n *Node) Roster() *Roster { return n.roster }

// Left tells whether this node was removed for good. It says so and stops.
func (n *Node) Left() bool { return n.left }

// A Standing is how another member does, as the leader sees it.
type Standing struct {
	Match  uint64        // how far its log is known to be the leader's; 0: unknown
	Silent time.Duration // how long nothing was heard of it; negative: never was
}

// Standing returns how another member does.
func (n *Node) Standing(id uint64) Standing {
	s := Standing{Silent: -1}
	if p, ok := n.raft.Status().Progress[id]; ok && n.Leads() {
		s.Match = p.Match
	}
	if at, ok := n.heard[id]; ok {
		s.Silent = time.Duration(n.ticks-at) * TickEvery
	}
	return s
}

// Admit says whether a server that sends something is who it says it is.
func (n *Node) Admit(id uint64, dir string) error {
	if m, ok := n.roster.Member(id); ok && n.plants(AdmitAnyDir) {
		dir = m.Dir
	}
	return n.roster.Admit(id, dir)
}

// Reachable tells whether a member was heard of lately.
func (n *Node) Reachable(id uint64) bool { return n.heardWithin(id, electionTicks) }

func (n *Node) heardWithin(id, ticks uint64) bool {
	at, ok := n.heard[id]
	return id == n.id || ok && n.ticks-at <= ticks
}

// heardSince tells whether a member has sent something after the removal that is next was
// asked for. What was on its way by then takes less than a tick.
func (n *Node) heardSince(id uint64) bool {
	return id == n.id || n.changes.since != 0 && n.heard[id] > n.changes.since+1
}

func (n *Node) acceptChange(e Reconfigure) {
	switch {
	case n.stopped || !n.lead.serving:
		e.Done(Member{}, 0, engine.Unavailable("this server does not lead: ask the one that does"))
	case len(n.changes.queue) >= maxChanges:
		e.Done(Member{}, 0, &leasehold.Error{Code: leasehold.Limited, Message: "too many changes of the members wait already: try again in a moment"})
	default:
		n.changes.queue = append(n.changes.queue, e)
	}
}

// change proposes the next change, when there is none in flight. What an earlier leader
// left open is settled first.
func (n *Node) change() {
	if !n.lead.serving || n.lead.dropped || n.changes.placed != 0 {
		return
	}
	if s := n.raft.BasicStatus(); s.RaftState != raft.StateLeader || s.HardState.GetTerm() != n.lead.term {
		return // the lead was lost, which is about to be known
	}
	if n.roster.Open != 0 {
		n.proposeChange(Change{Kind: settle, Member: Member{ID: n.id}})
		return
	}
	if n.decideLevel() {
		return
	}
	for len(n.changes.queue) > 0 {
		next := n.changes.queue[0]
		if next.Change.Kind == Remove && !n.lookedAround(next.Change.Member.ID) {
			return
		}
		change, needed, err := n.consider(next.Change)
		if needed && err == nil {
			if n.proposeChange(change) {
				n.changes.queue = n.changes.queue[1:]
				n.changes.current, n.changes.since = &next, 0
			}
			return
		}
		n.changes.queue, n.changes.since = n.changes.queue[1:], 0
		next.Done(change.Member, 0, err)
	}
}

// proposeChange gives a change to raft, which takes none while it hands the lead over.
func (n *Node) proposeChange(c Change) bool {
	context, err := c.encode()
	if err != nil {
		n.fail(err)
		return false
	}
	err = n.raft.ProposeConfChange(&raftpb.ConfChange{Type: c.raftType().Enum(), NodeId: new(c.Member.ID), Context: context})
	if err != nil {
		n.lead.dropped = true
		return false
	}
	n.changes.unplaced = true
	return true
}

// placeChange learns where the change stands that was just proposed.
func (n *Node) placeChange(entries []*raftpb.Entry) {
	if !n.changes.unplaced {
		return
	}
	n.changes.unplaced = false
	for _, e := range entries {
		if e.GetType() == raftpb.EntryConfChange && e.GetTerm() == n.lead.term {
			n.changes.placed = e.GetIndex()
		}
	}
	if n.changes.placed == 0 && n.changes.current != nil {
		// Raft put an empty entry in its place, since one that it knows of is not applied.
		n.changes.queue = append([]Reconfigure{*n.changes.current}, n.changes.queue...)
		n.changes.current = nil
	}
}

// consider says what a change is to the roster as it is: the change to propose, or that
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
		return c, false, &leasehold.Error{Code: leasehold.Invalid, Message: fmt.Sprintf("there is no such change as %v", c.Kind)}
	}
	switch {
	case !known && slices.Contains(n.roster.Removed, c.Member.ID) && c.Kind == Remove:
		return c, false, nil // asked again
	case !known && slices.Contains(n.roster.Removed, c.Member.ID):
		return c, false, ErrRemoved
	case !known:
		return c, false, &leasehold.Error{Code: leasehold.NotFound, Message: fmt.Sprintf("the cluster has no server %d", c.Member.ID)}
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

func (n *Node) considerAdd(c Change) (Change, bool, error) {
	c.Member.Voter = false
	for _, m := range n.roster.Members {
		switch {
		case m.Name == c.Member.Name && m.Peer == c.Member.Peer:
			c.Member.ID = m.ID // it is there already, and may know more of itself
			return n.considerAnnounce(Change{Kind: Announce, Member: c.Member}, m)
		case m.Name == c.Member.Name:
			return c, false, engine.Refused("the cluster has a server %s already, at %s: remove that one first, or choose another name", m.Name, m.Peer)
		case m.Peer == c.Member.Peer:
			return c, false, engine.Refused("the server %s is at %s already: remove that one first, or choose another address", m.Name, m.Peer)
		}
	}
	if !n.roster.fits(c.Member) {
		return c, false, n.misfit(c.Member)
	}
	if at := slices.IndexFunc(n.roster.Members, func(m Member) bool { return m.Peer == "" }); at >= 0 {
		// It could not talk to the new one, and would have to stop.
		return c, false, engine.Refused("server %s has no address for other servers: start it again with --peer-listen first, then add %s",
			n.roster.Members[at].Name, c.Member.Name)
	}
	switch {
	case len(n.roster.Members) >= maxMembers:
		return c, false, engine.Refused("the cluster has %d servers already, which is as many as there may be", maxMembers)
	case c.Member.ID == 0:
		c.Member.ID = max(1, n.roster.Next)
	case c.Member.ID < n.roster.Next:
		return c, false, engine.Refused("the id %d was given before, and no id is given twice", c.Member.ID)
	}
	return c, true, nil
}

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
			return c, false, engine.Refused("the cluster has a server %s at %s already: choose another name and address", o.Name, o.Peer)
		}
	}
	return Change{Kind: Announce, Member: next}, next != m, nil
}

// misfit is the refusal of a server that does not know the cluster's level.
func (n *Node) misfit(m Member) error {
	return engine.Refused("server %s knows %v, and the cluster is at level %d: start it with another version", m.Name, m.Levels, n.roster.Active())
}

// mayPromote says why a member can not have its vote yet.
func (n *Node) mayPromote(m Member) error {
	if !n.caughtUp(m.ID) {
		return engine.Refused("server %s is too far behind to have a vote, or is not heard of: it gets one when it has caught up", m.Name)
	}
	return nil
}

// caughtUp tells whether a member has nearly all of the log, and is there. A vote of one
// that is behind would count, and could not be used to go on.
func (n *Node) caughtUp(id uint64) bool {
	if n.plants(PromoteEarly) {
		return true
	}
	status := n.raft.Status()
	p, ok := status.Progress[id]
	return ok && p.State == tracker.StateReplicate && p.Match+PromoteLag >= status.HardState.GetCommit() && n.Reachable(id) &&
		(n.config.Complete == nil || !n.state.HasValues() || n.config.Complete(id))
}

// lookedAround tells whether it is known who would be left without a member. The others
// have to be there now: one that was lost a moment ago with all its data would, with one
// less to count, leave no majority for good. So they are waited for, but not for ever.
func (n *Node) lookedAround(without uint64) bool {
	if m, _ := n.roster.Member(without); !m.Voter {
		return true
	}
	if n.changes.since == 0 {
		n.changes.since = n.ticks
	}
	there, rest := n.remaining(without, n.heardSince)
	maybe, _ := n.remaining(without, n.Reachable)
	return there > rest/2 || maybe <= rest/2 || n.ticks-n.changes.since > electionTicks
}

// remaining counts those with a vote without a member, and how many of them are there.
func (n *Node) remaining(without uint64, there func(id uint64) bool) (are, rest int) {
	for _, id := range n.roster.Voters() {
		if id == without {
			continue
		}
		rest++
		if there(id) {
			are++
		}
	}
	return are, rest
}

// mayRemove says why a member can not go.
func (n *Node) mayRemove(m Member) error {
	if !m.Voter {
		return nil
	}
	there, rest := n.remaining(m.ID, n.heardSince)
	switch {
	case rest == 0:
		return engine.Refused("server %s is the only one with a vote: without it there is no cluster", m.Name)
	case there <= rest/2:
		return engine.Refused("without server %s, only %d of %d servers with a vote could be reached, and that is no majority: bring others back first, or add one", m.Name, there, rest)
	case m.ID == n.id && !n.plants(KeepsLead):
		// It could be the only one to know of its removal, and is about to stop.
		n.giveLead(0)
		return engine.Unavailable("the server gives the lead away before it goes: ask the next leader")
	}
	return nil
}

// applyChange lets a change of the members take effect.
func (n *Node) applyChange(e *raftpb.Entry) error {
	var cc raftpb.ConfChange
	if err := proto.Unmarshal(e.GetData(), &cc); err != nil {
		return err
	}
	c, err := decodeChange(&cc)
	if err != nil {
		return err
	}
	ours := n.changes.placed == e.GetIndex()
	if ours {
		n.changes.placed = 0
	}
	next, err := n.roster.with(c, e.GetIndex())
	if n.plants(RaiseUnready) && c.Kind == Raise {
		ready := *n.roster
		ready.Level, next, err = c.Level, &ready, nil
	}
	if err != nil {
		n.log.Warn("a change of the members does not fit, and nothing is done", "change", c.Kind, "server", c.Member.ID)
		if n.config.Watch != nil {
			n.config.Watch(Applied{Index: e.GetIndex(), Term: e.GetTerm(), Data: e.GetData(), Roster: n.roster, Votes: n.members})
		}
		n.changed(ours, err)
		return nil
	}
	if n.plants(LearnerVotes) && c.Kind == Add {
		cc.Type = raftpb.ConfChangeAddNode.Enum()
	}
	if n.plants(ReuseID) && c.Kind == Remove {
		next.Next = min(next.Next, c.Member.ID)
	}
	if !n.plants(RemovedVotes) || c.Kind != Remove {
		n.members = n.raft.ApplyConfChange(&cc)
	}
	if c.Kind == Raise {
		if err := n.raise(c.Level); err != nil {
			return err
		}
	}
	if c.Kind != Sum && c.Kind != settle && c.Kind != Raise {
		n.log.Info("the members change", "change", c.Kind, "server", c.Member.ID, "name", c.Member.Name)
	}
	n.adopt(next)
	if c.Kind == Sum && n.config.Summed != nil {
		n.config.Summed(e.GetIndex(), n.state.Freeze())
	}
	if ours && c.Kind != settle {
		n.changes.index = e.GetIndex()
	}
	if n.config.Watch != nil {
		n.config.Watch(Applied{Index: e.GetIndex(), Term: e.GetTerm(), Data: e.GetData(), Roster: next, Votes: n.members})
	}
	n.changed(ours && (next.Open == 0 || n.plants(AnswerUnsettled)), nil)
	return nil
}

// adopt goes on with another roster.
func (n *Node) adopt(r *Roster) {
	if r == n.roster {
		return
	}
	n.roster = r
	if slices.Contains(r.Removed, n.id) || n.plants(LeaveUnsettled) && r.Leaves != nil && r.Leaves.ID == n.id {
		n.left = true
	}
	if n.config.Changed != nil {
		n.config.Changed(r)
	}
	n.outlast()
}

// changed answers the change in flight, if it is over.
func (n *Node) changed(over bool, err error) {
	current := n.changes.current
	if !over || current == nil {
		return
	}
	m := current.Change.Member
	if i := slices.IndexFunc(n.roster.Members, func(o Member) bool { return o.ID == m.ID || m.ID == 0 && o.Name == m.Name }); i >= 0 {
		m = n.roster.Members[i]
	}
	index := n.changes.index
	n.changes.current, n.changes.index = nil, 0
	current.Done(m, index, err)
}

// dropChanges answers those who wait for a change of a leader that does not lead any more.
func (n *Node) dropChanges() {
	c := n.changes
	n.changes = changes{}
	if c.current != nil {
		c.current.Done(c.current.Change.Member, 0, engine.Undecided("the leader changed: look whether the members did"))
	}
	for _, r := range c.queue {
		r.Done(r.Change.Member, 0, engine.Unavailable("the leader changed: try again"))
	}
}

// promoteNext gives a vote to a member that has caught up, if nothing else is in flight.
func (n *Node) promoteNext() {
	if !n.lead.serving || n.stopped || n.changes.current != nil || len(n.changes.queue) > 0 || n.roster.Open != 0 {
		return
	}
	for _, m := range n.roster.Members {
		// One that was lost a moment ago must not get a vote that is then missed.
		if !m.Voter && n.heardWithin(m.ID, 1) && n.caughtUp(m.ID) {
			n.acceptChange(Reconfigure{Change{Kind: Promote, Member: m}, func(Member, uint64, error) {}})
			return
		}
	}
}

// outlast keeps a leader going that finds its own removal in the log, as another began
// it, until somebody else leads: the others may not know yet that it counts.
func (n *Node) outlast() {
	if _, member := n.roster.Member(n.id); n.Leads() && !member && !n.plants(KeepsLead) {
		n.lead.serving = false
		n.giveLead(0)
	}
}
