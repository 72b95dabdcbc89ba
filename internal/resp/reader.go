package resp

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"slices"
)

const (
	maxDepth  = 32        // of aggregates in one another
	maxReply  = 64 << 20  // bytes, unless a Reader says otherwise
	keptReply = 256 << 10 // of a buffer that was larger once
	minReply  = 4 << 10
	maxLine   = 64 << 10 // bytes of a simple string, an error or a number
)

// A Reader reads replies and pushes, as a client does.
type Reader struct {
	Limit int // bytes of one reply; 0: 64 MiB

	from io.Reader
	buf  []byte
	r, w int

	// Of the reply that begins at r, as far as it has come.
	at   int
	need int // values that are missing

	room  []Value // where items are made
	items []Value // the part of it that is free
}

// NewReader returns a reader of what a server sends.
func NewReader(from io.Reader) *Reader { return &Reader{from: from, buf: make([]byte, minReply)} }

// Buffered reports whether a whole reply has come, which Read then returns without waiting.
// False also if what has come is wrong; Read says what.
func (r *Reader) Buffered() bool {
	whole, err := r.scan()
	return whole && err == nil
}

// Empty reports whether nothing has come that Read has not returned.
func (r *Reader) Empty() bool { return r.r == r.w }

// Read returns the next reply or push. It is valid until the next Read. After an error there
// is no next one, unless only the time for a read was up: nothing of the reply is lost by that.
// io.EOF is returned only between replies.
func (r *Reader) Read() (*Value, error) {
	for {
		whole, err := r.scan()
		if err != nil {
			return nil, err
		}
		if whole {
			return r.take()
		}
		if err := r.fill(); err != nil {
			return nil, err
		}
	}
}

// fill reads once. No Value is in use.
func (r *Reader) fill() error {
	if r.r > 0 {
		r.w = copy(r.buf, r.buf[r.r:r.w])
		r.r = 0
	}
	switch {
	case r.w == len(r.buf):
		if r.w >= cmp.Or(r.Limit, maxReply) {
			return fmt.Errorf("resp: a reply has more than %d bytes", cmp.Or(r.Limit, maxReply))
		}
		r.buf = append(r.buf, make([]byte, len(r.buf))...)
	case r.w == 0 && len(r.buf) > keptReply:
		r.buf = make([]byte, minReply)
	}
	n, err := r.from.Read(r.buf[r.w:])
	r.w += n
	switch {
	case n > 0:
		return nil // an error comes again
	case err == io.EOF && r.w > 0:
		return io.ErrUnexpectedEOF
	case err == nil:
		return io.ErrNoProgress
	}
	return err
}

// scan finds out whether the reply that begins at r has come whole. It goes on where it ended
// the last time. Nothing is made before that: no more memory is used than was sent.
func (r *Reader) scan() (bool, error) {
	b := r.buf[r.r:r.w]
	if r.at == 0 {
		r.need = 1
	}
	for r.need > 0 {
		_, n, next, err := header(b, r.at)
		switch {
		case err != nil:
			return false, err
		case next == 0:
			if len(b)-r.at > maxLine && n == 0 {
				return false, errors.New("resp: a line is too long")
			}
			return false, nil
		}
		r.at = next
		r.need += n - 1
		// Each value that is missing has at least three bytes.
		if limit := cmp.Or(r.Limit, maxReply); r.at > limit || r.need > limit/3 {
			return false, fmt.Errorf("resp: a reply has more than %d bytes", limit)
		}
	}
	return true, nil
}

// header reads what begins at from: a whole value, or the header of one of which n values are
// to follow. The next one begins at next; 0: it has not come whole.
func header(b []byte, from int) (v Value, n, next int, err error) {
	if from == len(b) {
		return v, 0, 0, nil
	}
	v.Kind = Kind(b[from])
	switch v.Kind {
	case Bulk, '!', '=':
		return bulk(b, from)
	case Array, Set, Push, Map, '|':
		size, next, err := length(b, from+1)
		return aggregate(v, size, next, err)
	case Simple, Error, Integer, Null, Boolean, Double, Big:
		v.Text, next, err = line(b, from+1)
		if next != 0 && err == nil {
			err = v.scalar()
		}
		return v, 0, next, err
	}
	return v, 0, 0, fmt.Errorf("resp: no value begins with '%s'", printable(b[from]))
}

