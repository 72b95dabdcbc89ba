package cluster

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.etcd.io/etcd/server/v3/storage/wal"

	"github.com/leasehold/leasehold"
	"github.com/leasehold/leasehold/internal/audit"
	"github.com/leasehold/leasehold/internal/core"
	"github.com/leasehold/leasehold/internal/engine"
	"github.com/leasehold/leasehold/internal/listen"
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
	// Caps are those of a cluster in which nobody set any. What is 0 is the core's own.
	Caps leasehold.Caps
	// JournalBytes is how large the journal may be; 0: none is kept.
	JournalBytes int64
	// Metrics takes the engine's figures, if it is not nil.
	Metrics prometheus.Registerer

	// Name is that of the server among those of its cluster.
	Name string
	// Version is of the program, for the others to know.
	Version string
	// PeerListen is the address for other servers; empty: none can come.
	PeerListen string
	// PeerAdvertise is what they are told to use; empty: what PeerListen turned out to be.
	PeerAdvertise string
	// ClientAdvertise is what they tell clients.
	ClientAdvertise string
	// InitialCluster has the names and addresses of all servers of a cluster that begins,
	// this one among them, and the same on all of them.
	InitialCluster []Member
	// Join has addresses of servers of a cluster that runs, to ask to be taken in.
	Join []string
	// PeerTLS returns the certificate of this server and the authority of all of them: it is
	// called for each connection. Nil: traffic between servers is plain, which needs
	// Insecure, and stays on this machine.
	PeerTLS  func() *tls.Config
	Insecure bool

	// Gates is where the connections of other servers are counted; nil: nowhere.
	Gates *listen.Gates

	// For tests: another network than the machine's.
	peerListener net.Listener
	peerDial     func(ctx context.Context, address string) (net.Conn, error)
}

// Defaults for what Config leaves at zero.
const (
	DefaultSnapshotEvery = 64 << 20
	DefaultSegmentBytes  = 64 << 20
	DefaultName          = "n1"
)

// What may wait for the log: so many commands and reads, and so many bytes of commands.
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
	// roomEvery is how often a leader without room looks for one that has some.
	roomEvery = 3 * time.Second
)

var (
	errStopping = engine.Unavailable("the server is stopping: try another one, or this one in a moment")
	errNoLeader = engine.Unavailable("there is no leader yet: try again in a moment")
)

// Engine is a running node. It is an engine.Engine.
type Engine struct {
	id      uint64
	node    *Node
	disk    *disk
	network *network
	carrier *transport
	sums    sums
	feed    *engine.Feed
	journal *audit.Journal
	values  *valueStore
	hunt    *hunt
	log     *slog.Logger

	events   chan Event
	failed   chan struct{} // closed when it failed
	stopped  chan struct{} // closed when its loop ended
	failure  error         // set before failed is closed
	expelled bool          // and not because of its disk; set before failed is closed
	closing  sync.Once
	leaving  atomic.Bool // Close was called
	view     atomic.Pointer[view]
	self     Member    // as this server describes itself
	stopAt   time.Time // when it waits no longer for others, once it stops
	tick     int
	gaveAt   time.Time // when it last looked for a leader with more room
	sumAt    time.Time // when it has the states compared next, as the leader
	workers  sync.WaitGroup

	level        atomic.Uint64 // of the state
	pending      atomic.Int64  // commands and reads that have no answer yet
	pendingBytes atomic.Int64
	backups      atomic.Int64 // that are being written

	arrived chan struct{} // has one element while there is something to take
	mu      sync.Mutex    // guards what follows
	calls   []Call
	reads   []ReadCall
}

var _ engine.Engine = (*Engine)(nil)

// A view is what others than the node's own goroutine may know of it.
type view struct {
	leader  uint64 // 0: nobody is known to lead
	serving bool
	changed chan struct{} // closed when there is another view
}

