package storage

import (
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"go.etcd.io/etcd/client/pkg/v3/fileutil"
	"golang.org/x/sys/unix"

	"github.com/leasehold/leasehold/internal/core"
	"github.com/leasehold/leasehold/internal/core/command"
	"github.com/leasehold/leasehold/internal/engine/replica"
)

// A disk that fills up must not end the server before somebody has made room. Snapshots free
// log, so they have to be possible until the very last; therefore a file holds room in reserve,
// for one snapshot and two files of the log. It is given up piece by piece, whenever less than
// two log files' worth is free beside it, and for a snapshot. Whatever adds to the state is
// refused as soon as min-free could be had only out of the reserve; renewals and releases go
// on, so that a full disk costs nobody a lease.

// reserveFile has no content: all that counts is the blocks that it occupies.
const reserveFile = "reserve"

const (
	roomEach   = 1 << 20  // the reserve grows and shrinks by multiples of it
	roomAtOnce = 64 << 20 // and grows by at most this at once, since the log may wait for it
	brakeFor   = 20 * time.Millisecond
)

// noRoomError marks an error as a full disk, so that the node need not know the system's error
// numbers.
type noRoomError struct{ error }

func (e noRoomError) Unwrap() error { return e.error }

func (e noRoomError) Is(target error) bool { return target == replica.ErrNoRoom }

// noRoom marks an error that says that the disk is full, and returns others as they are.
func noRoom(err error) error {
	if isNoRoom(err) {
		return noRoomError{err}
	}
	return err
}

// isNoRoom reports whether an error says that a disk, or a quota on it, is full.
func isNoRoom(err error) bool {
	return errors.Is(err, unix.ENOSPC) || errors.Is(err, unix.EDQUOT)
}

// room looks after the room on the data disk.
type room struct {
	dir    *Dir
	slog   *slog.Logger
	file   int64                                      // bytes of one file of the log
	every  int64                                      // bytes of log between two snapshots
	statfs func(path string) (free uint64, err error) // nil: ask the system

	minFree  atomic.Uint64
	full     atomic.Bool   // there is less room than there should be
	free     atomic.Uint64 // bytes, at the last look
	reserved atomic.Uint64 // bytes in the reserve, at the last look
	needed   atomic.Uint64 // bytes, at the last look, free and reserved together

	snapshot atomic.Int64  // bytes of the newest one
	added    atomic.Int64  // bytes of log since that may have added to the state
	frozen   atomic.Int64  // of them, those that are in the snapshot in flight
	marked   atomic.Uint64 // index of the newest one that the log knows
	good     atomic.Uint64 // index of the newest one whose checksum was found right
	saving   atomic.Int32  // snapshots that are being written
	short    atomic.Bool   // the last snapshot found no room

	spent atomic.Int64  // bytes that the log took since the last look
	left  atomic.Uint64 // bytes, free and reserved together, at the last look
	tight atomic.Bool   // a snapshot would leave little to the log
	older atomic.Bool   // there is too little, and would be enough without the older snapshot
	wake  chan struct{} // has one element if somebody should do something about it

	mu sync.Mutex // guards the reserve file
}

// spend counts bytes that are about to be written to the log, and looks at free space every
// quarter of a log file: a fast writer fills a disk before the next look that is due by time.
func (d *Disk) spend(bytes int64) {
	if d.tight.Load() && d.saving.Load() > 0 {
		d.brake()
	}
	if d.spent.Add(bytes) <= d.file/4 {
		return
	}
	switch d.checkRoom(); {
	case d.left.Load() < 2*uint64(d.file):
		d.dropOlder() // or else the log would not get its next file
	case d.isScarce():
		notify(d.wake)
	}
}

// notify wakes the reader of a channel with room for one.
func notify(c chan<- struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// brake keeps the log from taking the room that a snapshot in flight was promised faster than
// the snapshot can be written. Many commands share a write: they wait a little, and nothing is
// refused.
func (d *Disk) brake() {
	timer := time.NewTimer(brakeFor)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-d.done:
	}
}

// isScarce reports whether there is hardly room for the log's next files.
func (r *room) isScarce() bool { return r.left.Load() < 4*uint64(r.file) }

// next is how large a snapshot of the present state may be: the size of the newest one, and
// twice what was added since, because a value can be both in a record and in the history of
// events.
func (r *room) next() int64 { return r.snapshot.Load() + 2*r.added.Load() }

// wanted is how large the reserve should be: that snapshot, and two files of the log, which
// etcd's wal allocates in advance.
func (r *room) wanted() uint64 { return uint64(r.next() + 2*r.file) }

