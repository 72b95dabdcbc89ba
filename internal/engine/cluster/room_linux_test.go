package cluster

import (
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"go.etcd.io/etcd/server/v3/storage/wal"
	"go.etcd.io/etcd/server/v3/storage/wal/walpb"
	"go.etcd.io/raft/v3/raftpb"
	"go.uber.org/zap"

	"github.com/leasehold/leasehold"
	"github.com/leasehold/leasehold/internal/audit"
	"github.com/leasehold/leasehold/internal/core"
)

// smallDisk returns a directory on a disk of so many MiB.
func smallDisk(t *testing.T, size int) string {
	t.Helper()
	dir := t.TempDir()
	if err := syscall.Mount("tmpfs", dir, "tmpfs", 0, fmt.Sprintf("size=%dm", size)); err != nil {
		t.Skipf("left out: a small disk needs root and tmpfs: %v", err)
	}
	t.Cleanup(func() {
		if err := syscall.Unmount(dir, syscall.MNT_DETACH); err != nil {
			t.Error(err)
		}
	})
	return dir
}

// onSmallDisk has the defaults, each divided by 64.
func onSmallDisk(dir string) Config {
	return Config{
		Dir: filepath.Join(dir, "data"), Clock: SystemClock(), SegmentBytes: testSegment,
		SnapshotEvery: DefaultSnapshotEvery / 64, MinFree: 256 << 20 / 64, JournalBytes: audit.MinBytes,
	}
}

func startIn(t *testing.T, c Config) *Engine {
	t.Helper()
	e, err := Start(t.Context(), c)
	if err != nil {
		t.Fatalf("start: %v", err)
	}
	return e
}

// alive fails the test if the server has ended.
func alive(t *testing.T, e *Engine) {
	t.Helper()
	if isClosed(e.Failed()) {
		t.Fatalf("the server ended: %v", e.Failure())
	}
}

func record(i int) *core.PutRecord {
	return &core.PutRecord{Namespace: "default", Path: fmt.Sprint("p", i), Value: strings.Repeat("x", 64<<10)}
}

// fillRecords puts records until that is refused, and returns how many there are.
func fillRecords(t *testing.T, e *Engine) int {
	t.Helper()
	for i := range 2000 {
		_, err := e.Do(t.Context(), record(i))
		if errors.Is(err, leasehold.ErrLimited) {
			return i
		}
		if err != nil {
			t.Fatalf("record %d: %v; the server: %v", i, err, e.Failure())
		}
	}
	t.Fatal("the disk never gets full")
	return 0
}

func taken(t *testing.T, e *Engine) (n uint64) {
	t.Helper()
	if err := e.inspect(t.Context(), func(n2 *Node) { n = n2.Statistics().Snapshots }); err != nil {
		alive(t, e)
		t.Fatal(err)
	}
	return n
}

// until waits for something that other goroutines bring about.
func until(t *testing.T, what string, done func() bool) {
	t.Helper()
	for end := time.Now().Add(time.Minute); !done(); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("in vain: %s", what)
		}
	}
}

// churn renews and deletes until so many more snapshots were taken. It waits for those, since
// no room is enough for a log that grows faster than snapshots can be written.
func churn(t *testing.T, e *Engine, more uint64) {
	t.Helper()
	want := taken(t, e) + more
	for taken(t, e) < want {
		until(t, "the snapshot ends", func() bool { return e.disk.saving.Load() == 0 && !e.disk.short.Load() })
		for range 50 {
			_, err := e.Do(t.Context(), &core.Renew{Namespace: "default", ID: "id-held"})
			if err == nil {
				_, err = e.Do(t.Context(), &core.DeleteRecord{Namespace: "default", Path: "none" + strings.Repeat("x", 400)})
			}
			if err != nil {
				alive(t, e)
				t.Fatal(err)
			}
		}
	}
}

// A server whose disk fills up refuses what is new in time for all the rest to go on, with
// snapshots, and for ever.
func TestAServerLivesOnASmallDisk(t *testing.T) {
	dir := smallDisk(t, 20)
	c := onSmallDisk(dir)
	e := startIn(t, c)
	acquire(t, e, "held")
	n := fillRecords(t, e)
	if n < 16 {
		t.Errorf("there was room for %d records of 64 KiB alone", n)
	}
	if w := e.Warnings(); len(w) != 1 || !strings.Contains(w[0], "low on room") {
		t.Errorf("it warns of %q", w)
	}
	churn(t, e, 4)
	for range 2 {
		closed(t, e)
		e = startIn(t, c)
		churn(t, e, 2)
	}
	if err := syscall.Mount("tmpfs", dir, "tmpfs", syscall.MS_REMOUNT, "size=60m"); err != nil {
		t.Fatal(err)
	}
	until(t, "there is room again", func() bool { return !e.disk.full.Load() })
	mustDo(t, e, record(0))
	if len(e.Warnings()) != 0 {
		t.Errorf("it still warns of %q", e.Warnings())
	}
	closed(t, e)
}

