// Package cluster is the engine that keeps its promises on disk: the state machine of
// internal/core on etcd's Raft and write-ahead log. A single server is a cluster of one on the
// same code.
//
// What is decided is in internal/engine/replica, a step function; what is on disk is in
// internal/engine/storage; the connections between servers are in internal/engine/peer. Engine
// is the edge around them: goroutines, real time, callers, and what operators ask for.
package cluster

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/leasehold/leasehold/internal/audit"
	"github.com/leasehold/leasehold/internal/core"
	"github.com/leasehold/leasehold/internal/engine"
	"github.com/leasehold/leasehold/internal/engine/replica"
	"github.com/leasehold/leasehold/internal/engine/storage"
)

// Limits of what may wait for the log: commands and reads, and bytes of commands.
const (
	maxPending      = 1 << 16
	maxPendingBytes = 64 << 20
)

const (
	// closeWithin is how long Close waits for what is in flight.
	closeWithin = 5 * time.Second
	// failWithin is how long it waits for what may hang after a failure.
	failWithin = time.Second
	// handOverWithin is how long a server that stops waits for another one to take the lead,
	// and for a majority to say what became of its callers' commands.
	handOverWithin = 3 * time.Second
	// roomEvery is how often a leader without room looks for a server that has some.
	roomEvery = 3 * time.Second
)

var (
	errStopping = engine.Unavailable("the server is stopping: try another one, or this one in a moment")
	errNoLeader = engine.Unavailable("there is no leader yet: try again in a moment")
)

// Engine is a running node. It is an engine.Engine.
type Engine struct {
	id      uint64
	node    *replica.Node
	disk    *storage.Disk
	network *network
	carrier *transport
	sums    sums
	feed    *engine.Feed
	journal *audit.Journal
	values  *storage.Values
	fetcher *fetcher
	clock   engine.Clock
	log     *slog.Logger
	watch   *metrics

	events   chan replica.Event
	looks    chan func(*replica.Node) // called between two steps
	failed   chan struct{}            // closed when it failed
	stopped  chan struct{}            // closed when its loop ended
	failure  error                    // set before failed is closed
	expelled bool                     // and not because of its disk; set before failed is closed
	closing  sync.Once
	opened   atomic.Bool // Opened was called
	leaving  atomic.Bool // Close was called
	view     atomic.Pointer[view]
	self     replica.Member // as this server describes itself
	stopAt   time.Time      // when it waits no longer for others, once it stops
	tick     int
	gaveAt   time.Time // when it last looked for a leader with more room
	sumAt    time.Time // when it has the states compared next, as the leader
	proofAt  time.Time // when it asks for a comparison next, to prove its own state
	proofIn  time.Duration
	workers  sync.WaitGroup

	level        atomic.Uint64 // of the state
	pending      atomic.Int64  // commands and reads that have no answer yet
	pendingBytes atomic.Int64
	backups      atomic.Int64 // that are being written

	// turn is held by who steps the node, see turn.go. It guards the node, what its steps use, and what follows.
	turn    sync.Mutex
	spare   []replica.Call // room for the next calls
	wakesAt core.Time      // for when the loop has set its alarm; 0: it is awake, or has set none
	over    bool           // the node takes no more steps

	arrived chan struct{} // has one element while there is something to take
	mu      sync.Mutex    // guards what follows
	calls   []replica.Call
	reads   []replica.ReadCall
}

var _ engine.Engine = (*Engine)(nil)

// A view is what goroutines other than the node's own may know of it.
type view struct {
	leader  uint64 // 0: nobody is known to lead
	serving bool
	changed chan struct{} // closed when there is another view
}

// Failed is closed when the node has failed and acknowledges nothing more. The process should
// end then; Failure says why.
func (e *Engine) Failed() <-chan struct{} { return e.failed }

// Failure returns why the node failed. It may be called once Failed is closed.
func (e *Engine) Failure() error { return e.failure }

// Opened lets the other servers know that clients are let in here.
func (e *Engine) Opened() { e.opened.Store(true) }

// Feed returns the feed of what happens.
func (e *Engine) Feed() *engine.Feed { return e.feed }

// Journal has what was done, and who held what; nil if that is not kept.
func (e *Engine) Journal() audit.Book {
	if e.journal == nil {
		return nil // and not a Book that has none
	}
	return e.journal
}

// Level returns the level that this server's state is at.
func (e *Engine) Level() core.Level { return core.Level(e.level.Load()) }

// leveled hears of another level of the state. The directory's format says so too, for older
// versions; if it cannot be written now, the next start writes it. The disk is not touched on
// the node's own goroutine, which calls this.
func (e *Engine) leveled(level core.Level) {
	e.level.Store(uint64(level))
	e.network.workers.Go(func() {
		if err := e.network.dir.SetLevel(level); err != nil {
			e.log.Warn("the format of the data directory could not be written", "err", err)
		}
	})
}

var _ engine.Warner = (*Engine)(nil)

// Warnings returns what somebody should look at, although the server works.
func (e *Engine) Warnings() []string {
	var all []string
	if lack := e.disk.Lack(); lack != "" {
		all = append(all, lack)
	}
	if odd := e.sums.odd.Load(); odd != nil && len(*odd) > 0 {
		all = append(all, fmt.Sprintf("the states of the servers differ (%s): see leasehold cluster status",
			strings.Join(names(*odd), ", ")))
	}
	return all
}

// waitForLead waits until another server may lead, or for a moment. It reports whether trying
// again may help.
func (e *Engine) waitForLead(ctx context.Context) bool {
	if e.leaving.Load() || isClosed(e.failed) {
		return false
	}
	timer := time.NewTimer(replica.TickEvery)
	defer timer.Stop()
	select {
	case <-e.view.Load().changed:
	case <-timer.C:
	case <-e.stopped:
		return false
	case <-ctx.Done():
		return false
	}
	return true
}

// Close takes no more requests, lets what is in flight finish, and frees the directory.
func (e *Engine) Close() error {
	var err error
	e.closing.Do(func() { err = e.close() })
	return err
}

// close stops the loop first, and then the goroutines that work for it: the loop's last steps
// may still need them.
func (e *Engine) close() error {
	e.leaving.Store(true)
	late := time.After(closeWithin)
	select {
	case e.events <- replica.Stop{}:
	case <-e.stopped:
	case <-late:
	}
	select {
	case <-e.stopped:
	case <-late:
		return fmt.Errorf("the disk did not finish within %v", closeWithin)
	}
	if e.failure != nil && !e.expelled {
		// The disk cannot be trusted, and whatever works on it may hang for ever, such as a
		// file that another server is just sending. What the journal lacks is in the log, and
		// is given to it again at the next start.
		inTime(failWithin, e.network.close)
		e.journal.Fail(e.failure)
		e.network.dir.Close()
		return nil
	}
	e.network.close()
	e.workers.Wait()
	err := errors.Join(e.journal.Close(), e.disk.CloseLog())
	e.network.dir.Close()
	return err
}

// inTime calls do, and waits for it at most for d. do may go on afterwards.
func inTime(d time.Duration, do func()) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		do()
	}()
	select {
	case <-done:
	case <-time.After(d):
	}
}

func isClosed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}
