package replica

import (
	"slices"
	"time"

	"go.etcd.io/raft/v3"
	"go.etcd.io/raft/v3/raftpb"
	"google.golang.org/protobuf/proto"

	"github.com/leasehold/leasehold"
	"github.com/leasehold/leasehold/internal/engine"
)

// Members come and go through the log, one change at a time. Raft counts votes by a change as
// soon as a node knows that it is committed, but does not write that knowledge down: a node
// that restarts would count as before, and might wait for ever for one that was removed and
// turned off. So a change of voters is followed by an entry that settles it. It is proposed
// when the change is applied, and a node that has it on disk has with it, in raft's hard state,
// that the change was committed. Once the settling entry is itself committed, a majority of the
// new voters cannot forget the change; only then is the change answered, and only then may a
// removed server stop.

// PromoteLag is how many entries behind a member may be when it gets its vote.
const PromoteLag = 128

// maxChanges is how many changes may wait for the one in flight.
const maxChanges = 64

// ErrRemoved is why a node stopped that no longer belongs to the cluster.
var ErrRemoved = engine.Refused("this server was removed from the cluster: it no longer takes part. To take part " +
	"again, it has to join as a new one, with an empty data directory, in a place that leasehold cluster add prepared")

type (
	// Reconfigure changes the members. Only a leader that serves takes it. Done is called
	// when the change is applied and cannot be forgotten, with the member as it is then
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

func (Expelled) event() {}

// changes are those that this node was asked for, as the leader.
type changes struct {
	queue    []Reconfigure
	current  *Reconfigure // proposed, and not answered yet
	index    uint64       // its place in the log, once it is applied
	since    uint64       // the tick at which the removal that is next was looked at first; 0: it was not
	unplaced bool         // something was proposed, and has no place in the log yet
	placed   uint64       // the place of that, until it is applied; 0: nothing is in flight
}

// Roster returns who belongs to the cluster, as far as this node has come in the log.
func (n *Node) Roster() *Roster { return n.roster }

// Left reports whether this node was removed for good. Such a node says so and stops.
func (n *Node) Left() bool { return n.left }

// A Standing is how another member is doing, as the leader sees it.
type Standing struct {
	Match  uint64        // how far its log is known to be the leader's; 0: unknown
	Silent time.Duration // how long nothing was heard of it; negative: never was
}

// Standing returns how another member is doing.
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

// Admit returns an error if a server that sends something is not the one that it claims to be.
func (n *Node) Admit(id uint64, dir string) error {
	return n.roster.Admit(id, dir)
}

// Reachable reports whether a member was heard from within an election timeout.
func (n *Node) Reachable(id uint64) bool { return n.heardWithin(id, electionTicks) }

// heardWithin reports whether a member sent anything in the last ticks.
func (n *Node) heardWithin(id, ticks uint64) bool {
	at, ok := n.heard[id]
	return id == n.id || ok && n.ticks-at <= ticks
}

// heardSince reports whether a member has sent something after the removal at the head of the
// queue was asked for. One tick is added, since what was on its way at that time arrives within
// a tick and proves nothing.
func (n *Node) heardSince(id uint64) bool {
	return id == n.id || n.changes.since != 0 && n.heard[id] > n.changes.since+1
}

// acceptChange queues a change of the members. Only a leader that serves knows all that was
// decided before.
func (n *Node) acceptChange(e Reconfigure) {
	switch {
	case n.stopped || !n.lead.serving:
		e.Done(Member{}, 0, engine.Unavailable("this server does not lead: ask the one that does"))
	case len(n.changes.queue) >= maxChanges:
		e.Done(Member{}, 0, &leasehold.Error{Code: leasehold.Limited, Message: "too many changes of the members wait " +
			"already: try again in a moment"})
	default:
		n.changes.queue = append(n.changes.queue, e)
	}
}

// change proposes the next change, when there is none in flight. What an earlier leader
// left open is settled first.
func (n *Node) change() {
	if !n.lead.serving && !n.hasToProve() || n.lead.dropped || n.changes.placed != 0 {
		return
	}
	if s := n.raft.BasicStatus(); s.RaftState != raft.StateLeader || s.HardState.GetTerm() != n.lead.term {
		return // the lead was lost, which is about to be known
	}
	if !n.lead.serving {
		n.prove()
		return
	}
	// An earlier leader may have proposed the change and lost the lead before it settled it.
	if n.roster.Open != 0 {
		n.proposeChange(Change{Kind: settle, Member: Member{ID: n.id}})
		return
	}
	if n.decideLevel() {
		return
	}
	for len(n.changes.queue) > 0 {
		next := n.changes.queue[0]
		// Nothing else is proposed meanwhile: the answer would be about another set of members.
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
	err = n.raft.ProposeConfChange(&raftpb.ConfChange{Type: c.raftType().Enum(), NodeId: new(c.Member.ID),
		Context: context})
	if err != nil {
		n.lead.dropped = true
		return false
	}
	n.changes.unplaced = true
	return true
}

// placeChange learns the place in the log of the change that was just proposed.
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
	if n.changes.placed == 0 {
		n.proof.asked = 0
	}
	if n.changes.placed == 0 && n.changes.current != nil {
		// Raft allows one unapplied change at a time. It knows of one that is not applied here
		// yet, and has put an empty entry in the place of this one.
		n.changes.queue = append([]Reconfigure{*n.changes.current}, n.changes.queue...)
		n.changes.current = nil
	}
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
	// Another leader's change may be applied while this node leads: it answers nobody here.
	ours := n.changes.placed == e.GetIndex()
	if ours {
		n.changes.placed = 0
	}
	next, err := n.roster.with(c, e.GetIndex())
	if err != nil {
		n.log.Warn("a change of the members does not fit, and nothing is done", "change", c.Kind, "server", c.Member.ID)
		if n.config.Watch != nil {
			n.config.Watch(Applied{Index: e.GetIndex(), Term: e.GetTerm(), Data: e.GetData(), Roster: n.roster,
				Votes: n.members})
		}
		n.changed(ours, err)
		return nil
	}
	n.members = n.raft.ApplyConfChange(&cc)
	news := e.GetIndex() > n.known
	if c.Kind == Raise {
		if err := n.raise(c.Level, news); err != nil {
			return err
		}
	}
	if news && c.Kind != Sum && c.Kind != settle && c.Kind != Raise {
		n.log.Info("the members changed", "change", c.Kind, "server", c.Member.ID, "name", c.Member.Name)
	}
	n.adopt(next)
	// What the log had at the start was compared when it was new, and the others may have forgotten it.
	if c.Kind == Sum && news && n.config.Summed != nil {
		n.comparing()
		n.config.Summed(e.GetIndex(), n.state.Freeze())
	}
	if ours && c.Kind != settle {
		n.changes.index = e.GetIndex()
	}
	if n.config.Watch != nil {
		n.config.Watch(Applied{Index: e.GetIndex(), Term: e.GetTerm(), Data: e.GetData(), Roster: next,
			Votes: n.members})
	}
	// Unsettled changes are answered later, when the entry that settles them is applied.
	n.changed(ours && next.Open == 0, nil)
	return nil
}

// adopt takes a roster over, from a change or from a snapshot.
func (n *Node) adopt(r *Roster) {
	if r == n.roster {
		return
	}
	n.roster = r
	// Removed holds only settled removals: until then this node's vote may still be needed.
	if slices.Contains(r.Removed, n.id) {
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
	if i := slices.IndexFunc(n.roster.Members,
		func(o Member) bool { return o.ID == m.ID || m.ID == 0 && o.Name == m.Name }); i >= 0 {
		m = n.roster.Members[i]
	}
	index := n.changes.index
	n.changes.current, n.changes.index = nil, 0
	current.Done(m, index, err)
}

// dropChanges answers callers that wait for a change when this node no longer leads. The one in
// flight may have been committed; those in the queue were proposed to nobody.
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

// promoteNext gives a vote to a member that has caught up, if nothing else is in flight. Nobody
// has to ask for it: a new server joins without a vote, because counting it before it has the
// log would make a majority harder to reach and no safer.
func (n *Node) promoteNext() {
	if !n.lead.serving || n.stopped || n.changes.current != nil || len(n.changes.queue) > 0 || n.roster.Open != 0 {
		return
	}
	for _, m := range n.roster.Members {
		// One that has just gone silent must not get a vote that is then missing from the
		// majority.
		if !m.Voter && n.heardWithin(m.ID, 1) && n.caughtUp(m.ID) {
			n.acceptChange(Reconfigure{Change{Kind: Promote, Member: m}, func(Member, uint64, error) {}})
			return
		}
	}
}

// outlast keeps a leader running that finds its own removal in the log, begun by an earlier
// leader, until another node leads: the others may not know yet that the removal is committed,
// and then they still need its vote.
func (n *Node) outlast() {
	if _, member := n.roster.Member(n.id); n.Leads() && !member {
		n.lead.serving = false
		n.giveLead(0)
	}
}
