package storage

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"go.etcd.io/etcd/client/pkg/v3/fileutil"
	"go.etcd.io/etcd/server/v3/storage/wal"
	"go.etcd.io/etcd/server/v3/storage/wal/walpb"
	"go.etcd.io/raft/v3/raftpb"
	"go.uber.org/zap"
	"google.golang.org/protobuf/proto"
)

// A tail is the only file of a log, with where its writes end and which entry was
// the last in each.
type tail struct {
	t     *testing.T
	bytes []byte
	ends  []int64  // after each write
	index []uint64 // the last entry by then
}

func newTail(t *testing.T) *tail {
	dir := filled(t, 12, 100)
	name := filepath.Join(dir, walDir, "0000000000000000-0000000000000000.wal")
	x := &tail{t: t, bytes: read(t, name)}
	f, err := os.Open(name)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	decoder, scan := wal.NewDecoder(fileutil.NewFileReader(f)), logScan{}
	for place := 0; ; place++ {
		record := &walpb.Record{}
		err := decoder.Decode(record)
		if errors.Is(err, io.EOF) {
			break
		}
		if err == nil {
			err = scan.record(decoder, record, true, place)
		}
		if err != nil {
			t.Fatal(err)
		}
		if record.GetType() == wal.StateType {
			x.ends, x.index = append(x.ends, decoder.LastOffset()), append(x.index, scan.lastIndex)
		}
	}
	// A little of the empty space behind the end is enough, and faster to copy.
	x.bytes = x.bytes[:x.ends[len(x.ends)-1]+4096]
	return x
}

// after returns the last entry that a log with these bytes has, and whether it was
// refused.
func (x *tail) after(bytes []byte) (uint64, error) {
	dir := filepath.Join(x.t.TempDir(), "wal")
	if err := os.Mkdir(dir, 0o700); err != nil {
		x.t.Fatal(err)
	}
	defer os.RemoveAll(dir)
	name := filepath.Join(dir, "0000000000000000-0000000000000000.wal")
	write(x.t, name, bytes)
	if _, err := scanLog(dir); err != nil {
		if !strings.Contains(err.Error(), name) || !strings.Contains(err.Error(), "backup") {
			x.t.Fatalf("the error does not help: %v", err)
		}
		if string(read(x.t, name)) != string(bytes) {
			x.t.Fatal("a refused log was changed")
		}
		return 0, err
	}
	log, err := wal.OpenForRead(zap.NewNop(), dir, &walpb.Snapshot{Index: new(uint64(0)), Term: new(uint64(0))})
	if err != nil {
		x.t.Fatal(err)
	}
	_, _, entries, err := log.ReadAll()
	if err != nil {
		x.t.Fatalf("accepted, and then: %v", err)
	}
	return entries[len(entries)-1].GetIndex(), nil
}

// whole returns the last entry whose write ends at or before an offset.
func (x *tail) whole(offset int64) (index uint64) {
	for i, end := range x.ends {
		if end <= offset {
			index = x.index[i]
		}
	}
	return index
}

// last returns the range of the last few writes.
func (x *tail) last(writes int) (from, to int64) {
	return x.ends[len(x.ends)-1-writes], x.ends[len(x.ends)-1]
}

func TestALogCutOffAnywhereStarts(t *testing.T) {
	x := newTail(t)
	from, to := x.last(3)
	for at := from; at <= to; at++ {
		got, err := x.after(x.bytes[:at])
		if err != nil || got < x.whole(at) {
			t.Fatalf("cut at byte %d: entry %d, %v; entry %d was written whole", at, got, err, x.whole(at))
		}
	}
}

func TestALogWhoseEndIsZeroStarts(t *testing.T) {
	x := newTail(t)
	from, to := x.last(3)
	for at := from; at <= to; at++ {
		bytes := append([]byte(nil), x.bytes...)
		clear(bytes[at:])
		got, err := x.after(bytes)
		// A record whose last bytes were zero before is still whole.
		if err == nil && got >= x.whole(at) {
			continue
		}
		// A record that ends in the middle of a sector cannot be told from a damaged
		// one, and is refused: no disk leaves such a thing behind.
		if err == nil || at%512 == 0 {
			t.Fatalf("zero from byte %d: entry %d, %v; entry %d was written whole", at, got, err, x.whole(at))
		}
	}
}

// Sectors of the last write that never reached the disk, while later ones did.
func TestALogWithMissingSectorsAtItsEndStarts(t *testing.T) {
	x := newTail(t)
	from, to := x.last(1)
	for sector := (from + 511) / 512 * 512; sector < to; sector += 512 {
		bytes := append([]byte(nil), x.bytes...)
		clear(bytes[sector:min(sector+512, to)])
		if got, err := x.after(bytes); err != nil || got < x.whole(from) {
			t.Fatalf("without the sector at %d: entry %d, %v", sector, got, err)
		}
	}
}

