// Package cluster is the engine that keeps its promises on disk: the state machine
// of internal/core on etcd's Raft and write-ahead log. A single server is a
// cluster of one on the same code.
//
// Node is the whole of it as one deterministic step function: events in, and
// whatever they lead to out through the Disk, the Transport and the callers'
// functions. It has no goroutine, no file, no socket and no clock of its own, so a
// simulator can drive it through years of faults. Engine is the edge around it,
// where the real ones are.
package cluster

import (
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"time"

	"go.etcd.io/etcd/server/v3/storage/wal/walpb"
	"go.etcd.io/raft/v3"
	"go.etcd.io/raft/v3/raftpb"

	"github.com/leasehold/leasehold"
	"github.com/leasehold/leasehold/internal/audit"
	"github.com/leasehold/leasehold/internal/core"
	"github.com/leasehold/leasehold/internal/engine"
	"github.com/leasehold/leasehold/internal/wire"
)

// Raft's time: a heartbeat each tick, an election after ten without one.
const (
	TickEvery     = 100 * time.Millisecond
	electionTicks = 10
)

// A Disk keeps things. Each method only begins the work, and the node gets an event
// when it is done. The node never begins a second one of a kind before.
type Disk interface {
	// Write makes all of w durable, in order; then the node gets Written.
	Write(w Write)
	// Save makes a frozen state durable, in the background, and before it the journal of
	// all that is in it; then the node gets Saved.
	Save(s Snapshot)
}

// A Write is what must be on disk before anything that follows from it may be
// known to anybody.
type Write struct {
	Hard     *raftpb.HardState
	Entries  []*raftpb.Entry
	Snapshot *walpb.Snapshot // a saved snapshot that recovery may start from now on
}

// A Snapshot is a frozen state with its place in the log.
type Snapshot struct {
	Index, Term uint64
	Members     *raftpb.ConfState
	Roster      *Roster
	State       *core.State
}

// A Transport carries messages to other nodes. It may lose and reorder all of them.
type Transport interface {
	// Send carries raft's messages, and may repeat them. With one of a snapshot it
	// carries the state file of that index, which the other node makes durable, as its
	// own ones are, before it gets the message; and this node gets SnapshotSent.
	Send([]*raftpb.Message)
	// Relay carries commands of this node's callers to the leader, at most once.
	Relay(to uint64, r Relay)
	// Place carries back where in the log they stand.
	Place(to uint64, places []Placement)
}

// A Call is a command with whoever wants its answer.
type Call struct {
	Bytes []byte // as wire.AppendCommand made them
	Done  func(core.Answer, error)

	alone bool   // it has an entry to itself
	until uint64 // the tick at which it stops waiting for a leader; 0: it never began to

	from, id uint64 // the node that passed it on, and its name there; 0: nobody did
}

// A ReadCall is a read with whoever wants it done.
type ReadCall struct {
	Read func(core.View)
	Done func(error)

	since uint64 // the tick at which it came
}

// An Event is something that happens to a node.
type Event interface{ event() }

type (
	// Commands arrived from callers.
	Commands []Call
	// Reads arrived from callers.
	Reads []ReadCall
	// RaftTick says that TickEvery has passed.
	RaftTick struct{}
	// Wake says that the moment of NextWake has come.
	Wake struct{}
	// Received is a message of another node. State and Roster are what came with a
	// snapshot, and are in a durable file of this node already.
	Received struct {
		Message *raftpb.Message
		State   *core.State
		Roster  *Roster
	}
	// SnapshotSent says that another node has a snapshot, or that it could not be sent.
	SnapshotSent struct {
		To  uint64
		Err error
	}
	// Unreachable says that a message to another node was lost.
	Unreachable struct{ ID uint64 }
	// Relayed are commands that another node's callers gave it.
	Relayed struct {
		From uint64
		Relay
	}
	// Placed says where in the log commands stand that this node passed on.
	Placed []Placement
	// Transfer gives the lead to another node; 0: to whichever is best.
	Transfer struct{ To uint64 }
	// Written says that the write in flight is durable, or failed.
	Written struct{ Err error }
	// Stalled says that the write in flight takes too long for a leader.
	Stalled struct{}
	// Saved says that the snapshot in flight is durable, or failed.
	Saved struct {
		Bytes int64
		Err   error
	}
	// JournalFailed says that what is applied can not be written to the journal.
	JournalFailed struct{ Err error }
	// Stop says that the node is about to be closed: it takes nothing more.
	Stop struct{}
)