// Start recovers a data directory, or makes a new one, finds the cluster that it belongs to,
// and returns when it can be read and written there: for as long as no majority of the
// servers is there, it waits. Call Close when done.
func Start(ctx context.Context, c Config) (*Engine, error) {
	c = c.withDefaults()
	if wal.SegmentSizeBytes != c.SegmentBytes {
		wal.SegmentSizeBytes = c.SegmentBytes // etcd keeps it in a variable of the package
	}
	dir, err := openDir(c.Dir, true)
	if err != nil {
		return nil, err
	}
	if err := dir.diverged(); err != nil {
		dir.close()
		return nil, err
	}
	n, err := openNetwork(c, dir)
	if err != nil {
		dir.close()
		return nil, err
	}
	e, err := open(ctx, c, n)
	if err != nil {
		n.close()
		dir.close()
		return nil, err
	}
	e.start()
	n.watch(c.Metrics)
	if err := e.awaitReady(ctx); err != nil {
		return nil, errors.Join(err, e.Close())
	}
	n.workers.Go(e.announce)
	return e, nil
}

// open finds the cluster of a server, and what it knew of that.
func open(ctx context.Context, c Config, n *network) (*Engine, error) {
	if err := n.find(ctx, c); err != nil {
		return nil, err
	}
	found, err := recoverDir(n.dir, func(newest uint64) { roomToStart(c, n.dir, newest) })
	if err != nil {
		return nil, err
	}
	e, err := newEngine(c, n, found)
	if err == nil {
		err = e.openJournal(c, found)
	}
	if err != nil {
		_ = found.log.Close()
		return nil, err
	}
	return e, nil
}

// awaitReady returns when a read succeeds: then there is a leader, and this server has
// come as far as that.
func (e *Engine) awaitReady(ctx context.Context) error {
	for {
		err := e.Read(ctx, func(core.View) {})
		switch {
		case err == nil:
			return nil
		case isClosed(e.failed):
			return e.failure
		case ctx.Err() != nil:
			return ctx.Err()
		case isClosed(e.stopped):
			return err
		}
		e.log.Info("waiting for a majority of the servers", "not_connected", e.network.missing())
	}
}

// announce tells the cluster what is new about this server.
func (e *Engine) announce() {
	for {
		roster, err := e.freshRoster(e.network.ctx)
		if err == nil {
			m := e.self
			if len(roster.Members) > 1 {
				m.Name = "" // the others know its certificate by it
			}
			if known, ok := roster.Member(e.id); !ok || known.announced(m) == known {
				return
			}
			if _, err = e.change(e.network.ctx, Change{Kind: Announce, Member: m}); err == nil {
				return
			}
		}
		if e.network.ctx.Err() != nil {
			return
		}
		e.log.Warn("the addresses of this server could not be announced yet", "err", err)
		e.network.rest(time.Second)
	}
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
	if c.Name == "" {
		c.Name = DefaultName
	}
	return c
}

func newEngine(c Config, network *network, found *recovered) (*Engine, error) {
	dir := network.dir
	e := &Engine{
		id: dir.Node, feed: engine.NewFeed(), log: c.Log, network: network, carrier: &transport{network: network},
		// Room for what the disk's goroutines send while the node is busy.
		events: make(chan Event, 16),
		failed: make(chan struct{}), stopped: make(chan struct{}), arrived: make(chan struct{}, 1),
		sums: sums{hashes: map[uint64]string{}, changed: make(chan struct{})},
	}
	e.self = c.member(network)
	e.self.ID = e.id
	e.view.Store(&view{changed: make(chan struct{})})
	e.disk = &disk{
		room: newRoom(c, dir), log: found.log, events: e.events, watch: newMetrics(c.Metrics),
		writes: make(chan Write, 1), saves: make(chan Snapshot, 1), done: e.stopped,
		unchecked: make(chan struct{}, 1),
	}
	e.disk.marked.Store(found.applied)
	e.disk.good.Store(found.applied) // recovery has just read it
	e.disk.snapshot.Store(found.size)
	e.disk.watch.room(c.Metrics, e.disk.room)
	values, err := openValues(dir.values(), c.Clock.Monotonic, e.disk.full.Load, c.Log)
	if err != nil {
		return nil, err
	}
	e.values, e.hunt = values, newHunt()
	e.values.lost = func(large leasehold.Large) { e.hunt.want(large) }
	e.feed.PublishAll(found.state.View(0))
	if r, _ := found.state.Restored(); r.Base != 0 && !r.Over {
		c.Log.Warn("this was restored from a backup: nothing is granted until its quarantine is over", "quarantine", r.Quarantine, "backup", time.Unix(0, r.Wall).UTC())
	}
	node, err := NewNode(NodeConfig{
		ID: e.id, Storage: found.storage, State: found.state, Applied: found.applied, Roster: found.roster, Begin: e.beginWith(found), Nonce: rand.Uint64(),
		Clock: c.Clock, Disk: e.disk, Transport: e.carrier, Feed: e.feed, Log: c.Log, SnapshotEvery: c.SnapshotEvery, Caps: firstCaps(c.Caps),
		Changed: network.changed, Leveled: e.leveled, Summed: e.summed, Watch: e.applied, Complete: network.complete,
	})
	if err != nil {
		return nil, err
	}
	e.leveled(found.state.Level())
	node.snapshot.size = found.size
	e.node, e.carrier.node = node, node
	return e, nil
}