// Whatever happens to the bytes of a write that was followed by another, nothing
// that was answered may be missing from a server that starts.
func TestADamagedLogIsRefused(t *testing.T) {
	x := newTail(t)
	from, _ := x.last(4)
	to, _ := x.last(1) // the last write may be taken for a torn one
	lastIndex := x.index[len(x.index)-1]
	damage := map[string]func([]byte, int64){
		"a flipped bit":       func(b []byte, at int64) { b[at] ^= 1 << (at % 8) },
		"a flipped high bit":  func(b []byte, at int64) { b[at] ^= 0x80 },
		"a byte of zero":      func(b []byte, at int64) { b[at] = 0 },
		"eight bytes of zero": func(b []byte, at int64) { clear(b[at/8*8 : at/8*8+8]) },
		"a byte of ones":      func(b []byte, at int64) { b[at] = 0xff },
	}
	refusals := 0
	for what, do := range damage {
		for at := from; at < to; at++ {
			bytes := append([]byte(nil), x.bytes...)
			do(bytes, at)
			got, err := x.after(bytes)
			if err != nil {
				refusals++
			} else if got != lastIndex {
				t.Errorf("%s at byte %d: starts with entry %d of %d", what, at, got, lastIndex)
			}
		}
	}
	if refusals == 0 {
		t.Error("nothing was refused")
	}
}

func TestAMissingFileInTheMiddleOfALogIsRefused(t *testing.T) {
	dir := filled(t, 32, 100<<10)
	logs, _ := filepath.Glob(filepath.Join(dir, walDir, "*.wal"))
	if len(logs) < 3 {
		t.Fatalf("only %d files", len(logs))
	}
	if err := os.Remove(logs[1]); err != nil {
		t.Fatal(err)
	}
	d, err := OpenDir(dir, false)
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	_, err = recoverDir(d, nil)
	if err == nil || !strings.Contains(err.Error(), walDir) || !strings.Contains(err.Error(), "backup") {
		t.Fatalf("the error does not help: %v", err)
	}
}

// What a leader wrote and nobody else had gives way to what stood elsewhere at the same
// place, even though that is of an earlier term. Such a log is whole.
func TestALogThatWentBackToAnEarlierTermIsWhole(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "wal")
	log, err := wal.Create(zap.NewNop(), dir, []byte("1"))
	if err != nil {
		t.Fatal(err)
	}
	for _, w := range []struct {
		term    uint64
		entries [][2]uint64 // index and term
	}{
		{2, [][2]uint64{{1, 1}, {2, 2}, {3, 2}}},
		{4, [][2]uint64{{4, 4}, {5, 4}}},         // it led, and was alone
		{5, [][2]uint64{{4, 3}, {5, 3}, {6, 5}}}, // the next leader had these already
		{6, [][2]uint64{{7, 6}}},
	} {
		var entries []*raftpb.Entry
		for _, e := range w.entries {
			entries = append(entries, &raftpb.Entry{Index: new(e[0]), Term: new(e[1]), Type: raftpb.EntryNormal.Enum()})
		}
		if err := log.Save(&raftpb.HardState{Term: new(w.term), Vote: new(uint64(1)), Commit: new(uint64(3))}, entries); err != nil {
			t.Fatal(err)
		}
	}
	if err := log.Close(); err != nil {
		t.Fatal(err)
	}
	scan, err := scanLog(dir)
	if err != nil {
		t.Fatal(err)
	}
	if scan.lastIndex != 7 || scan.lastTerm != 6 {
		t.Errorf("it ends with entry %d of term %d", scan.lastIndex, scan.lastTerm)
	}
}

// An entry that comes again, or replaces another without a newer leader, is damage.
func TestALogDoesNotRepeatItself(t *testing.T) {
	for name, entries := range map[string][][2]uint64{
		"the same entry again":        {{1, 1}, {2, 2}, {2, 2}},
		"a term that goes back":       {{1, 1}, {2, 2}, {3, 1}},
		"replaced without a new term": {{1, 1}, {2, 1}, {3, 3}, {3, 2}},
	} {
		var s logScan
		var err error
		for _, e := range entries {
			if err == nil {
				err = s.entry(must(proto.Marshal(&raftpb.Entry{Index: new(e[0]), Term: new(e[1])})))
			}
		}
		if err == nil {
			state := must(proto.Marshal(&raftpb.HardState{Term: new(uint64(3)), Commit: new(uint64(1))}))
			err = s.record(nil, &walpb.Record{Type: new(int64(wal.StateType)), Data: state}, true, 9)
		}
		if err == nil {
			t.Errorf("%s is taken for whole", name)
		}
	}
}
