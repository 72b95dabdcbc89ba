// Package audit keeps a journal: what was done, by whom, from where and with what outcome; what
// was refused, and why; and who held what from when until when.
//
// The journal is a projection of the log. Every command is in the log with its origin, and what
// it came to follows from it; so the journal may lag behind, and what a crash takes from its
// end is written again when the log is replayed. All that this needs is that the journal is
// durable up to an index before the log may be cut there: see Flush.
//
// It is bounded: when it is full, the namespace that has most of it loses its oldest lines.
// Refusals have files and a bound of their own, so that a flood of refusals pushes out nothing
// but refusals. On a full disk old lines are dropped early; a journal for which there is no
// room at all loses lines, and counts them, since a server that keeps leases must not stop for
// it.
package audit

import (
	"cmp"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/leasehold/leasehold"
)

// Config is what a journal is made from.
type Config struct {
	Dir   string           // where it is kept; empty: in memory alone
	Bytes int64            // how large all of it may be; at least MinBytes
	Now   func() time.Time // the calendar; nil: the system's
	Log   *slog.Logger     // nil: silent

	// End is the last index of the log. What the journal has beyond it is of another
	// log, such as one that was replaced by a backup.
	End uint64

	// MakeRoom is called when the disk is full, before the oldest lines are dropped for it;
	// nil: nobody can make room.
	MakeRoom func()

	// Failed is called once, from any goroutine, when the journal cannot be written.
	// It takes nothing more then.
	Failed func(error)
}

const (
	// MinBytes is the smallest journal there can be.
	MinBytes = 1 << 20
	// DefaultBytes is about three million lines.
	DefaultBytes = 256 << 20

	maxSegment = 4 << 20
	// maxQueued is how many bytes of log may wait to be written down; then a caller
	// that brings more waits too. Nothing is dropped.
	maxQueued = 16 << 20
	// refusedShare is the part of the journal's bytes that is for refusals: one of this many.
	refusedShare = 4
	// maxSpare is how many items an empty queue keeps room for.
	maxSpare = 4096
	// deniedBytes is what a refusal counts for in the queue, about.
	deniedBytes = 1 << 10
	// gatherTime is how long what is queued waits for company, unless somebody wants to see it, or it is more than
	// gatherBytes: a write, and waking who writes, cost more than a command does.
	gatherTime  = 5 * time.Millisecond
	gatherBytes = 1 << 20
	// syncEvery is how long a line may stay unsynced, while no snapshot asks for it.
	syncEvery = time.Second
)

// A Journal takes entries and gives lines. Its methods may be called from any
// goroutine, but Append from one only. A nil Journal is one that keeps nothing.
type Journal struct {
	config Config
	// refusals keeps what was refused, as a journal in a directory of its own. That one has
	// none itself, and keeps nothing else.
	refusals     *Journal
	refusalsOnly bool
	segmentBytes int64
	searches     chan struct{}
	operation    atomic.Uint64 // numbers what the disk is doing; even: nothing
	since        atomic.Int64  // when it began, to tell which of two has taken longer

	mu       sync.Mutex // guards what follows
	changed  *sync.Cond // whenever any of it changes, but for the queue
	awake    *sync.Cond // there is something to do for who writes
	gathered bool       // what is queued has waited long enough
	readers  int        // who want to see all that is queued
	queue    []item
	spare    []item // the room of an earlier queue, for the next one
	queued   int64  // bytes
	appended uint64 // items so far
	written  uint64 // of them
	synced   uint64 // of them
	wanted   uint64 // as many should be synced at once
	due      bool   // the rest should be, too
	closing  bool
	failure  error
	segments []segment // oldest first; the last one is being written
	spoilt   map[uint64]bool
	dropped  map[string]spot // by namespace: the newest line that was taken out of the journal, since the start
	stats    Statistics

	fresh bool // there was none when it was opened

	// What only the writer touches.
	ended  chan struct{}
	file   *os.File
	filter filter // of the newest segment, which is looked into without asking it
	last   mark   // newest place in the log that is in the journal
	dirty  bool   // something was written since the last sync
	losing bool   // the last lines found no room

	unsynced uint64 // lines written since the last sync

	buffer []byte // for lines on their way
	timer  *time.Timer
}

// An item is an entry, or a line that does not come from the log.
type item struct {
	entry    Entry
	line     *Line
	inTheWay leasehold.Token // as a Refusal's
}

// A mark is a place in the log: an entry, and the line of that entry.
type mark struct {
	index uint64
	n     uint32
}

