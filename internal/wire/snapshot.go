package wire

import (
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"iter"

	"github.com/leasehold/leasehold"
	"github.com/leasehold/leasehold/internal/core"
	"github.com/leasehold/leasehold/internal/core/access"
	"github.com/leasehold/leasehold/internal/core/tagged"
)

// A snapshot is a line of text, a version, and records, each in a frame of its own; the last
// one has their number and a checksum of everything before. It is written and read in one pass
// with a small buffer, so that saving a large state does not need twice its memory.

// magic begins every snapshot. It is a line of text, so that a person who finds the file
// knows what it is.
const magic = "leasehold snapshot\n"

const (
	maxFrameHead = 2 * binary.MaxVarintLen64
	checksumSize = 4
	bufferSize   = 64 << 10
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// A Summary describes a snapshot. Equal states have equal Summaries, because every value has
// one encoding and the pieces have one order: nodes that compare theirs at one index of the log
// know whether they agree.
type Summary struct {
	Records  int
	Bytes    int64
	Checksum uint32 // CRC-32C of everything but itself
}

// WriteSnapshot writes a state. It holds a part of the bytes at a time, and leaves it
// to the caller to make them durable. The state must not change meanwhile; a frozen
// one does not.
func WriteSnapshot(w io.Writer, s *core.State) (Summary, error) {
	out := snapshotWriter{w: w, codec: writing(make([]byte, 0, bufferSize+bufferSize/4))}
	out.B = append(out.B, magic...)
	_ = out.version("snapshot", uint64(s.Level()), Level) // only reading it can fail
	for r := range s.Pieces() {
		if err := out.write(r); err != nil {
			return Summary{}, err
		}
	}
	return out.finish()
}

type snapshotWriter struct {
	codec
	w     io.Writer
	space string // of the record before
	sum   Summary
}

func (w *snapshotWriter) write(r core.Piece) error {
	kind := kindOf(r.Value)
	if kind == kindEnd {
		return fmt.Errorf("snapshot cannot be written: a %T has no number in it", r.Value)
	}
	body := w.Open(kind)
	w.place(kind, r)
	w.Parts, w.Since = 0, 0 // each record is a message of its own
	pieceKinds[kind].fields(r.Value, w.Message())
	// Refused while it can still be reported: a snapshot that nobody can read back would be
	// found out when it is needed.
	if size := len(w.B) - body; size > maxRecord {
		w.Fail("length", fmt.Sprintf("it has %d bytes, and at most %d are allowed", size, maxRecord))
	}
	if f := w.Fault; f != nil {
		return fmt.Errorf("snapshot cannot be written: %s %d: %s: %s", pieceKinds[kind].name, w.sum.Records+1, f.Field,
			f.Reason)
	}
	w.Shut(body)
	w.sum.Records++
	if len(w.B) >= bufferSize {
		return w.flush()
	}
	return nil
}

// place writes the namespace of a record; nothing if it is that of the record before, which it
// nearly always is.
func (w *snapshotWriter) place(kind uint64, r core.Piece) {
	if pieceKinds[kind].wide {
		return
	}
	name := r.Space
	if name == w.space {
		name = ""
	}
	w.Text("namespace", &name)
	w.space = r.Space
	if e, ok := r.Value.(*leasehold.Event); r.Space == "" || ok && e.Namespace != r.Space {
		w.Fail("namespace", "it is missing, or another than its event's")
	}
}

// flush counts what is in the buffer into the checksum and sends it. The checksum itself is
// sent without being counted.
func (w *snapshotWriter) flush() error {
	w.sum.Checksum = crc32.Update(w.sum.Checksum, castagnoli, w.B)
	return w.send()
}

func (w *snapshotWriter) send() error {
	w.sum.Bytes += int64(len(w.B))
	_, err := w.w.Write(w.B)
	w.B = w.B[:0]
	if err != nil {
		return fmt.Errorf("snapshot cannot be written: %w", err)
	}
	return nil
}

// finish writes the last record: how many there are, and the checksum. A file that was cut off
// has no such record, so it cannot pass for a smaller state.
func (w *snapshotWriter) finish() (Summary, error) {
	var count [binary.MaxVarintLen64]byte
	size := binary.PutUvarint(count[:], uint64(w.sum.Records))
	w.B = append(w.B, kindEnd, byte(size+checksumSize))
	w.B = append(w.B, count[:size]...)
	if err := w.flush(); err != nil {
		return Summary{}, err
	}
	w.B = binary.BigEndian.AppendUint32(w.B, w.sum.Checksum)
	if err := w.send(); err != nil {
		return Summary{}, err
	}
	return w.sum, nil
}

// ReadSnapshot reads a state that WriteSnapshot wrote, up to the end of r. It returns
// a state only if that is the one that was written: the checksum is right, nothing is
// missing, nothing follows, and the state would write these very bytes again. The
// memory it takes, the state aside, is bounded whatever r says.
func ReadSnapshot(r io.Reader) (*core.State, Summary, error) {
	return ReadSnapshotUpTo(core.NewestLevel, r)
}

// ReadSnapshotUpTo is ReadSnapshot for a program that knows levels up to one. Servers know
// core.NewestLevel; only tests have programs that know another.
func ReadSnapshotUpTo(newest core.Level, r io.Reader) (*core.State, Summary, error) {
	in := snapshotReader{in: r, knows: uint64(newest), spaces: map[string]string{},
		owners: map[access.Owner]*access.Owner{}}
	state, err := core.Restore(in.records())
	switch {
	case in.err != nil:
		return nil, Summary{}, in.err
	case err != nil:
		return nil, Summary{}, malformed("snapshot is malformed in record %d, before byte %d: %v", in.sum.Records,
			in.sum.Bytes, err)
	}
	// The last doubt is whether the records fit together. If the state writes the very same
	// bytes, nothing was read twice, ignored or out of place.
	again, err := WriteSnapshot(io.Discard, state)
	if err != nil || again != in.sum {
		return nil, Summary{}, malformed("snapshot is malformed: what was read from it would be written differently; " +
			"a record stands twice, or out of its place")
	}
	return state, in.sum, nil
}

type snapshotReader struct {
	in     io.Reader
	buf    []byte // what was read of in; buf[from:to] is still to be taken
	from   int
	to     int
	level  uint64 // at which it was written
	knows  uint64 // levels up to this one are read
	sum    Summary
	err    error
	space  string            // of the record before
	spaces map[string]string // the namespaces whose heads were seen
	newest string            // the last of them
	owners map[access.Owner]*access.Owner
	codec  codec // of the record that is read
}

// records reads until the end, or until the first error, which it also keeps.
func (r *snapshotReader) records() iter.Seq2[core.Piece, error] {
	return func(yield func(core.Piece, error) bool) {
		if r.err = r.begin(); r.err != nil {
			yield(core.Piece{}, r.err)
			return
		}
		for {
			record, err := r.next()
			if err == io.EOF {
				return
			}
			r.err = err
			if !yield(record, err) || err != nil {
				return
			}
		}
	}
}

// begin reads what comes before the first record.
func (r *snapshotReader) begin() error {
	start, err := r.peek(len(magic))
	switch {
	case err == nil && string(start) != magic, err == io.EOF && string(start) != magic[:len(start)]:
		return malformed("this is not a snapshot: it does not begin like one")
	case err != nil:
		return r.unreadable(err)
	}
	start, err = r.peek(len(magic) + maxFrameHead)
	if err != nil && err != io.EOF {
		return r.unreadable(err)
	}
	c := codec{Codec: tagged.Codec{B: start, At: len(magic)}}
	if failure := c.version("snapshot", 0, r.knows); failure != nil {
		if c.short(err) {
			return r.unreadable(err)
		}
		return failure
	}
	r.level = c.Level
	r.take(start[:c.At])
	return nil
}

// next returns the next record, and io.EOF after the last one.
func (r *snapshotReader) next() (core.Piece, error) {
	f, err := r.frame()
	switch {
	case err != nil:
		return core.Piece{}, err
	case f.kind == kindEnd:
		return core.Piece{}, r.end(f)
	case f.kind >= kindsOfRecords:
		newer := unknown("snapshot has a record of kind %d at byte %d, and kinds up to %d are known here", f.kind,
			r.sum.Bytes, kindsOfRecords-1)
		return core.Piece{}, cmp.Or(r.whole(f), newer)
	case pieceKinds[f.kind].since > r.level:
		return core.Piece{}, malformed("snapshot is malformed: it has a record of kind %d at byte %d, and there is "+
			"none at feature level %d", f.kind, r.sum.Bytes, r.level)
	}
	row := &pieceKinds[f.kind]
	c, record := &r.codec, core.Piece{Value: row.fresh()}
	*c = codec{Codec: tagged.Codec{
		B: f.bytes[f.body:], Base: r.sum.Bytes + int64(f.body), Level: r.level, Known: r.owners,
	}}
	r.place(c, f.kind, &record)
	m := c.Message()
	row.fields(record.Value, m)
	m.End()
	if head, ok := record.Value.(*core.Head); ok {
		head.Level = core.Level(r.level)
	}
	if c.Fault != nil {
		err := c.Refused(fmt.Sprintf("snapshot, record %d (%s)", r.sum.Records+1, row.name))
		if c.Fault.Newer {
			err = cmp.Or(r.whole(f), err)
		}
		return core.Piece{}, err
	}
	r.take(f.bytes)
	r.sum.Records++
	return record, nil
}

// whole reads on to the end, to see whether the checksum is right. A kind or a field that is not known is
// either from a newer server, which is then what the operator needs, or the work of a damaged
// bit, and then no server will read it.
func (r *snapshotReader) whole(f frame) (err error) {
	for f.kind != kindEnd {
		r.take(f.bytes)
		r.sum.Records++
		if f, err = r.frame(); err != nil {
			return err
		}
	}
	if err := r.end(f); err != io.EOF {
		return err
	}
	return nil
}

// A frame is one record as it was read. It is valid until the next one is read.
type frame struct {
	kind  uint64
	bytes []byte // all of it
	body  int    // where in bytes the body begins
}

func (r *snapshotReader) frame() (frame, error) {
	start, err := r.peek(maxFrameHead)
	if err != nil && err != io.EOF {
		return frame{}, r.unreadable(err)
	}
	var f frame
	var length uint64
	c := codec{Codec: tagged.Codec{B: start, Base: r.sum.Bytes}}
	c.Unsigned("kind", &f.kind)
	c.Unsigned("length", &length)
	if c.short(err) {
		return frame{}, r.unreadable(err)
	}
	if c.Fault == nil && length > maxRecord {
		c.Fail("length", fmt.Sprintf("it is %d, and at most %d is allowed", length, maxRecord))
	}
	if c.Fault != nil {
		return frame{}, c.Refused(fmt.Sprintf("snapshot, record %d", r.sum.Records+1))
	}
	f.body = c.At
	if f.bytes, err = r.peek(f.body + int(length)); err != nil {
		return frame{}, r.unreadable(err)
	}
	return f, nil
}

// place reads the namespace of a record. All records of a namespace share one string for its
// name.
func (r *snapshotReader) place(c *codec, kind uint64, record *core.Piece) {
	if pieceKinds[kind].wide {
		return
	}
	n := c.Length("namespace")
	name := c.B[c.At : c.At+n]
	c.At += n
	switch {
	case c.Fault != nil:
	case n > 0:
		r.enter(c, kind, name)
	case kind == kindSpace || r.space == "":
		c.Fail("namespace", "it is missing")
	}
	record.Space = r.space
	if e, ok := record.Value.(*leasehold.Event); ok {
		e.Namespace = r.space
	}
}

// enter moves to another namespace than that of the record before. The heads of namespaces come
// in order, each once; what follows at the end (ended ids, outcomes, events) may go back to any
// of them.
func (r *snapshotReader) enter(c *codec, kind uint64, name []byte) {
	switch known, ok := r.spaces[string(name)]; {
	case string(name) == r.space:
		c.Fail("namespace", "it is repeated")
	case kind == kindSpace && string(name) <= r.newest:
		c.Fail("namespace", "it has two heads, or is out of order")
	case kind == kindSpace:
		r.space = string(name)
		r.newest = r.space
		r.spaces[r.space] = r.space
	case !ok:
		c.Fail("namespace", "it has no head")
	default:
		r.space = known
	}
}

// end checks the last record, and that it is the last.
func (r *snapshotReader) end(f frame) error {
	last := len(f.bytes) - checksumSize
	if last < f.body {
		return malformed("snapshot is malformed at byte %d: its last record is too short", r.sum.Bytes)
	}
	var count uint64
	c := codec{Codec: tagged.Codec{B: f.bytes[f.body:last], Base: r.sum.Bytes + int64(f.body)}}
	c.Unsigned("count", &count)
	c.End()
	if c.Fault != nil {
		return c.Refused("snapshot, last record")
	}
	written := binary.BigEndian.Uint32(f.bytes[last:])
	r.take(f.bytes[:last])
	r.skip(checksumSize)
	switch {
	case written != r.sum.Checksum:
		return malformed("snapshot is damaged: its checksum should be %08x and is %08x", written, r.sum.Checksum)
	case count != uint64(r.sum.Records):
		return malformed("snapshot is malformed: it says that it has %d records, and has %d", count, r.sum.Records)
	}
	switch _, err := r.peek(1); err {
	case nil:
		return malformed("snapshot is malformed: something follows its end at byte %d", r.sum.Bytes)
	case io.EOF:
		return io.EOF
	default:
		return r.unreadable(err)
	}
}

// take accepts bytes that peek returned as part of the snapshot.
func (r *snapshotReader) take(b []byte) {
	r.sum.Checksum = crc32.Update(r.sum.Checksum, castagnoli, b)
	r.skip(len(b))
}

func (r *snapshotReader) skip(n int) {
	r.sum.Bytes += int64(n)
	r.from += n
}

// peek returns the next n bytes without taking them, or what there is with io.EOF. They are
// valid until the next peek. The buffer never grows beyond the largest record, whatever the
// input says.
func (r *snapshotReader) peek(n int) ([]byte, error) {
	missing := n - (r.to - r.from)
	if missing <= 0 {
		return r.buf[r.from : r.from+n], nil
	}
	buf := r.buf
	if n > len(buf) {
		buf = make([]byte, max(n, bufferSize))
	}
	r.to = copy(buf, r.buf[r.from:r.to])
	r.buf, r.from = buf, 0
	got, err := io.ReadAtLeast(r.in, buf[r.to:], missing)
	r.to += got
	if err == io.ErrUnexpectedEOF {
		err = io.EOF
	}
	return buf[:min(n, r.to)], err
}

// short reports whether a field is cut off because the input ends there; err is what peek
// returned. A snapshot that is too short is reported as such, and not as malformed.
func (c *codec) short(err error) bool {
	return c.Fault != nil && c.Fault.Reason == tagged.CutOff && err == io.EOF
}

func (r *snapshotReader) unreadable(err error) error {
	if errors.Is(err, io.EOF) {
		return malformed("snapshot is cut off: it ends after record %d, in what begins at byte %d", r.sum.Records,
			r.sum.Bytes)
	}
	return fmt.Errorf("snapshot cannot be read: %w", err)
}
