package storage

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"go.etcd.io/etcd/client/pkg/v3/fileutil"
	"go.etcd.io/etcd/server/v3/storage/wal"
	"go.etcd.io/etcd/server/v3/storage/wal/walpb"
	"go.etcd.io/raft/v3/raftpb"
	"go.uber.org/zap"
	"google.golang.org/protobuf/proto"
)

// A crash can leave the last write to the log incomplete: cut off, or with sectors that never
// reached the disk. Nobody was answered on the strength of it, so it is cut away, as etcd's wal
// does. But the same bytes can also come from damage to something that was acknowledged long
// ago; then cutting would lose leases in silence. The two can be told apart, because a write
// begins only after the one before it is on disk: if anything of a later write follows the gap,
// the gap is damage.

// logScan is what reading through the log found.
type logScan struct {
	snapshots []*walpb.Snapshot // that recovery may start from, oldest first
	metadata  []byte
	lastIndex uint64
	lastTerm  uint64
	terms     []termRun // of the entries that stand, as far as they are known
	newer     uint64    // the term that the next state must have come to
}

// A termRun is where in the log a term begins.
type termRun struct{ first, term uint64 }

// scanLog reads the whole log. It repairs a torn end and refuses anything else that
// is wrong, with a sentence that names the file.
func scanLog(dir string) (logScan, error) {
	names, err := logNames(dir)
	if err != nil {
		return logScan{}, err
	}
	if len(names) == 0 {
		return logScan{}, fmt.Errorf("%s has no log files although the log was begun. %s", dir, whatNow)
	}
	var scan logScan
	if first, ok := firstIndex(names[0]); ok && first > 0 {
		scan.lastIndex = first - 1 // what came before was purged
	}
	// Each file continues the checksum of the one before, so a file that is missing in the
	// middle, or comes from another log, shows.
	crc := uint32(0)
	for i, name := range names {
		path := filepath.Join(dir, name)
		last := i == len(names)-1
		if crc, err = scan.file(path, crc, i == 0, last); err != nil {
			return logScan{}, err
		}
	}
	return scan, nil
}

// file reads one file of the log whose predecessor ended with a checksum.
func (s *logScan) file(path string, crc uint32, first, last bool) (uint32, error) {
	f, err := os.Open(path)
	if err != nil {
		return 0, err
	}
	defer f.Close()
	decoder := wal.NewDecoder(fileutil.NewFileReader(f))
	decoder.UpdateCRC(crc)
	record := &walpb.Record{}
	for count := 0; ; count++ {
		err = decode(decoder, record)
		if err == nil {
			err = s.record(decoder, record, first, count)
		}
		if err != nil {
			break
		}
	}
	offset := decoder.LastOffset()
	switch {
	case !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF):
		return 0, damaged(path, fmt.Sprintf("at byte %d: %v", offset, err))
	// Files are allocated in advance, so zeros follow the last record. Anything else in a file
	// that was finished long ago is damage, for a torn write can be only in the last file.
	case !last:
		end, err := onlyZeros(f, offset)
		if err != nil || !end {
			return 0, damaged(path, fmt.Sprintf("at byte %d the records break off, although later files follow",
				offset))
		}
		return decoder.LastCRC(), nil
	case offset == 0:
		return 0, damaged(path, "it has no first record")
	}
	if reason := s.contradiction(f, offset); reason != "" {
		return 0, damaged(path, fmt.Sprintf("at byte %d, %s", offset, reason))
	}
	if errors.Is(err, io.ErrUnexpectedEOF) {
		return 0, repair(path)
	}
	return 0, nil
}

// decode reads one record. A record that is not one at all can make the decoder's
// helpers panic; for us that is damage like any other.
func decode(d wal.Decoder, r *walpb.Record) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("%v", p)
		}
	}()
	if err := d.Decode(r); err != nil {
		return err
	}
	if d.LastOffset()%8 != 0 {
		return errors.New("the length of a record is wrong")
	}
	return nil
}