// Statistics are the figures of a journal.
type Statistics struct {
	Lines    uint64 // written since the start
	Bytes    int64  // that it has now, indexes included
	Queued   int    // entries that are not written yet
	Dropped  uint64 // segments that were removed to make room, since the start
	Thinned  uint64 // and those of which the lines of the loudest namespace were
	Lost     uint64 // lines for which there was no room on the disk, since the start
	Damaged  uint64 // segments that could not be read to their end
	Failures uint64 // 1 if it could not be written
}

// Start opens a journal, or makes one, and begins to write. Call Close when done.
func Start(c Config) (*Journal, error) {
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	if c.Now == nil {
		c.Now = time.Now
	}
	if c.Bytes < MinBytes {
		return nil, fmt.Errorf("a journal of %d bytes is too small: it has at least %d", c.Bytes, MinBytes)
	}
	if failed := c.Failed; failed != nil {
		var once sync.Once // either of the two may fail, or both
		c.Failed = func(err error) { once.Do(func() { failed(err) }) }
	}
	ofRefusals := c
	ofRefusals.Bytes = c.Bytes / refusedShare
	if c.Bytes -= ofRefusals.Bytes; c.Dir != "" {
		ofRefusals.Dir = filepath.Join(c.Dir, refusedDir)
	}
	j, refusals := newJournal(c), newJournal(ofRefusals)
	j.refusals, refusals.refusalsOnly = refusals, true
	if err := errors.Join(j.open(), refusals.open()); err != nil {
		return nil, err
	}
	if refusals.fresh {
		refusals.last = j.last // an earlier version wrote refusals among the operations
	}
	go j.run()
	go refusals.run()
	return j, nil
}

// refusedDir is where refusals are, in the directory of the journal.
const refusedDir = "refused"

func newJournal(c Config) *Journal {
	j := &Journal{
		config: c, segmentBytes: min(maxSegment, c.Bytes/8), searches: make(chan struct{}, maxSearches),
		ended: make(chan struct{}), spoilt: map[uint64]bool{}, dropped: map[string]spot{},
	}
	j.changed, j.awake = sync.NewCond(&j.mu), sync.NewCond(&j.mu)
	return j
}

// InMemory starts a journal that forgets everything when it ends. It cannot fail.
func InMemory(bytes int64, now func() time.Time) *Journal {
	j, err := Start(Config{Bytes: max(bytes, MinBytes), Now: now})
	if err != nil {
		panic(err) // without a disk there is nothing that could be wrong
	}
	return j
}

// Append hands over an entry that was applied; each once, in the order of the log. It
// waits while too much is queued. What the journal has already is not written twice.
func (j *Journal) Append(e Entry) {
	if j == nil {
		return
	}
	if e.changes() {
		j.push(item{entry: e}, int64(e.Size), maxQueued)
	}
	if e.refuses() {
		j.refusals.push(item{entry: e}, int64(e.Size), maxQueued)
	}
}

// A Refusal is a request that a door refused by itself, so that it never came to the log.
type Refusal struct {
	leasehold.Origin
	Namespace string
	Verb      string
	Resource  string
	ID        string
	Holder    string
	Outcome   string // the code; empty: denied
	Reason    string // why it was refused

	// InTheWay is the token of the lease for which it was refused, if such requests are
	// repeated until one succeeds: they are kept once for each lease in the way.
	InTheWay leasehold.Token
}

// Refused notes a refusal that is not in the log. It is kept on this server alone, and a
// crash may take the last second of them.
func (j *Journal) Refused(r Refusal) {
	if j == nil {
		return
	}
	if r.Outcome == "" {
		r.Outcome = leasehold.Denied.String()
	}
	line := &Line{
		Kind: Operation, At: j.config.Now().UTC(), Namespace: r.Namespace, Resource: r.Resource, ID: r.ID,
		Holder: r.Holder, Verb: r.Verb, Outcome: r.Outcome, Reason: brief(r.Reason),
		Actor: r.Actor, Address: r.Address, Door: r.Door,
	}
	// Half of the queue is for what comes from the log, which nobody else should wait for.
	j.refusals.push(item{line: line, inTheWay: r.InTheWay}, deniedBytes, maxQueued/2)
}

