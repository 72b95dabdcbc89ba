// Package replica is one copy of the replicated state machine: internal/core on etcd's Raft.
//
// A Node is one deterministic step function: events in; writes, messages and answers out,
// through the Disk, the Transport and the callers' functions that it was given. It has no
// goroutine, no file, no socket, and no clock of its own, so a simulator can drive it through
// years of faults. What it is given must not call Step again before Step has returned.
//
// internal/engine/storage is its Disk, and internal/engine/cluster runs it.
package replica

import (
	"cmp"
	"log/slog"
	"maps"
	"slices"
	"time"

	"go.etcd.io/raft/v3"
	"go.etcd.io/raft/v3/raftpb"

	"github.com/leasehold/leasehold/internal/core"
	"github.com/leasehold/leasehold/internal/engine"
	"github.com/leasehold/leasehold/internal/wire"
)

// Raft's time: a heartbeat each tick, an election after ten ticks without one.
const (
	TickEvery     = 100 * time.Millisecond
	electionTicks = 10
)

// A Node orders and applies commands. Only one goroutine may use it.
type Node struct {
	config    Config
	id        uint64
	storage   *raft.MemoryStorage
	state     *core.State
	clock     engine.Clock
	disk      Disk
	transport Transport
	feed      *engine.Feed
	log       *slog.Logger
	raft      *raft.RawNode

	stepping bool // Step has not returned yet
	// failure, once set, is for good: the node answers nothing more.
	failure   error
	stopped   bool
	stoppedAt uint64 // tick

	// The write in flight, and raft's Ready that it belongs to.
	writing   bool
	ready     *raft.Ready
	marking   *Snapshot
	hard      *raftpb.HardState
	persisted uint64 // the last index that is on disk
	known     uint64 // the last index that was on disk at the start: what it says is no news

	applied uint64
	askers  wire.Askers       // of what was applied lately
	term    uint64            // of the entry applied last
	members *raftpb.ConfState // as raft has them
	roster  *Roster
	changes changes
	left    bool              // this node was removed
	ticks   uint64            // of raft's time
	heard   map[uint64]uint64 // by member: the tick of its last message

	expelled bool // it failed because of what others decided, and not because of its disk

	proof   proof
	lead    leadership
	waiting []Call // for somebody to lead
	inbox   []Call

	released     core.Time // when leases were given back last
	lingersUntil core.Time // what is in the inbox; 0: it does not

	ticking  bool              // a tick is in the inbox or in the log
	offering bool              // and so do the caps of this node's settings
	proposed map[uint64]*batch // by index, until applied
	unplaced *batch            // proposed, its index not known yet
	encoded  [][]byte          // of the batch being proposed

	relays relays

	reads      []ReadCall  // for the next round
	round      uint64      // the newest that was asked
	firstRound uint64      // the one before the first of this process
	sinceAsked int         // ticks
	rounds     []readRound // that have no answer yet, oldest first
	answered   []readyRead
	arrived    map[uint64]*arrival // snapshots of other nodes, by index
	snapshot   snapshotting
	logBytes   int64
	statistics Statistics
}

// Statistics count what a node did.
type Statistics struct {
	Entries, Commands, Ticks, Snapshots uint64
	Installed                           uint64 // snapshots of other nodes
	Applied                             uint64
	Serving                             bool
	Leads                               uint64 // the term in which raft says that this node leads; 0: it does not
}

// New returns a node that has not begun yet: its first events set it going.
func New(c Config) (*Node, error) {
	hard, members, err := c.Storage.InitialState()
	if err != nil {
		return nil, err
	}
	n := &Node{
		config: c, id: c.ID, storage: c.Storage, state: c.State, clock: c.Clock, disk: c.Disk, transport: c.Transport,
		feed: c.Feed, log: c.Log,
		hard: hard, members: members, roster: c.Roster, applied: c.Applied,
		heard: map[uint64]uint64{}, proposed: map[uint64]*batch{}, arrived: map[uint64]*arrival{},
	}
	if n.roster == nil {
		n.roster = &Roster{}
	}
	// A server that was removed and is started again has to stop again.
	n.left = slices.Contains(n.roster.Removed, c.ID)
	n.round, n.firstRound, n.relays = c.Nonce, c.Nonce, newRelays(c.Nonce)
	n.snapshot.previous, n.snapshot.size = c.Applied, c.SnapshotSize
	n.persisted, _ = c.Storage.LastIndex()
	n.known = n.persisted
	n.beginProof(c.Applied)
	n.lead.received = c.Clock.Monotonic()
	// PreVote: a server that was cut off must not depose a working leader when it comes back.
	// CheckQuorum: a leader that hears from no majority steps down. ReadOnlySafe: a read asks a
	// majority instead of trusting clocks.
	n.raft, err = raft.NewRawNode(&raft.Config{
		ID: c.ID, Storage: c.Storage, Applied: c.Applied,
		ElectionTick: electionTicks, HeartbeatTick: 1, PreVote: true, CheckQuorum: true,
		// A stamp is good in one term only, so commands travel unstamped, if at all.
		DisableProposalForwarding: true,
		ReadOnlyOption:            raft.ReadOnlySafe,
		MaxSizePerMsg:             1 << 20, MaxInflightMsgs: 256, MaxCommittedSizePerReady: 16 << 20,
		Logger: raftLogger{c.Log},
	})
	if err != nil {
		return nil, err
	}
	if c.Begin != nil {
		err = n.begin(c.Begin)
	}
	return n, err
}

