package storage

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/leasehold/leasehold"
	"github.com/leasehold/leasehold/internal/core"
	"github.com/leasehold/leasehold/internal/engine/replica"
	"github.com/leasehold/leasehold/internal/wire"
)

// A backup is one file:
//
//	leasehold backup 3                 a line that says what it is, in which format
//	{"cluster":"…","index":812,…}      a line about it, as JSON: BackupHead
//	the state                          as wire.WriteSnapshot makes it, in chunks
//	each large value that it names     in the order of their digests, in chunks
//	32 bytes                           the SHA-256 of everything before
//
// Chunks are pieces of up to 1 MiB, each behind its length in four bytes, highest first; a
// length of 0 ends them.
const (
	backupMagic  = "leasehold backup "
	backupFormat = 3       // builds from before the first release wrote 1 and 2
	maxBackup    = 1 << 20 // bytes of its head
	maxChunk     = 1 << 20
)

// BackupHead is what a backup says of itself.
type BackupHead struct {
	Cluster string          `json:"cluster"` // whose it is
	Index   uint64          `json:"index"`   // its place in the log
	Term    uint64          `json:"term"`
	Time    time.Time       `json:"time"`   // by the calendar of the server that took it
	Roster  *replica.Roster `json:"roster"` // who belonged to the cluster

	// How much there is.
	Namespaces int `json:"namespaces"`
	Resources  int `json:"resources"`
	Leases     int `json:"leases"`
	Waiters    int `json:"waiters"`
	Sessions   int `json:"sessions"`
	Records    int `json:"records"`
}

// headOf describes the backup of a snapshot.
func headOf(s replica.Snapshot, taken time.Time) BackupHead {
	roster := s.Roster
	if roster == nil {
		roster = &replica.Roster{}
	}
	n := s.State.View(0).Counts()
	return BackupHead{
		Cluster: roster.Cluster, Index: s.Index, Term: s.Term, Time: taken.UTC().Truncate(time.Millisecond),
		Roster:     roster,
		Namespaces: n.Namespaces, Resources: n.Resources, Leases: n.Leases, Waiters: n.Waiters, Sessions: n.Sessions,
		Records: n.Records,
	}
}

// WriteBackup writes a backup. Large values are read from open, which may be nil if there are
// none.
func WriteBackup(w io.Writer, s replica.Snapshot, taken time.Time,
	open func(leasehold.Large) (io.ReadCloser, error)) error {
	head, err := json.Marshal(headOf(s, taken))
	if err != nil {
		return err
	}
	sum := sha256.New()
	out := bufio.NewWriterSize(w, 256<<10)
	all := io.MultiWriter(out, sum)
	if _, err := fmt.Fprintf(all, "%s%d\n%s\n", backupMagic, backupFormat, head); err != nil {
		return err
	}
	state := &chunkWriter{all}
	if _, err := wire.WriteSnapshot(state, s.State); err != nil {
		return err
	}
	if err := state.end(); err != nil {
		return err
	}
	if err := writeValues(all, s.State, open); err != nil {
		return err
	}
	if _, err := out.Write(sum.Sum(nil)); err != nil {
		return err
	}
	return out.Flush()
}

// writeValues writes the large values that a state names, in the order of their digests: the
// reader knows that order from the state, so it needs no names.
func writeValues(w io.Writer, s *core.State, open func(leasehold.Large) (io.ReadCloser, error)) (err error) {
	s.Larges(func(large leasehold.Large) bool {
		var value io.ReadCloser
		if value, err = open(large); err != nil {
			return false
		}
		out := &chunkWriter{w}
		if _, err = io.Copy(out, value); err == nil {
			err = out.end()
		}
		_ = value.Close() // it was only read
		return err == nil
	})
	return err
}

// A chunkWriter writes something whose length is not known beforehand.
type chunkWriter struct{ w io.Writer }

func (c *chunkWriter) Write(b []byte) (n int, err error) {
	for n < len(b) && err == nil {
		piece := b[n:min(len(b), n+maxChunk)]
		if _, err = c.w.Write(binary.BigEndian.AppendUint32(nil, uint32(len(piece)))); err == nil {
			var written int
			written, err = c.w.Write(piece)
			n += written
		}
	}
	return n, err
}

