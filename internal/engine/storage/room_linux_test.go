package storage

import (
	"errors"
	"log/slog"
	"os"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"go.etcd.io/etcd/server/v3/storage/wal"
	"go.etcd.io/etcd/server/v3/storage/wal/walpb"
	"go.etcd.io/raft/v3/raftpb"
	"go.uber.org/zap"

	"github.com/leasehold/leasehold/internal/core"
	"github.com/leasehold/leasehold/internal/engine/replica"
)

// The watchdog finds a write that hangs although the whole file system does.
func TestAFileSystemThatHangsDoesNotStopTheWatchdog(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		hangs, done, events := make(chan struct{}), make(chan struct{}), make(chan replica.Event, 10)
		d := &Disk{
			room: &room{dir: &Dir{}, slog: slog.New(slog.DiscardHandler), statfs: func(string) (uint64, error) {
				<-hangs
				return 0, errors.ErrUnsupported
			}},
			events: events, done: done,
		}
		d.inFlight.Store(1)
		var loops sync.WaitGroup
		loops.Go(d.watchLoop)
		loops.Go(d.roomLoop)
		for written := false; !written; {
			_, written = (<-events).(replica.Written)
		}
		close(done)
		close(hangs)
		loops.Wait()
	})
}

// scarceDisk is a disk with hardly any room, an older snapshot 1 and the newest, 2, which is for
// the caller to make.
func scarceDisk(t *testing.T) (d *Disk, stop func()) {
	t.Helper()
	dir := &Dir{Path: t.TempDir()}
	if err := os.MkdirAll(dir.Snapshots(), 0o700); err != nil {
		t.Fatal(err)
	}
	log, err := wal.Create(zap.NewNop(), dir.wal(), nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = log.Close() })
	writeEmpty(t, dir, 1)
	c := Config{SegmentBytes: testSegment, SnapshotEvery: testSegment, Log: slog.New(slog.DiscardHandler)}
	done := make(chan struct{})
	d = &Disk{room: newRoom(c, dir), log: log, done: done}
	d.statfs = func(string) (uint64, error) { return uint64(d.file), nil }
	d.marked.Store(2)
	return d, func() { close(done) }
}

func writeEmpty(t *testing.T, dir *Dir, index uint64) {
	t.Helper()
	if _, err := writeState(dir.Snapshots(), replica.Snapshot{Index: index, Term: 1, Roster: &replica.Roster{Cluster: "c"}, State: core.New()}, nil, nil); err != nil {
		t.Fatal(err)
	}
}

func isThere(d *Disk, index uint64) bool { return stateSize(d.dir.Snapshots(), index) > 0 }

// slowSnapshot makes the newest snapshot one whose reader waits for the test. What it returns
// opens it as soon as somebody reads it; nil: nobody does.
func slowSnapshot(t *testing.T, d *Disk) (reader func() *os.File) {
	t.Helper()
	name := stateName(d.dir.Snapshots(), 2)
	if err := syscall.Mkfifo(name, 0o600); err != nil {
		t.Fatal(err)
	}
	return func() *os.File {
		f, err := os.OpenFile(name, os.O_WRONLY|syscall.O_NONBLOCK, 0)
		if err != nil {
			return nil
		}
		return f
	}
}

// A large snapshot takes longer to read than the watchdog lets a write take.
func TestAWriteWithoutRoomReadsNoSnapshot(t *testing.T) {
	d, _ := scarceDisk(t)
	reader := slowSnapshot(t, d)
	spent := make(chan struct{})
	go func() {
		defer close(spent)
		d.spend(d.file)
	}()
	until(t, "the write goes on", func() bool {
		if f := reader(); f != nil {
			t.Error("the write reads the whole snapshot")
			_ = f.Close()
			<-spent
		}
		return isClosed(spent)
	})
	if !isThere(d, 1) {
		t.Error("the older snapshot is gone, and nobody knows whether the newest is good")
	}
}

// While the newest snapshot is read, which takes long, the log is written, and marks the next
// one. It turns out to be damaged.
func TestACheckOfASnapshotKeepsNobodyWaiting(t *testing.T) {
	d, _ := scarceDisk(t)
	reader := slowSnapshot(t, d)
	checked := make(chan struct{})
	go func() {
		defer close(checked)
		d.checkNewest()
	}()
	var f *os.File
	until(t, "the check reads", func() bool { f = reader(); return f != nil })
	d.spend(d.file)
	if !d.purging.TryLock() {
		t.Fatal("the check keeps the log from marking a snapshot")
	}
	d.purging.Unlock()
	if d.dropOlder() || !isThere(d, 1) {
		t.Error("the older snapshot is gone before the newest was checked")
	}
	_ = f.Close()
	<-checked
	if d.dropOlder() || !isThere(d, 1) {
		t.Error("the older snapshot is gone although the newest is damaged")
	}
}

// A snapshot that the log has marked is checked in the background; the older one then goes as
// soon as the log needs its room.
func TestAMarkedSnapshotIsCheckedInTheBackground(t *testing.T) {
	d, stop := scarceDisk(t)
	d.marked.Store(1)
	d.unchecked = make(chan struct{}, 1)
	writeEmpty(t, d.dir, 2)
	mark := &walpb.Snapshot{Index: new(uint64(2)), Term: new(uint64(1)), ConfState: &raftpb.ConfState{}}
	if err := d.log.Save(&raftpb.HardState{Term: new(uint64(1)), Commit: new(uint64(2))}, nil); err != nil {
		t.Fatal(err)
	}
	if err := d.mark(replica.Write{Snapshot: mark}); err != nil {
		t.Fatal(err)
	}
	if d.spend(d.file); !isThere(d, 1) {
		t.Fatal("the older snapshot is gone before the newest was checked")
	}
	var loop sync.WaitGroup
	loop.Go(d.checkLoop)
	until(t, "the snapshot is checked", func() bool { return d.good.Load() == 2 })
	stop()
	loop.Wait()
	if d.spend(d.file); isThere(d, 1) || !isThere(d, 2) {
		t.Error("the older snapshot is not removed, or the newest is")
	}
}

// The end of a server does not wait until a large snapshot is read.
func TestACheckOfASnapshotGivesUp(t *testing.T) {
	d, stop := scarceDisk(t)
	writeEmpty(t, d.dir, 2)
	stop()
	if err := checkState(d.dir.Snapshots(), 2, d.done); !errors.Is(err, errGaveUp) {
		t.Errorf("a check after the end: %v", err)
	}
}

// until waits for something that other goroutines bring about.
func until(t *testing.T, what string, done func() bool) {
	t.Helper()
	for end := time.Now().Add(time.Minute); !done(); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("it did not happen: %s", what)
		}
	}
}
