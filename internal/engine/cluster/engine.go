package cluster

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.etcd.io/etcd/server/v3/storage/wal"
	"go.etcd.io/raft/v3/raftpb"

	"github.com/leasehold/leasehold"
	"github.com/leasehold/leasehold/internal/audit"
	"github.com/leasehold/leasehold/internal/core"
	"github.com/leasehold/leasehold/internal/engine"
	"github.com/leasehold/leasehold/internal/wire"
)

// Config is what an engine needs to know.
type Config struct {
	Dir   string
	Clock engine.Clock // nil: the system's
	Log   *slog.Logger // nil: silent

	// SnapshotEvery is how many bytes of log there are between two snapshots.
	SnapshotEvery int64
	// SegmentBytes is the size of one file of the log.
	SegmentBytes int64
	// MinFree is how many bytes of room there must be on the disk for new leases.
	// Renewals and releases need none.
	MinFree uint64
	// JournalBytes is how large the journal may be; 0: none is kept.
	JournalBytes int64
	// Metrics takes the engine's figures, if it is not nil.
	Metrics prometheus.Registerer
}

// Defaults for what Config leaves at zero.
const (
	DefaultSnapshotEvery = 64 << 20
	DefaultSegmentBytes  = 64 << 20
)

// What may wait for the log: so many commands and reads, and so many bytes of commands.
const (
	maxPending      = 1 << 16
	maxPendingBytes = 64 << 20
)

// closeWithin is how long Close waits for what is in flight.
const closeWithin = 5 * time.Second

// Engine is a running node. It is an engine.Engine.
type Engine struct {
	node    *Node
	disk    *disk
	feed    *engine.Feed
	journal *audit.Journal
	values  *valueStore
	log     *slog.Logger

	events  chan Event
	ready   chan struct{} // closed when the node serves for the first time
	failed  chan struct{} // closed when it failed
	stopped chan struct{} // closed when its loop ended
	failure error         // set before failed is closed
	closing sync.Once
	workers sync.WaitGroup

	pending      atomic.Int64 // commands and reads that have no answer yet
	pendingBytes atomic.Int64

	arrived chan struct{} // has one element while there is something to take
	mu      sync.Mutex    // guards what follows
	calls   []Call
	reads   []ReadCall
}

var _ engine.Engine = (*Engine)(nil)

// Start recovers a data directory, or makes a new one, and returns when the node
// serves. Call Close when done.
func Start(ctx context.Context, c Config) (*Engine, error) {
	c = c.withDefaults()
	if wal.SegmentSizeBytes != c.SegmentBytes {
		wal.SegmentSizeBytes = c.SegmentBytes // etcd keeps it in a variable of the package
	}
	dir, err := openDir(c.Dir, true)
	if err != nil {
		return nil, err
	}
	found, err := recoverDir(dir)
	if err != nil {
		dir.close()
		return nil, err
	}
	e, err := newEngine(c, dir, found)
	if err == nil {
		err = e.openJournal(c, found)
	}
	if err != nil {
		_ = found.log.Close()
		dir.close()
		return nil, err
	}
	e.start()
	select {
	case <-e.ready:
		return e, nil
	case <-e.failed:
		err = e.failure
	case <-ctx.Done():
		err = ctx.Err()
	}
	return nil, errors.Join(err, e.Close())
}

func (c Config) withDefaults() Config {
	if c.Clock == nil {
		c.Clock = SystemClock()
	}
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	if c.SnapshotEvery == 0 {
		c.SnapshotEvery = DefaultSnapshotEvery
	}
	if c.SegmentBytes == 0 {
		c.SegmentBytes = DefaultSegmentBytes
	}
	return c
}

func newEngine(c Config, dir *dataDir, found *recovered) (*Engine, error) {
	e := &Engine{
		feed: engine.NewFeed(), log: c.Log,
		// Room for what the disk's goroutines send while the node is busy.
		events: make(chan Event, 16),
		ready:  make(chan struct{}), failed: make(chan struct{}), stopped: make(chan struct{}),
		arrived: make(chan struct{}, 1),
	}
	e.disk = &disk{
		dir: dir, log: found.log, events: e.events, slog: c.Log, watch: newMetrics(c.Metrics),
		writes: make(chan Write, 1), saves: make(chan Snapshot, 1), done: e.stopped,
		minFree: c.MinFree, kept: found.applied,
	}
	values, err := openValues(dir.values(), c.Clock.Monotonic, e.disk.full.Load, c.Log)
	if err != nil {
		return nil, err
	}
	e.values = values
	e.feed.PublishAll(found.state.View(0))
	var begin []Member
	if found.fresh {
		begin = []Member{{ID: dir.Node}}
	}
	node, err := NewNode(NodeConfig{
		ID: dir.Node, Storage: found.storage, State: found.state, Applied: found.applied, Roster: found.roster, Begin: begin, Nonce: rand.Uint64(),
		Clock: c.Clock, Disk: e.disk, Transport: nobody{}, Feed: e.feed, Log: c.Log, SnapshotEvery: c.SnapshotEvery, Watch: e.applied,
	})
	if err != nil {
		return nil, err
	}
	node.snapshot.size = found.size
	e.node = node
	return e, nil
}

