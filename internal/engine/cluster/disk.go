package cluster

import (
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"go.etcd.io/etcd/server/v3/storage/wal"
	"go.etcd.io/raft/v3/raftpb"

	"github.com/leasehold/leasehold/internal/audit"
)

// How long a write may be in flight: a leader that is slower than the first gives
// the lead away, a node that is slower than the second stops. A disk that hangs is
// worse than one that fails, because nothing says so.
const (
	slowWrite    = time.Second
	stalledWrite = 5 * time.Second
	watchEvery   = 250 * time.Millisecond
)

// disk is the Disk of a real node.
type disk struct {
	*room
	log     *wal.WAL
	journal *audit.Journal
	events  chan<- Event
	watch   *metrics

	writes chan Write
	saves  chan Snapshot
	done   chan struct{} // closed when the node is
	// inFlight numbers the write in flight; 0: none is.
	inFlight atomic.Uint64

	purging   sync.Mutex    // old snapshots and log are removed by one at a time
	checking  sync.Mutex    // the newest snapshot is read by one at a time
	unchecked chan struct{} // has one element if there is a snapshot to read
}

func (d *disk) Write(w Write)   { d.writes <- w }
func (d *disk) Save(s Snapshot) { d.saves <- s }

// send gives an event to the node, unless that is gone.
func (d *disk) send(e Event) {
	select {
	case d.events <- e:
	case <-d.done:
	}
}

func (d *disk) writeLoop() {
	for number := uint64(1); ; number++ {
		select {
		case w := <-d.writes:
			d.inFlight.Store(number)
			err := d.write(w)
			d.inFlight.Store(0)
			d.send(Written{err})
		case <-d.done:
			return
		}
	}
}

func (d *disk) write(w Write) error {
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
func (d *disk) mark(w Write) error {
	if err := d.log.SaveSnapshot(w.Snapshot); err != nil {
		return err
	}
	d.purging.Lock()
	defer d.purging.Unlock()
	newest := w.Snapshot.GetIndex()
	keep := d.marked.Swap(newest)
	nudge(d.unchecked)
	d.snapshot.Store(stateSize(d.dir.snap(), newest))
	d.added.Add(-d.frozen.Swap(0))
	if err := d.log.ReleaseLockTo(keep); err != nil {
		return err
	}
	// What can not be removed now will be next time; it does no harm but take room.
	if err := errors.Join(purgeLog(d.dir.wal(), keep), purgeStates(d.dir.snap(), keep, newest)); err != nil {
		d.slog.Warn("old log and snapshot files could not be removed", "err", err)
	}
	return nil
}

func (d *disk) saveLoop() {
	for {
		select {
		case s := <-d.saves:
			size, err := d.save(s)
			d.send(Saved{size, err})
		case <-d.done:
			return
		}
	}
}

// save makes a snapshot durable. What it replaces in the log can not be given to the
// journal again, so that has to be durable before.
func (d *disk) save(s Snapshot) (int64, error) {
	d.saving.Add(1)
	defer d.saving.Add(-1)
	d.frozen.Store(d.added.Load())
	start := time.Now()
	if err := d.journal.Flush(); err != nil {
		return 0, err
	}
	d.makeRoom()
	size, err := writeState(d.dir.snap(), s, d.done, d.leavesRoom)
	if isNoRoom(err) && d.dropOlderOnceChecked() {
		size, err = writeState(d.dir.snap(), s, d.done, d.leavesRoom)
	}
	d.short.Store(isNoRoom(err))
	if err != nil {
		d.watch.snapshotFailures.Inc()
		return 0, err
	}
	d.watch.snapshot(time.Since(start), size)
	return size, nil
}

// watchLoop looks after the write in flight. It must not ask the disk anything itself.
func (d *disk) watchLoop() {
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

// A sighting is which write was in flight, and at how many looks in a row. Looks are
// counted and not time: a clock that jumps, or a process that slept, adds one look at
// the most and not the minutes that it missed.
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

// checkWrite looks at the write in flight.
func (d *disk) checkWrite(seen sighting) sighting {
	seen = seen.again(d.inFlight.Load())
	if seen.looks == 0 {
		return seen
	}
	switch took := time.Duration(seen.looks) * watchEvery; {
	case took >= stalledWrite:
		d.send(Written{fmt.Errorf("a write has not returned for %v", took)})
	case took == slowWrite:
		d.slog.Warn("a log write is slow", "for", took)
		d.send(Stalled{})
	}
	return seen
}

// checkJournal looks at what the journal is writing. The node would wait for it with
// its next entry, and for ever.
func (d *disk) checkJournal(seen sighting) sighting {
	seen = seen.again(d.journal.Operation())
	if took := time.Duration(seen.looks) * watchEvery; took >= stalledWrite {
		d.journal.Fail(fmt.Errorf("a write has not returned for %v", took))
	}
	return seen
}
