package cluster

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"go.etcd.io/etcd/client/pkg/v3/fileutil"
	"go.etcd.io/etcd/server/v3/storage/wal"
	"go.etcd.io/etcd/server/v3/storage/wal/walpb"

	"github.com/leasehold/leasehold"
	"github.com/leasehold/leasehold/internal/core"
	"github.com/leasehold/leasehold/internal/engine/replica"
	"github.com/leasehold/leasehold/internal/engine/storage"
	"github.com/leasehold/leasehold/internal/wire"
)

func mustDo(t *testing.T, e *Engine, c core.Command) core.Answer {
	t.Helper()
	a, err := e.Do(t.Context(), c)
	if err != nil {
		t.Fatalf("%T: %v", c, err)
	}
	return a
}

// hash names a state: two that are the same write the same snapshot.
func hash(t *testing.T, s *core.State) uint32 {
	t.Helper()
	summary, err := wire.WriteSnapshot(discard{}, s)
	if err != nil {
		t.Fatal(err)
	}
	return summary.Checksum
}

type discard struct{}

func (discard) Write(b []byte) (int, error) { return len(b), nil }

func TestARestartLosesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dir := t.TempDir()
		clock := newTestClock("boot")
		e := startAt(t, dir, Config{Clock: clock})
		mustDo(t, e, &core.OpenSession{Namespace: "default", ID: "s", TTL: time.Minute})
		mustDo(t, e, &core.Acquire{Namespace: "default", Resource: "a", ID: "a1", Holder: "ann", Session: "s"})
		mustDo(t, e, &core.Acquire{Namespace: "default", Resource: "b", ID: "b1", Holder: "ann", TTL: time.Minute})
		mustDo(t, e, &core.Acquire{Namespace: "default", Resource: "b", ID: "b2", Holder: "bob", TTL: time.Minute, Wait: time.Hour, Session: ""})
		closed(t, e)
		time.Sleep(5 * time.Second)

		e = startAt(t, dir, Config{Clock: clock})
		b := mustDo(t, e, &core.Acquire{Namespace: "default", Resource: "b", ID: "b1", Holder: "ann", TTL: time.Minute}).Lease
		if b.Token != 2 || b.Remaining != 55*time.Second {
			t.Errorf("b has token %d and %v left", b.Token, b.Remaining)
		}
		mustDo(t, e, &core.Release{Namespace: "default", ID: "b1"})
		b2 := mustDo(t, e, &core.Acquire{Namespace: "default", Resource: "b", ID: "b2", Holder: "bob", TTL: time.Minute}).Lease
		if b2 == nil || b2.Token != 3 {
			t.Errorf("the waiter's place is gone: %+v", b2)
		}
		closed(t, e)
	})
}

// A log with many snapshots gives the same state as the log alone.
func TestSnapshotsAndLogTogetherAreTheState(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		dir := t.TempDir()
		clock := newTestClock("boot")
		snapshots := uint64(0)
		for round := range 4 {
			e := startAt(t, dir, Config{Clock: clock, SnapshotEvery: 20 << 10})
			for i := range 200 {
				id := fmt.Sprint(round, "-", i)
				mustDo(t, e, &core.Acquire{Namespace: "default", Resource: id, ID: id, Holder: strings.Repeat("h", 200), TTL: time.Hour})
				if i%3 == 0 {
					mustDo(t, e, &core.Release{Namespace: "default", ID: id})
				}
			}
			closed(t, e)
			before := hash(t, e.node.State())
			snapshots += e.node.Statistics().Snapshots
			report, err := storage.Check(dir)
			if err != nil {
				t.Fatal(err)
			}
			if report.Checksum != before {
				t.Fatalf("round %d: recovered %08x, was %08x", round, report.Checksum, before)
			}
		}
		if snapshots < 3 {
			t.Errorf("%d snapshots were taken", snapshots)
		}
		// Two, and perhaps one that was not marked any more when the server closed.
		if states, _ := filepath.Glob(filepath.Join(dir, snapDir, "*")); len(states) < 2 || len(states) > 3 {
			t.Errorf("%d states are kept: %v", len(states), states)
		}
		if logs, _ := filepath.Glob(filepath.Join(dir, walDir, "*.wal")); len(logs) > 4 {
			t.Errorf("%d files of log are kept: %v", len(logs), logs)
		}
	})
}