func (Commands) event() {}
func (Reads) event()    {}
func (RaftTick) event() {}
func (Wake) event()     {}
func (Received) event() {}
func (Written) event()  {}
func (Stalled) event()  {}
func (Saved) event()    {}
func (Stop) event()     {}

func (JournalFailed) event() {}
func (SnapshotSent) event()  {}
func (Unreachable) event()   {}
func (Relayed) event()       {}
func (Placed) event()        {}
func (Transfer) event()      {}

// NodeConfig is what a node is made from. Storage and State are what recovery
// found, Applied is how far in the log State has come.
type NodeConfig struct {
	ID        uint64
	Storage   *raft.MemoryStorage
	State     *core.State
	Applied   uint64
	Roster    *Roster  // of that place too; at the least it has the cluster's name
	Begin     []Member // of a cluster that begins, the same on all of them; nil: go on with what there is
	Clock     engine.Clock
	Disk      Disk
	Transport Transport
	Feed      *engine.Feed
	Journal   *audit.Journal // nil: none is kept
	Log       *slog.Logger

	// SnapshotEvery is how many bytes of log there are between two snapshots.
	SnapshotEvery int64

	// Caps are those of a cluster in which nobody set any; zero: the core's own.
	Caps leasehold.Caps

	// Nonce is another at each start. What a node asks others is counted from it, so that
	// an answer to what an earlier process asked is never taken for one to this.
	Nonce uint64

	// Levels are those that this node's program knows; zero: KnownLevels.
	Levels Levels
	// Leveled, if not nil, is called from Step when the state is at another level.
	Leveled func(core.Level)

	// Changed, if not nil, is called from Step when the roster has changed.
	Changed func(*Roster)
	// Summed, if not nil, is called from Step when an entry of Sum is applied.
	Summed func(index uint64, frozen *core.State)

	// Complete tells whether another member has all large values that its state names; nil:
	// they all do. Only one that has them gets a vote.
	Complete func(id uint64) bool
	// Watch, if not nil, sees each entry as it takes effect, before anybody is answered.
	Watch func(Applied)
	// Planted are mistakes that the simulator must find.
	Planted Planted
}

// Applied is what one entry of the log came to.
type Applied struct {
	Index, Term uint64
	Data        []byte
	Entry       *wire.Entry // nil: it is raft's own
	Empty       bool        // it was stamped for another term, and nothing in it happened
	Result      core.Result

	// After a change of the members: who they are, and whose votes raft counts.
	Roster *Roster
	Votes  *raftpb.ConfState
}

