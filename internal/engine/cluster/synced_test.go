//go:build linux

package cluster

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/leasehold/leasehold"
	"github.com/leasehold/leasehold/internal/audit"
	"github.com/leasehold/leasehold/internal/core"
	"github.com/leasehold/leasehold/internal/engine/storage"
	"github.com/leasehold/leasehold/internal/faultfs"
)

// mountSynced mounts a disk that can fail, and leaves out some syncs; it leaves the test
// out where there can be none.
func mountSynced(t *testing.T, ignore func(path string, dir bool) bool) (string, *faultfs.FS) {
	t.Helper()
	if err := faultfs.Available(); err != nil {
		t.Skipf("left out: %v", err)
	}
	mount := t.TempDir()
	f, err := faultfs.Mount(t.TempDir(), mount)
	if err != nil {
		t.Skipf("left out: %v", err)
	}
	t.Cleanup(func() {
		if err := f.Unmount(); err != nil {
			t.Errorf("unmount: %v", err)
		}
	})
	f.OnSync(func(path string, dir bool) error {
		if ignore != nil && ignore(path, dir) {
			return faultfs.ErrIgnored
		}
		return nil
	})
	return mount, f
}

// meets has the syncs of files of a kind meet trouble.
func meets(f *faultfs.FS, suffix string, sync func() error) {
	f.OnSync(func(path string, dir bool) error {
		if dir || !strings.HasSuffix(path, suffix) {
			return nil
		}
		return sync()
	})
}

// image writes what a power failure would leave to a directory.
func image(t *testing.T, f *faultfs.FS, to string) {
	t.Helper()
	if err := f.Image(to); err != nil {
		t.Fatal(err)
	}
}

// losses runs a server, and after each answer looks at what a power failure would
// leave. It returns the first thing that was answered and is not there.
func losses(t *testing.T, ignore func(path string, dir bool) bool) (lost error) {
	mount, fsys := mountSynced(t, ignore)
	e, err := Start(t.Context(), Config{Dir: filepath.Join(mount, "data"), SegmentBytes: testSegment, SnapshotEvery: 200 << 10})
	if err != nil {
		return err
	}
	defer func() {
		if err := e.Close(); err != nil {
			t.Error(err)
		}
		if n := e.node.Statistics().Snapshots; lost == nil && n < 2 {
			t.Errorf("only %d snapshots were taken", n)
		}
	}()
	label := leasehold.Labels{{Key: "k", Value: strings.Repeat("v", 4000)}}
	held := 0
	for i := range 400 {
		id := fmt.Sprint("id", i)
		mustDo(t, e, &core.Acquire{Namespace: "default", Resource: id, ID: id, Holder: "h", TTL: time.Hour, Labels: label})
		held++
		if i%2 == 0 {
			mustDo(t, e, &core.Release{Namespace: "default", ID: id})
			held--
		}
		if i%8 > 1 && i > 16 {
			continue // looking takes longer than doing
		}
		left := filepath.Join(t.TempDir(), "image")
		image(t, fsys, left)
		report, err := storage.Check(filepath.Join(left, "data"))
		if err != nil {
			return fmt.Errorf("after %d: %w", i, err)
		}
		if report.Counts.Leases != held {
			return fmt.Errorf("after %d: %d leases were answered, %d are there", i, held, report.Counts.Leases)
		}
		if err := os.RemoveAll(left); err != nil {
			t.Fatal(err)
		}
	}
	return nil
}

func TestNothingAnsweredIsLostWithTheUnsyncedBytes(t *testing.T) {
	if testing.Short() {
		t.Skip("left to: make test-all")
	}
	if err := losses(t, nil); err != nil {
		t.Fatal(err)
	}
}

// Without any one of the syncs, the test above must fail: it would not be worth
// much otherwise. (The sync of the log's directory is etcd's and is not among them:
// on this file system the next write to a new file keeps its name too.)
func TestEachSyncIsNeeded(t *testing.T) {
	if testing.Short() {
		t.Skip("left to: make test-all")
	}
	for name, ignore := range map[string]func(path string, dir bool) bool{
		"of the log": func(path string, dir bool) bool {
			return !dir && strings.HasSuffix(path, ".wal")
		},
		"of a snapshot": func(path string, dir bool) bool { return !dir && strings.Contains(path, "/"+snapDir+"/") },
		"of the snapshots' directory": func(path string, dir bool) bool {
			return dir && strings.HasSuffix(path, snapDir)
		},
		"of the format file": func(path string, dir bool) bool { return !dir && strings.Contains(path, formatFile) },
		"of the directory":   func(path string, dir bool) bool { return dir && path == "data" },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			err := losses(t, ignore)
			if err == nil {
				t.Error("nothing was lost without it")
			}
			t.Log(err)
		})
	}
}

// troubled runs a server whose disk gets into trouble after one lease, and checks
// that nothing is acknowledged from then on and that the lease is not lost.
func troubled(t *testing.T, sync func() error, over func()) {
	mount, fsys := mountSynced(t, nil)
	e, err := Start(t.Context(), Config{Dir: filepath.Join(mount, "data"), SegmentBytes: testSegment})
	if err != nil {
		t.Fatal(err)
	}
	acquire(t, e, "before")
	meets(fsys, ".wal", sync)
	if _, err := e.Do(t.Context(), lease("during", time.Hour)); !errors.Is(err, leasehold.ErrUndecided) {
		t.Errorf("in flight: %v", err)
	}
	<-e.Failed()
	if _, err := e.Do(t.Context(), lease("after", time.Hour)); !errors.Is(err, leasehold.ErrUnavailable) {
		t.Errorf("afterwards: %v", err)
	}
	left := filepath.Join(t.TempDir(), "image")
	image(t, fsys, left)
	over()
	if err := e.Close(); err != nil {
		t.Error(err)
	}
	fsys.OnSync(nil)
	if err := e.disk.CloseLog(); err != nil { // what the end of the process does
		t.Log(err)
	}
	report, err := storage.Check(filepath.Join(left, "data"))
	if err != nil || report.Counts.Leases < 1 {
		t.Errorf("%d leases are left, %v", report.Counts.Leases, err)
	}
}

