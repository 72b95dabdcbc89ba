package replica

import (
	"maps"
	"slices"
	"time"

	"go.etcd.io/raft/v3"
	"go.etcd.io/raft/v3/raftpb"

	"github.com/leasehold/leasehold/internal/core"
	"github.com/leasehold/leasehold/internal/engine"
	"github.com/leasehold/leasehold/internal/wire"
)

// leadership is what a node knows of its own lead, and of time. Leading is reached in steps,
// each of which needs the one before: leader (raft says so), ready (all earlier stamps are
// applied here), fixed (the clock continues from them), serving (the log knows whose clock
// counts). A command that was taken earlier could be stamped before a stamp of the last leader.
type leadership struct {
	leader  bool   // raft says so
	term    uint64 // in which it leads
	ready   bool   // raft's entry of the term is applied
	fixed   bool   // the clock is fixed, Lead is on its way
	serving bool   // Lead is applied: commands are taken
	known   uint64 // who leads, as far as this node knows; 0: nobody

	// dropped is set when raft refuses a proposal, as it does while it hands the lead over, and
	// is cleared by its next tick. Without it a pacemaker would try again at once, for ever.
	dropped bool

	// givingTo is the node that this one hands the lead to, since tick givingSince; 0: none.
	givingTo, givingSince uint64

	// offset turns this node's monotonic clock into cluster time, once fixed.
	offset time.Duration
	// last is the newest stamp that this node has given. Stamps never go back.
	last core.Time
	// received is when this node got the entry of the last applied stamp, by its
	// own clock. That is after the entry was stamped, so counting on from there is
	// late and never early.
	received time.Duration
	// arrivals are those moments for the entries that are not applied yet.
	arrivals map[uint64]time.Duration
}

// follow notes whether raft made this node the leader, or no longer does.
func (n *Node) follow(s *raft.SoftState) {
	leader := n.lead.leader
	if s != nil {
		leader = s.RaftState == raft.StateLeader
		if s.Lead != n.lead.known {
			// The old leader may have got what was passed on to it, and will not say; reads can
			// be asked again, since a read changes nothing. What nobody has goes to the new
			// leader, once this node knows whether that is itself.
			n.lead.known = s.Lead
			n.dropOpen()
			n.askAgain()
			defer n.handOn()
		}
	}
	if leader == n.lead.leader && (!leader || n.hard.GetTerm() == n.lead.term) {
		return
	}
	n.lead.leader, n.lead.ready, n.lead.fixed, n.lead.serving, n.lead.givingTo = leader, false, false, false, 0
	n.lead.term, n.proof.asked, n.proof.pause = n.hard.GetTerm(), 0, 0
	n.ticking = false
	if n.unplaced != nil {
		// Raft took it for a term that is over, and gave it no place: it is in no log.
		n.unplaced.done(engine.Unavailable("this server no longer leads: try again"))
		n.unplaced = nil
	}
	// What was not proposed is in no log: changes are refused, and commands wait for the next
	// leader rather than fail.
	n.dropChanges()
	n.waitAgain()
}

// campaignAlone lets the only member of a cluster lead without waiting for others
// to be silent.
func (n *Node) campaignAlone() {
	if n.lead.leader || len(n.members.GetVoters()) != 1 || n.members.GetVoters()[0] != n.id ||
		n.raft.BasicStatus().RaftState != raft.StateFollower {
		return
	}
	if err := n.raft.Campaign(); err != nil {
		n.log.Warn("the only member could not take the lead yet", "err", err)
	}
}

// takeLead fixes the clock and tells the log whose time counts now. It is called
// when raft's own first entry of the term is applied: only then everything that
// earlier leaders stamped is known here.
func (n *Node) takeLead() {
	if n.Unproven() {
		return // once it has proven itself
	}
	n.proof.open = false // it is alone, and stays what others are compared with
	mono := n.clock.Monotonic()
	now := n.resumeTime(mono)
	n.lead.offset = time.Duration(now) - mono
	n.lead.last = now
	n.lead.fixed = true
	lead := &core.Lead{Node: n.id, Boot: n.clock.Boot(), Offset: n.lead.offset}
	bytes, err := wire.AppendCommand(nil, lead)
	if err != nil {
		n.fail(err)
		return
	}
	term := n.lead.term
	// If raft does not take Lead, or it is lost, leadAgain tries once more. The check of the
	// term keeps the failure of an earlier attempt from undoing a later one.
	n.lead.fixed = n.propose([]Call{{Bytes: bytes, Done: func(_ core.Answer, err error) {
		if err != nil && n.lead.term == term {
			n.lead.fixed = false
		}
	}}})
}