// need is how much must be free, reserve included, for anything new to be granted. Even if
// nothing new is granted, log and snapshots must fit for ever: a snapshot may be larger than
// the log and the older snapshot that it replaces, and until it is done the log goes on, in
// whole files.
func (r *room) need() uint64 {
	outgrown := uint64(r.next()-r.snapshot.Load()) / 2
	return r.wanted() + outgrown + max(r.minFree.Load(), uint64(replica.SnapshotAfter(r.every, r.next())+2*r.file))
}

// roomLoop looks at the room that is left. It has a goroutine to itself: asking a file system
// that hangs does not return.
func (d *Disk) roomLoop() {
	ticker := time.NewTicker(watchEvery)
	defer ticker.Stop()
	for {
		select {
		case <-ticker.C:
		case <-d.wake:
		case <-d.done:
			return
		}
		if d.checkRoom(); d.isScarce() || d.older.Load() {
			d.dropOlder()
		}
	}
}

// checkRoom measures the room, raises or clears the alarm, and adjusts the reserve.
func (r *room) checkRoom() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.spent.Store(0)
	free, err := r.look()
	if err != nil {
		return // it can be told no better than before
	}
	held := r.held()
	need := r.need()
	r.free.Store(free)
	r.reserved.Store(held)
	r.needed.Store(need)
	making, older := r.making()
	// A snapshot in the making takes room that the older one gives back once it is done:
	// without this, every snapshot on a tight disk would raise the alarm for a moment.
	soon := free + held + min(making, older)
	margin := uint64(0)
	if r.full.Load() {
		margin = uint64(r.file) / 2 // what is just enough would be too little at the next look
	}
	full := r.short.Load() || r.minFree.Load() > 0 && soon < need+margin
	if r.full.Swap(full) != full {
		r.tell(full)
	}
	r.older.Store(full && !r.short.Load() && r.saving.Load() == 0 && making == 0 && free+held+older >= need+margin)
	r.left.Store(free + held)
	r.tight.Store(free+held+making < uint64(r.next()+4*r.file))
	r.fit(free, held, making)
}

// tell logs that room got scarce, or suffices again.
func (r *room) tell(full bool) {
	if !full {
		r.slog.Info("the data disk has room again", "free_bytes", r.free.Load(), "reserved_bytes", r.reserved.Load())
		return
	}
	r.slog.Warn("the data disk is low on room: nothing new is granted or written until there is more; renewals, "+
		"releases and deletions go on",
		"free_bytes", r.free.Load(), "reserved_bytes", r.reserved.Load(), "needed_bytes", r.needed.Load(),
		"min_free_bytes", r.minFree.Load())
}

// Lack says how much room is missing; empty: none is.
func (r *room) Lack() string {
	if !r.full.Load() {
		return ""
	}
	const mib = 1 << 20
	return fmt.Sprintf("the data disk is low on room: %d MiB are free and %d MiB in reserve, and %d MiB are needed "+
		"for min-free, the next snapshot and the log: "+
		"nothing new is granted or written until there is more; renewals, releases and deletions go on",
		r.free.Load()/mib, r.reserved.Load()/mib, (r.needed.Load()+mib-1)/mib)
}

// tellSize says if the disk as a whole is too small for the settings: then it will be low on room before long, whatever
// is deleted. The log has up to two snapshots' worth, and as many files as the reserve has room for.
func (r *room) tellSize(journal int64) {
	var s unix.Statfs_t
	if err := unix.Statfs(r.dir.Path, &s); err != nil {
		return
	}
	const mib = 1 << 20
	disk, snapshot := uint64(s.Blocks)*uint64(s.Bsize), r.snapshot.Load()
	needed := r.minFree.Load() + uint64(4*r.file+2*replica.SnapshotAfter(r.every, snapshot)+3*snapshot+journal)
	if disk >= needed || r.minFree.Load() == 0 {
		return
	}
	r.slog.Warn(fmt.Sprintf("the data disk has %d MiB, and these settings may need %d MiB: sooner or later nothing "+
		"new is granted. Put the data on a larger disk, or lower min-free (%d MiB, once), segment-size (%d MiB, four "+
		"times), snapshot-every (%d MiB, twice) or journal-size (%d MiB, once)", disk/mib, (needed+mib-1)/mib,
		r.minFree.Load()/mib, r.file/mib, r.every/mib, journal/mib), "data", r.dir.Path)
}

// fit brings the reserve to the size that it should have, and leaves two files of the log
// beside it. While a snapshot is being made, room that was given up for it is not taken back.
func (r *room) fit(free, held, making uint64) {
	beside := 2 * uint64(r.file)
	target := min(r.wanted(), max(free+held, beside)-beside, held+roomAtOnce) / roomEach * roomEach
	busy := making > 0 || r.saving.Load() > 0
	switch {
	case target < held && free < beside, target+roomEach < held && !busy:
		r.resize(target)
	case target >= held+roomEach && !busy:
		r.resize(target)
	}
}

