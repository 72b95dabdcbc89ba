package storage

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"go.etcd.io/etcd/server/v3/storage/wal"
	"go.etcd.io/etcd/server/v3/storage/wal/walpb"
	"go.etcd.io/raft/v3"
	"go.etcd.io/raft/v3/raftpb"
	"go.uber.org/zap"

	"github.com/leasehold/leasehold/internal/core"
	"github.com/leasehold/leasehold/internal/engine/replica"
)

// Recovery: what a server finds in its data directory at a start. It trusts nothing that it
// cannot check. A torn end of the log is cut off, since nobody was answered from it; anything
// else that is wrong stops the start, because data that were acknowledged may be missing, and a
// server that went on without them would break its promises in silence.

// Recovered is what a data directory holds.
type Recovered struct {
	Log     *wal.WAL
	Storage *raft.MemoryStorage
	State   *core.State
	Roster  *replica.Roster
	Applied uint64
	Fresh   bool  // there was nothing yet
	torn    bool  // but a part of the first write
	Size    int64 // of the snapshot that it started from
}

// Recover reads a data directory: the newest snapshot, and the log after it. If there is hardly
// any free space, it first makes room for the log.
func Recover(c Config, d *Dir) (*Recovered, error) {
	if wal.SegmentSizeBytes != c.SegmentBytes {
		wal.SegmentSizeBytes = c.SegmentBytes // etcd keeps it in a variable of the package
	}
	return recoverDir(d, func(newest uint64) { roomToStart(c, d, newest) })
}

// recoverDir reads a data directory: the newest snapshot, and the log after it. Once the
// snapshot has been read and is good, and before the log is opened, it calls found with the
// snapshot's index; found may be nil.
func recoverDir(d *Dir, found func(newest uint64)) (*Recovered, error) {
	if err := os.MkdirAll(d.Snapshots(), 0o700); err != nil {
		return nil, err
	}
	if !d.Begun {
		return beginLog(d)
	}
	if _, err := os.Stat(d.wal()); err != nil {
		return nil, fmt.Errorf("the log %s is missing. %s", d.wal(), whatNow)
	}
	scan, err := scanLog(d.wal())
	if err != nil {
		return nil, err
	}
	mark, snapshot, size, err := d.newestState(scan.snapshots)
	if err != nil {
		return nil, err
	}
	if found != nil {
		found(mark.GetIndex())
	}
	r := &Recovered{State: snapshot.State, Roster: snapshot.Roster,
		Applied: mark.GetIndex(), Size: size}
	if err := r.readLog(d.wal(), mark, scan.lastIndex); err != nil || !r.torn {
		return r, err
	}
	return beginAgain(d, r.Log)
}

// beginAgain makes a new log for a server whose very first write was torn: what is left of it
// would contradict what is written next.
func beginAgain(d *Dir, log *wal.WAL) (*Recovered, error) {
	if err := log.Close(); err != nil {
		return nil, err
	}
	// Written down before the old log goes: a crash in between must not look like a lost log.
	d.Begun = false
	if err := d.Save(); err != nil {
		return nil, err
	}
	return beginLog(d)
}

// beginLog makes the first log. What an earlier try left is of no value: nobody was ever
// answered from it, because Begun is set only afterwards.
func beginLog(d *Dir) (*Recovered, error) {
	if err := os.RemoveAll(d.wal()); err != nil {
		return nil, err
	}
	log, err := wal.Create(zap.NewNop(), d.wal(), []byte(strconv.FormatUint(d.Node, 10)))
	if err != nil {
		return nil, fmt.Errorf("the log %s cannot be made: %w", d.wal(), err)
	}
	if err := d.setBegun(); err != nil {
		return nil, err
	}
	return &Recovered{Log: log, Storage: raft.NewMemoryStorage(), State: core.New(),
		Roster: &replica.Roster{Cluster: d.Cluster}, Fresh: true}, nil
}

// newestState reads the newest snapshot that the log names. A damaged one is refused: somebody
// should look at the disk first. One that was taken away is passed over, as long as an older
// one is there for the log to continue from.
func (d *Dir) newestState(marks []*walpb.Snapshot) (*walpb.Snapshot, replica.Snapshot, int64, error) {
	for _, mark := range slices.Backward(marks) {
		if mark.GetIndex() == 0 {
			return mark, replica.Snapshot{State: core.New(), Roster: &replica.Roster{Cluster: d.Cluster}}, 0, nil
		}
		s, size, err := d.readState(mark.GetIndex(), mark.GetTerm())
		if err == nil {
			return mark, s, size, nil
		}
		if !errors.Is(err, os.ErrNotExist) {
			return nil, replica.Snapshot{}, 0, err
		}
	}
	return nil, replica.Snapshot{}, 0,
		fmt.Errorf("%s has none of the snapshots that the log continues. %s", d.Snapshots(), whatNow)
}

// readLog reads the entries after a snapshot and leaves the log open for more. etcd's wal
// panics on some kinds of damage, which here is an error like any other.
func (r *Recovered) readLog(dir string, snapshot *walpb.Snapshot, last uint64) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = damaged(dir, fmt.Sprint(p))
		}
	}()
	r.Log, err = wal.Open(zap.NewNop(), dir, snapshot)
	if err != nil {
		return damaged(dir, err.Error())
	}
	_, hard, entries, err := r.Log.ReadAll()
	if err != nil {
		_ = r.Log.Close()
		return damaged(dir, err.Error())
	}
	if snapshot.GetIndex() == 0 && raft.IsEmptyHardState(hard) {
		// The first write holds the hard state: without one it never reached the disk, or not
		// all of it, and nobody was promised anything.
		r.Fresh, r.torn, entries = true, len(entries) > 0, nil
	}
	// What another server's snapshot replaced is still in the files, with the terms of leaders before it.
	entries = slices.DeleteFunc(entries, func(e *raftpb.Entry) bool { return e.GetIndex() > last })
	r.Storage, err = replica.NewStorage(snapshot, hard, entries)
	return err
}

// purgeLog removes the log files that recovery does not need if it starts from an index. A
// file's name has the index of its first entry, so the last file that begins at or before the
// index is the first one that is needed.
func purgeLog(dir string, index uint64) error {
	names, err := logNames(dir)
	if err != nil {
		return err
	}
	needed := 0
	for i, name := range names {
		if first, ok := firstIndex(name); ok && first <= index {
			needed = i
		}
	}
	var errs []error
	for _, name := range names[:needed] {
		errs = append(errs, os.Remove(filepath.Join(dir, name)))
	}
	if needed > 0 {
		errs = append(errs, SyncDir(dir))
	}
	return errors.Join(errs...)
}

// firstIndex reads the index of the first entry from the name of a log file.
func firstIndex(name string) (uint64, bool) {
	_, index, ok := strings.Cut(strings.TrimSuffix(name, ".wal"), "-")
	n, err := strconv.ParseUint(index, 16, 64)
	return n, ok && err == nil
}