func aggregate(v Value, size int64, next int, err error) (Value, int, int, error) {
	switch {
	case err != nil:
		return v, 0, 0, fmt.Errorf("resp: size of an aggregate: %w", err)
	case size == -1 && v.Kind == Array:
		v.Kind = Null
		return v, 0, next, nil
	case size < 0 || size > maxReply:
		return v, 0, 0, fmt.Errorf("resp: an aggregate of %d values", size)
	case v.Kind == Map:
		size *= 2
	case v.Kind == '|':
		size = 2*size + 1 // and the value that it describes
	}
	return v, int(size), next, nil
}

func bulk(b []byte, from int) (v Value, n, next int, err error) {
	size, first, err := length(b, from+1)
	end := first + int(size)
	switch {
	case err != nil:
		return v, 0, 0, fmt.Errorf("resp: length of a string: %w", err)
	case first == 0:
		return v, 0, 0, nil
	case size == -1 && b[from] == '$':
		return Value{Kind: Null}, 0, first, nil
	case size < 0 || size > maxReply:
		return v, 0, 0, fmt.Errorf("resp: a string of %d bytes", size)
	case end+2 > len(b):
		return v, 1, 0, nil // 1: no line that could be too long
	case b[end] != '\r' || b[end+1] != '\n':
		return v, 0, 0, errLineEnd
	}
	v = Value{Kind: Bulk, Text: b[first:end:end]}
	switch {
	case b[from] == '!':
		v.Kind = Error
	case b[from] == '=' && size < 4:
		return v, 0, 0, errors.New("resp: a verbatim string without a format")
	case b[from] == '=':
		v.Text = v.Text[4:] // txt: or mkd:
	}
	return v, 0, end + 2, nil
}

// scalar makes a value of its line.
func (v *Value) scalar() error {
	v.Text = slices.Clip(v.Text)
	switch v.Kind {
	case Integer:
		return v.integer()
	case Boolean:
		if string(v.Text) != "t" && string(v.Text) != "f" {
			return errors.New("resp: a boolean is t or f")
		}
		if v.Text[0] == 't' {
			v.Int = 1
		}
		v.Text = nil
	case Null:
		if len(v.Text) > 0 {
			return errors.New("resp: a null has no text")
		}
		v.Text = nil
	}
	return nil
}

func (v *Value) integer() error {
	text := v.Text
	negative := len(text) > 0 && text[0] == '-'
	if negative || len(text) > 0 && text[0] == '+' {
		text = text[1:]
	}
	if len(text) == 0 || len(text) > 19 {
		return errNumber
	}
	var n uint64
	for _, c := range text {
		if c < '0' || c > '9' {
			return errNumber
		}
		n = n*10 + uint64(c-'0')
	}
	if n > 1<<63 || n == 1<<63 && !negative {
		return errNumber
	}
	if v.Int = int64(n); negative {
		v.Int = -v.Int
	}
	v.Text = nil
	return nil
}

// take makes the reply that scan found.
func (r *Reader) take() (*Value, error) {
	b := r.buf[r.r : r.r+r.at]
	clear(r.room)
	if len(r.room) > keptReply/64 {
		r.room = nil
	}
	r.items = r.room
	root := r.make(1)
	_, err := r.build(b, 0, &root[0], 0)
	r.r += r.at
	r.at = 0
	return &root[0], err
}

// make returns room for n values.
func (r *Reader) make(n int) []Value {
	if n > len(r.items) {
		// Values of this reply that were made before stay in the old one.
		r.room = make([]Value, max(32, n, 2*len(r.room)))
		r.items = r.room
	}
	made := r.items[:n:n]
	r.items = r.items[n:]
	return made
}

func (r *Reader) build(b []byte, from int, to *Value, depth int) (next int, err error) {
	v, n, next, err := header(b, from)
	if err != nil {
		return 0, err
	}
	if depth == maxDepth && n > 0 {
		return 0, errors.New("resp: aggregates are nested too deeply")
	}
	if v.Kind == '|' {
		// Attributes describe the value that follows them: nothing that we know of.
		if next, err = r.skip(b, next, n-1, depth+1); err != nil {
			return 0, err
		}
		return r.build(b, next, to, depth+1)
	}
	if v.Kind != Null && n > 0 {
		v.Items = r.make(n)
	}
	*to = v
	for i := range v.Items {
		if next, err = r.build(b, next, &v.Items[i], depth+1); err != nil {
			return 0, err
		}
	}
	return next, nil
}

func (r *Reader) skip(b []byte, from, n, depth int) (next int, err error) {
	var ignored Value
	for range n {
		if from, err = r.build(b, from, &ignored, depth); err != nil {
			return 0, err
		}
	}
	return from, nil
}
