package cluster

import (
	"errors"
	"fmt"
	"log/slog"
	"sync/atomic"
	"time"

	"go.etcd.io/etcd/server/v3/storage/wal"
	"golang.org/x/sys/unix"

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
	dir     *dataDir
	log     *wal.WAL
	journal *audit.Journal
	events  chan<- Event
	slog    *slog.Logger
	watch   *metrics

	writes chan Write
	saves  chan Snapshot
	done   chan struct{} // closed when the node is
	// inFlight numbers the write in flight; 0: none is.
	inFlight atomic.Uint64

	minFree atomic.Uint64
	full    atomic.Bool // there is less room than minFree

	kept uint64 // index of the snapshot before the newest, which is kept too
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
	start := time.Now()
	err := d.log.Save(w.Hard, w.Entries)
	d.watch.write(time.Since(start), w)
	return err
}

// mark makes a snapshot the start of recovery, and removes what only an older start
// would need.
func (d *disk) mark(w Write) error {
	if err := d.log.SaveSnapshot(w.Snapshot); err != nil {
		return err
	}
	keep := d.kept
	d.kept = w.Snapshot.GetIndex()
	if err := d.log.ReleaseLockTo(keep); err != nil {
		return err
	}
	// What can not be removed now will be next time; it does no harm but take room.
	if err := errors.Join(purgeLog(d.dir.wal(), keep), purgeStates(d.dir.snap(), keep, d.kept)); err != nil {
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
	start := time.Now()
	if err := d.journal.Flush(); err != nil {
		return 0, err
	}
	size, err := writeState(d.dir.snap(), s, d.done)
	d.watch.snapshot(time.Since(start), size)
	return size, err
}

// watchLoop looks after the write in flight and the room that is left.
func (d *disk) watchLoop() {
	ticker := time.NewTicker(watchEvery)
	defer ticker.Stop()
	var seen, journal sighting
	for {
		select {
		case <-ticker.C:
			seen = d.checkWrite(seen)
			journal = d.checkJournal(journal)
			d.checkRoom()
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

func (d *disk) checkRoom() {
	var s unix.Statfs_t
	if unix.Statfs(d.dir.path, &s) != nil {
		return
	}
	free := uint64(s.Bavail) * uint64(s.Bsize) // their types differ between systems
	if full := free < d.minFree.Load(); d.full.Swap(full) != full {
		d.slog.Warn("room on the data disk", "low", full, "free_bytes", free, "needed_bytes", d.minFree.Load())
	}
}