func TestADamagedSnapshotIsRefused(t *testing.T) {
	dir := filled(t, 20<<10, 300)
	report, err := storage.Check(dir)
	if states, _ := filepath.Glob(filepath.Join(dir, snapDir, "*")); err != nil || len(states) < 2 {
		t.Fatalf("%d snapshots, %v", len(states), err)
	}
	newest := filepath.Join(dir, snapDir, fmt.Sprintf("%016x.snap.db", report.Snapshot))
	good := read(t, newest)
	for _, at := range []int{0, 9, 20, 27, 30, len(good) / 2, len(good) - 1} {
		bad := append([]byte(nil), good...)
		bad[at] ^= 0x10
		write(t, newest, bad)
		refused(t, dir, newest)
	}
	write(t, newest, good[:len(good)-1])
	refused(t, dir, newest)
	write(t, newest, nil)
	refused(t, dir, newest)

	// Whoever takes it away gets the older one, and all of the log.
	if err := os.Remove(newest); err != nil {
		t.Fatal(err)
	}
	if report, err = storage.Check(dir); err != nil {
		t.Fatal(err)
	}
	if report.Counts.Leases != 300 {
		t.Errorf("%d of 300 leases are there", report.Counts.Leases)
	}
}

func TestALogThatContinuesALostSnapshotIsRefused(t *testing.T) {
	dir := t.TempDir()
	e := startAt(t, dir, Config{Clock: SystemClock(), SnapshotEvery: 300 << 10})
	label := leasehold.Labels{{Key: "k", Value: strings.Repeat("v", 4000)}}
	for i := range 900 { // the log is longer than three of its files
		mustDo(t, e, &core.Acquire{Namespace: "default", Resource: "r", ID: fmt.Sprint("id", i), Holder: "h", TTL: time.Hour, Labels: label})
		mustDo(t, e, &core.Release{Namespace: "default", ID: fmt.Sprint("id", i)})
	}
	closed(t, e)
	if _, err := os.Stat(filepath.Join(dir, walDir, "0000000000000000-0000000000000000.wal")); err == nil {
		t.Fatal("the first file of the log is still there")
	}
	states, _ := filepath.Glob(filepath.Join(dir, snapDir, "*"))
	for _, name := range states {
		if err := os.Remove(name); err != nil {
			t.Fatal(err)
		}
	}
	refused(t, dir, snapDir)
}

// filled returns the directory of a closed server with so many leases.
func filled(t *testing.T, snapshotEvery int64, leases int) string {
	t.Helper()
	dir := t.TempDir()
	e := startAt(t, dir, Config{Clock: SystemClock(), SnapshotEvery: snapshotEvery})
	for i := range leases {
		mustDo(t, e, &core.Acquire{Namespace: "default", Resource: fmt.Sprint("r", i), ID: fmt.Sprint("id", i), Holder: strings.Repeat("h", 100), TTL: time.Hour})
	}
	closed(t, e)
	return dir
}

// refused wants a server not to start, with an error that names a file and says
// what to do.
func refused(t *testing.T, dir, file string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	e, err := Start(ctx, Config{Dir: dir, SegmentBytes: testSegment})
	if err == nil {
		_ = e.Close()
		t.Fatal("it starts")
	}
	if !strings.Contains(err.Error(), file) || !strings.Contains(err.Error(), "backup") {
		t.Fatalf("the error does not help: %v", err)
	}
}

func read(t *testing.T, name string) []byte {
	t.Helper()
	b, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func write(t *testing.T, name string, b []byte) {
	t.Helper()
	if err := os.WriteFile(name, b, 0o600); err != nil {
		t.Fatal(err)
	}
}

func TestTwoServersDoNotShareADirectory(t *testing.T) {
	dir := t.TempDir()
	e := startAt(t, dir, Config{Clock: SystemClock()})
	defer closed(t, e)
	_, err := Start(t.Context(), Config{Dir: dir, SegmentBytes: testSegment})
	if err == nil || !strings.Contains(err.Error(), fmt.Sprint("process ", os.Getpid())) {
		t.Fatalf("the second one: %v", err)
	}
	if _, err := storage.Check(dir); err == nil {
		t.Fatal("check looks at the data of a running server")
	}
}

func TestWhatIsNotOursIsNotTouched(t *testing.T) {
	for what, prepare := range map[string]func(dir string){
		"files that are not Leasehold's": func(dir string) { write(t, filepath.Join(dir, "notes.txt"), []byte("mine")) },
		"not Leasehold's":                func(dir string) { write(t, filepath.Join(dir, formatFile), []byte("mine")) },
		"newer version": func(dir string) {
			write(t, filepath.Join(dir, formatFile), fmt.Appendf(nil, `{"product":"leasehold","format":%d,"node":1}`, storage.FormatAt(core.NewestLevel)+1))
		},
		"damaged": func(dir string) {
			write(t, filepath.Join(dir, formatFile), []byte(`{"product":"leasehold","format":0}`))
		},
		"is missing": func(dir string) {
			write(t, filepath.Join(dir, formatFile), []byte(`{"product":"leasehold","format":6,"node":1,"begun":true}`))
		},
	} {
		dir := t.TempDir()
		prepare(dir)
		if _, err := Start(t.Context(), Config{Dir: dir, SegmentBytes: testSegment}); err == nil || !strings.Contains(err.Error(), what) {
			t.Errorf("%s: %v", what, err)
		}
	}
}

// A start that was interrupted before the log was begun has answered nobody.
func TestAnInterruptedFirstStartIsBegunAgain(t *testing.T) {
	dir := t.TempDir()
	write(t, filepath.Join(dir, formatFile), []byte(`{"product":"leasehold","format":6,"node":1,"name":"d","cluster":"c","begun":false}`))
	if err := os.MkdirAll(filepath.Join(dir, walDir), 0o700); err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(dir, walDir, "0000000000000000-0000000000000000.wal"), []byte("half a"))
	e := startAt(t, dir, Config{Clock: SystemClock()})
	acquire(t, e, "r")
	closed(t, e)
}

