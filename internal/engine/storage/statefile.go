package storage

import (
	"bufio"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"go.etcd.io/etcd/client/pkg/v3/fileutil"

	"github.com/leasehold/leasehold/internal/engine/replica"
	"github.com/leasehold/leasehold/internal/wire"
)

// A state file is a snapshot: a head, then the state as wire.WriteSnapshot makes it. The head
// has the magic, the snapshot's index and term, the length of the roster, the roster, and a
// checksum of all that.
const (
	stateSuffix = ".snap.db"
	stateMagic  = "LHSTATE2"
	stateFixed  = len(stateMagic) + 8 + 8
	maxRoster   = 1 << 20

	partSuffix = ".part" // of a file while it arrives
)

// stateName is the file of the snapshot at an index. The digits sort as the indexes do.
func stateName(dir string, index uint64) string {
	return filepath.Join(dir, fmt.Sprintf("%016x%s", index, stateSuffix))
}

// writeState makes a snapshot durable under its name. It gives up when stop is
// closed, and when enough, which may be nil, returns an error.
func writeState(dir string, s replica.Snapshot, stop <-chan struct{}, enough func() error) (int64, error) {
	name := stateName(dir, s.Index)
	f, err := os.CreateTemp(dir, "state-*.tmp")
	if err != nil {
		return 0, err
	}
	defer os.Remove(f.Name())
	size, err := writeStateTo(&pacedWriter{file: f, stop: stop, enough: enough}, s)
	return size, putInPlace(f, name, err)
}

func writeStateTo(file io.Writer, s replica.Snapshot) (int64, error) {
	w := bufio.NewWriterSize(file, 256<<10)
	head, err := stateHead(s)
	if err != nil {
		return 0, err
	}
	if _, err := w.Write(head); err != nil {
		return 0, err
	}
	summary, err := wire.WriteSnapshot(w, s.State)
	if err != nil {
		return 0, err
	}
	return int64(len(head)) + summary.Bytes, w.Flush()
}

func stateHead(s replica.Snapshot) ([]byte, error) {
	roster, err := json.Marshal(s.Roster)
	if err != nil {
		return nil, err
	}
	head := binary.BigEndian.AppendUint64([]byte(stateMagic), s.Index)
	head = binary.BigEndian.AppendUint64(head, s.Term)
	head = binary.BigEndian.AppendUint32(head, uint32(len(roster)))
	head = append(head, roster...)
	return binary.BigEndian.AppendUint32(head, crc32.Checksum(head, castagnoli)), nil
}

// readHead reads the head of a state file: the snapshot without its state, and how many
// bytes it took. The error says what is wrong with it.
func readHead(r io.Reader) (s replica.Snapshot, size int, err error) {
	var head []byte
	read := func(n uint32) bool {
		more := make([]byte, n)
		_, failed := io.ReadFull(r, more)
		head = append(head, more...)
		return failed == nil
	}
	if !read(uint32(stateFixed)) {
		return s, 0, errors.New("its head is cut off")
	}
	if string(head[:len(stateMagic)]) != stateMagic {
		return s, 0, errors.New("it is not a snapshot")
	}
	if !read(4) {
		return s, 0, errors.New("its head is cut off")
	}
	length := binary.BigEndian.Uint32(head[stateFixed:])
	// A damaged length must not make this allocate gigabytes before the checksum is compared.
	if length > maxRoster {
		return s, 0, errors.New("the checksum of its head is wrong")
	}
	if !read(length) {
		return s, 0, errors.New("its head is cut off")
	}
	body := head
	if !read(4) {
		return s, 0, errors.New("its head is cut off")
	}
	if binary.BigEndian.Uint32(head[len(body):]) != crc32.Checksum(body, castagnoli) {
		return s, 0, errors.New("the checksum of its head is wrong")
	}
	s.Index, s.Term = binary.BigEndian.Uint64(head[8:]), binary.BigEndian.Uint64(head[16:])
	if err = json.Unmarshal(body[stateFixed+4:], &s.Roster); err == nil && s.Roster == nil {
		err = errors.New("its head names no members")
	}
	return s, len(head), err
}

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// pacedWriter syncs as it writes, so that a large snapshot does not pile up unwritten pages:
// the kernel would write them all out in front of the log's next sync, and stall every command.
type pacedWriter struct {
	file     *os.File
	stop     <-chan struct{}
	enough   func() error // says whether there is room for more; nil: there is
	unsynced int
}