// openJournal opens the journal, if there is to be one.
func (e *Engine) openJournal(c Config, found *recovered) error {
	if c.JournalBytes == 0 {
		return nil
	}
	end, err := found.storage.LastIndex()
	if err != nil {
		return err
	}
	journal, err := audit.Start(audit.Config{
		Dir: e.disk.dir.journal(), Bytes: c.JournalBytes, Now: c.Clock.Wall, Log: c.Log, End: end,
		Failed: func(err error) { e.disk.send(JournalFailed{err}) },
	})
	if err != nil {
		return err
	}
	e.journal, e.disk.journal, e.node.Journal = journal, journal, journal
	e.disk.watch.journal(c.Metrics, journal)
	return nil
}

// nobody is the transport of a cluster of one.
type nobody struct{}

func (nobody) Send([]*raftpb.Message)    {}
func (nobody) Relay(uint64, Relay)       {}
func (nobody) Place(uint64, []Placement) {}

func (e *Engine) start() {
	e.disk.checkRoom()
	e.workers.Go(e.disk.writeLoop)
	e.workers.Go(e.disk.saveLoop)
	e.workers.Go(e.disk.watchLoop)
	e.workers.Go(e.valueLoop)
	go e.loop()
}

// Failed is closed when the node failed and acknowledges nothing more. The process
// should end then; Failure says why.
func (e *Engine) Failed() <-chan struct{} { return e.failed }

// Failure returns why the node failed. It may be called once Failed is closed.
func (e *Engine) Failure() error { return e.failure }

// Feed tells what happens.
func (e *Engine) Feed() *engine.Feed { return e.feed }

// Journal has what was done, and who held what; nil if that is not kept.
func (e *Engine) Journal() *audit.Journal { return e.journal }

// Do orders a command and returns its answer once it is durable.
func (e *Engine) Do(ctx context.Context, command core.Command) (core.Answer, error) {
	if err := command.Validate(); err != nil {
		return core.Answer{}, err
	}
	if err := e.room(command); err != nil {
		return core.Answer{}, err
	}
	if err := e.nameable(command); err != nil {
		return core.Answer{}, err
	}
	bytes, err := encode(ctx, command)
	if err != nil {
		return core.Answer{}, err
	}
	type result struct {
		answer core.Answer
		err    error
	}
	done := make(chan result, 1)
	call := Call{Bytes: bytes, Done: func(a core.Answer, err error) {
		e.leave(len(bytes))
		done <- result{a, err}
	}}
	if err := e.enqueue(len(bytes), keepsOrEnds(command), func() { e.calls = append(e.calls, call) }); err != nil {
		return core.Answer{}, err
	}
	select {
	case r := <-done:
		return r.answer, r.err
	case <-ctx.Done():
		return core.Answer{}, engine.Undecided("the request ended before its answer was known: ask again with the same id")
	}
}

// encode writes a command as it will stand in the log, behind its origin.
func encode(ctx context.Context, command core.Command) (bytes []byte, err error) {
	if engine.HasOrigin(command) {
		origin, err := engine.OriginOf(ctx)
		if err != nil {
			return nil, err
		}
		bytes = wire.AppendOrigin(nil, origin)
	}
	bytes, err = wire.AppendCommand(bytes, command)
	if err != nil {
		return nil, &leasehold.Error{Code: leasehold.Invalid, Message: err.Error()}
	}
	return bytes, nil
}

// room refuses what would add to a disk that is nearly full. Whatever shortens or
// keeps what is there goes on.
func (e *Engine) room(command core.Command) error {
	if !e.disk.full.Load() {
		return nil
	}
	switch command.(type) {
	case *core.Acquire, *core.OpenSession, *core.PutRecord, *core.Txn:
		return &leasehold.Error{Code: leasehold.Limited, Message: "the server's disk is nearly full: nothing new is granted or written until there is room; renewals, releases and deletions go on"}
	}
	return nil
}

// keepsOrEnds tells the commands by which holders keep what they have, or give it back.
func keepsOrEnds(command core.Command) bool {
	switch command.(type) {
	case *core.Renew, *core.RenewSession, *core.Release, *core.CloseSession:
		return true
	}
	return false
}

