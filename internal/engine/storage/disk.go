package storage

import (
	"errors"
	"fmt"
	"log/slog"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.etcd.io/etcd/server/v3/storage/wal"
	"go.etcd.io/raft/v3/raftpb"

	"github.com/leasehold/leasehold/internal/audit"
	"github.com/leasehold/leasehold/internal/engine/replica"
)

// watchEvery is how often the disk looks at the write in flight, and at the free space.
const watchEvery = 250 * time.Millisecond

// A Disk is the Disk of a real node: the log, the snapshots and the room for both. The node
// only begins work here; goroutines of this type do it, and report by an event. Log writes,
// snapshots, the look at free space, and the check of old snapshots each have a goroutine to
// themselves, because each of them can hang on a bad disk, and none may keep the others from
// noticing.
//
// A log write can also be carried out by who waits for it: see Asked.
type Disk struct {
	*room
	log     *wal.WAL
	journal *audit.Journal // nil: none is kept

	journalBytes int64 // that it may have
	events       chan<- replica.Event
	watch        *metrics

	metrics prometheus.Registerer // nil: nobody wants them

	wanted  *replica.Write // that a step asked for; it belongs to who steps the node
	written func(error) *replica.Write
	before  func() error
	writes  chan *replica.Write
	saves   chan replica.Snapshot
	done    <-chan struct{} // closed when the node is
	// inFlight numbers the write in flight; 0: none is. number is that of the last one: it
	// belongs to who carries it out.
	inFlight atomic.Uint64
	number   uint64
	atWork   chan struct{} // has one element while a write is carried out, or the log is closed
	closed   bool          // it belongs to who put that in

	purging   sync.Mutex    // old snapshots and log are removed by one at a time
	checking  sync.Mutex    // the newest snapshot is read by one at a time
	unchecked chan struct{} // has one element if there is a snapshot to read
}

// Config says how data are kept.
type Config struct {
	SegmentBytes  int64  // of one file of the log
	SnapshotEvery int64  // bytes of log between two snapshots
	MinFree       uint64 // bytes of room that there must be for new leases
	Log           *slog.Logger
	Metrics       prometheus.Registerer // takes the disk's figures, if it is not nil

	Events chan<- replica.Event // where the node takes them from
	Done   <-chan struct{}      // closed when the node is

	// Written gives the node the outcome of a write that was left to the disk, and returns the
	// write that the node asks for then; nil: none.
	Written func(error) *replica.Write

	// Before is called before each write, and can fail it. It is for tests.
	Before func() error
}

// NewDisk returns the disk of a node that continues from what was found.
func NewDisk(c Config, dir *Dir, found *Recovered) *Disk {
	d := &Disk{
		room: newRoom(c, dir), log: found.Log, events: c.Events, watch: newMetrics(c.Metrics),
		written: c.Written, before: c.Before, writes: make(chan *replica.Write, 1),
		saves: make(chan replica.Snapshot, 1), done: c.Done, metrics: c.Metrics,
		unchecked: make(chan struct{}, 1), atWork: make(chan struct{}, 1),
	}
	d.marked.Store(found.Applied)
	d.good.Store(found.Applied) // recovery has just read it
	d.snapshot.Store(found.Size)
	d.watch.room(c.Metrics, d.room)
	return d
}

// StartJournal opens the journal, which writes in the background. Entries up to end that the
// journal lacks are given to it again as the log is replayed.
func (d *Disk) StartJournal(bytes int64, wall func() time.Time, end uint64) (*audit.Journal, error) {
	journal, err := audit.Start(audit.Config{
		Dir: d.dir.Journal(), Bytes: bytes, Now: wall, Log: d.slog, End: end,
		Failed: d.journalFailed, MakeRoom: d.yieldFiles,
	})
	if err == nil {
		d.journal, d.journalBytes = journal, bytes
		watchJournal(d.metrics, journal)
	}
	return journal, err
}