// The first write is torn between its records, or between two sectors: nobody was answered, and
// the log begins anew.
func TestATornFirstWriteStartsClean(t *testing.T) {
	whole := t.TempDir()
	closed(t, startAt(t, whole, Config{Clock: SystemClock()}))
	file := filepath.Join(walDir, "0000000000000000-0000000000000000.wal")
	for _, at := range firstWrite(t, filepath.Join(whole, file)) {
		dir := t.TempDir()
		if err := os.CopyFS(dir, os.DirFS(whole)); err != nil {
			t.Fatal(err)
		}
		b := read(t, filepath.Join(dir, file))
		clear(b[at:])
		write(t, filepath.Join(dir, file), b)
		for range 2 { // what the first start writes must not stand against what was left
			e := startAt(t, dir, Config{Clock: SystemClock()})
			mustDo(t, e, &core.Acquire{Namespace: "default", Resource: "r", ID: "id", Holder: "h", TTL: time.Hour})
			closed(t, e)
		}
		if report, err := storage.Check(dir); err != nil || report.Counts.Leases != 1 {
			t.Fatalf("cut at byte %d: %d leases, %v", at, report.Counts.Leases, err)
		}
	}
}

// firstWrite returns where the first write of a log can be torn.
func firstWrite(t *testing.T, name string) (places []int64) {
	t.Helper()
	f, err := os.Open(name)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	d, record := wal.NewDecoder(fileutil.NewFileReader(f)), &walpb.Record{}
	for record.GetType() != wal.StateType {
		before := d.LastOffset()
		if err := d.Decode(record); err != nil {
			t.Fatal(err)
		}
		switch record.GetType() {
		case wal.CrcType:
			d.UpdateCRC(record.GetCrc())
		case wal.EntryType, wal.StateType:
			places = append(places, before)
			for sector := (before/512 + 1) * 512; sector < d.LastOffset(); sector += 512 {
				places = append(places, sector)
			}
		}
	}
	if len(places) < 2 {
		t.Fatalf("the first write can be torn at %v only", places)
	}
	return places
}

func TestAFullDiskTakesNothingNewAndKeepsWhatIsThere(t *testing.T) {
	e := startAt(t, t.TempDir(), Config{Clock: SystemClock()})
	defer closed(t, e)
	acquire(t, e, "r")
	mustDo(t, e, &core.PutRecord{Namespace: "default", Path: "p"})
	e.disk.SetMinFree(1 << 62)
	for _, c := range []core.Command{
		lease("s", time.Minute), &core.PutRecord{Namespace: "default", Path: "p"},
		&core.Txn{Namespace: "default", Else: []core.Op{{Do: core.Nested, Txn: &core.Txn{Then: []core.Op{{Do: core.Put, Path: "q"}}}}}},
	} {
		if _, err := e.Do(t.Context(), c); !errors.Is(err, leasehold.ErrLimited) {
			t.Fatalf("%T: %v", c, err)
		}
	}
	// As clients of etcd delete keys, and unlock.
	mustDo(t, e, &core.Txn{Namespace: "default", Then: []core.Op{{Do: core.Nested, Txn: &core.Txn{Then: []core.Op{{Do: core.Delete, Path: "p"}}}}}})
	mustDo(t, e, &core.DeleteRecord{Namespace: "default", Path: "p"})
	mustDo(t, e, &core.Renew{Namespace: "default", ID: "id-r"})
	mustDo(t, e, &core.Release{Namespace: "default", ID: "id-r"})
}

func TestAStalledWriteIsTheEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := startAt(t, t.TempDir(), Config{})
		acquire(t, e, "r")
		e.disk.Send(replica.Written{Err: errors.New("a write has not returned")}) // as the disk's watch says
		<-e.Failed()
		if _, err := e.Do(t.Context(), lease("s", time.Minute)); !errors.Is(err, leasehold.ErrUnavailable) {
			t.Fatalf("after the stall: %v", err)
		}
		if err := e.Close(); err != nil {
			t.Fatal(err)
		}
		if err := e.disk.CloseLog(); err != nil {
			t.Fatal(err)
		}
	})
}