// begin puts the first members into an empty log. All of them do so by themselves, so what they
// write must be the same on each, byte for byte.
func (n *Node) begin(members []Member) error {
	var peers []raft.Peer
	for _, m := range members {
		m.Voter = true
		context, err := Change{Kind: Add, Member: m}.encode()
		if err != nil {
			return err
		}
		peers = append(peers, raft.Peer{ID: m.ID, Context: context})
	}
	return n.raft.Bootstrap(peers)
}

// Failure returns why the node stopped for good; nil while it has not.
func (n *Node) Failure() error { return n.failure }

// Statistics returns what the node did so far.
func (n *Node) Statistics() Statistics {
	n.statistics.Applied, n.statistics.Serving, n.statistics.Leads = n.applied, n.lead.serving, 0
	if n.lead.leader {
		n.statistics.Leads = n.lead.term
	}
	return n.statistics
}

// Idle reports whether nobody waits for an answer, and no hand-over of a stopping leader is
// under way.
func (n *Node) Idle() bool {
	return !n.handingOver() && n.unplaced == nil && n.relays.idle() && len(n.proposed) == 0 &&
		len(n.waiting)+len(n.inbox)+len(n.reads)+len(n.rounds)+len(n.answered) == 0
}

// Stopped reports whether the node took Stop, and has no write in flight since.
func (n *Node) Stopped() bool { return n.stopped && !n.writing }

// Expelled reports whether the node failed because others said so: its disk is sound.
func (n *Node) Expelled() bool { return n.expelled }

// ID returns the node's id.
func (n *Node) ID() uint64 { return n.id }

// Applied returns how far the node has come in the log.
func (n *Node) Applied() uint64 { return n.applied }

// Term returns raft's term.
func (n *Node) Term() uint64 { return n.hard.GetTerm() }

// Leader returns who leads, as far as the node knows; 0: nobody.
func (n *Node) Leader() uint64 { return n.lead.known }

// Leads reports whether raft says that this node leads.
func (n *Node) Leads() bool { return n.lead.leader }

// Serving reports whether this node leads and takes commands.
func (n *Node) Serving() bool { return n.lead.serving }

// State returns the state after the last step. It must be read only, and not during a step.
func (n *Node) State() *core.State { return n.state }

// Capture freezes the state with its place in the log.
func (n *Node) Capture() (Snapshot, error) {
	term, err := n.storage.Term(n.applied)
	if err != nil {
		return Snapshot{}, err
	}
	return Snapshot{Index: n.applied, Term: term, Members: n.members, Roster: n.roster, State: n.state.Freeze()}, nil
}

// Step takes one event and does everything that can be done before the next. It panics if it is
// called from within itself: halfway through a step the node is in no state that another step
// could begin from.
func (n *Node) Step(e Event) {
	if n.stepping {
		panic("replica: Step is called in mid-step")
	}
	n.stepping = true
	defer func() { n.stepping = false }()
	if n.failure != nil {
		n.refuse(e, engine.Unavailable("the server is stopping after a failure: try another one"))
		return
	}
	if !n.take(e) {
		return
	}
	// Here and not where the removal is applied: the rest of that step still has to be done.
	if n.left {
		n.expel(ErrRemoved)
	}
	n.turn()
}

// take does what an event says. It reports whether raft may go on.
func (n *Node) take(e Event) bool {
	switch e := e.(type) {
	case Commands:
		n.accept(e)
	case Reads:
		n.acceptReads(e)
	case RaftTick:
		n.raftTick()
	case Wake:
		n.serveReads()
		n.pace()
	case Received:
		n.receive(e)
	case SnapshotSent:
		n.snapshotSent(e)
	case Unreachable:
		n.raft.ReportUnreachable(e.ID)
	case Relayed:
		n.acceptRelay(e)
	case Placed:
		n.placedBy(e)
	case Transfer:
		n.giveLead(e.To)
	case Reconfigure:
		n.acceptChange(e)
	case Expelled:
		n.left = e.Err == nil
		n.expel(e.Err)
	case Written:
		n.written(e.Err)
	case Stalled:
		n.giveUpLead()
	case Saved:
		n.saved(e)
	case JournalFailed:
		n.fail(e.Err)
	case Compared:
		n.compared(e)
	case Stop:
		n.stop()
	}
	return true
}

