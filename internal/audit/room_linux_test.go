package audit

import (
	"fmt"
	"os"
	"path/filepath"
	"sync/atomic"
	"syscall"
	"testing"
)

func smallDisk(t *testing.T, size int) string {
	t.Helper()
	dir := t.TempDir()
	if err := syscall.Mount("tmpfs", dir, "tmpfs", 0, fmt.Sprintf("size=%d", size)); err != nil {
		t.Skipf("left out: a small disk needs root and tmpfs: %v", err)
	}
	t.Cleanup(func() {
		if err := syscall.Unmount(dir, syscall.MNT_DETACH); err != nil {
			t.Error(err)
		}
	})
	return dir
}

// A disk that is smaller than the journal may be takes the oldest lines, and no other.
func TestAFullDiskTakesTheOldestLines(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(smallDisk(t, 2<<20), "journal")
	var asked atomic.Int64
	c := Config{Dir: dir, Bytes: 8 * MinBytes, MakeRoom: func() { asked.Add(1) }}
	w := newWorld(t)
	j := start(t, c)
	for i := range 20000 {
		j.Append(w.cycle(i))
	}
	lines := all(t, j, Query{Kind: Operation})
	same(t, "the newest", lines, what(projected(w.log), Query{Kind: Operation})[:len(lines)])
	if s := j.Statistics(); s.Lost != 0 || s.Dropped == 0 || s.Lines != 60000 || s.Damaged != 0 || len(lines) < 1000 {
		t.Errorf("%+v, and %d lines are there", s, len(lines))
	}
	closed(t, j)
	if asked.Load() == 0 {
		t.Error("nobody was asked for room first")
	}
	j = start(t, c)
	same(t, "the newest, after a start", all(t, j, Query{Kind: Operation}), lines)
	closed(t, j)
}

// A journal without any room loses lines, counts them, and goes on behind them.
func TestAJournalWithoutRoomGoesOn(t *testing.T) {
	disk := smallDisk(t, 1<<20)
	w := newWorld(t)
	j := start(t, Config{Dir: filepath.Join(disk, "journal")})
	for i := range 10 {
		j.Append(w.cycle(i))
	}
	if err := j.Flush(); err != nil {
		t.Fatal(err)
	}
	foreign := filepath.Join(disk, "foreign")
	if err := os.WriteFile(foreign, make([]byte, 2<<20), 0o600); err == nil {
		t.Fatal("the disk is larger than it should be")
	}
	for i := range 100 {
		j.Append(w.cycle(i))
	}
	if err := j.Flush(); err != nil {
		t.Fatal(err)
	}
	lost := j.Statistics().Lost
	if lost == 0 {
		t.Error("no line is lost")
	}
	if err := os.Remove(foreign); err != nil {
		t.Fatal(err)
	}
	after := len(w.log)
	for i := range 10 {
		j.Append(w.cycle(i))
	}
	newest := what(projected(w.log[after:]), Query{Kind: Hold})
	lines := all(t, j, Query{Kind: Hold})
	same(t, "the newest", lines[:len(newest)], newest)
	oldest := what(projected(w.log[:10]), Query{Kind: Hold})
	same(t, "the oldest", lines[len(lines)-len(oldest):], oldest)
	if s := j.Statistics(); s.Lost != lost || s.Damaged != 0 || s.Failures != 0 {
		t.Errorf("%+v", s)
	}
	closed(t, j)
}
