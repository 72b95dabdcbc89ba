package replica

import (
	"encoding/binary"
	"slices"
	"time"

	"go.etcd.io/raft/v3/raftpb"

	"github.com/leasehold/leasehold/internal/core"
	"github.com/leasehold/leasehold/internal/core/access"
	"github.com/leasehold/leasehold/internal/engine"
	"github.com/leasehold/leasehold/internal/wire"
)

// A Mistake is a bug in the real code path that a simulation must find: a simulator is worth
// as much as the bugs that it would find. No server makes any of them: only the simulator's
// own tests set Config.Planted.
type Mistake uint8

// plants reports whether this node makes a mistake on purpose.
func (n *Node) plants(m Mistake) bool { return n.config.Planted == m }

// Plant lets the node make a mistake from now on.
func (n *Node) Plant(m Mistake) { n.config.Planted = m }

// The mistakes. The first ones show on a single node already.
const (
	// AnswerBeforeSync takes a write for durable as soon as it has begun.
	AnswerBeforeSync Mistake = iota + 1
	// MarkBeforeSave tells the log of a snapshot whose file is not durable yet.
	MarkBeforeSave
	// StampBeforeSeal stamps a batch with the time at which the one before it was sealed.
	StampBeforeSeal
	// StampGoesBack fixes the clock by what was known at the start, not by all that is applied.
	StampGoesBack
	// AnyBoot goes on counting by a Lead of its own from another boot of the machine.
	AnyBoot
	// WallTime asks the calendar how long nobody led.
	WallTime

	// These need several nodes.

	// AcknowledgeBeforeSync lets a follower acknowledge what its disk does not have yet.
	AcknowledgeBeforeSync
	// ReadJoinsRound lets a reader join a round that has begun.
	ReadJoinsRound
	// NewestRoundOnly takes no answer to a round after which another one was asked.
	NewestRoundOnly
	// AppliesDifferently lets the nodes of even ids make something else of the same log.
	AppliesDifferently
	// LostIsRefused says that nothing happened when nobody knows.
	LostIsRefused
	// ServeBeforeLead serves as soon as raft says that this node leads.
	ServeBeforeLead
	// StaleLead goes on counting as this node did when it last led, although others led since.
	StaleLead
	// ForwardStamped lets raft carry stamped entries to another leader, and takes them
	// whatever term they were stamped for.
	ForwardStamped
	// ForgetVote does not write down whom a node voted for.
	ForgetVote
	// ReadByFlag reads without asking whether this node still leads.
	ReadByFlag
	// TellUnserved tells others how far the log is committed before this node serves.
	TellUnserved
	// KeepsArrival counts on from what was received before a snapshot was.
	KeepsArrival
	// StaleSnapshot leaves the newest entry out of a snapshot.
	StaleSnapshot
	// RelayAnyTerm answers from whatever entry is where a relayed command was put.
	RelayAnyTerm
	// SameNonce counts questions to others from the same number at each start.
	SameNonce
	// TimeFromTerm counts on from when this node was elected, not from when it received
	// the last stamp.
	TimeFromTerm

	// AnswerBeforeCommit answers what a command would come to, before it is kept.
	AnswerBeforeCommit
	// TakeUnknown takes commands of other nodes without looking at them.
	TakeUnknown
	// RelayAgain passes on once more what a lost leader may have got.
	RelayAgain
	// NeverAnswers forgets those whose commands the next leader never got.
	NeverAnswers

	// These need members that come and go.

	// AnswerUnsettled answers a change of the members that can still be forgotten.
	AnswerUnsettled
	// LeaveUnsettled lets a server go whose removal can still be forgotten.
	LeaveUnsettled
	// ReuseID gives the id of a removed server to the next one.
	ReuseID
	// AdmitAnyDir lets a server in that comes back without its data.
	AdmitAnyDir
	// LearnerVotes counts the votes of servers that have none yet.
	LearnerVotes
	// RemovedVotes counts the votes of servers that were removed.
	RemovedVotes
	// StaleRoster saves a state with the members that there were at the start.
	StaleRoster
	// PromoteEarly gives servers a vote that have nothing of the log yet.
	PromoteEarly
	// KeepsLead lets a leader go on that was removed.
	KeepsLead
	// NoRoomIsTheEnd stops a node whose snapshot finds no room.
	NoRoomIsTheEnd
	// RaiseUnready raises the level although a member does not know it.
	RaiseUnready
	// BehindOfTwo lets one of two send what is not on its own disk.
	BehindOfTwo
	// RelayUnasked passes commands on without who asks.
	RelayUnasked
	// RelayAsServer passes commands on as if this server asked.
	RelayAsServer
	// OnlyOwnSnapshots takes no snapshot that is older than this node's membership.
	OnlyOwnSnapshots
)

