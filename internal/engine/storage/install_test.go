package storage

import (
	"bytes"
	"errors"
	"log/slog"
	"os"
	"testing"
	"time"

	"go.etcd.io/etcd/server/v3/storage/wal"
	"go.etcd.io/etcd/server/v3/storage/wal/walpb"
	"go.etcd.io/raft/v3/raftpb"

	"github.com/leasehold/leasehold/internal/core"
	"github.com/leasehold/leasehold/internal/engine/replica"
)

// emptyDisk returns a new data directory, and what writes to it.
func emptyDisk(t *testing.T) (*Dir, *Disk) {
	t.Helper()
	dir, err := OpenDir(t.TempDir(), true)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { dir.Close() })
	begun, err := recoverDir(dir, nil)
	if err != nil {
		t.Fatal(err)
	}
	return dir, &Disk{room: &room{dir: dir, slog: slog.New(slog.DiscardHandler)}, log: begun.Log, watch: newMetrics(nil)}
}

// A snapshot of another node leaves a gap in the log, and maybe entries behind it that
// never were committed. A start has to find its way.
func TestAnInstalledSnapshotIsFoundAgain(t *testing.T) {
	dir, d := emptyDisk(t)
	hard := func(term, commit uint64) *raftpb.HardState {
		return &raftpb.HardState{Term: new(term), Vote: new(uint64(1)), Commit: new(commit)}
	}
	entry := func(term, index uint64) *raftpb.Entry {
		return &raftpb.Entry{Term: new(term), Index: new(index), Type: raftpb.EntryNormal.Enum()}
	}
	state := core.New()
	if _, err := state.Apply(7, 0, []core.Command{lease("r", time.Minute)}); err != nil {
		t.Fatal(err)
	}
	members := &raftpb.ConfState{Voters: []uint64{1, 2, 3}}
	if _, err := writeState(dir.Snapshots(), replica.Snapshot{Index: 10, Term: 3, Roster: &replica.Roster{Cluster: "c"}, State: state.Freeze()}, nil, nil); err != nil {
		t.Fatal(err)
	}
	for _, w := range []replica.Write{
		{Hard: hard(2, 1), Entries: []*raftpb.Entry{entry(1, 1), entry(2, 2), entry(2, 3)}},
		{Hard: hard(3, 10), Snapshot: &walpb.Snapshot{Index: new(uint64(10)), Term: new(uint64(3)), ConfState: members}},
		{Hard: hard(3, 10), Entries: []*raftpb.Entry{entry(3, 11), entry(3, 12)}},
	} {
		if err := d.write(w); err != nil {
			t.Fatal(err)
		}
	}
	if err := d.log.Close(); err != nil {
		t.Fatal(err)
	}
	found, err := recoverDir(dir, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer found.Log.Close()
	last, _ := found.Storage.LastIndex()
	if h, m, _ := found.Storage.InitialState(); found.Applied != 10 || last != 12 || h.GetTerm() != 3 || len(m.GetVoters()) != 3 || found.State.Now() != 7 {
		t.Fatalf("applied %d, last %d, hard %v, members %v, now %d", found.Applied, last, h, m, found.State.Now())
	}
}

// Entries that a snapshot of a later term replaced do not come back with a restart: a log whose end is of an earlier
// term than its snapshot votes for who has less.
func TestWhatASnapshotReplacedStaysGone(t *testing.T) {
	dir, d := emptyDisk(t)
	if _, err := writeState(dir.Snapshots(), replica.Snapshot{Index: 2, Term: 3, Roster: &replica.Roster{Cluster: "c"}, State: core.New()}, nil, nil); err != nil {
		t.Fatal(err)
	}
	members := &raftpb.ConfState{Voters: []uint64{1, 2, 3}}
	entries := func(term uint64, indexes ...uint64) (list []*raftpb.Entry) {
		for _, i := range indexes {
			list = append(list, &raftpb.Entry{Term: new(term), Index: new(i), Type: raftpb.EntryNormal.Enum()})
		}
		return list
	}
	for _, w := range []replica.Write{
		{Hard: &raftpb.HardState{Term: new(uint64(2)), Commit: new(uint64(0))}, Entries: entries(2, 1, 2, 3, 4)},
		{Hard: &raftpb.HardState{Term: new(uint64(3)), Commit: new(uint64(2))}, Snapshot: &walpb.Snapshot{Index: new(uint64(2)), Term: new(uint64(3)), ConfState: members}},
	} {
		if err := d.write(w); err != nil {
			t.Fatal(err)
		}
	}
	lasts := func(log *wal.WAL) (index, term uint64, found *Recovered) {
		t.Helper()
		if err := log.Close(); err != nil {
			t.Fatal(err)
		}
		found, err := recoverDir(dir, nil)
		if err != nil {
			t.Fatal(err)
		}
		index, _ = found.Storage.LastIndex()
		term, _ = found.Storage.Term(index)
		return index, term, found
	}
	index, term, found := lasts(d.log)
	if index != 2 || term != 3 {
		t.Errorf("the log ends with entry %d of term %d", index, term)
	}
	if err := found.Log.Save(&raftpb.HardState{Term: new(uint64(3)), Commit: new(uint64(3))}, entries(3, 3)); err != nil {
		t.Fatal(err)
	}
	if index, term, found = lasts(found.Log); index != 3 || term != 3 {
		t.Errorf("then with entry %d of term %d", index, term)
	}
	_ = found.Log.Close()
}

// A file that another node sent must not be purged before the log has heard of it.
func TestAStateThatJustCameIsNotPurged(t *testing.T) {
	dir := t.TempDir()
	for _, index := range []uint64{1, 5, 9, 20} {
		if _, err := writeState(dir, replica.Snapshot{Index: index, Term: 1, Roster: &replica.Roster{Cluster: "c"}, State: core.New()}, nil, nil); err != nil {
			t.Fatal(err)
		}
	}
	if err := purgeStates(dir, 5, 9); err != nil {
		t.Fatal(err)
	}
	files, _ := os.ReadDir(dir)
	if len(files) != 3 {
		t.Fatalf("%d files are left, want those of 5, 9 and 20", len(files))
	}
}

// What another server sends replaces no file that this one starts from, whoever is right, and takes no room from the
// log.
func TestAStateThatIsOfNoUseIsNotTaken(t *testing.T) {
	dir := &Dir{Path: t.TempDir()}
	if err := os.MkdirAll(dir.Snapshots(), 0o700); err != nil {
		t.Fatal(err)
	}
	d := &Disk{room: newRoom(Config{SegmentBytes: testSegment, SnapshotEvery: testSegment}, dir)}
	free := uint64(1 << 40)
	d.statfs = func(string) (uint64, error) { return free, nil }
	own := replica.Snapshot{Index: 5, Term: 1, Roster: &replica.Roster{Cluster: "c"}, State: core.New()}
	if _, err := writeState(dir.Snapshots(), own, nil, nil); err != nil {
		t.Fatal(err)
	}
	d.marked.Store(5)
	d.good.Store(5)
	before, err := os.ReadFile(stateName(dir.Snapshots(), 5))
	if err != nil {
		t.Fatal(err)
	}
	theirs := func(index uint64) *bytes.Buffer {
		s := replica.Snapshot{Index: index, Term: 1, Roster: &replica.Roster{Cluster: "c"}, State: core.New()}
		if _, err := s.State.Apply(7, 0, []core.Command{lease("r", time.Minute)}); err != nil {
			t.Fatal(err)
		}
		var b bytes.Buffer
		if _, err := writeStateTo(&b, s); err != nil {
			t.Fatal(err)
		}
		return &b
	}
	if _, err := d.ReceiveState(5, 1, theirs(5), nil); err == nil {
		t.Error("it takes another one of the same entry")
	}
	if after, _ := os.ReadFile(stateName(dir.Snapshots(), 5)); !bytes.Equal(after, before) {
		t.Error("its own is gone")
	}
	free = testSegment
	if _, err := d.ReceiveState(9, 1, theirs(9), nil); !errors.Is(err, replica.ErrNoRoom) {
		t.Errorf("it takes one although the log has no room: %v", err)
	}
	free = 1 << 40
	if s, err := d.ReceiveState(9, 1, theirs(9), nil); err != nil || s.Index != 9 {
		t.Errorf("it does not take one that it needs: %v", err)
	}
}
