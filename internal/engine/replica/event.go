package replica

import (
	"go.etcd.io/raft/v3/raftpb"

	"github.com/leasehold/leasehold"
	"github.com/leasehold/leasehold/internal/core"
)

// A Call is a command, and where its answer goes.
type Call struct {
	Bytes []byte // as wire.AppendCommand made them
	Done  func(core.Answer, error)

	// Command and Origin are what the bytes say, and need not be decoded where they were encoded. Nobody may change
	// either any more. If there is no command, the bytes have to be decoded.
	Command core.Command
	Origin  *leasehold.Origin // nil: it has none

	// Count hears that the call has its answer, before Done does. Nil: nobody counts.
	Count interface{ Leave(bytes int) }

	alone bool   // it has an entry to itself
	until uint64 // the tick at which it stops waiting for a leader; 0: it never began to

	from, id uint64 // the node that passed it on, and its name there; 0: nobody did
}

// Answer gives the call its answer. It must be called once.
func (c *Call) Answer(a core.Answer, err error) {
	if c.Count != nil {
		c.Count.Leave(len(c.Bytes))
	}
	c.Done(a, err)
}

// A ReadCall is a read, and where its end is reported.
type ReadCall struct {
	Read  func(core.View)
	Done  func(error)
	Stale bool // what this node has applied will do

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
	// Placed says where in the log commands are that this node passed on.
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
	// JournalFailed says that what is applied cannot be written to the journal.
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