// beginWith returns the members of a cluster that begins; nil: it goes on.
func (e *Engine) beginWith(found *recovered) []Member {
	dir := e.network.dir
	switch {
	case !found.fresh || dir.Joined:
		return nil
	case dir.Begin != nil:
		return dir.Begin
	}
	return []Member{e.self}
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
		Failed: func(err error) { e.disk.send(JournalFailed{err}) }, MakeRoom: e.disk.yieldFiles,
	})
	if err != nil {
		return err
	}
	e.journal, e.disk.journal, e.node.Journal = journal, journal, journal
	e.disk.watch.journal(c.Metrics, journal)
	return nil
}

func (e *Engine) start() {
	e.disk.checkRoom()
	e.workers.Go(e.disk.writeLoop)
	e.workers.Go(e.disk.saveLoop)
	e.workers.Go(e.disk.watchLoop)
	e.workers.Go(e.disk.roomLoop)
	e.workers.Go(e.disk.checkLoop)
	e.workers.Go(e.valueLoop)
	e.workers.Go(e.huntLoop)
	e.hunt.rouse()
	e.network.attach(e)
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

// Level returns the level that this server's state is at.
func (e *Engine) Level() core.Level { return core.Level(e.level.Load()) }

// leveled hears of another level of the state. The directory says so too, for older versions to
// know; if it cannot be written now, the next start does.
func (e *Engine) leveled(level core.Level) {
	e.level.Store(uint64(level))
	e.network.workers.Go(func() {
		if err := e.network.dir.setLevel(level); err != nil {
			e.log.Warn("the format of the data directory could not be written", "err", err)
		}
	})
}

// Do orders a command and returns its answer once it is durable.
func (e *Engine) Do(ctx context.Context, command core.Command) (core.Answer, error) {
	if err := command.Validate(); err != nil {
		return core.Answer{}, err
	}
	if err := wire.AtLevel(command, e.Level()); err != nil {
		return core.Answer{}, err
	}
	if err := e.room(command); err != nil {
		return core.Answer{}, err
	}
	if err := e.nameable(ctx, command); err != nil {
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

// waitForLead waits until it looks as if somebody led, or a moment; false: it is of no use
// to wait on.
func (e *Engine) waitForLead(ctx context.Context) bool {
	if e.leaving.Load() || isClosed(e.failed) {
		return false
	}
	timer := time.NewTimer(TickEvery)
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
	if !NeedsRoom(command) || !e.leaderIsFull() {
		return nil
	}
	return &leasehold.Error{Code: leasehold.Limited, Message: "the server's disk is nearly full: nothing new is granted or written until there is room; renewals, releases and deletions go on"}
}

// NeedsRoom reports whether a command adds to what is on the disk of each server for longer
// than a snapshot takes to clear.
func NeedsRoom(command core.Command) bool {
	switch command.(type) {
	case *core.Acquire, *core.OpenSession, *core.PutRecord, *core.Txn:
		return true
	}
	return false
}

// leaderIsFull tells whether the one who leads has hardly any room. A follower without room
// takes part for as long as it can: who comes to it is not to blame.
func (e *Engine) leaderIsFull() bool {
	if leader := e.view.Load().leader; leader != e.id && leader != 0 {
		return e.network.isFull(leader)
	}
	return e.disk.full.Load()
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
		return engine.Unavailable("the request ended before it could be read: " + e.whoLeads())
	}
}

// whoLeads says who leads as far as this server knows.
func (e *Engine) whoLeads() string {
	switch leader := e.view.Load().leader; leader {
	case 0:
		return "no leader is known"
	case e.id:
		return "this server leads, but a majority of the servers did not answer in time"
	default:
		return fmt.Sprintf("server %s leads, but did not answer in time", e.network.nameOf(leader))
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
		return errStopping
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
			e.step(event)
		case <-raftTicks.C:
			e.node.Step(RaftTick{})
			e.lookAround()
		case <-wake.C:
			// While a great many leases end, tick after tick, the callers who are there
			// stand before the next tick.
			e.stepCalls()
			e.node.Step(Wake{})
		}
	}
}

// step gives an event to the node, or does what it says.
func (e *Engine) step(event Event) {
	switch event := event.(type) {
	case inspection:
		event(e.node)
	case expulsion:
		e.expel(event.err)
	case Stop:
		e.stopAt = time.Now().Add(handOverWithin)
		e.node.Step(event)
	default:
		e.node.Step(event)
	}
}

// lookAround does what has to be done every now and then.
func (e *Engine) lookAround() {
	e.disk.watch.node(e.node.Statistics())
	if e.tick++; e.tick%10 != 0 {
		return
	}
	e.paceSums()
	e.tellHealth(e.disk.full.Load())
	if e.node.lead.serving && e.disk.full.Load() && time.Since(e.gaveAt) > roomEvery {
		e.gaveAt = time.Now()
		e.leaveToRoomier()
	}
}

func (e *Engine) tellHealth(lowRoom bool) {
	e.network.tellHealth(health{applied: e.node.applied, lowRoom: lowRoom, lacks: e.hunt.lacks()})
}

// leaveToRoomier gives the lead to a server that has room on its disk, if there is one.
func (e *Engine) leaveToRoomier() {
	healths := e.network.healths()
	for _, id := range e.node.roster.Voters() {
		if h, ok := healths[id]; ok && id != e.id && !h.lowRoom && e.node.reachable(id) {
			e.log.Warn("the data disk is nearly full: giving the lead to a server that has room", "to", e.network.nameOf(id))
			e.node.Step(Transfer{id})
			return
		}
	}
}

// ended tells the world how the node is, and whether the loop is over.
func (e *Engine) ended() bool {
	for _, event := range e.carrier.take() {
		e.node.Step(event)
	}
	e.show()
	if e.node.Left() {
		e.expel(ErrRemoved)
	}
	if err := e.node.Failure(); err != nil {
		e.log.Error("the server can not go on", "err", err)
		if e.failure = err; isNoRoom(err) {
			e.tellHealth(true) // the others remember what it died of
		}
		close(e.failed)
		return true
	}
	// A snapshot in flight is given up: the log has everything that is in it.
	return e.node.stopped && !e.node.writing && (e.node.Idle() || time.Now().After(e.stopAt))
}

// expel ends the part that this server has in the cluster. Nothing is wrong with its disk.
func (e *Engine) expel(err error) {
	e.expelled = e.expelled || e.node.failure == nil || e.node.failure == ErrRemoved
	e.node.fail(err)
}

// show lets others know who leads.
func (e *Engine) show() {
	old, lead := e.view.Load(), &e.node.lead
	if old.leader == lead.known && old.serving == lead.serving {
		return
	}
	e.view.Store(&view{leader: lead.known, serving: lead.serving, changed: make(chan struct{})})
	close(old.changed)
}

// finish answers whoever is still there.
func (e *Engine) finish() {
	e.mu.Lock()
	close(e.stopped)
	e.mu.Unlock()
	calls, reads := e.take()
	e.node.refuse(Commands(calls), errStopping)
	e.node.refuse(Reads(reads), errStopping)
	e.node.abandon()
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
	e.leaving.Store(true)
	late := time.After(closeWithin)
	select {
	case e.events <- Stop{}:
	case <-e.stopped:
	case <-late:
	}
	select {
	case <-e.stopped:
	case <-late:
		return fmt.Errorf("the disk did not finish within %v", closeWithin)
	}
	if e.failure != nil && !e.expelled {
		// The disk is not to be trusted, and whoever works on it may hang for ever: others
		// who are just sending a file are such. The log has what the journal lacks.
		inTime(failWithin, e.network.close)
		e.journal.Fail(e.failure)
		e.disk.dir.close()
		return nil
	}
	e.network.close()
	e.workers.Wait()
	err := errors.Join(e.journal.Close(), e.disk.log.Close())
	e.disk.dir.close()
	return err
}

// inTime does something, and waits for it only for so long.
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
