package cluster

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/leasehold/leasehold"
	"github.com/leasehold/leasehold/internal/core"
	"github.com/leasehold/leasehold/internal/engine"
	"github.com/leasehold/leasehold/internal/engine/storage"
)

func putValue(t *testing.T, e engine.Values, b []byte) *leasehold.Large {
	t.Helper()
	large, err := e.PutValue(t.Context(), bytes.NewReader(b))
	if err != nil {
		t.Fatal(err)
	}
	return &large
}

func readValue(t *testing.T, e engine.Values, large *leasehold.Large) ([]byte, error) {
	t.Helper()
	r, err := e.OpenValue(t.Context(), *large)
	if err != nil {
		return nil, err
	}
	defer r.Close()
	return io.ReadAll(r)
}

// files are the names of all files below a directory.
func files(t *testing.T, dir string) (list []string) {
	t.Helper()
	err := filepath.WalkDir(dir, func(path string, f os.DirEntry, err error) error {
		if err == nil && !f.IsDir() {
			list = append(list, filepath.Base(path))
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return list
}

func TestLargeValuesSurviveARestart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dir := t.TempDir()
		clock := newTestClock("boot")
		e := startAt(t, dir, Config{Clock: clock, SnapshotEvery: 1})
		b := bytes.Repeat([]byte("state "), 100000)
		named, unnamed := putValue(t, e, b), putValue(t, e, []byte("nobody names this"))
		mustDo(t, e, &core.PutRecord{Namespace: "default", Path: "a", Large: named, Keep: 2})
		mustDo(t, e, &core.PutRecord{Namespace: "default", Path: "a", Value: "inline"})
		closed(t, e)
		if err := os.WriteFile(filepath.Join(dir, valuesDir, "put-1.tmp"), b, 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := storage.Check(dir); err != nil {
			t.Fatal(err)
		}

		e = startAt(t, dir, Config{Clock: clock})
		if got, err := readValue(t, e, unnamed); err != nil || string(got) != "nobody names this" {
			t.Fatalf("what was put before the restart cannot be named after it: %v", err)
		}
		time.Sleep(time.Hour)
		synctest.Wait()
		if list := files(t, filepath.Join(dir, valuesDir)); len(list) != 1 || list[0] != named.SHA256.String() {
			t.Errorf("an hour later there is %v", list)
		}
		if got, err := readValue(t, e, named); err != nil || !bytes.Equal(got, b) {
			t.Errorf("a former version cannot be read: %v", err)
		}
		mustDo(t, e, &core.PutRecord{Namespace: "default", Path: "a", From: 1})
		closed(t, e)
	})
}

// A check of a stopped server reads the values that records name.
func TestCheckReadsLargeValues(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dir := t.TempDir()
		e := startAt(t, dir, Config{})
		mustDo(t, e, &core.PutRecord{Namespace: "default", Path: "a", Large: putValue(t, e, bytes.Repeat([]byte("y"), 10000))})
		missing := putValue(t, e, []byte("missing"))
		mustDo(t, e, &core.PutRecord{Namespace: "default", Path: "b", Large: missing})
		name := e.values.File(sha256.Sum256(bytes.Repeat([]byte("y"), 10000)))
		closed(t, e)
		report, err := storage.Check(dir)
		if err != nil || report.Counts.Larges != 2 {
			t.Fatalf("%+v, %v", report, err)
		}
		if err := errors.Join(flipBit(name), os.Remove(filepath.Join(dir, valuesDir, missing.SHA256.String()[:2], missing.SHA256.String()))); err != nil {
			t.Fatal(err)
		}
		if _, err := storage.Check(dir); err == nil || !strings.Contains(err.Error(), "another digest") || !strings.Contains(err.Error(), missing.SHA256.String()+" is missing") {
			t.Fatalf("a damaged value and a missing one: %v", err)
		}
	})
}

// A value that is named is not gone for callers, to whom that would mean that nobody ever
// wrote it, although its file is: not on a server that is alone, either.
func TestANamedValueWithoutAFileIsNotGone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := startAt(t, t.TempDir(), Config{})
		defer closed(t, e)
		large := putValue(t, e, []byte("state"))
		mustDo(t, e, &core.PutRecord{Namespace: "default", Path: "a", Large: large})
		if err := os.Remove(e.values.File(large.SHA256)); err != nil {
			t.Fatal(err)
		}
		if _, err := e.OpenValue(t.Context(), *large); !errors.Is(err, leasehold.ErrUnavailable) {
			t.Errorf("a value that is named and missing is read: %v", err)
		}
		mustDo(t, e, &core.DeleteRecord{Namespace: "default", Path: "a"})
		if _, err := e.OpenValue(t.Context(), *large); !errors.Is(err, leasehold.ErrNotFound) {
			t.Errorf("a value that nothing names is read: %v", err)
		}
	})
}

// TestLargeValuesCostNoMemory prints what two hundred states of a megabyte cost.
func TestLargeValuesCostNoMemory(t *testing.T) {
	if testing.Short() {
		t.Skip("left to: make test-all")
	}
	e := startAt(t, t.TempDir(), Config{Clock: SystemClock()})
	defer closed(t, e)
	heap := func() int64 {
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return int64(m.HeapAlloc)
	}
	state := make([]byte, 1<<20)
	before, began := heap(), time.Now()
	for i := range 200 {
		copy(state, fmt.Sprint("state ", i))
		mustDo(t, e, &core.PutRecord{Namespace: "default", Path: fmt.Sprint("state/", i%10), Large: putValue(t, e, state), Keep: 20})
	}
	grown := heap() - before
	t.Logf("200 values of 1 MiB in %v: the heap grew by %d KiB", time.Since(began).Round(time.Millisecond), grown>>10)
	if grown > 32<<20 {
		t.Errorf("the heap grew by %d MiB", grown>>20)
	}
}

func flipBit(file string) error {
	f, err := os.OpenFile(file, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	defer f.Close()
	_, err = f.WriteAt([]byte{'x'}, 4321)
	return err
}