// journalFailed ends the node, which says to the others if it was for want of room.
func (d *Disk) journalFailed(err error) { d.Send(replica.JournalFailed{Err: noRoom(err)}) }

// Start leaves goroutines behind, which end when the node does.
func (d *Disk) Start(workers *sync.WaitGroup) {
	d.checkRoom()
	d.tellSize(d.journalBytes)
	for _, loop := range []func(){d.writeLoop, d.saveLoop, d.watchLoop, d.roomLoop, d.checkLoop} {
		workers.Go(loop)
	}
}

// CloseLog ends the log, after the write in flight: a caller may have it, of whom nobody else knows.
func (d *Disk) CloseLog() error {
	d.atWork <- struct{}{}
	defer func() { <-d.atWork }()
	d.closed = true
	return d.log.Close()
}

// Write notes what the node asks for in mid-step. Who steps the node gets it from Asked.
func (d *Disk) Write(w replica.Write) { d.wanted = &w }

// Asked returns the write that the last step asked for; nil: none. The caller has it carried
// out: by CarryOut, or by Leave.
func (d *Disk) Asked() *replica.Write {
	w := d.wanted
	d.wanted = nil
	return w
}

// Leave leaves a write to the disk's goroutine, which also does those that follow from it. It
// does not block: there is one write at a time.
func (d *Disk) Leave(w *replica.Write) { d.writes <- w }

// Save begins to make a snapshot durable.
func (d *Disk) Save(s replica.Snapshot) { d.saves <- s }

// Send gives an event to the node, unless the node is gone.
func (d *Disk) Send(e replica.Event) {
	select {
	case d.events <- e:
	case <-d.done:
	}
}

// writeLoop carries out writes that were left to it, and what the node asks for after each.
func (d *Disk) writeLoop() {
	for {
		select {
		case w := <-d.writes:
			for w != nil {
				w = d.written(d.CarryOut(w))
			}
		case <-d.done:
			return
		}
	}
}

// CarryOut makes a write durable, which may take long: nothing may wait for the caller that
// could help a hanging disk be noticed. There is one write at a time, and the node has to hear
// of its end before it asks for the next: the log has one order.
func (d *Disk) CarryOut(w *replica.Write) error {
	d.atWork <- struct{}{}
	defer func() { <-d.atWork }()
	if d.closed {
		return os.ErrClosed
	}
	// watchLoop reads it: this goroutine may be stuck in the kernel and could not say so itself.
	d.number++
	d.inFlight.Store(d.number)
	err := d.write(*w)
	d.inFlight.Store(0)
	return noRoom(err)
}

// write makes one write durable, the mark of a snapshot before the entries that follow it: a
// log that is read back must know where the entries continue from.
func (d *Disk) write(w replica.Write) error {
	if d.before != nil {
		if err := d.before(); err != nil {
			return err
		}
	}
	if w.Snapshot != nil {
		if err := d.mark(w); err != nil || w.Hard == nil {
			return err
		}
	}
	d.spend(sizeOf(w.Entries))
	start := time.Now()
	err := d.log.Save(w.Hard, w.Entries)
	d.watch.write(time.Since(start), w)
	return err
}

func sizeOf(entries []*raftpb.Entry) (bytes int64) {
	for _, e := range entries {
		bytes += int64(len(e.GetData()))
	}
	return bytes
}