// push queues an item. It waits while more than most bytes are queued: to drop the item would
// leave a gap that nobody could see, and to queue without bound would end in a server without
// memory.
func (j *Journal) push(i item, size, most int64) {
	j.mu.Lock()
	defer j.mu.Unlock()
	for j.queued > most && j.failure == nil && !j.closing {
		j.changed.Wait()
	}
	if j.failure != nil || j.closing {
		return
	}
	i.entry.Size = int(size)
	j.queue = append(j.queue, i)
	j.queued += size
	j.appended++
	if len(j.queue) == 1 || j.queued > gatherBytes {
		j.awake.Signal()
	}
}

// Flush returns when everything that was appended before is durable. It must be called
// before the log is cut: what is in neither is lost.
func (j *Journal) Flush() error {
	if j == nil {
		return nil
	}
	j.want() // both at the same time
	j.refusals.want()
	return errors.Join(j.flush(), j.refusals.flush())
}

// want asks for everything appended so far to be synced soon. Flush asks both journals before
// it waits for either, so that they sync at the same time.
func (j *Journal) want() {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.wanted = max(j.wanted, j.appended)
	j.awake.Signal()
}

func (j *Journal) flush() error {
	j.mu.Lock()
	defer j.mu.Unlock()
	target := j.appended
	j.wanted = max(j.wanted, target)
	j.awake.Signal()
	for j.synced < target && j.failure == nil {
		j.changed.Wait()
	}
	return j.failure
}

// settled waits until everything that was appended before can be read, and returns the segments
// as they are then. A reader so finds what it was answered a moment ago.
func (j *Journal) settled() ([]segment, error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.readers++
	j.awake.Signal()
	for target := j.appended; j.written < target && j.failure == nil; {
		j.changed.Wait()
	}
	j.readers--
	if j.failure != nil {
		return nil, &leasehold.Error{Code: leasehold.Unavailable,
			Message: "the journal cannot be written, and the server is stopping: try another one"}
	}
	return slices.Clone(j.segments), nil
}

// Close writes what is queued and ends the journal. After a failure it waits for nothing.
func (j *Journal) Close() error {
	if j == nil {
		return nil
	}
	return errors.Join(j.refusals.Close(), j.close())
}

func (j *Journal) close() error {
	j.mu.Lock()
	j.closing = true
	j.changed.Broadcast()
	j.awake.Signal()
	failed := j.failure != nil
	j.mu.Unlock()
	if !failed {
		<-j.ended
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.failure
}

// Statistics returns the figures as they are.
func (j *Journal) Statistics() Statistics {
	if j == nil {
		return Statistics{}
	}
	of := j.refusals.Statistics()
	j.mu.Lock()
	defer j.mu.Unlock()
	s := j.stats
	s.Bytes, s.Queued = j.total()+of.Bytes, int(j.appended-j.written)+of.Queued
	s.Lines, s.Dropped, s.Damaged = s.Lines+of.Lines, s.Dropped+of.Dropped, s.Damaged+of.Damaged
	s.Lost += of.Lost
	s.Thinned += of.Thinned
	s.Failures = max(s.Failures, of.Failures)
	return s
}

// total returns how many bytes the journal has, indexes included. The caller holds the lock.
func (j *Journal) total() (bytes int64) {
	for i := range j.segments {
		bytes += j.segments[i].size + cmp.Or(j.segments[i].indexSize, j.indexBytes())
	}
	return bytes
}

func (j *Journal) indexBytes() int64 { return int64(indexHead + 4 + filterBytes(j.segmentBytes)) }

// Operation numbers what the disk is doing for the journal at this moment; 0 means nothing. If
// it stays the same for long, the disk hangs, and Fail may be called. Of the two journals it
// reports the one whose operation began earlier.
func (j *Journal) Operation() uint64 {
	if j == nil {
		return 0
	}
	own, since := j.operation.Load(), j.since.Load()
	if refused := j.refusals; refused != nil {
		other := refused.operation.Load()
		if other%2 == 1 && (own%2 == 0 || refused.since.Load() < since) {
			return other | 1<<63
		}
	}
	if own%2 == 1 {
		return own
	}
	return 0
}

// Fail ends the journal for good, and releases everybody who waits for it. The callback is
// called without the lock, since it may well call back.
func (j *Journal) Fail(err error) {
	if j == nil {
		return
	}
	j.mu.Lock()
	if j.failure != nil {
		j.mu.Unlock()
		return
	}
	j.failure = fmt.Errorf("the journal cannot be written: %w", err)
	j.stats.Failures++
	j.changed.Broadcast()
	j.awake.Signal()
	failure := j.failure
	j.mu.Unlock()
	if j.config.Failed != nil {
		j.config.Failed(failure)
	}
	j.refusals.Fail(err)
}
