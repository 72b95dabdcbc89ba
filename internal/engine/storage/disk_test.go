package storage

import (
	"bytes"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"syscall"
	"testing"
	"time"

	"go.etcd.io/raft/v3/raftpb"

	"github.com/leasehold/leasehold/internal/core"
	"github.com/leasehold/leasehold/internal/engine/replica"
)

// A process that slept through a write has seen it once or twice, however long it
// slept and whatever its clock says: that is no stall.
func TestASleepThroughAWriteIsNoStall(t *testing.T) {
	events := make(chan replica.Event, 100)
	d := &Disk{room: &room{slog: slog.New(slog.DiscardHandler)}, events: events}
	var seen sighting
	for write := uint64(1); write < 50; write++ { // each seen twice, and then it is done
		d.inFlight.Store(write)
		seen = d.checkWrite(seen)
		seen = d.checkWrite(seen)
		d.inFlight.Store(0)
	}
	if len(events) != 0 {
		t.Fatalf("%T", <-events)
	}
	d.inFlight.Store(99)
	for len(events) < 2 {
		seen = d.checkWrite(seen)
	}
	if _, slow := (<-events).(replica.Stalled); !slow {
		t.Error("a slow write was not told of")
	}
	if w, ok := (<-events).(replica.Written); !ok || w.Err == nil {
		t.Error("a stalled write was not ended")
	}
	if took := time.Duration(seen.looks) * watchEvery; took != replica.StalledWrite {
		t.Errorf("it took %v", took)
	}
}

// A node that ends because its journal found no room knows that, as if it were the log: the
// others remember what it died of.
func TestTheJournalFindsNoRoom(t *testing.T) {
	events := make(chan replica.Event, 1)
	d := &Disk{room: &room{slog: slog.New(slog.DiscardHandler)}, events: events}
	d.journalFailed(fmt.Errorf("the journal cannot be written: %w", syscall.ENOSPC))
	failed, ok := (<-events).(replica.JournalFailed)
	if !ok || !errors.Is(failed.Err, replica.ErrNoRoom) || !errors.Is(failed.Err, syscall.ENOSPC) {
		t.Errorf("the node gets %v", failed.Err)
	}
}

// lease asks for a resource under an id made of its path.
func lease(path string, ttl time.Duration) *core.Acquire {
	return &core.Acquire{Namespace: "default", Resource: path, ID: "id-" + path, Holder: "ann", TTL: ttl}
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

// testSegment is the size of a file of the log.
const testSegment = 1 << 20

// filled returns a directory whose log has so many entries of a size, each in a write of its own.
func filled(t *testing.T, entries, size int) string {
	t.Helper()
	dir, err := OpenDir(t.TempDir(), true)
	if err != nil {
		t.Fatal(err)
	}
	defer dir.Close()
	c := Config{SegmentBytes: testSegment, Log: slog.New(slog.DiscardHandler)}
	found, err := Recover(c, dir)
	if err != nil {
		t.Fatal(err)
	}
	d := NewDisk(c, dir, found)
	for i := range uint64(entries) {
		data := bytes.Repeat([]byte{byte(i + 1)}, size+int(i))
		err := d.write(replica.Write{
			Hard:    &raftpb.HardState{Term: new(uint64(1)), Vote: new(uint64(1)), Commit: new(i)},
			Entries: []*raftpb.Entry{{Term: new(uint64(1)), Index: new(i + 1), Type: raftpb.EntryNormal.Enum(), Data: data}},
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := d.CloseLog(); err != nil {
		t.Fatal(err)
	}
	return dir.Path
}

func must(b []byte, err error) []byte {
	if err != nil {
		panic(err)
	}
	return b
}