// record checks one record more strictly than the decoder does, whose checksum covers neither a
// record's type nor its length.
func (s *logScan) record(d wal.Decoder, r *walpb.Record, firstFile bool, place int) error {
	switch r.GetType() {
	case wal.CrcType:
		if place != 0 || !firstFile && r.Validate(d.LastCRC()) != nil {
			return errors.New("its checksum does not continue that of the file before")
		}
		d.UpdateCRC(r.GetCrc())
		return nil
	case wal.MetadataType:
		if s.metadata != nil && !bytes.Equal(s.metadata, r.GetData()) {
			return errors.New("it belongs to another server")
		}
		s.metadata = bytes.Clone(r.GetData())
		return nil
	case wal.EntryType:
		return s.entry(r.GetData())
	case wal.SnapshotType:
		snapshot := &walpb.Snapshot{}
		if err := strict(r.GetData(), snapshot); err != nil {
			return err
		}
		s.snapshots = append(s.snapshots, snapshot)
		s.leap(snapshot)
		return nil
	case wal.StateType:
		var state raftpb.HardState
		if err := strict(r.GetData(), &state); err != nil {
			return err
		}
		// A commit index beyond the log means that entries are missing that were acknowledged.
		if state.Term == nil || state.Commit == nil || state.GetCommit() > s.lastIndex || state.GetTerm() < s.newer {
			return errors.New("it has a state that does not belong there")
		}
		return nil
	}
	return fmt.Errorf("a record has the unknown type %d", r.GetType())
}

// entry checks that an entry continues the log, or replaces a part of it. What replaces an
// entry may be of an earlier term: it was there first, on a server that leads again. But only a
// leader of a later term replaces anything, so raft's hard state must have reached such a term;
// it is written behind the entries that came with it.
func (s *logScan) entry(data []byte) error {
	var e raftpb.Entry
	if err := strict(data, &e); err != nil {
		return err
	}
	index, term := e.GetIndex(), e.GetTerm()
	last, lastTerm := s.lastIndex, s.lastTerm
	switch {
	case e.Index == nil || e.Term == nil:
		return errors.New("an entry has no place in the log")
	case index > last+1:
		return fmt.Errorf("entry %d follows entry %d", index, last)
	case index <= last:
		replaced := s.termAt(index)
		s.newer = max(s.newer, lastTerm+1)
		s.cut(index)
		if replaced == term {
			return fmt.Errorf("entry %d of term %d follows entry %d of term %d", index, term, last, lastTerm)
		}
	}
	if term < s.lastTerm {
		return fmt.Errorf("entry %d of term %d follows entry %d of term %d", index, term, last, lastTerm)
	}
	if term > s.lastTerm {
		s.terms = append(s.terms, termRun{index, term})
	}
	s.lastIndex, s.lastTerm = index, term
	return nil
}

// leap continues from a snapshot. What the log holds beyond it stays, unless it belongs to a
// log that another server's snapshot replaced.
func (s *logScan) leap(snapshot *walpb.Snapshot) {
	index, term := snapshot.GetIndex(), snapshot.GetTerm()
	if stands := s.termAt(index); index <= s.lastIndex && (stands == term || stands == 0) {
		return
	}
	s.lastIndex, s.lastTerm, s.terms = index, term, []termRun{{index, term}}
}

// termAt returns the term of an entry; 0: it is not known, or there is none.
func (s *logScan) termAt(index uint64) uint64 {
	if index > s.lastIndex {
		return 0
	}
	for _, run := range slices.Backward(s.terms) {
		if run.first <= index {
			return run.term
		}
	}
	return 0
}

// cut removes the entries from an index on.
func (s *logScan) cut(index uint64) {
	for n := len(s.terms); n > 0 && s.terms[n-1].first >= index; n-- {
		s.terms = s.terms[:n-1]
	}
	s.lastIndex, s.lastTerm = index-1, 0
	if n := len(s.terms); n > 0 {
		s.lastTerm = s.terms[n-1].term
	}
}