// look returns how many bytes are free.
func (r *room) look() (uint64, error) {
	if r.statfs != nil {
		return r.statfs(r.dir.Path)
	}
	var s unix.Statfs_t
	if err := unix.Statfs(r.dir.Path, &s); err != nil {
		return 0, err
	}
	return uint64(s.Bavail) * uint64(s.Bsize), nil // their types differ between systems
}

// held returns how many bytes the reserve really occupies. On file systems that compress, or
// that cannot allocate in advance, it may be none.
func (r *room) held() uint64 {
	info, err := os.Stat(r.reserve())
	if err != nil {
		return 0
	}
	if s, ok := info.Sys().(*syscall.Stat_t); ok {
		return min(uint64(s.Blocks)*512, uint64(info.Size()))
	}
	return 0
}

func (r *room) reserve() string { return filepath.Join(r.dir.Path, reserveFile) }

// making returns how many bytes are in snapshots that the log does not name yet, and how many
// in those that go once it does: the ones older than the newest.
func (r *room) making() (bytes, older uint64) {
	files, err := os.ReadDir(r.dir.Snapshots())
	if err != nil {
		return 0, 0
	}
	for _, f := range files {
		info, err := f.Info()
		if err != nil {
			continue // it has got its name, or is gone
		}
		index, isState := stateIndex(f.Name())
		switch newest := r.marked.Load(); {
		case isState && index < newest:
			older += uint64(info.Size())
		case isState && index > newest, isUnfinished(f.Name()):
			bytes += uint64(info.Size())
		}
	}
	return bytes, older
}

// isUnfinished reports whether a file is being written, or was when the server ended.
func isUnfinished(name string) bool {
	return strings.HasSuffix(name, ".tmp") || strings.HasSuffix(name, partSuffix)
}

// resize sets the size of the reserve, or leaves it as it is. It is not synced: what a crash
// takes of it is made again.
func (r *room) resize(bytes uint64) {
	f, err := os.OpenFile(r.reserve(), os.O_WRONLY|os.O_CREATE, 0o600)
	if err != nil {
		return
	}
	defer f.Close()
	before := r.held()
	if bytes <= before {
		_ = f.Truncate(int64(bytes))
		return
	}
	if fileutil.Preallocate(f, int64(bytes), true) != nil {
		_ = f.Truncate(int64(before)) // somebody else was faster
	}
}

// yield gives up as much of the reserve as it takes for want bytes to be free, and returns
// how many are.
func (r *room) yield(want uint64) uint64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	free, err := r.look()
	held := r.held()
	if err != nil || free >= want || held == 0 {
		return free
	}
	r.resize(held - min(held, (want-free+roomEach-1)/roomEach*roomEach))
	free, _ = r.look()
	return free
}

// yieldFiles gives up as much of the reserve as the next files of the log need.
func (r *room) yieldFiles() { r.yield(2 * uint64(r.file)) }

// leavesRoom returns an error if a snapshot that is being written leaves no room for the log:
// without a snapshot the server goes on, without a log it ends.
func (r *room) leavesRoom() error {
	if r.yield(2*uint64(r.file)) < uint64(r.file+r.file/2) { // the log's next file, and the rest of this write
		return fmt.Errorf("it would leave no room for the log: %w", unix.ENOSPC)
	}
	return nil
}

func newRoom(c Config, dir *Dir) *room {
	r := &room{dir: dir, slog: c.Log, file: c.SegmentBytes, every: c.SnapshotEvery, wake: make(chan struct{}, 1)}
	r.minFree.Store(c.MinFree)
	return r
}

// Status is the state of the disk.
type Status struct {
	Free, Reserved, Needed uint64 // bytes, at the last look
	Full                   bool   // there is less room than there should be
	Short                  bool   // the last snapshot found no room
	Saving                 bool   // a snapshot is being written
}

// Status returns the state of the disk, as of the last look.
func (r *room) Status() Status {
	return Status{
		Free: r.free.Load(), Reserved: r.reserved.Load(), Needed: r.needed.Load(),
		Full: r.full.Load(), Short: r.short.Load(), Saving: r.saving.Load() > 0,
	}
}

// Full reports whether there is less room than there should be.
func (r *room) Full() bool { return r.full.Load() }

// SetMinFree changes how many bytes there must be for new leases, and looks at the room.
func (r *room) SetMinFree(bytes uint64) {
	r.minFree.Store(bytes)
	r.checkRoom()
}

// Applied counts the bytes of an entry that may have added to the state.
func (r *room) Applied(bytes int) { r.added.Add(int64(bytes)) }

// NeedsRoom reports whether a command adds to what is on the disk of each server for longer
// than a snapshot takes to clear.
func NeedsRoom(c core.Command) bool { return command.ClassOf(c) == command.Adds }