// Read calls fn with a state that has everything that was answered before.
func (e *Engine) Read(ctx context.Context, fn func(core.View)) error {
	var once sync.Mutex // guards abandoned and the call of fn
	abandoned := false
	done := make(chan error, 1)
	call := ReadCall{
		Read: func(v core.View) {
			once.Lock()
			defer once.Unlock()
			if !abandoned {
				fn(v)
			}
		},
		Done: func(err error) {
			e.leave(0)
			done <- err
		},
	}
	if err := e.enqueue(0, false, func() { e.reads = append(e.reads, call) }); err != nil {
		return err
	}
	select {
	case err := <-done:
		return err
	case <-ctx.Done():
		// fn works on the caller's variables: it must not run once we are gone.
		once.Lock()
		defer once.Unlock()
		abandoned = true
		return engine.Unavailable("the request ended before it could be read")
	}
}

// enter counts a request of so many bytes in, if there is room for it. What keeps or
// ends a lease has as much room again: a flood of others must cost nobody a lease.
func (e *Engine) enter(bytes int, keeps bool) error {
	room := int64(1)
	if keeps {
		room = 2
	}
	waiting, size := e.pending.Add(1), e.pendingBytes.Add(int64(bytes))
	if waiting > room*maxPending || size > room*maxPendingBytes {
		e.leave(bytes)
		return &leasehold.Error{Code: leasehold.Limited, Message: fmt.Sprintf(
			"%d requests, or %d MiB of them, wait for the log already: try again in a moment", maxPending, maxPendingBytes>>20)}
	}
	return nil
}

func (e *Engine) leave(bytes int) {
	e.pending.Add(-1)
	e.pendingBytes.Add(-int64(bytes))
}

// enqueue adds something to what the loop takes next.
func (e *Engine) enqueue(bytes int, keeps bool, add func()) error {
	if err := e.enter(bytes, keeps); err != nil {
		return err
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if isClosed(e.stopped) {
		e.leave(bytes)
		return engine.Unavailable("the server is stopping: try another one, or this one in a moment")
	}
	add()
	select {
	case e.arrived <- struct{}{}:
	default:
	}
	return nil
}

// stepCalls gives the node what callers brought.
func (e *Engine) stepCalls() {
	calls, reads := e.take()
	if len(calls) > 0 {
		e.node.Step(Commands(calls))
	}
	if len(reads) > 0 {
		e.node.Step(Reads(reads))
	}
}

func (e *Engine) take() ([]Call, []ReadCall) {
	e.mu.Lock()
	defer e.mu.Unlock()
	calls, reads := e.calls, e.reads
	e.calls, e.reads = nil, nil
	return calls, reads
}

// loop is the only goroutine that touches the node.
func (e *Engine) loop() {
	defer e.finish()
	raftTicks := time.NewTicker(TickEvery)
	defer raftTicks.Stop()
	wake := time.NewTimer(time.Hour)
	defer wake.Stop()
	e.node.Step(RaftTick{}) // sets it going
	for !e.ended() {
		if after, ok := e.node.NextWake(); ok {
			wake.Reset(after)
		} else {
			wake.Stop()
		}
		select {
		case <-e.arrived:
			e.stepCalls()
		case event := <-e.events:
			e.node.Step(event)
		case <-raftTicks.C:
			e.node.Step(RaftTick{})
			e.disk.watch.node(e.node.Statistics())
		case <-wake.C:
			// While a great many leases end, tick after tick, the callers who are there
			// stand before the next tick.
			e.stepCalls()
			e.node.Step(Wake{})
		}
	}
}

// ended tells the world how the node is, and whether the loop is over.
func (e *Engine) ended() bool {
	if e.node.lead.serving && !isClosed(e.ready) {
		close(e.ready)
	}
	if err := e.node.Failure(); err != nil {
		e.log.Error("the server can not go on", "err", err)
		e.failure = err
		close(e.failed)
		return true
	}
	// A snapshot in flight is given up: the log has everything that is in it.
	return e.node.stopped && e.node.Idle() && !e.node.writing
}

// finish answers whoever is still there.
func (e *Engine) finish() {
	e.mu.Lock()
	close(e.stopped)
	e.mu.Unlock()
	calls, reads := e.take()
	gone := engine.Unavailable("the server is stopping: try another one, or this one in a moment")
	e.node.refuse(Commands(calls), gone)
	e.node.refuse(Reads(reads), gone)
	e.feed.Close()
}

// Close takes nothing more, lets what is in flight finish, and gives the directory
// free.
func (e *Engine) Close() error {
	var err error
	e.closing.Do(func() { err = e.close() })
	return err
}

func (e *Engine) close() error {
	select {
	case e.events <- Stop{}:
	case <-e.stopped:
	}
	select {
	case <-e.stopped:
	case <-time.After(closeWithin):
		return fmt.Errorf("the disk did not finish within %v", closeWithin)
	}
	if e.failure != nil {
		// The disk is not to be trusted, and its goroutine may hang for ever. The log has
		// what the journal lacks.
		e.journal.Fail(e.failure)
		e.disk.dir.close()
		return nil
	}
	e.workers.Wait()
	err := errors.Join(e.journal.Close(), e.disk.log.Close())
	e.disk.dir.close()
	return err
}

func isClosed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}