// passed is a command as it is passed on. With a mistake who asks is left out, or another one does.
func (n *Node) passed(command []byte) []byte {
	if !n.plants(RelayUnasked) && !n.plants(RelayAsServer) {
		return command
	}
	server := wire.AppendAsker(nil, &access.System)
	var changed []byte
	for len(command) > 0 {
		size, width := binary.Uvarint(command[1:])
		frame := command[:1+width+int(size)]
		command = command[len(frame):]
		switch {
		case frame[0] != server[0]:
			changed = append(changed, frame...)
		case n.plants(RelayAsServer):
			changed = append(changed, server...)
		}
	}
	return changed
}

// mistaken is what a node remembers for its mistake alone.
type mistaken struct {
	owed    int           // AnswerBeforeSync: writes that were taken for done
	began   core.Time     // StampGoesBack: the time of the state at the start
	sealed  core.Time     // StampBeforeSeal: when the batch before was sealed
	elected time.Duration // TimeFromTerm: when this node was elected
	stale   *core.State   // StaleSnapshot: before the newest entry
}

// answerEarly takes the write that has just begun for durable.
func (n *Node) answerEarly() {
	if n.plants(AnswerBeforeSync) {
		n.mistaken.owed++
		n.written(nil)
	}
}

// writtenEarly reports whether a write was taken for durable before it was.
func (n *Node) writtenEarly(e Written) bool {
	early := n.mistaken.owed > 0 && e.Err == nil
	if early {
		n.mistaken.owed--
	}
	return early
}

// withoutVote is a hard state that does not say whom the node voted for.
func withoutVote(h *raftpb.HardState) *raftpb.HardState {
	return &raftpb.HardState{Term: new(h.GetTerm()), Vote: new(uint64(0)), Commit: new(h.GetCommit())}
}

// elected is called when raft made this node the leader, or no longer does.
func (n *Node) elected() {
	switch mono := n.clock.Monotonic(); {
	case n.plants(TimeFromTerm):
		n.mistaken.elected = mono
	case n.plants(ServeBeforeLead) && n.lead.leader:
		n.lead.last = n.resumeTime(mono)
		n.lead.offset, n.lead.fixed, n.lead.serving = time.Duration(n.lead.last)-mono, true, true
	}
}

// mistakenTime is resumeTime of those nodes that get it wrong.
func (n *Node) mistakenTime(last core.Time, mono time.Duration) (_ core.Time, planted bool) {
	switch {
	case n.plants(WallTime):
		return last + core.Time(max(0, n.clock.Wall().UnixNano()-n.state.Wall())), true
	case n.plants(TimeFromTerm):
		return last + core.Time(max(0, mono-n.mistaken.elected)), true
	case n.plants(StaleLead) && n.lead.offset != 0:
		return max(last, core.Time(mono+n.lead.offset)), true
	}
	return 0, false
}

// foretell, with AnswerBeforeCommit, answers from what an entry would come to.
func (n *Node) foretell(data []byte, calls []Call) []Call {
	entry, err := wire.DecodeEntry(data)
	if err != nil || isLead(entry.Commands[0]) {
		return calls
	}
	result, err := n.state.Freeze().Apply(entry.Stamp, entry.Wall, entry.Commands, entry.From)
	if err != nil {
		return calls
	}
	told := slices.Clone(calls)
	for i, c := range calls {
		if c.from == 0 && !c.alone {
			c.Answer(engine.Decided(result.Answers[i]))
			told[i].Done, told[i].Count = func(core.Answer, error) {}, nil
		}
	}
	return told
}
