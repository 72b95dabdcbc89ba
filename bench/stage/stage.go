//go:build linux

package stage

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"testing"
)

// A Stage takes the place of a test for package peer, which starts real servers for tests. What would
// fail the test, or skip it, is an error of [Stage.Try].
type Stage struct {
	testing.TB // nobody else can implement it

	dir string

	mu       sync.Mutex // guards what follows
	cleanups []func()
	problems []error
	said     []string
	failed   bool
}

// New returns a stage whose files are in a new temporary directory.
func New() (*Stage, error) {
	dir, err := os.MkdirTemp("", "leasehold-bench-")
	if err != nil {
		return nil, err
	}
	return &Stage{dir: dir}, nil
}

// ErrMissing is the error of [Stage.Try] if something is not installed.
var ErrMissing = errors.New("left out")

// halt is how a method of a test ends its caller.
type halt struct{ error }

// Try does something with the stage in the place of a test.
func (s *Stage) Try(do func()) (err error) {
	defer func() {
		switch r := recover().(type) {
		case nil:
			err = s.problem()
		case halt:
			err = errors.Join(r.error, s.problem())
		default:
			panic(r)
		}
	}()
	do()
	return nil
}

// problem returns what went wrong since it was last called.
func (s *Stage) problem() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	err := errors.Join(s.problems...)
	s.problems = nil
	return err
}

// Close ends everything that was started, the last first, and removes its files.
func (s *Stage) Close() error {
	for {
		s.mu.Lock()
		n := len(s.cleanups)
		if n == 0 {
			s.mu.Unlock()
			break
		}
		do := s.cleanups[n-1]
		s.cleanups = s.cleanups[:n-1]
		s.mu.Unlock()
		do()
	}
	return errors.Join(s.problem(), os.RemoveAll(s.dir))
}

// Said returns the last lines of what servers wrote that were not well. It is known after Close.
func (s *Stage) Said() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	lines := strings.Split(strings.TrimSpace(strings.Join(s.said, "\n")), "\n")
	return strings.Join(lines[max(0, len(lines)-3):], "; ")
}

// What follows is what package peer calls of a test.

// Helper does nothing.
func (s *Stage) Helper() {}

// Cleanup has something done by [Stage.Close].
func (s *Stage) Cleanup(do func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.cleanups = append(s.cleanups, do)
}

// TempDir returns a new directory.
func (s *Stage) TempDir() string {
	dir, err := os.MkdirTemp(s.dir, "")
	if err != nil {
		s.Fatal(err)
	}
	return dir
}

// Failed reports whether something went wrong.
func (s *Stage) Failed() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.failed
}

// Logf keeps what a server that failed has written.
func (s *Stage) Logf(format string, args ...any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.said = append(s.said, fmt.Sprintf(format, args...))
}

// Error notes a failure.
func (s *Stage) Error(args ...any) { s.note(fmt.Sprint(args...)) }

// Errorf notes a failure.
func (s *Stage) Errorf(format string, args ...any) { s.note(fmt.Sprintf(format, args...)) }

func (s *Stage) note(text string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.failed = true
	s.problems = append(s.problems, errors.New(text))
}

// Fatal ends what [Stage.Try] does.
func (s *Stage) Fatal(args ...any) { s.fail(fmt.Sprint(args...)) }

// Fatalf ends what [Stage.Try] does.
func (s *Stage) Fatalf(format string, args ...any) { s.fail(fmt.Sprintf(format, args...)) }

func (s *Stage) fail(text string) {
	s.mu.Lock()
	s.failed = true
	s.mu.Unlock()
	panic(halt{errors.New(text)})
}

// Skip ends what [Stage.Try] does with [ErrMissing].
func (s *Stage) Skip(args ...any) { s.skip(fmt.Sprint(args...)) }

// Skipf ends what [Stage.Try] does with [ErrMissing].
func (s *Stage) Skipf(format string, args ...any) { s.skip(fmt.Sprintf(format, args...)) }

func (s *Stage) skip(text string) {
	text = strings.TrimPrefix(text, ErrMissing.Error()+": ")
	panic(halt{fmt.Errorf("%w: %s", ErrMissing, text)})
}

// Sub returns a stage for a part of the work, that can be closed earlier.
func (s *Stage) Sub() *Stage {
	sub := &Stage{dir: s.TempDir()}
	s.Cleanup(func() {
		if err := sub.Close(); err != nil {
			s.Error(err)
		}
	})
	return sub
}
