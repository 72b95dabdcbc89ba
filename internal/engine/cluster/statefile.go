package cluster

import (
	"bufio"
	"encoding/binary"
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

	"github.com/leasehold/leasehold/internal/core"
	"github.com/leasehold/leasehold/internal/wire"
)

// A state file is a snapshot: a head that says its place in the log, then the
// state as wire.WriteSnapshot makes it. Its name is the one under which etcd's own
// transport puts a snapshot that another node sent.
const (
	stateSuffix = ".snap.db"
	stateMagic  = "LHSTATE1"
	stateHead   = len(stateMagic) + 8 + 8 + 4
)

func stateName(dir string, index uint64) string {
	return filepath.Join(dir, fmt.Sprintf("%016x%s", index, stateSuffix))
}

// writeState makes a snapshot durable under its name. It gives up when stop is
// closed.
func writeState(dir string, s Snapshot, stop <-chan struct{}) (int64, error) {
	name := stateName(dir, s.Index)
	f, err := os.CreateTemp(dir, "state-*.tmp")
	if err != nil {
		return 0, err
	}
	defer os.Remove(f.Name())
	size, err := writeStateTo(&gentle{file: f, stop: stop}, s)
	if err == nil {
		err = f.Sync()
	}
	if cerr := f.Close(); err == nil {
		err = cerr
	}
	if err == nil {
		err = os.Rename(f.Name(), name)
	}
	if err == nil {
		err = syncDir(dir)
	}
	return size, err
}

func writeStateTo(file io.Writer, s Snapshot) (int64, error) {
	w := bufio.NewWriterSize(file, 256<<10)
	head := append([]byte(stateMagic), make([]byte, 16)...)
	binary.BigEndian.PutUint64(head[8:], s.Index)
	binary.BigEndian.PutUint64(head[16:], s.Term)
	head = binary.BigEndian.AppendUint32(head, crc32.Checksum(head, castagnoli))
	if _, err := w.Write(head); err != nil {
		return 0, err
	}
	summary, err := wire.WriteSnapshot(w, s.State)
	if err != nil {
		return 0, err
	}
	return int64(stateHead) + summary.Bytes, w.Flush()
}

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// gentle syncs as it writes, so that a large snapshot never piles up unwritten
// pages in front of the log's own sync.
type gentle struct {
	file     *os.File
	stop     <-chan struct{}
	unsynced int
}

const gentleBytes = 2 << 20

func (g *gentle) Write(b []byte) (int, error) {
	if isClosed(g.stop) {
		return 0, errors.New("the server is stopping")
	}
	n, err := g.file.Write(b)
	if g.unsynced += n; err == nil && g.unsynced >= gentleBytes {
		g.unsynced = 0
		err = fileutil.Fdatasync(g.file)
	}
	return n, err
}

// readState reads the snapshot at an index. The checksum is right if it succeeds.
func readState(dir string, index, term uint64) (*core.State, int64, error) {
	name := stateName(dir, index)
	f, err := os.Open(name)
	if err != nil {
		return nil, 0, err
	}
	defer f.Close()
	r := bufio.NewReaderSize(f, 256<<10)
	head := make([]byte, stateHead)
	if _, err := io.ReadFull(r, head); err != nil {
		return nil, 0, damaged(name, "its head is cut off")
	}
	body := head[:stateHead-4]
	switch {
	case string(head[:len(stateMagic)]) != stateMagic:
		return nil, 0, damaged(name, "it is not a snapshot")
	case binary.BigEndian.Uint32(head[stateHead-4:]) != crc32.Checksum(body, castagnoli):
		return nil, 0, damaged(name, "the checksum of its head is wrong")
	case binary.BigEndian.Uint64(head[8:]) != index || binary.BigEndian.Uint64(head[16:]) != term:
		return nil, 0, damaged(name, "it belongs to another place in the log")
	}
	state, summary, err := wire.ReadSnapshot(r)
	switch {
	case errors.Is(err, wire.ErrMalformed):
		return nil, 0, damaged(name, err.Error())
	case err != nil: // a newer version's, or the disk does not give it out
		return nil, 0, fmt.Errorf("%s can not be read: %w", name, err)
	}
	return state, int64(stateHead) + summary.Bytes, nil
}

// damaged is the error for a file that must not be trusted.
func damaged(name, what string) error {
	return fmt.Errorf("%s is damaged: %s. Nothing was changed. Restore the data directory from a backup, or, to begin anew without any lease, move it away", name, what)
}

// purgeStates removes the state files that recovery will not start from, and what
// a crash left of unfinished ones. A newer one stays: another node may just have sent
// it, and the log hears of it next.
func purgeStates(dir string, keep ...uint64) error {
	files, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	var errs []error
	for _, f := range files {
		index, err := strconv.ParseUint(strings.TrimSuffix(f.Name(), stateSuffix), 16, 64)
		if err == nil && !slices.Contains(keep, index) && index < slices.Max(keep) || strings.HasSuffix(f.Name(), ".tmp") {
			errs = append(errs, os.Remove(filepath.Join(dir, f.Name())))
		}
	}
	return errors.Join(errs...)
}
