package storage

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/iotest"
	"time"

	"github.com/leasehold/leasehold"
)

// newStore is a store whose time the test moves.
func newStore(t *testing.T) (*Values, *time.Duration) {
	t.Helper()
	now := new(time.Duration)
	s, err := OpenValues(ValuesConfig{Dir: filepath.Join(t.TempDir(), valuesDir), Now: func() time.Duration { return *now }})
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
			large, err := s.Put(t.Context(), bytes.NewReader(b))
			if err != nil {
				t.Fatal(err)
			}
			file := s.File(large.SHA256)
			if err := test.damage(file); err != nil {
				t.Fatal(err)
			}
			n := int64(0)
			r, err := s.Open(large)
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
			if _, err := s.Open(large); !errors.Is(err, leasehold.ErrNotFound) {
				t.Errorf("read again: %v", err)
			}
			if _, err := s.Put(t.Context(), bytes.NewReader(b)); err != nil || s.Verify(large) != nil {
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
	large, err := s.Put(t.Context(), bytes.NewReader(b))
	if err != nil {
		t.Fatal(err)
	}
	r, err := s.Open(large)
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
	if _, err := s.Put(t.Context(), endless); !errors.Is(err, leasehold.ErrInvalid) || !strings.Contains(err.Error(), "more than") {
		t.Errorf("one byte too many: %v", err)
	}
	if _, err := s.Put(t.Context(), io.MultiReader(bytes.NewReader(make([]byte, 1000)), iotest.ErrReader(io.ErrUnexpectedEOF))); !errors.Is(err, leasehold.ErrInvalid) {
		t.Errorf("a connection that broke: %v", err)
	}
	filling := readFunc(func(b []byte) (int, error) { full = true; return len(b), nil })
	if _, err := s.Put(t.Context(), filling); !errors.Is(err, leasehold.ErrLimited) {
		t.Errorf("a disk that fills up: %v", err)
	}
	if _, err := s.Put(t.Context(), strings.NewReader("x")); !errors.Is(err, leasehold.ErrLimited) {
		t.Errorf("a full disk: %v", err)
	}
	full = false
	gone, stop := context.WithCancel(t.Context())
	stop()
	if _, err := s.Put(gone, strings.NewReader("x")); !errors.Is(err, leasehold.ErrUnavailable) {
		t.Errorf("a request that ended: %v", err)
	}
	if list := files(t, s.dir); len(list) != 0 {
		t.Errorf("there is %v", list)
	}
	if _, err := s.Put(t.Context(), bytes.NewReader(make([]byte, 1<<20))); err != nil {
		t.Errorf("as much as is allowed: %v", err)
	}
}

type readFunc func([]byte) (int, error)

func (f readFunc) Read(b []byte) (int, error) { return f(b) }

// While a backup is written, everything stays.
func TestWhatIsPinnedStays(t *testing.T) {
	s, now := newStore(t)
	large, err := s.Put(t.Context(), strings.NewReader("state"))
	if err != nil {
		t.Fatal(err)
	}
	nothing := func(list []leasehold.Digest) ([]bool, error) { return make([]bool, len(list)), nil }
	unpin := s.Pin()
	*now = time.Hour
	if s.sweep(nothing); !s.Has(large) {
		t.Fatal("it was swept although somebody needs it")
	}
	unpin()
	if s.sweep(nothing); s.Has(large) {
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
	// neither ever takes as long as ValueIdle, but a busy machine could stop a goroutine for that
	// many of this test's steps.
	var instant sync.RWMutex
	name := func(b []byte) (leasehold.Large, error) {
		instant.RLock()
		defer instant.RUnlock()
		large, err := s.Put(t.Context(), bytes.NewReader(b))
		if err != nil {
			return large, err
		}
		mu.Lock()
		names[large.SHA256]++
		mu.Unlock()
		return large, s.Nameable(large)
	}
	pass := func() {
		instant.Lock()
		defer instant.Unlock()
		mu.Lock()
		defer mu.Unlock()
		now += ValueIdle / 8
	}
	var workers sync.WaitGroup
	for w := range 4 {
		workers.Go(func() {
			for i := range 60 {
				large, err := name(fmt.Appendf(nil, "value %d", (i+w)%5))
				if err != nil {
					t.Error(err)
					return
				}
				pass()
				if err := s.Verify(large); err != nil {
					t.Error(err)
				}
				mu.Lock()
				names[large.SHA256]--
				mu.Unlock()
				s.Freed([]leasehold.Large{large})
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