func (c *chunkWriter) end() error {
	_, err := c.w.Write(make([]byte, 4))
	return err
}

// A chunkReader reads what a chunkWriter wrote, to its end.
type chunkReader struct {
	r     io.Reader
	left  uint32 // of the piece
	ended bool
}

func (c *chunkReader) Read(b []byte) (int, error) {
	if c.left == 0 && !c.ended {
		var length [4]byte
		if _, err := io.ReadFull(c.r, length[:]); err != nil {
			return 0, io.ErrUnexpectedEOF
		}
		c.left = binary.BigEndian.Uint32(length[:])
		c.ended = c.left == 0
		if c.left > maxChunk {
			return 0, badBackup("a piece of it is longer than any can be")
		}
	}
	if c.ended {
		return 0, io.EOF
	}
	n, err := c.r.Read(b[:min(len(b), int(c.left))])
	c.left -= uint32(n)
	if err == io.EOF {
		err = io.ErrUnexpectedEOF
	}
	return n, err
}

// ErrBackup is for a backup that is damaged, cut off, or none at all.
var ErrBackup = errors.New("this backup cannot be used")

// badBackup is the error of a backup that must not be trusted.
func badBackup(format string, args ...any) error {
	return fmt.Errorf("%w: %s", ErrBackup, fmt.Sprintf(format, args...))
}

// sealed reads everything but the checksum at the end of a backup, and sums it up.
type sealed struct {
	in  *bufio.Reader
	sum interface {
		io.Writer
		Sum([]byte) []byte
	}
}

func newSealed(r io.Reader) *sealed {
	return &sealed{bufio.NewReaderSize(r, 256<<10), sha256.New()}
}

func (s *sealed) Read(p []byte) (int, error) {
	// The last 32 bytes are always held back: only at the end is it known that they are the
	// checksum.
	ahead, err := s.in.Peek(sha256.Size + 1)
	if len(ahead) <= sha256.Size {
		return 0, err
	}
	n, err := s.in.Read(p[:min(len(p), s.in.Buffered()-sha256.Size)])
	_, _ = s.sum.Write(p[:n]) // a hash takes everything
	return n, err
}

// end reads to the end and compares the checksum.
func (s *sealed) end() error {
	if _, err := io.Copy(io.Discard, s); err != nil {
		return fmt.Errorf("the backup cannot be read: %w", err)
	}
	seal, err := io.ReadAll(s.in)
	if err != nil {
		return fmt.Errorf("the backup cannot be read: %w", err)
	}
	if !bytes.Equal(seal, s.sum.Sum(nil)) {
		return badBackup("it is damaged or cut off, since its checksum is wrong: use another one")
	}
	return nil
}

// readBackupHead reads the two lines that a backup begins with.
func readBackupHead(r *bufio.Reader) (h BackupHead, err error) {
	first, err := line(r, len(backupMagic)+20)
	format, isBackup := strings.CutPrefix(first, backupMagic)
	if err != nil || !isBackup {
		return h, badBackup("it does not begin like one")
	}
	if n, err := strconv.Atoi(format); err != nil || n < 1 || strconv.Itoa(n) != format {
		return h, badBackup("it does not begin like one")
	} else if n > backupFormat {
		return h, fmt.Errorf("the backup has format %d, and this version knows formats up to %d: use the newer "+
			"version that wrote it", n, backupFormat)
	} else if n < backupFormat {
		return h, fmt.Errorf("the backup has format %d, which only builds from before the first release wrote, and "+
			"this version does not read: restore it with the build that wrote it", n)
	}
	about, err := line(r, maxBackup)
	if err != nil {
		return h, badBackup("it is cut off in what it says of itself: use another one")
	}
	if err := json.Unmarshal([]byte(about), &h); err != nil {
		return h, badBackup("it is damaged in what it says of itself (%v): use another one", err)
	}
	if h.Roster == nil || h.Index == 0 || h.Term == 0 {
		return h, badBackup("it does not say where in the log it stands, or of whom it is")
	}
	return h, nil
}