// strict reads a message that must have no unknown fields: protobuf would accept the bytes of
// one message type as another's.
func strict(b []byte, m proto.Message) error {
	if err := proto.Unmarshal(b, m); err != nil {
		return errors.New("a record is not of the type that it says")
	}
	if len(m.ProtoReflect().GetUnknown()) > 0 {
		return errors.New("a record is not of the type that it says")
	}
	return nil
}

// contradiction looks behind the end of the log for something that cannot be there if the end
// is merely torn, and says what it found. A write ends with a hard state or the mark of a
// snapshot, so a record behind one of those is of a later write.
func (s *logScan) contradiction(f *os.File, offset int64) string {
	b, err := remainder(f, offset)
	if err != nil {
		return err.Error()
	}
	ended, first := false, true
	// Records are aligned to 8 bytes, so a readable one can be found again behind a gap.
	for i := 0; i+8 <= len(b); {
		record, size := recordAt(b[i:])
		if record == nil {
			i += 8
			continue
		}
		if ended && i > 0 {
			return "a record is unreadable, although what was written after it is there"
		}
		if first && i > 0 && record.GetType() == wal.EntryType && indexOf(record) == s.lastIndex+1 {
			return "a record is unreadable, although the next entry of the log is there"
		}
		ended = record.GetType() == wal.StateType || record.GetType() == wal.SnapshotType
		first = false
		i += size
	}
	return ""
}

// recordAt reads the record that may begin at b; nil: none does. The length field holds, as
// etcd's wal writes it, the size in its lower 56 bits and the padding in the top byte, if the
// highest bit is set.
func recordAt(b []byte) (*walpb.Record, int) {
	length := binary.LittleEndian.Uint64(b)
	size := int(length & (1<<56 - 1))
	pad := 0
	if length>>63 == 1 {
		pad = int(length>>56) & 7
	}
	if size < 2 || size > len(b)-8-pad || (size+pad)%8 != 0 {
		return nil, 0
	}
	record := &walpb.Record{}
	if proto.Unmarshal(b[8:8+size], record) != nil || proto.Size(record) != size {
		return nil, 0
	}
	if t := record.GetType(); t < wal.MetadataType || t > wal.SnapshotType {
		return nil, 0
	}
	return record, 8 + size + pad
}

func indexOf(r *walpb.Record) uint64 {
	var e raftpb.Entry
	if proto.Unmarshal(r.GetData(), &e) != nil {
		return 0
	}
	return e.GetIndex()
}

// repair cuts the torn record off, as etcd's wal does; a copy is left beside the file.
func repair(path string) error {
	if !wal.Repair(zap.NewNop(), filepath.Dir(path)) {
		return damaged(path, "its end is torn and could not be cut off")
	}
	return nil
}

// remainder returns what is in a file from offset on, without the zeros at its end.
func remainder(f *os.File, offset int64) ([]byte, error) {
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	b := make([]byte, max(0, info.Size()-offset))
	if _, err := f.ReadAt(b, offset); err != nil && !errors.Is(err, io.EOF) {
		return nil, err
	}
	end := len(b)
	for end > 0 && b[end-1] == 0 {
		end--
	}
	return b[:end], nil
}

func onlyZeros(f *os.File, offset int64) (bool, error) {
	b, err := remainder(f, offset)
	return len(b) == 0, err
}

// logNames returns the names of the log's files in order.
func logNames(dir string) ([]string, error) {
	files, err := os.ReadDir(dir)
	if err != nil {
		return nil, fmt.Errorf("the log in %s cannot be read: %w", dir, err)
	}
	var names []string
	for _, f := range files {
		if strings.HasSuffix(f.Name(), ".wal") {
			names = append(names, f.Name())
		}
	}
	slices.Sort(names)
	return names, nil
}