// leadAgain proposes Lead once more if raft did not take it, which it does not while it
// hands the lead over: that may come to nothing, and then this node leads on. Or if the state
// had to prove itself first.
func (n *Node) leadAgain() {
	if n.Leads() && n.lead.ready && !n.lead.fixed && n.unplaced == nil {
		n.takeLead()
	}
}

// resumeTime returns the cluster time at a reading of this node's clock. It may be late and
// never early: leases that end late keep a resource too long, leases that end early have two
// holders.
func (n *Node) resumeTime(mono time.Duration) core.Time {
	last := max(n.state.Now(), 1)
	if lead := n.state.Lead(); lead.Node == n.id && lead.Boot != "" && lead.Boot == n.clock.Boot() {
		// Nobody has led since, and this machine has not booted since: the clock that stamped
		// the last entry is the one at hand, so the time while this process was away counts
		// too, and a restart prolongs no lease.
		return max(last, core.Time(mono+lead.Offset))
	}
	// Otherwise only what passed on this clock since the last stamp arrived here is certain.
	return last + core.Time(max(0, mono-n.lead.received))
}

// now returns the cluster time of a leader.
func (n *Node) now() core.Time {
	// Stamps never go back, whatever a clock does.
	return max(n.lead.last, core.Time(n.clock.Monotonic()+n.lead.offset))
}

// served is called when an entry of Lead is applied. From then on the state knows this node's
// clock, and its stamps are the cluster's time.
func (n *Node) served(lead *core.Lead, term uint64) {
	if n.lead.fixed && lead.Node == n.id && term == n.lead.term {
		n.lead.serving = true
		n.log.Info("this server leads", "term", term)
		n.handOn()
	}
}

// giveUpLead hands the lead to a node with a better disk, if there is one. The write in flight
// keeps raft's own messages back, perhaps for ever, so the message that raft would send is sent
// without it. That is safe, because it only asks the other node to stand for election.
func (n *Node) giveUpLead() {
	to := n.Successor()
	if !n.Leads() || to == 0 {
		return
	}
	n.log.Warn("the log write takes too long: giving the lead away", "to", to)
	n.raft.TransferLeader(to)
	if n.writing {
		n.transport.Send([]*raftpb.Message{{Type: raftpb.MsgTimeoutNow.Enum(), From: new(n.id), To: new(to),
			Term: new(n.lead.term)}})
	}
}

// giveLead hands the lead to a node; 0: to whichever is best.
func (n *Node) giveLead(to uint64) {
	if to == 0 {
		to = n.Successor()
	}
	if !n.Leads() || to == 0 || to == n.id {
		return
	}
	if n.lead.givingTo != to {
		n.lead.givingTo, n.lead.givingSince = to, n.ticks
	}
	n.raft.TransferLeader(to)
}

// giveTicks is how many ticks a hand-over may take: what is on its way arrives and is
// confirmed, then the other node is told, and then it is voted for.
const giveTicks = 2 * electionTicks

// giveOn continues a hand-over that raft gave up after an election timeout. On a slow network
// the other node is about to ask for votes at that moment, and would get none if this one
// proposed something newer first.
func (n *Node) giveOn() {
	to, since := n.lead.givingTo, n.lead.givingSince
	if to == 0 || n.raft.BasicStatus().LeadTransferee != 0 {
		return
	}
	if n.ticks-since < giveTicks && n.heard[to] > since {
		n.raft.TransferLeader(to)
		return
	}
	n.lead.givingTo = 0
}

// Successor returns the node that is best to lead instead of this one; 0: there is none.
func (n *Node) Successor() (best uint64) {
	match, progress := uint64(0), n.raft.Status().Progress
	// In the order of ids: between equals a map's order would choose by chance, and a
	// simulation could not be replayed.
	for _, id := range slices.Sorted(maps.Keys(progress)) {
		if p := progress[id]; id != n.id && !p.IsLearner && n.Reachable(id) && p.Match >= match {
			best, match = id, p.Match
		}
	}
	return best
}