// raftTick does what depends on raft's time: timeouts, retries, and work that waits for a quiet
// moment.
func (n *Node) raftTick() {
	n.ticks++
	n.raft.Tick()
	n.lead.dropped = false
	n.giveOn()
	n.tickWaiting()
	n.tickRelays()
	n.tickReads()
	n.leadAgain()
	n.outlast()
	n.promoteNext()
	n.freezeAgain()
	n.dropArrivals()
	n.offerCaps()
}

// receive takes a message of another node. Raft ignores what is of no use to it.
func (n *Node) receive(e Received) {
	from := e.Message.GetFrom()
	if slices.Contains(n.roster.Removed, from) {
		return // it does not know yet; its transport is told
	}
	n.heard[from] = n.ticks
	switch e.Message.GetType() {
	case raftpb.MsgProp:
		// A stamp is good only on the node that gave it. Commands travel without one, if at
		// all.
		return
	case raftpb.MsgReadIndex:
		// Raft asks nobody if this is the only voter, and answers at once with what it knows to
		// be committed. After a restart that may be less than what was answered before.
		if !n.lead.serving {
			return // who asks does so again
		}
	case raftpb.MsgSnap:
		if e.Message = n.keepArrival(e); e.Message == nil {
			return
		}
	}
	_ = n.raft.Step(e.Message)
}

// fail stops the node for good: it acknowledges nothing more. What was in flight may or may not
// have happened, and its callers are told so.
func (n *Node) fail(err error) {
	if n.failure != nil {
		return
	}
	n.failure = err
	n.lead.serving = false
	n.Abandon()
}

// expel ends the node's part in the cluster; nil: it was removed.
func (n *Node) expel(err error) {
	n.expelled = n.expelled || n.failure == nil
	n.fail(cmp.Or(err, ErrRemoved))
}

// Abandon answers everybody that still waits. What was proposed or passed on may have happened;
// what only waited has not. No event may come after it.
func (n *Node) Abandon() {
	undecided := engine.Undecided("the server stopped while it worked on this: ask again with the same id")
	for _, index := range slices.Sorted(maps.Keys(n.proposed)) {
		n.proposed[index].done(undecided)
	}
	if n.unplaced != nil {
		n.unplaced.done(undecided)
	}
	n.dropRelays(undecided)
	n.dropChanges()
	unavailable := engine.Unavailable("the server is stopping: try another one")
	n.refuse(Commands(n.waiting), unavailable)
	n.refuse(Commands(n.inbox), unavailable)
	n.refuse(Reads(n.reads), unavailable)
	for _, r := range n.rounds {
		n.refuse(Reads(r.calls), unavailable)
	}
	for _, r := range n.answered {
		n.refuse(Reads(r.calls), unavailable)
	}
	n.waiting, n.inbox, n.reads, n.rounds, n.answered, n.unplaced = nil, nil, nil, nil, nil, nil
	clear(n.proposed)
}

// refuse answers the callers of an event with an error.
func (n *Node) refuse(e Event, err error) {
	switch e := e.(type) {
	case Commands:
		for _, c := range e {
			c.Answer(core.Answer{}, err)
		}
	case Reads:
		for _, r := range e {
			r.Done(err)
		}
	case Reconfigure:
		e.Done(Member{}, 0, err)
	}
}

// stop takes no more callers. A leader of several hands over first, so that the others do not
// have to wait for an election timeout to notice.
func (n *Node) stop() {
	n.stopped, n.stoppedAt = true, n.ticks
	stopping := engine.Unavailable("the server is stopping: try another one, or this one in a moment")
	n.refuse(Commands(n.waiting), stopping)
	n.waiting = nil
	if n.Leads() && len(n.members.GetVoters()) > 1 {
		n.giveLead(0)
		return
	}
	if n.lead.serving && !n.ticking {
		// A last stamp, as late as possible: if the machine boots before the next start, time
		// resumes from it, and every lease would otherwise gain the time since the stamp
		// before.
		n.inbox = append(n.inbox, n.tick())
	}
}

// handingOver reports whether a stopping leader has to wait until another one leads. The
// hand-over may fail, so the wait has an end.
func (n *Node) handingOver() bool {
	return n.stopped && n.Leads() && n.failure == nil && n.ticks-n.stoppedAt <= giveTicks && n.Successor() != 0
}
