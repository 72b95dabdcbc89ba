package storage

import (
	"errors"
	"os"
)

// MakeRoom makes room for a snapshot: from the reserve first, then from the older snapshot with
// the log that only that one needs. It does not promise that there is enough afterwards.
func (d *Disk) MakeRoom() {
	next := uint64(d.next())
	if d.yield(next+2*uint64(d.file)) < next+uint64(d.file) {
		d.dropOlderOnceChecked()
	}
}

// checkLoop reads each snapshot once, after it is marked in the log. Only one that was read
// back may replace the older one when room is short. It has a goroutine to itself: reading a
// large snapshot takes longer than a log write or a look at free space may wait.
func (d *Disk) checkLoop() {
	for {
		select {
		case <-d.unchecked:
			if d.checkNewest(); d.isScarce() {
				notify(d.wake)
			}
		case <-d.done:
			return
		}
	}
}

// checkNewest reads the newest marked snapshot, unless it was found good before.
func (d *Disk) checkNewest() {
	d.checking.Lock()
	defer d.checking.Unlock()
	newest := d.marked.Load()
	if newest == d.good.Load() {
		return
	}
	err := checkState(d.dir.Snapshots(), newest, d.done)
	overtaken := d.marked.Load() != newest
	switch {
	case err == nil:
		d.good.Store(newest)
	// Purged while it was read: there is a newer one to check.
	case errors.Is(err, errGaveUp), overtaken && errors.Is(err, os.ErrNotExist):
	default:
		d.slog.Error("the newest snapshot is damaged: an older one is kept even if there is no room", "err", err)
	}
}

// dropOlderOnceChecked is dropOlder for callers that can wait until the newest snapshot has
// been read.
func (d *Disk) dropOlderOnceChecked() bool {
	d.checkNewest()
	return d.dropOlder()
}

// dropOlder removes all marked snapshots but the newest, and the log that only those need, if
// the newest is known to be good. It reports whether there was anything to remove. It reads no
// snapshot itself, since the log may be waiting for it.
func (d *Disk) dropOlder() bool {
	d.purging.Lock()
	defer d.purging.Unlock()
	newest := d.marked.Load()
	if newest != d.good.Load() {
		return false
	}
	older, err := olderStates(d.dir.Snapshots(), newest)
	if err != nil || len(older) == 0 {
		return false
	}
	err = errors.Join(d.log.ReleaseLockTo(newest), purgeLog(d.dir.wal(), newest),
		purgeStates(d.dir.Snapshots(), newest))
	if err != nil {
		d.slog.Warn("the older snapshot could not be removed to make room", "err", err)
		return false
	}
	d.slog.Warn("the older snapshot was removed to make room", "kept", newest)
	return true
}

// roomToStart makes room for the log, which allocates two files soon after a start. Without
// them the server would stop at once, and again at each start, and could never take the
// snapshot that frees room. The newest snapshot has just been read, so it is good.
func roomToStart(c Config, dir *Dir, newest uint64) {
	r := newRoom(c, dir)
	want := 2 * uint64(r.file)
	if r.yield(want) >= want {
		return
	}
	older, err := olderStates(dir.Snapshots(), newest)
	if err != nil || len(older) == 0 {
		return
	}
	err = errors.Join(purgeLog(dir.wal(), newest), purgeStates(dir.Snapshots(), newest))
	if err != nil {
		c.Log.Warn("the older snapshot could not be removed to make room for the log", "err", err)
		return
	}
	c.Log.Warn("the older snapshot was removed to make room for the log", "kept", newest)
}