const pacedBytes = 2 << 20

// errGaveUp is why a paced writer, or a check, stopped.
var errGaveUp = errors.New("the server is stopping")

func (g *pacedWriter) Write(b []byte) (int, error) {
	if isClosed(g.stop) {
		return 0, errGaveUp
	}
	if g.enough != nil {
		if err := g.enough(); err != nil {
			return 0, err
		}
	}
	n, err := g.file.Write(b)
	if g.unsynced += n; err == nil && g.unsynced >= pacedBytes {
		g.unsynced = 0
		err = fileutil.Fdatasync(g.file)
	}
	return n, err
}

// readState reads the snapshot at an index. If it succeeds, the checksums were right.
func (d *Dir) readState(index, term uint64) (replica.Snapshot, int64, error) {
	name := stateName(d.Snapshots(), index)
	f, err := os.Open(name)
	if err != nil {
		return replica.Snapshot{}, 0, err
	}
	defer f.Close()
	return d.readStateFrom(bufio.NewReaderSize(f, 256<<10), name, index, term)
}

// readStateFrom reads a snapshot from a file of some name.
func (d *Dir) readStateFrom(r io.Reader, name string, index, term uint64) (replica.Snapshot, int64, error) {
	s, head, err := readHead(r)
	if err != nil {
		return replica.Snapshot{}, 0, damaged(name, err.Error())
	}
	if s.Index != index || s.Term != term {
		return replica.Snapshot{}, 0, damaged(name, "it belongs to another place in the log")
	}
	state, summary, err := wire.ReadSnapshotUpTo(d.newestLevel(), r)
	switch {
	case errors.Is(err, wire.ErrMalformed):
		return replica.Snapshot{}, 0, damaged(name, err.Error())
	case err != nil: // a newer version's, or the disk does not give it out
		return replica.Snapshot{}, 0, fmt.Errorf("%s cannot be read: %w", name, err)
	}
	s.State = state
	return s, int64(head) + summary.Bytes, nil
}

// ReceiveState makes the state file that another server sends durable, as this one's own are,
// and reads it back. A damaged one never gets the name of a whole one, and none the name of one
// that this server starts from. It gives up while the log would have no room left.
func (d *Disk) ReceiveState(index, term uint64, body io.Reader, stop <-chan struct{}) (replica.Snapshot, error) {
	if newest := d.marked.Load(); index <= newest {
		return replica.Snapshot{}, fmt.Errorf("it is of entry %d, and this server has one of entry %d", index, newest)
	}
	d.MakeRoom()
	s, err := receiveState(d.dir, index, term, body, &pacedWriter{stop: stop, enough: d.leavesRoom})
	return s, noRoom(err)
}

func receiveState(d *Dir, index, term uint64, body io.Reader, w *pacedWriter) (replica.Snapshot, error) {
	f, err := os.CreateTemp(d.Snapshots(), "state-*"+partSuffix)
	if err != nil {
		return replica.Snapshot{}, err
	}
	defer os.Remove(f.Name())
	w.file = f
	_, err = io.Copy(w, body)
	var s replica.Snapshot
	if err == nil {
		s, err = d.rereadState(f, index, term)
	}
	return s, putInPlace(f, stateName(d.Snapshots(), index), err)
}

// rereadState reads what has just been written, as a start would: what arrived damaged is
// refused before anything relies on it.
func (d *Dir) rereadState(f *os.File, index, term uint64) (replica.Snapshot, error) {
	if _, err := f.Seek(0, io.SeekStart); err != nil {
		return replica.Snapshot{}, err
	}
	s, _, err := d.readStateFrom(bufio.NewReaderSize(f, 256<<10), f.Name(), index, term)
	return s, err
}