// line reads a line of at most most bytes, without its end.
func line(r *bufio.Reader, most int) (string, error) {
	var b []byte
	for len(b) <= most {
		c, err := r.ReadByte()
		if err != nil {
			return "", err
		}
		if c == '\n' {
			return string(b), nil
		}
		b = append(b, c)
	}
	return "", errors.New("the line is too long")
}

// ReadBackup reads a whole backup. It returns a state only if it is the one that was written,
// and everything that it names is there.
func ReadBackup(r io.Reader) (BackupHead, *core.State, error) {
	return readBackup(r, func(_ leasehold.Large, value io.Reader) (found leasehold.Large, err error) {
		sum := sha256.New()
		found.Size, err = io.Copy(sum, value)
		sum.Sum(found.SHA256[:0])
		return found, err
	})
}

// readBackup gives each large value to keep, which reads it to its end and returns what it was.
func readBackup(r io.Reader,
	keep func(leasehold.Large, io.Reader) (leasehold.Large, error)) (BackupHead, *core.State, error) {
	in := newSealed(r)
	lines := bufio.NewReader(in)
	head, err := readBackupHead(lines)
	if err != nil {
		return head, nil, err
	}
	state, _, err := wire.ReadSnapshot(&chunkReader{r: lines})
	if err == nil {
		err = readValues(lines, state, keep)
	}
	// A wrong checksum explains whatever else was found, so it is said first.
	if sealErr := in.end(); sealErr != nil {
		return head, nil, sealErr
	}
	switch {
	case errors.Is(err, wire.ErrMalformed):
		return head, nil, badBackup("%v", err)
	case errors.Is(err, ErrBackup):
		return head, nil, err
	case err != nil:
		return head, nil, fmt.Errorf("the backup cannot be read: %w", err)
	}
	return head, state, nil
}

// readValues reads the large values that follow the state.
func readValues(r *bufio.Reader, s *core.State,
	keep func(leasehold.Large, io.Reader) (leasehold.Large, error)) (err error) {
	s.Larges(func(large leasehold.Large) bool {
		var found leasehold.Large
		if found, err = keep(large, &chunkReader{r: r}); err == nil && found != large {
			err = badBackup("large value %v in it is damaged", large.SHA256)
		}
		return err == nil
	})
	if _, more := r.ReadByte(); err == nil && more != io.EOF {
		err = badBackup("something follows its end")
	}
	return err
}

// CopyBackup copies a backup, checks its checksum and returns its head. After an error the copy
// is worthless. It needs little memory, however large the backup is.
func CopyBackup(w io.Writer, r io.Reader) (BackupHead, int64, error) {
	out := &counter{w: w}
	in := newSealed(io.TeeReader(r, out))
	head, err := readBackupHead(bufio.NewReader(in))
	if err == nil {
		err = in.end()
	}
	if out.err != nil {
		err = out.err
	}
	return head, out.n, err
}

type counter struct {
	w   io.Writer
	n   int64
	err error
}

func (c *counter) Write(b []byte) (int, error) {
	n, err := c.w.Write(b)
	c.n, c.err = c.n+int64(n), err
	return n, err
}

// OpenBackup reads the backup in a file.
func OpenBackup(name string) (BackupHead, *core.State, error) {
	f, err := os.Open(name)
	if err != nil {
		return BackupHead{}, nil, err
	}
	defer f.Close()
	head, state, err := ReadBackup(f)
	if err != nil {
		return head, nil, fmt.Errorf("%s: %w", name, err)
	}
	return head, state, nil
}

// CheckBackup reads the backup in a file, and returns what contradicts itself in it.
func CheckBackup(name string) (BackupHead, Report, error) {
	head, state, err := OpenBackup(name)
	if err != nil {
		return head, Report{}, err
	}
	summary, err := wire.WriteSnapshot(io.Discard, state)
	report := Report{Counts: state.View(0).Counts(), Index: head.Index, Snapshot: head.Index,
		Checksum: summary.Checksum}
	return head, report, errors.Join(err, state.Check())
}