// fillUp lets somebody else take all the room that there is.
func fillUp(t *testing.T, dir string) {
	t.Helper()
	f, err := os.OpenFile(filepath.Join(dir, "foreign"), os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for _, size := range []int{64 << 10, 4 << 10, 1} {
		for err = nil; err == nil; {
			_, err = f.Write(make([]byte, size))
		}
	}
	if !errors.Is(err, syscall.ENOSPC) {
		t.Fatal(err)
	}
}

// While others take all the room that there is, again and again, leases are renewed and
// released. The server may end when the log needs another file, and starts when there is
// room.
func TestADiskThatOthersFill(t *testing.T) {
	dir := smallDisk(t, 20)
	c := onSmallDisk(dir)
	e := startIn(t, c)
	for i := range 100 {
		acquire(t, e, fmt.Sprint("r", i))
	}
	acquire(t, e, "held")
	for i := range 100 {
		fillUp(t, dir)
		mustDo(t, e, &core.Renew{Namespace: "default", ID: "id-held"})
		mustDo(t, e, &core.Release{Namespace: "default", ID: fmt.Sprint("id-r", i)})
		alive(t, e)
	}
	until(t, "the low room is seen", e.disk.full.Load)
	if _, err := e.Do(t.Context(), lease("new", time.Minute)); !errors.Is(err, leasehold.ErrLimited) {
		t.Errorf("something new: %v", err)
	}
	for !isClosed(e.Failed()) {
		fillUp(t, dir)
		_, _ = e.Do(t.Context(), &core.DeleteRecord{Namespace: "default", Path: strings.Repeat("x", 1000)})
	}
	if err := e.Failure(); !isNoRoom(err) || !strings.Contains(err.Error(), "make room") {
		t.Errorf("it ended: %v", err)
	}
	if err := e.Close(); err != nil {
		t.Error(err)
	}
	_ = e.disk.log.Close()
	if err := os.Remove(filepath.Join(dir, "foreign")); err != nil {
		t.Fatal(err)
	}
	e = startIn(t, c)
	mustDo(t, e, &core.Renew{Namespace: "default", ID: "id-held"})
	until(t, "there is room again", func() bool { return !e.disk.full.Load() })
	acquire(t, e, "new")
	closed(t, e)
}

// A server that ended because there was no room starts again from its reserve, or from the
// room of its older snapshot.
func TestAStartWithoutRoomTakesTheReserve(t *testing.T) {
	dir := smallDisk(t, 20)
	c := onSmallDisk(dir)
	e := startIn(t, c)
	acquire(t, e, "held")
	for i := range 16 {
		mustDo(t, e, record(i))
	}
	churn(t, e, 3)
	until(t, "there is a reserve", func() bool { return e.disk.reserved.Load() > 2*testSegment })
	closed(t, e)
	fillUp(t, dir)
	e = startIn(t, c)
	churn(t, e, 1)
	closed(t, e)
	if err := os.Remove(filepath.Join(c.Dir, reserveFile)); err != nil {
		t.Fatal(err)
	}
	fillUp(t, dir)
	e = startIn(t, c)
	for range 100 {
		mustDo(t, e, &core.Renew{Namespace: "default", ID: "id-held"})
	}
	closed(t, e)
}

// A snapshot for which the disk has no room is written as soon as there is some; until then
// the server says that it is low on room, whatever else is free.
func TestASnapshotThatTheDiskRefuses(t *testing.T) {
	mount, f := mountSynced(t, nil)
	c := onSmallDisk(mount)
	e := startIn(t, c)
	acquire(t, e, "held")
	for i := range 8 {
		mustDo(t, e, record(i))
	}
	// The log has two files already, and needs a third one for its next snapshot but one.
	f.SetRoom(100 << 10)
	churned := func() {
		mustDo(t, e, &core.Renew{Namespace: "default", ID: "id-held"})
		mustDo(t, e, &core.DeleteRecord{Namespace: "default", Path: strings.Repeat("x", 1000)})
	}
	for !e.disk.short.Load() {
		f.SetRoom(100 << 10) // whatever the reserve gives back is taken by others
		churned()
	}
	until(t, "it is seen", e.disk.full.Load)
	if n := taken(t, e); n != 0 {
		t.Fatalf("%d snapshots were taken", n)
	}
	if files, _ := filepath.Glob(filepath.Join(c.Dir, snapDir, "*")); len(files) != 0 {
		t.Errorf("files are left: %v", files)
	}
	f.Unlimit()
	until(t, "the snapshot is taken", func() bool { return taken(t, e) == 1 })
	until(t, "there is room again", func() bool { return !e.disk.full.Load() })
	acquire(t, e, "new")
	closed(t, e)
}

// The watchdog finds a write that hangs although the whole file system does.
func TestAFileSystemThatHangsDoesNotStopTheWatchdog(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		hangs, events := make(chan struct{}), make(chan Event, 10)
		d := &disk{
			room: &room{dir: &dataDir{}, slog: slog.New(slog.DiscardHandler), statfs: func(string) (uint64, error) {
				<-hangs
				return 0, errors.ErrUnsupported
			}},
			events: events, done: make(chan struct{}),
		}
		d.inFlight.Store(1)
		var loops sync.WaitGroup
		loops.Go(d.watchLoop)
		loops.Go(d.roomLoop)
		for written := false; !written; {
			_, written = (<-events).(Written)
		}
		close(d.done)
		close(hangs)
		loops.Wait()
	})
}