func TestASyncThatFailsStopsTheServer(t *testing.T) {
	troubled(t, func() error { return syscall.EIO }, func() {})
}

func TestASyncThatHangsStopsTheServer(t *testing.T) {
	t.Parallel() // it waits until the disk is given up
	hang := make(chan struct{})
	troubled(t, func() error { <-hang; return nil }, func() { close(hang) })
}

// linesLost is as losses, for the journal: after each answer it starts a server on what
// a power failure would leave, and returns the first line that this one's journal lacks
// or has twice.
func linesLost(t *testing.T, ignore func(path string, dir bool) bool) (lost error) {
	mount, fsys := mountSynced(t, ignore)
	c := Config{SegmentBytes: testSegment, SnapshotEvery: 50 << 10, JournalBytes: audit.MinBytes}
	c.Dir = filepath.Join(mount, "data")
	e, err := Start(t.Context(), c)
	if err != nil {
		return err
	}
	defer func() {
		if err := e.Close(); err != nil {
			t.Error(err)
		}
		if n := e.node.Statistics().Snapshots; lost == nil && n < 4 {
			t.Errorf("only %d snapshots were taken", n)
		}
	}()
	reason := strings.Repeat("r", 1000)
	for i := range 300 {
		id := fmt.Sprint("id", i)
		mustDo(t, e, &core.Acquire{Namespace: "default", Resource: id, ID: id, Holder: "h", TTL: time.Hour, Reason: reason})
		mustDo(t, e, &core.Release{Namespace: "default", ID: id})
		if i%20 > 0 && i > 12 {
			continue
		}
		left := t.TempDir()
		image(t, fsys, left)
		c.Dir = filepath.Join(left, "data")
		if err := hasLines(t, c, i+1); err != nil {
			return fmt.Errorf("after %d: %w", i, err)
		}
	}
	return nil
}

// hasLines reports whether a server finds a line for each of so many leases and releases.
func hasLines(t *testing.T, c Config, leases int) (err error) {
	e, err := Start(t.Context(), c)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, e.Close()) }()
	for verb, kind := range map[string]audit.Kind{"acquire": audit.Operation, "release": audit.Operation, "": audit.Hold} {
		page, err := e.Journal().Find(t.Context(), audit.Query{Kind: kind, Namespace: "default", Verb: verb, Oldest: true, Limit: 1000})
		if err != nil {
			return err
		}
		for i, l := range page.Lines {
			if want := fmt.Sprint("id", i); l.ID != want {
				return fmt.Errorf("where %s %s should be there is %s", verb, want, l.ID)
			}
		}
		if len(page.Lines) != leases {
			return fmt.Errorf("%d of %d lines of %q are there", len(page.Lines), leases, verb)
		}
	}
	return nil
}

func TestNoLineIsLostWithTheUnsyncedBytes(t *testing.T) {
	if err := linesLost(t, nil); err != nil {
		t.Fatal(err)
	}
}

func TestTheSyncOfTheJournalIsNeeded(t *testing.T) {
	err := linesLost(t, func(path string, dir bool) bool { return !dir && strings.Contains(path, "/journal/") })
	if err == nil {
		t.Error("nothing was lost without it")
	}
	t.Log(err)
}

// journalTroubled runs a server whose journal gets into trouble, and checks that it
// stops, says so, and has lost nothing.
func journalTroubled(t *testing.T, sync func() error, over func()) {
	mount, fsys := mountSynced(t, nil)
	c := Config{Dir: filepath.Join(mount, "data"), SegmentBytes: testSegment, JournalBytes: audit.MinBytes}
	e, err := Start(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	meets(fsys, ".journal", sync)
	mustDo(t, e, &core.Acquire{Namespace: "default", Resource: "id0", ID: "id0", Holder: "h", TTL: time.Hour})
	mustDo(t, e, &core.Release{Namespace: "default", ID: "id0"})
	<-e.Failed()
	if err := e.Failure(); !strings.Contains(err.Error(), "the journal cannot be written") {
		t.Error(err)
	}
	if _, err := e.Do(t.Context(), lease("after", time.Hour)); !errors.Is(err, leasehold.ErrUnavailable) {
		t.Errorf("afterwards: %v", err)
	}
	left := t.TempDir()
	image(t, fsys, left)
	over()
	if err := e.Close(); err != nil {
		t.Error(err)
	}
	fsys.OnSync(nil)
	e.workers.Wait()                          // the log's disk is well
	if err := e.disk.CloseLog(); err != nil { // what the end of the process does
		t.Log(err)
	}
	c.Dir = filepath.Join(left, "data")
	if err := hasLines(t, c, 1); err != nil {
		t.Error(err)
	}
}

func TestAJournalThatFailsStopsTheServer(t *testing.T) {
	journalTroubled(t, func() error { return syscall.EIO }, func() {})
}

func TestAJournalThatHangsStopsTheServer(t *testing.T) {
	t.Parallel() // it waits until the disk is given up
	hang := make(chan struct{})
	journalTroubled(t, func() error { <-hang; return nil }, func() { close(hang) })
}
