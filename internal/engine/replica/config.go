package replica

import (
	"errors"
	"log/slog"
	"time"

	"go.etcd.io/etcd/server/v3/storage/wal/walpb"
	"go.etcd.io/raft/v3"
	"go.etcd.io/raft/v3/raftpb"

	"github.com/leasehold/leasehold"
	"github.com/leasehold/leasehold/internal/core"
	"github.com/leasehold/leasehold/internal/engine"
	"github.com/leasehold/leasehold/internal/wire"
)

// Config is what a node is made from. Storage and State are what recovery
// found, Applied is how far in the log State has come.
type Config struct {
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
	Log       *slog.Logger

	// SnapshotEvery is how many bytes of log there are between two snapshots.
	SnapshotEvery int64
	// SnapshotSize is the size of the one that recovery started from; 0: there was none.
	SnapshotSize int64

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
	// Compare says that somebody compares the states of the nodes, and gives the node Compared:
	// a state from a snapshot is not used before.
	Compare bool
	// Summed, if not nil, is called from Step when an entry of Sum is applied that came after
	// the start.
	Summed func(index uint64, frozen *core.State)

	// Complete reports whether another member has all large values that its state names; nil:
	// they all do. Only one that has them gets a vote.
	Complete func(id uint64) bool
	// Watch, if not nil, sees each entry as it takes effect, before anybody is answered.
	Watch func(Applied)
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

// A Disk keeps things. Each method only begins the work, and the node gets an event
// when it is done, in a step of its own. The node never begins a second one of a kind before.
type Disk interface {
	// Write makes all of w durable, in order; then the node gets Written.
	Write(w Write)
	// Save makes a frozen state durable, in the background, and before it the journal of
	// all that is in it; then the node gets Saved.
	Save(s Snapshot)
}

// How long a write may be in flight: a leader that is slower than the first gives
// the lead away, a node that is slower than the second stops. A disk that hangs is
// worse than one that fails, because nothing says so.
const (
	SlowWrite    = time.Second
	StalledWrite = 5 * time.Second
)

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

// A Transport carries messages to other nodes. It may lose and reorder all of them. It is
// called in mid-step, so it must not give the node an event before the step is over.
type Transport interface {
	// Send carries raft's messages, and may repeat them. With one of a snapshot it
	// carries the state file of that index, which the other node makes durable, as its
	// own ones are, before it gets the message; and this node gets SnapshotSent.
	Send([]*raftpb.Message)
	// Relay carries commands of this node's callers to the leader, at most once. It returns
	// the ids of those that it certainly did not send, as far as it knows at once.
	Relay(to uint64, r Relay) (unsent []uint64)
	// Place carries back where in the log they are.
	Place(to uint64, places []Placement)
}

// NewStorage makes raft's storage from what a log holds: the snapshot that recovery
// starts from, the last hard state, and the entries after the snapshot.
func NewStorage(snapshot *walpb.Snapshot, hard *raftpb.HardState,
	entries []*raftpb.Entry) (*raft.MemoryStorage, error) {
	storage := raft.NewMemoryStorage()
	if snapshot.GetIndex() > 0 {
		err := storage.ApplySnapshot(&raftpb.Snapshot{Metadata: &raftpb.SnapshotMetadata{
			Index: new(snapshot.GetIndex()), Term: new(snapshot.GetTerm()), ConfState: snapshot.GetConfState(),
		}})
		if err != nil {
			return nil, err
		}
		// What a snapshot holds was committed, whether or not that was written down.
		hard.Commit = new(max(hard.GetCommit(), snapshot.GetIndex()))
	}
	if err := storage.Append(entries); err != nil {
		return nil, err
	}
	return storage, storage.SetHardState(hard)
}

// ErrNoRoom is in the chain of a Disk's errors that say that the disk is full.
var ErrNoRoom = errors.New("no room on the disk")