// scarceDisk is a disk with hardly any room, an older snapshot 1 and the newest, 2, which is for
// the caller to make.
func scarceDisk(t *testing.T) *disk {
	t.Helper()
	dir := &dataDir{path: t.TempDir()}
	if err := os.MkdirAll(dir.snap(), 0o700); err != nil {
		t.Fatal(err)
	}
	log, err := wal.Create(zap.NewNop(), dir.wal(), nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = log.Close() })
	writeEmpty(t, dir, 1)
	c := Config{SegmentBytes: testSegment, SnapshotEvery: testSegment, Log: slog.New(slog.DiscardHandler)}
	d := &disk{room: newRoom(c, dir), log: log, done: make(chan struct{})}
	d.statfs = func(string) (uint64, error) { return uint64(d.file), nil }
	d.marked.Store(2)
	return d
}

func writeEmpty(t *testing.T, dir *dataDir, index uint64) {
	t.Helper()
	if _, err := writeState(dir.snap(), Snapshot{Index: index, Term: 1, State: core.New()}, nil, nil); err != nil {
		t.Fatal(err)
	}
}

func isThere(d *disk, index uint64) bool { return stateSize(d.dir.snap(), index) > 0 }

// slowSnapshot makes the newest snapshot one whose reader waits for the test. What it returns
// opens it as soon as somebody reads it; nil: nobody does.
func slowSnapshot(t *testing.T, d *disk) (reader func() *os.File) {
	t.Helper()
	name := stateName(d.dir.snap(), 2)
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
	d := scarceDisk(t)
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
	d := scarceDisk(t)
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
	d := scarceDisk(t)
	d.marked.Store(1)
	d.unchecked = make(chan struct{}, 1)
	writeEmpty(t, d.dir, 2)
	mark := &walpb.Snapshot{Index: new(uint64(2)), Term: new(uint64(1)), ConfState: &raftpb.ConfState{}}
	if err := d.log.Save(&raftpb.HardState{Term: new(uint64(1)), Commit: new(uint64(2))}, nil); err != nil {
		t.Fatal(err)
	}
	if err := d.mark(Write{Snapshot: mark}); err != nil {
		t.Fatal(err)
	}
	if d.spend(d.file); !isThere(d, 1) {
		t.Fatal("the older snapshot is gone before the newest was checked")
	}
	var loop sync.WaitGroup
	loop.Go(d.checkLoop)
	until(t, "the snapshot is checked", func() bool { return d.good.Load() == 2 })
	close(d.done)
	loop.Wait()
	if d.spend(d.file); isThere(d, 1) || !isThere(d, 2) {
		t.Error("the older snapshot is not removed, or the newest is")
	}
}

// The end of a server does not wait until a large snapshot is read.
func TestACheckOfASnapshotGivesUp(t *testing.T) {
	d := scarceDisk(t)
	writeEmpty(t, d.dir, 2)
	close(d.done)
	if err := checkState(d.dir.snap(), 2, d.done); !errors.Is(err, errGaveUp) {
		t.Errorf("a check after the end: %v", err)
	}
}
