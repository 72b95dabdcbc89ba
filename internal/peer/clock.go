//go:build linux

package peer

import (
	_ "embed"
	"os"
	"os/exec"
	"path/filepath"
	"sync/atomic"
	"syscall"
	"testing"
	"time"
	"unsafe"
)

//go:embed clock/clock.c
var clockSource []byte

// A Clock is the wall clock of one or several servers. It begins with the machine's time and goes
// at its rate; [Clock.Step] makes it jump, at once. Monotonic clocks are not touched.
type Clock struct {
	library, file string
	ahead         *atomic.Int64 // nanoseconds; the servers see this very memory
}

// NewClock returns a clock, or skips the test where there is no C compiler.
func NewClock(t testing.TB) *Clock {
	t.Helper()
	cc, err := exec.LookPath("cc")
	if err != nil {
		t.Skip("left out: a server with a clock of its own needs a C compiler, cc")
	}
	dir := newDir(t, nil)
	c := &Clock{library: filepath.Join(dir, "clock.so"), file: filepath.Join(dir, "ahead")}
	source := filepath.Join(dir, "clock.c")
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	must(os.Chmod(dir, 0o755))
	must(os.WriteFile(source, clockSource, 0o600))
	if out, err := exec.Command(cc, "-shared", "-fPIC", "-O1", "-o", c.library, source).CombinedOutput(); err != nil {
		t.Fatalf("the clock cannot be compiled: %v\n%s", err, out)
	}
	must(os.WriteFile(c.file, make([]byte, 8), 0o644))
	file, err := os.OpenFile(c.file, os.O_RDWR, 0)
	must(err)
	defer file.Close()
	page, err := syscall.Mmap(int(file.Fd()), 0, 8, syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_SHARED)
	must(err)
	t.Cleanup(func() { _ = syscall.Munmap(page) })
	c.ahead = (*atomic.Int64)(unsafe.Pointer(&page[0]))
	return c
}

// Step moves the clock by a time, which may be negative.
func (c *Clock) Step(by time.Duration) { c.ahead.Add(int64(by)) }

// Ahead returns how far the clock is ahead of the machine's.
func (c *Clock) Ahead() time.Duration { return time.Duration(c.ahead.Load()) }

// env is what makes a program read this clock.
func (c *Clock) env() []string {
	if c == nil {
		return nil
	}
	return []string{"LD_PRELOAD=" + c.library, "LEASEHOLD_CLOCK=" + c.file}
}