// mark makes a snapshot the start of recovery, and removes what only an older start
// would need.
func (d *Disk) mark(w replica.Write) error {
	if err := d.log.SaveSnapshot(w.Snapshot); err != nil {
		return err
	}
	d.purging.Lock()
	defer d.purging.Unlock()
	newest := w.Snapshot.GetIndex()
	// The snapshot before the newest is kept, with the log that it needs: if the newest turns
	// out to be damaged, there is still a way back that loses nothing.
	keep := d.marked.Swap(newest)
	notify(d.unchecked)
	d.snapshot.Store(stateSize(d.dir.Snapshots(), newest))
	d.added.Add(-d.frozen.Swap(0))
	// etcd's wal keeps its files locked and open until it is told that they may go.
	if err := d.log.ReleaseLockTo(keep); err != nil {
		return err
	}
	// What cannot be removed now is removed next time; until then it only takes room.
	if err := errors.Join(purgeLog(d.dir.wal(), keep), purgeStates(d.dir.Snapshots(), keep, newest)); err != nil {
		d.slog.Warn("old log and snapshot files could not be removed", "err", err)
	}
	return nil
}

// saveLoop writes snapshots beside the log, which does not wait for them.
func (d *Disk) saveLoop() {
	for {
		select {
		case s := <-d.saves:
			size, err := d.save(s)
			d.Send(replica.Saved{Bytes: size, Err: noRoom(err)})
		case <-d.done:
			return
		}
	}
}

// save makes a snapshot durable. The journal has to be durable first: the part of the log that
// the snapshot replaces cannot be given to it again.
func (d *Disk) save(s replica.Snapshot) (int64, error) {
	d.saving.Add(1)
	defer d.saving.Add(-1)
	// What is added to the state from here on is not in this snapshot, and counts for the next.
	d.frozen.Store(d.added.Load())
	start := time.Now()
	if err := d.journal.Flush(); err != nil {
		return 0, err
	}
	d.MakeRoom()
	size, err := writeState(d.dir.Snapshots(), s, d.done, d.leavesRoom)
	if isNoRoom(err) && d.dropOlderOnceChecked() {
		size, err = writeState(d.dir.Snapshots(), s, d.done, d.leavesRoom)
	}
	d.short.Store(isNoRoom(err))
	if err != nil {
		d.watch.snapshotFailures.Inc()
		return 0, err
	}
	d.watch.snapshot(time.Since(start), size)
	return size, nil
}

// watchLoop watches the write in flight. It must not touch the disk itself, or it would hang
// with the write that it watches.
func (d *Disk) watchLoop() {
	ticker := time.NewTicker(watchEvery)
	defer ticker.Stop()
	var seen, journal sighting
	for {
		select {
		case <-ticker.C:
			seen = d.checkWrite(seen)
			journal = d.checkJournal(journal)
		case <-d.done:
			return
		}
	}
}

// A sighting is which write was seen in flight, and in how many looks in a row. Looks are
// counted and not time: a clock that jumps, or a process that was suspended, adds one look at
// most and not the minutes that it missed.
type sighting struct {
	write uint64
	looks int
}

// again looks once more: is it still the same write?
func (s sighting) again(write uint64) sighting {
	if write == 0 || write != s.write {
		return sighting{write: write}
	}
	return sighting{write, s.looks + 1}
}

// checkWrite reports a write that takes too long: first to the leader, which gives the lead
// away, and then as a failure. The write may still succeed later; nobody will have been told.
func (d *Disk) checkWrite(seen sighting) sighting {
	seen = seen.again(d.inFlight.Load())
	if seen.looks == 0 {
		return seen
	}
	switch took := time.Duration(seen.looks) * watchEvery; {
	case took >= replica.StalledWrite:
		d.Send(replica.Written{Err: fmt.Errorf("a write has not returned for %v", took)})
	case took == replica.SlowWrite:
		d.slog.Warn("a log write is slow", "for", took)
		d.Send(replica.Stalled{})
	}
	return seen
}

// checkJournal looks at what the journal is writing. The node would wait for it with one of its
// next entries, and for ever.
func (d *Disk) checkJournal(seen sighting) sighting {
	seen = seen.again(d.journal.Operation())
	if took := time.Duration(seen.looks) * watchEvery; took >= replica.StalledWrite {
		d.journal.Fail(fmt.Errorf("a write has not returned for %v", took))
	}
	return seen
}
