package cluster

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"testing/iotest"
	"testing/synctest"
	"time"

	"github.com/leasehold/leasehold"
	"github.com/leasehold/leasehold/internal/core"
	"github.com/leasehold/leasehold/internal/engine"
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
		if _, err := Check(dir); err != nil {
			t.Fatal(err)
		}

		e = startAt(t, dir, Config{Clock: clock})
		if got, err := readValue(t, e, unnamed); err != nil || string(got) != "nobody names this" {
			t.Fatalf("what was put before the restart can not be named after it: %v", err)
		}
		time.Sleep(time.Hour)
		synctest.Wait()
		if list := files(t, filepath.Join(dir, valuesDir)); len(list) != 1 || list[0] != named.SHA256.String() {
			t.Errorf("an hour later there is %v", list)
		}
		if got, err := readValue(t, e, named); err != nil || !bytes.Equal(got, b) {
			t.Errorf("a former version can not be read: %v", err)
		}
		mustDo(t, e, &core.PutRecord{Namespace: "default", Path: "a", From: 1})
		closed(t, e)
	})
}

// newStore is a store whose time the test moves.
func newStore(t *testing.T) (*valueStore, *time.Duration) {
	t.Helper()
	now := new(time.Duration)
	s, err := openValues(filepath.Join(t.TempDir(), valuesDir), func() time.Duration { return *now }, func() bool { return false }, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	return s, now
}

func TestDamagedValuesAreNotGivenOut(t *testing.T) {
	b := bytes.Repeat([]byte("0123456789"), 100000)
	for name, test := range map[string]struct {
		damage func(file string) error
		read   func(r io.ReadSeeker) (int64, error)
		says   string
	}{
		"a flipped bit": {flipBit, readAll, "another digest"},
		"a flipped bit, and the last bytes are wanted": {flipBit, func(r io.ReadSeeker) (int64, error) {
			if _, err := r.Seek(-5, io.SeekEnd); err != nil {
				return 0, err
			}
			return readAll(r)
		}, "another digest"},
		"a cut off file": {func(file string) error { return os.Truncate(file, 1000) }, readAll, "another size"},
	} {
		t.Run(name, func(t *testing.T) {
			s, _ := newStore(t)
			large, err := s.put(t.Context(), bytes.NewReader(b))
			if err != nil {
				t.Fatal(err)
			}
			file := s.file(large.SHA256)
			if err := test.damage(file); err != nil {
				t.Fatal(err)
			}
			n := int64(0)
			r, err := s.open(large)
			if err == nil {
				n, err = test.read(r)
				r.Close()
			}
			if n >= large.Size || !errors.Is(err, leasehold.ErrUnavailable) || !strings.Contains(err.Error(), test.says) {
				t.Fatalf("%d bytes were given out, and then: %v", n, err)
			}
			if list := files(t, s.dir); len(list) != 1 || list[0] != large.SHA256.String()+damagedEnd {
				t.Errorf("afterwards there is %v", list)
			}
			if _, err := s.open(large); !errors.Is(err, leasehold.ErrNotFound) {
				t.Errorf("read again: %v", err)
			}
			if _, err := s.put(t.Context(), bytes.NewReader(b)); err != nil || s.verify(large) != nil {
				t.Errorf("put again it is not good: %v", err)
			}
		})
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

func readAll(r io.ReadSeeker) (int64, error) { return io.Copy(io.Discard, r) }

func TestPartsOfAValueCanBeRead(t *testing.T) {
	s, _ := newStore(t)
	b := bytes.Repeat([]byte("0123456789"), 100000)
	large, err := s.put(t.Context(), bytes.NewReader(b))
	if err != nil {
		t.Fatal(err)
	}
	r, err := s.open(large)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	if err := iotest.TestReader(r, b); err != nil {
		t.Fatal(err)
	}
	for range 2 { // the second time it is known to be right
		if _, err := r.Seek(17, io.SeekStart); err != nil {
			t.Fatal(err)
		}
		part := make([]byte, 10)
		if _, err := io.ReadFull(r, part); err != nil || string(part) != "7890123456" {
			t.Fatalf("%q, %v", part, err)
		}
	}
}

func TestWhatIsNotKeptLeavesNothing(t *testing.T) {
	s, _ := newStore(t)
	s.most = 1 << 20
	full := false
	s.full = func() bool { return full }
	endless := io.MultiReader(bytes.NewReader(make([]byte, 1<<20+1)), iotest.ErrReader(errors.New("read too far")))
	if _, err := s.put(t.Context(), endless); !errors.Is(err, leasehold.ErrInvalid) || !strings.Contains(err.Error(), "more than") {
		t.Errorf("one byte too many: %v", err)
	}
	if _, err := s.put(t.Context(), io.MultiReader(bytes.NewReader(make([]byte, 1000)), iotest.ErrReader(io.ErrUnexpectedEOF))); !errors.Is(err, leasehold.ErrInvalid) {
		t.Errorf("a connection that broke: %v", err)
	}
	filling := readFunc(func(b []byte) (int, error) { full = true; return len(b), nil })
	if _, err := s.put(t.Context(), filling); !errors.Is(err, leasehold.ErrLimited) {
		t.Errorf("a disk that fills up: %v", err)
	}
	if _, err := s.put(t.Context(), strings.NewReader("x")); !errors.Is(err, leasehold.ErrLimited) {
		t.Errorf("a full disk: %v", err)
	}
	full = false
	gone, stop := context.WithCancel(t.Context())
	stop()
	if _, err := s.put(gone, strings.NewReader("x")); !errors.Is(err, leasehold.ErrUnavailable) {
		t.Errorf("a request that ended: %v", err)
	}
	if list := files(t, s.dir); len(list) != 0 {
		t.Errorf("there is %v", list)
	}
	if _, err := s.put(t.Context(), bytes.NewReader(make([]byte, 1<<20))); err != nil {
		t.Errorf("as much as is allowed: %v", err)
	}
}

type readFunc func([]byte) (int, error)

func (f readFunc) Read(b []byte) (int, error) { return f(b) }

// While a backup is written, everything stays.
func TestWhatIsPinnedStays(t *testing.T) {
	s, now := newStore(t)
	large, err := s.put(t.Context(), strings.NewReader("state"))
	if err != nil {
		t.Fatal(err)
	}
	nothing := func(list []leasehold.Digest) ([]bool, error) { return make([]bool, len(list)), nil }
	unpin := s.pin()
	*now = time.Hour
	if s.sweep(nothing); !s.has(large) {
		t.Fatal("it was swept although somebody needs it")
	}
	unpin()
	if s.sweep(nothing); s.has(large) {
		t.Fatal("it was not swept although nobody needs it")
	}
}

// Putting, naming and sweeping at once: what could be named is there.
func TestSweepingTakesNothingThatIsWanted(t *testing.T) {
	s, _ := newStore(t)
	var mu sync.Mutex // guards now and names
	now, names := time.Duration(0), map[leasehold.Digest]int{}
	s.now = func() time.Duration { mu.Lock(); defer mu.Unlock(); return now }
	// Time stands still while a value is put and named, and while a sweep looks at what is named:
	// neither ever takes as long as valueIdle, but a busy machine could stop a goroutine for that
	// many of this test's steps.
	var instant sync.RWMutex
	name := func(b []byte) (leasehold.Large, error) {
		instant.RLock()
		defer instant.RUnlock()
		large, err := s.put(t.Context(), bytes.NewReader(b))
		if err != nil {
			return large, err
		}
		mu.Lock()
		names[large.SHA256]++
		mu.Unlock()
		return large, s.nameable(large)
	}
	pass := func() {
		instant.Lock()
		defer instant.Unlock()
		mu.Lock()
		defer mu.Unlock()
		now += valueIdle / 8
	}
	var workers sync.WaitGroup
	for w := range 4 {
		workers.Go(func() {
			for i := range 200 {
				large, err := name(fmt.Appendf(nil, "value %d", (i+w)%5))
				if err != nil {
					t.Error(err)
					return
				}
				pass()
				if err := s.verify(large); err != nil {
					t.Error(err)
				}
				mu.Lock()
				names[large.SHA256]--
				mu.Unlock()
				s.freed([]leasehold.Large{large})
			}
		})
	}
	sweep := func() {
		instant.RLock()
		defer instant.RUnlock()
		s.sweep(func(list []leasehold.Digest) (is []bool, _ error) {
			mu.Lock()
			defer mu.Unlock()
			for _, d := range list {
				is = append(is, names[d] > 0)
			}
			return is, nil
		})
	}
	done, swept := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(swept)
		for !isClosed(done) {
			sweep()
		}
	}()
	workers.Wait()
	close(done)
	<-swept
}

// A check of a stopped server reads the values that records name.
func TestCheckReadsLargeValues(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dir := t.TempDir()
		e := startAt(t, dir, Config{})
		mustDo(t, e, &core.PutRecord{Namespace: "default", Path: "a", Large: putValue(t, e, bytes.Repeat([]byte("y"), 10000))})
		missing := putValue(t, e, []byte("missing"))
		mustDo(t, e, &core.PutRecord{Namespace: "default", Path: "b", Large: missing})
		name := e.values.file(sha256.Sum256(bytes.Repeat([]byte("y"), 10000)))
		closed(t, e)
		report, err := Check(dir)
		if err != nil || report.Counts.Larges != 2 {
			t.Fatalf("%+v, %v", report, err)
		}
		if err := errors.Join(flipBit(name), os.Remove(filepath.Join(dir, valuesDir, missing.SHA256.String()[:2], missing.SHA256.String()))); err != nil {
			t.Fatal(err)
		}
		if _, err := Check(dir); err == nil || !strings.Contains(err.Error(), "another digest") || !strings.Contains(err.Error(), missing.SHA256.String()+" is missing") {
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
		if err := os.Remove(e.values.file(large.SHA256)); err != nil {
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

// TestLargeValuesCostNoMemory prints what a thousand states of a megabyte cost.
func TestLargeValuesCostNoMemory(t *testing.T) {
	if testing.Short() {
		t.Skip("writes a gigabyte")
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
	for i := range 1000 {
		copy(state, fmt.Sprint("state ", i))
		mustDo(t, e, &core.PutRecord{Namespace: "default", Path: fmt.Sprint("state/", i%50), Large: putValue(t, e, state), Keep: 20})
	}
	grown := heap() - before
	t.Logf("1,000 values of 1 MiB in %v: the heap grew by %d KiB", time.Since(began).Round(time.Millisecond), grown>>10)
	if grown > 32<<20 {
		t.Errorf("the heap grew by %d MiB", grown>>20)
	}
}