// A Node orders and applies commands. Only one goroutine may use it.
type Node struct {
	NodeConfig
	raft *raft.RawNode
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
	owed      int    // with AnswerBeforeSync: writes that were taken for done

	applied uint64
	term    uint64            // of the entry applied last
	members *raftpb.ConfState // as raft has them
	roster  *Roster
	changes changes
	left    bool              // this node was removed
	ticks   uint64            // of raft's time
	heard   map[uint64]uint64 // by member: the tick of its last message

	lead     leadership
	waiting  []Call // for somebody to lead
	inbox    []Call
	ticking  bool              // a tick stands in the inbox or in the log
	offering bool              // and so do the caps of this node's settings
	proposed map[uint64]*batch // by index, until applied
	unplaced *batch            // proposed, its index not known yet

	relays relays

	reads      []ReadCall  // for the next round
	round      uint64      // the newest that was asked
	firstRound uint64      // the one before the first of this process
	sinceAsked int         // ticks
	rounds     []readRound // that have no answer yet, oldest first
	answered   []readyRead
	arrived    map[uint64]*arrival // snapshots of other nodes, by index
	snapshot   snapshotting
	stale      *core.State // with StaleSnapshot
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

// NewNode returns a node that has not begun yet: its first events set it going.
func NewNode(c NodeConfig) (*Node, error) {
	hard, members, err := c.Storage.InitialState()
	if err != nil {
		return nil, err
	}
	n := &Node{
		NodeConfig: c, hard: hard, members: members, roster: c.Roster, applied: c.Applied,
		heard: map[uint64]uint64{}, proposed: map[uint64]*batch{}, arrived: map[uint64]*arrival{},
	}
	if n.roster == nil {
		n.roster = &Roster{}
	}
	n.left = slices.Contains(n.roster.Removed, c.ID)
	if c.Planted.SameNonce {
		c.Nonce = 0
	}
	n.round, n.firstRound, n.relays = c.Nonce, c.Nonce, newRelays(c.Nonce)
	n.snapshot.previous = c.Applied
	n.persisted, _ = c.Storage.LastIndex()
	n.lead.received, n.lead.began = c.Clock.Monotonic(), max(c.State.Now(), 1)
	n.raft, err = raft.NewRawNode(&raft.Config{
		ID: c.ID, Storage: c.Storage, Applied: c.Applied,
		ElectionTick: electionTicks, HeartbeatTick: 1, PreVote: true, CheckQuorum: true,
		// A stamp is good in one term only, so commands travel unstamped, if at all.
		DisableProposalForwarding: !c.Planted.ForwardStamped,
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

// begin puts the first members into an empty log.
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

// Idle tells whether nobody waits for an answer, nor for a leader that stops to hand over.
func (n *Node) Idle() bool {
	return !n.handingOver() && len(n.waiting) == 0 && len(n.inbox) == 0 && len(n.proposed) == 0 && n.unplaced == nil && n.relays.idle() && len(n.reads) == 0 && len(n.rounds) == 0 && len(n.answered) == 0
}

// Step takes one event and does everything that can be done before the next.
func (n *Node) Step(e Event) {
	if n.failure != nil {
		n.refuse(e, engine.Unavailable("the server is stopping after a failure: try another one"))
		return
	}
	switch e := e.(type) {
	case Commands:
		n.accept(e)
	case Reads:
		n.acceptReads(e)
	case RaftTick:
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
		n.offerCaps()
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
		n.left = true
	case Written:
		if n.owed > 0 && e.Err == nil {
			n.owed--
			return
		}
		n.written(e.Err)
	case Stalled:
		n.giveUpLead()
	case Saved:
		n.saved(e)
	case JournalFailed:
		n.fail(e.Err)
	case Stop:
		n.stop()
	}
	if n.left {
		n.fail(ErrRemoved)
	}
	n.turn()
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
		// Its stamp is another node's. Commands travel without one, if at all.
		if !n.Planted.ForwardStamped {
			return
		}
	case raftpb.MsgReadIndex:
		// A leader that is the only one with a vote is asked no more by raft than what it knows
		// to be committed. After a restart that is less than what was answered before.
		if !n.lead.serving && !n.Planted.TellUnserved {
			return // who asks does so again
		}
	case raftpb.MsgSnap:
		if e.Message = n.keepArrival(e); e.Message == nil {
			return
		}
	}
	_ = n.raft.Step(e.Message)
}

// turn lets raft go on until it waits for the disk or has nothing to do.
func (n *Node) turn() {
	for n.failure == nil && !n.writing {
		// What raft is given below it gives back at once, with a place in the log. A mark
		// in between would let the lead be lost, and what has no place be called refused.
		if n.mark() {
			return
		}
		n.campaignAlone()
		n.change()
		n.seal()
		n.ask()
		if !n.raft.HasReady() {
			return
		}
		ready := n.raft.Ready()
		n.ready = &ready
		n.handle(&ready)
	}
}

// handle carries out one Ready in the order that raft asks for: durable first,
// then known to others.
func (n *Node) handle(r *raft.Ready) {
	if r.HardState != nil {
		n.hard = r.HardState
	}
	early := n.mayBeBehind() // before what is committed makes them fewer
	n.place(r.Entries)
	n.follow(r.SoftState)
	n.confirm(r.ReadStates)
	// What is on disk already need not wait for what is not.
	if n.durable(r) {
		n.apply(r.CommittedEntries)
		n.serveReads()
		r.CommittedEntries = nil
	}
	if n.failure != nil {
		return
	}
	if len(r.Entries) == 0 && !r.MustSync && raft.IsEmptySnap(r.Snapshot) {
		// A commit index alone is not written: an election finds it again.
		n.finish(r)
		return
	}
	if n.leads() && early || n.Planted.AcknowledgeBeforeSync {
		// A leader's own disk works while the others' do: they confirm on their own.
		n.Transport.Send(r.Messages)
		r.Messages = nil
	}
	n.writing = true
	n.Disk.Write(Write{Hard: n.vote(), Entries: r.Entries, Snapshot: markOf(r.Snapshot)})
	if n.Planted.AnswerBeforeSync {
		n.owed++
		n.written(nil)
	}
}

// mayBeBehind reports whether a leader may have less on its disk than the others. One of two
// may not: if the other is being removed, and knows it, nobody could be elected any more. The
// one that stays needs the other's vote until it learns that it does not, and gets it only
// with a log that is as long.
func (n *Node) mayBeBehind() bool { return len(n.members.GetVoters()) > 2 || n.Planted.BehindOfTwo }

// vote is the hard state to write down.
func (n *Node) vote() *raftpb.HardState {
	if n.Planted.ForgetVote {
		return &raftpb.HardState{Term: new(n.hard.GetTerm()), Vote: new(uint64(0)), Commit: new(n.hard.GetCommit())}
	}
	return n.hard
}

// durable tells whether what a Ready says is committed is on this node's disk already.
func (n *Node) durable(r *raft.Ready) bool {
	if len(r.CommittedEntries) == 0 {
		return true
	}
	last := r.CommittedEntries[len(r.CommittedEntries)-1].GetIndex()
	// What is to be written may replace what was.
	return last <= n.persisted && (len(r.Entries) == 0 || last < r.Entries[0].GetIndex())
}

func (n *Node) written(err error) {
	n.writing = false
	if err != nil {
		n.fail(fmt.Errorf("the log can not be written: %w%s", err, wayOut(err)))
		return
	}
	if n.marking != nil {
		n.marked()
		return
	}
	r := n.ready
	if !raft.IsEmptySnap(r.Snapshot) {
		if err := n.install(r.Snapshot); err != nil {
			n.fail(err)
			return
		}
	}
	if err := n.Storage.Append(r.Entries); err != nil {
		n.fail(err)
		return
	}
	if len(r.Entries) > 0 {
		n.persisted = r.Entries[len(r.Entries)-1].GetIndex()
	}
	n.finish(r)
}

// finish ends a Ready whose writes are durable.
func (n *Node) finish(r *raft.Ready) {
	if err := n.Storage.SetHardState(n.hard); err != nil {
		n.fail(err)
		return
	}
	n.Transport.Send(r.Messages)
	n.apply(r.CommittedEntries)
	if n.failure == nil {
		n.raft.Advance(*r)
		n.ready = nil
		n.serveReads()
	}
}

// fail stops the node for good. What was in flight may or may not have happened.
func (n *Node) fail(err error) {
	if n.failure != nil {
		return
	}
	n.failure = err
	n.lead.serving = false
	n.abandon()
}

// abandon answers everybody who still waits.
func (n *Node) abandon() {
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

func (n *Node) refuse(e Event, err error) {
	switch e := e.(type) {
	case Commands:
		for _, c := range e {
			c.Done(core.Answer{}, err)
		}
	case Reads:
		for _, r := range e {
			r.Done(err)
		}
	case Reconfigure:
		e.Done(Member{}, 0, err)
	}
}

func (n *Node) stop() {
	n.stopped, n.stoppedAt = true, n.ticks
	stopping := engine.Unavailable("the server is stopping: try another one, or this one in a moment")
	n.refuse(Commands(n.waiting), stopping)
	n.waiting = nil
	if n.leads() && len(n.members.GetVoters()) > 1 {
		n.giveLead(0)
		return
	}
	if n.lead.serving && !n.ticking {
		// The last stamp is as late as can be, for whoever counts on from it.
		n.inbox = append(n.inbox, n.tick())
	}
}

// handingOver tells whether a leader that stops has to wait until another one leads. That
// may come to nothing, so it has an end.
func (n *Node) handingOver() bool {
	return n.stopped && n.leads() && n.failure == nil && n.ticks-n.stoppedAt <= giveTicks && n.successor() != 0
}