// OpenState opens the file of the snapshot at an index.
func (d *Dir) OpenState(index uint64) (*os.File, error) {
	return os.Open(stateName(d.Snapshots(), index))
}

// RemoveParts removes what a crash left of snapshots that were being written.
func (d *Dir) RemoveParts() error {
	files, err := os.ReadDir(d.Snapshots())
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	for _, f := range files {
		if isUnfinished(f.Name()) {
			err = errors.Join(err, os.Remove(filepath.Join(d.Snapshots(), f.Name())))
		}
	}
	return err
}

// whatNow ends each message about data that cannot be used. Putting an older copy of a data
// directory back is no way out, and is not offered: tokens that were granted since would be
// granted again.
const whatNow = "Nothing was changed. If there are other servers, remove this one from the cluster (leasehold " +
	"cluster remove) and let it join as a new one, with an empty directory; " +
	"else make a new directory from a backup (leasehold restore), or, to begin anew without any lease, move this one " +
	"away"

// damaged is the error for a file that must not be trusted.
func damaged(name, what string) error {
	return fmt.Errorf("%s is damaged: %s. %s", name, what, whatNow)
}

// checkState reads a state file to its end and compares its checksums. Unlike readState it
// builds no state in memory. It gives up when stop is closed.
func checkState(dir string, index uint64, stop <-chan struct{}) error {
	name := stateName(dir, index)
	f, err := os.Open(name)
	if err != nil {
		return err
	}
	defer f.Close()
	r := bufio.NewReaderSize(stoppable{f, stop}, 256<<10)
	_, head, err := readHead(r)
	switch {
	case isClosed(stop): // readHead would call that cut off
		return errGaveUp
	case err != nil:
		return damaged(name, err.Error())
	}
	info, err := f.Stat()
	if err != nil {
		return err
	}
	sum := crc32.New(castagnoli)
	var end [4]byte
	if _, err := io.CopyN(sum, r, info.Size()-int64(head+len(end))); err != nil {
		return fmt.Errorf("%s cannot be read: %w", name, err)
	}
	_, err = io.ReadFull(r, end[:])
	switch {
	case errors.Is(err, errGaveUp):
		return err
	case err != nil, binary.BigEndian.Uint32(end[:]) != sum.Sum32():
		return damaged(name, "its checksum is wrong")
	}
	return nil
}

// stoppable reads until stop is closed.
type stoppable struct {
	io.Reader
	stop <-chan struct{}
}

func (s stoppable) Read(b []byte) (int, error) {
	if isClosed(s.stop) {
		return 0, errGaveUp
	}
	return s.Reader.Read(b)
}

// stateIndex reads the index from the name of a state file.
func stateIndex(name string) (uint64, bool) {
	digits, ok := strings.CutSuffix(name, stateSuffix)
	index, err := strconv.ParseUint(digits, 16, 64)
	return index, ok && err == nil
}

// stateSize returns the size of a state file; 0: there is none.
func stateSize(dir string, index uint64) int64 {
	info, err := os.Stat(stateName(dir, index))
	if err != nil {
		return 0
	}
	return info.Size()
}

// olderStates returns the indexes of the state files before one.
func olderStates(dir string, newest uint64) (older []uint64, err error) {
	files, err := os.ReadDir(dir)
	for _, f := range files {
		if index, ok := stateIndex(f.Name()); ok && index < newest {
			older = append(older, index)
		}
	}
	return older, err
}

// purgeStates removes the state files that recovery will not start from. A newer one stays:
// another server may just have sent it, and its mark is the next thing to be written to the
// log.
func purgeStates(dir string, keep ...uint64) error {
	files, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	var errs []error
	for _, f := range files {
		index, ok := stateIndex(f.Name())
		if ok && !slices.Contains(keep, index) && index < slices.Max(keep) {
			errs = append(errs, os.Remove(filepath.Join(dir, f.Name())))
		}
	}
	return errors.Join(errs...)
}

func isClosed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}
