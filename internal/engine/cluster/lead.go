package cluster

import (
	"maps"
	"slices"
	"time"

	"go.etcd.io/raft/v3"

	"github.com/leasehold/leasehold/internal/core"
	"github.com/leasehold/leasehold/internal/engine"
	"github.com/leasehold/leasehold/internal/wire"
)

// leadership is what a node knows of its own lead, and of time.
type leadership struct {
	leader  bool   // raft says so
	term    uint64 // in which it leads
	fixed   bool   // the clock is fixed, Lead is on its way
	serving bool   // Lead is applied: commands are taken

	// offset turns this node's monotonic clock into cluster time, once fixed.
	offset time.Duration
	// last is the newest stamp that this node gave away.
	last core.Time
	// received is when this node got the entry of the last applied stamp, by its
	// own clock. That is after the entry was stamped, so counting on from there is
	// late and never early.
	received time.Duration
	began    core.Time // with StampGoesBack: the time of the state at the start
	sealed   core.Time // with StampBeforeSeal: when the batch before was sealed
	// arrivals are those moments for the entries that are not applied yet.
	arrivals map[uint64]time.Duration
}

func (n *Node) leads() bool { return n.lead.leader }

// follow notes whether raft made this node the leader, or no longer does.
func (n *Node) follow(s *raft.SoftState) {
	leader := n.lead.leader
	if s != nil {
		leader = s.RaftState == raft.StateLeader
	}
	if leader == n.lead.leader && (!leader || n.hard.GetTerm() == n.lead.term) {
		return
	}
	n.lead.leader, n.lead.fixed, n.lead.serving = leader, false, false
	n.lead.term = n.hard.GetTerm()
	n.ticking = false
	gone := engine.Unavailable("this server does not lead any more: try again")
	if n.unplaced != nil {
		n.unplaced.done(gone) // it never got as far as the log
		n.unplaced = nil
	}
	n.refuse(Commands(n.inbox), gone)
	n.inbox = nil
	n.dropReads()
}

// campaignAlone lets the only member of a cluster lead without waiting for others
// to be silent.
func (n *Node) campaignAlone() {
	if n.lead.leader || len(n.members.GetVoters()) != 1 || n.members.GetVoters()[0] != n.ID || n.raft.BasicStatus().RaftState != raft.StateFollower {
		return
	}
	if err := n.raft.Campaign(); err != nil {
		n.Log.Warn("the only member could not take the lead yet", "err", err)
	}
}

// takeLead fixes the clock and tells the log whose time counts now. It is called
// when raft's own first entry of the term is applied: only then everything that
// earlier leaders stamped is known here.
func (n *Node) takeLead() {
	mono := n.Clock.Monotonic()
	now := n.resumeTime(mono)
	n.lead.offset = time.Duration(now) - mono
	n.lead.last = now
	n.lead.fixed = true
	lead := &core.Lead{Node: n.ID, Boot: n.Clock.Boot(), Offset: n.lead.offset}
	bytes, err := wire.AppendCommand(nil, lead)
	if err != nil {
		n.fail(err)
		return
	}
	n.propose([]Call{{Bytes: bytes, Done: func(core.Answer, error) {}}})
}

// resumeTime returns the cluster time at a reading of this node's clock.
func (n *Node) resumeTime(mono time.Duration) core.Time {
	last := max(n.State.Now(), 1)
	switch p := n.Planted; {
	case p.StampGoesBack:
		last = n.lead.began
	case p.WallTime:
		return last + core.Time(max(0, n.Clock.Wall().UnixNano()-n.State.Wall()))
	}
	if lead := n.State.Lead(); lead.Node == n.ID && lead.Boot != "" && (lead.Boot == n.Clock.Boot() || n.Planted.AnyBoot) {
		// Nobody has led since, and this machine has not started again: the clock
		// that stamped the last entry is the one in front of us.
		return max(last, core.Time(mono+lead.Offset))
	}
	return last + core.Time(max(0, mono-n.lead.received))
}

// now returns the cluster time of a leader.
func (n *Node) now() core.Time {
	return max(n.lead.last, core.Time(n.Clock.Monotonic()+n.lead.offset))
}

// served is called when an entry of Lead is applied.
func (n *Node) served(lead *core.Lead, term uint64) {
	if n.lead.fixed && lead.Node == n.ID && term == n.lead.term {
		n.lead.serving = true
		n.Log.Info("this server leads", "term", term)
	}
}

// giveUpLead hands the lead to somebody with a better disk, if there is anybody.
func (n *Node) giveUpLead() {
	if !n.leads() {
		return
	}
	best, match := uint64(0), uint64(0)
	progress := n.raft.Status().Progress
	// In order: two nodes that are as far must not be chosen between by chance.
	for _, id := range slices.Sorted(maps.Keys(progress)) {
		p := progress[id]
		if id != n.ID && !p.IsLearner && p.Match >= match {
			best, match = id, p.Match
		}
	}
	if best != 0 {
		n.Log.Warn("the log write takes too long: giving the lead away", "to", best)
		n.raft.TransferLeader(best)
	}
}
