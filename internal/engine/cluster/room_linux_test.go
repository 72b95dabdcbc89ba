package cluster

import (
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/leasehold/leasehold"
	"github.com/leasehold/leasehold/internal/audit"
	"github.com/leasehold/leasehold/internal/core"
	"github.com/leasehold/leasehold/internal/engine"
	"github.com/leasehold/leasehold/internal/engine/replica"
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
	if err := e.inspect(t.Context(), func(n2 *replica.Node) { n = n2.Statistics().Snapshots }); err != nil {
		alive(t, e)
		t.Fatal(err)
	}
	return n
}

// churn renews and deletes until so many more snapshots were taken. It waits for those, since
// no room is enough for a log that grows faster than snapshots can be written.
func churn(t *testing.T, e *Engine, more uint64) {
	t.Helper()
	want := taken(t, e) + more
	for taken(t, e) < want {
		until(t, "the snapshot ends", func() bool { return !e.disk.Status().Saving && !e.disk.Status().Short })
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
	until(t, "there is room again", func() bool { return !e.disk.Full() })
	mustDo(t, e, record(0))
	if len(e.Warnings()) != 0 {
		t.Errorf("it still warns of %q", e.Warnings())
	}
	closed(t, e)
}

// A calendar that is ahead, as if a while had passed.
type ahead struct {
	engine.Clock
	by *atomic.Int64
}

func (a ahead) Wall() time.Time { return a.Clock.Wall().Add(time.Duration(a.by.Load())) }

// Records that are deleted make room, although nothing new happens that would move history on.
func TestDeletedRecordsMakeRoomOnASmallDisk(t *testing.T) {
	c := onSmallDisk(smallDisk(t, 40))
	var by atomic.Int64
	c.Clock = ahead{SystemClock(), &by}
	e := startIn(t, c)
	n := fillRecords(t, e)
	for i := range n {
		mustDo(t, e, &core.DeleteRecord{Namespace: "default", Path: fmt.Sprint("p", i)})
	}
	if !e.disk.Full() {
		t.Skip("there is room already")
	}
	by.Store(int64(2 * time.Minute))
	until(t, "there is room again", func() bool { return !e.disk.Full() })
	mustDo(t, e, record(0))
	closed(t, e)
}

// A disk that is too small for the settings is said to be, with what it should have.
func TestADiskThatIsTooSmallIsSaidToBe(t *testing.T) {
	c := onSmallDisk(smallDisk(t, 10))
	c.MinFree = 4 << 20
	log := &lockedLog{}
	c.Log = slog.New(slog.NewTextHandler(log, nil))
	closed(t, startIn(t, c))
	want := "the data disk has 10 MiB, and these settings may need 11 MiB"
	if text := log.String(); !strings.Contains(text, want) || !strings.Contains(text, "lower min-free (4 MiB, once), segment-size (1 MiB, four times)") {
		t.Errorf("it says\n%s", text)
	}
	c.Dir, c.MinFree = filepath.Join(t.TempDir(), "data"), 4<<20
	log.b.Reset()
	closed(t, startIn(t, c))
	if text := log.String(); strings.Contains(text, "may need") {
		t.Errorf("of a large disk it says\n%s", text)
	}
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
	until(t, "the low room is seen", e.disk.Full)
	if _, err := e.Do(t.Context(), lease("new", time.Minute)); !errors.Is(err, leasehold.ErrLimited) {
		t.Errorf("something new: %v", err)
	}
	for !isClosed(e.Failed()) {
		fillUp(t, dir)
		_, _ = e.Do(t.Context(), &core.DeleteRecord{Namespace: "default", Path: strings.Repeat("x", 1000)})
	}
	if err := e.Failure(); !errors.Is(err, replica.ErrNoRoom) || !strings.Contains(err.Error(), "make room") {
		t.Errorf("it ended: %v", err)
	}
	if err := e.Close(); err != nil {
		t.Error(err)
	}
	_ = e.disk.CloseLog()
	if err := os.Remove(filepath.Join(dir, "foreign")); err != nil {
		t.Fatal(err)
	}
	e = startIn(t, c)
	mustDo(t, e, &core.Renew{Namespace: "default", ID: "id-held"})
	until(t, "there is room again", func() bool { return !e.disk.Full() })
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
	until(t, "there is a reserve", func() bool { return e.disk.Status().Reserved > 2*testSegment })
	closed(t, e)
	fillUp(t, dir)
	e = startIn(t, c)
	churn(t, e, 1)
	closed(t, e)
	if err := os.Remove(filepath.Join(c.Dir, "reserve")); err != nil {
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
	for !e.disk.Status().Short {
		f.SetRoom(100 << 10) // whatever the reserve gives back is taken by others
		churned()
	}
	until(t, "it is seen", e.disk.Full)
	if n := taken(t, e); n != 0 {
		t.Fatalf("%d snapshots were taken", n)
	}
	if files, _ := filepath.Glob(filepath.Join(c.Dir, snapDir, "*")); len(files) != 0 {
		t.Errorf("files are left: %v", files)
	}
	f.Unlimit()
	until(t, "the snapshot is taken", func() bool { return taken(t, e) == 1 })
	until(t, "there is room again", func() bool { return !e.disk.Full() })
	acquire(t, e, "new")
	closed(t, e)
}
