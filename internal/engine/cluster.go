package engine

import (
	"context"
	"io"
	"time"

	"github.com/leasehold/leasehold/internal/core"
)

// A Cluster is the servers that an engine runs on. Whatever changes them goes through the
// log like everything else. Its methods may be called on any of the servers; an error is a
// *leasehold.Error: NotFound for a name that is no member's, Refused for a change that would
// leave the cluster without a majority, Unavailable and Undecided as for any command.
type Cluster interface {
	// Outlook tells who belongs to the cluster, and how each of them does.
	Outlook(ctx context.Context) (Outlook, error)

	// Add takes in a server by its name and the address at which the others reach it. It
	// has no vote until it has caught up. Adding what is there already, at the same
	// address, changes nothing.
	Add(ctx context.Context, name, address string) (Server, error)

	// Promote gives a server its vote. It is refused while that is too far behind.
	// Leaders promote by themselves servers that have caught up.
	Promote(ctx context.Context, name string) error

	// Remove ends a membership for good. The server says so, and stops; its id is
	// never given to another.
	Remove(ctx context.Context, name string) error

	// Transfer gives the lead to a server, or, for the empty name, to whichever is best,
	// and returns the name of who leads then.
	Transfer(ctx context.Context, name string) (string, error)

	// Upgrade raises the level of the cluster to the newest that all servers know, and returns
	// it. It is refused while some do not know a level that others do. Levels are never
	// lowered: versions that do not know the new one can no longer take part.
	Upgrade(ctx context.Context) (core.Level, error)

	// Sums returns a hash of each server's state at one and the same place of the log.
	Sums(ctx context.Context) (Sums, error)

	// Backup writes the whole state, as it is at one place of the log, in a form that
	// restore takes.
	Backup(ctx context.Context, w io.Writer) error
}

// An Outlook is a cluster as one of its servers sees it.
type Outlook struct {
	Cluster string // names the cluster: no two have the same
	Self    uint64 // who answers
	Leader  uint64 // 0: nobody knows
	Term    uint64
	// Confirmed reports whether a majority confirmed that there is a leader, while this was
	// asked: commands are decided then, whatever is known of single servers.
	Confirmed bool
	Level     core.Level // of the rules by which its state decides
	// Differ are the names of those whose state was another than that of the majority when
	// they were last compared; without a majority, of all that were not alike.
	Differ  []string
	Servers []Server // in the order of their ids

	Quarantine  core.Quarantine // if Quarantined
	Quarantined bool            // nothing is granted yet after a restore, as a majority confirms
}

// Next returns the newest level that all servers know.
func (o Outlook) Next() core.Level {
	next := core.NewestLevel
	for _, s := range o.Servers {
		next = min(next, s.Newest)
	}
	return max(next, o.Level)
}

// A Server is a member of the cluster.
type Server struct {
	ID      uint64 // never given to another
	Name    string
	Peer    string // where the other servers reach it
	Client  string // where clients reach it, as it says itself; empty: it never said
	Voter   bool
	Version string

	Oldest, Newest core.Level // the levels that its program knows; 0: it has not said yet

	// Answered reports whether it answered when it was asked, just now. One that did not may
	// be up: Heard is how long ago the server HeardBy got something of it, the last one of
	// those that are known; negative: none is.
	Answered bool
	HeardBy  uint64
	Heard    time.Duration
	// Reachable reports whether it answered, or was heard of within the last seconds.
	Reachable bool
	Applied   uint64        // how far in the log it has come, as it said last; 0: it did not
	Silent    time.Duration // how long the leader has not heard of it; negative: unknown
	LowRoom   bool          // its disk is nearly full; if it could not be asked, as it last said
	Starting  bool          // it answered, and lets no clients in yet
}

// Sums are hashes of the state at one place of the log.
type Sums struct {
	Index uint64
	Of    []Sum
}

// A Sum is the hash of one server's state.
type Sum struct {
	Server uint64
	Name   string
	Hash   string // empty: it did not answer; Err says why
	Err    string
}
