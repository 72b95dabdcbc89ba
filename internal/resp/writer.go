package resp

import (
	"math"
	"strconv"
)

// A Writer appends answers to a buffer, in the version of the protocol that the client asked
// for. Where RESP2 has no word, it has what Redis says instead: a map is a flat array, true is
// 1, a push is an array.
type Writer struct {
	Version int // 3, or anything else for RESP2
	buf     []byte
	count   int // of values in the innermost aggregate
}

// NewWriter returns a writer that appends to a buffer.
func NewWriter(version int, buffer []byte) *Writer { return &Writer{Version: version, buf: buffer} }

// Bytes returns what was appended.
func (w *Writer) Bytes() []byte { return w.buf }

// Len returns how many bytes were appended.
func (w *Writer) Len() int { return len(w.buf) }

// Reset makes the writer append to another buffer.
func (w *Writer) Reset(buffer []byte) { w.buf, w.count = buffer, 0 }

// Truncate takes back all but the first n bytes: an answer that cannot be finished.
func (w *Writer) Truncate(n int) { w.buf, w.count = w.buf[:n], 0 }

// OK answers that it is done and that there is nothing to show.
func (w *Writer) OK() { w.Simple("OK") }

// Simple appends a short text, of one line.
func (w *Writer) Simple(text string) {
	w.count++
	w.buf = appendLine(append(w.buf, '+'), text)
}

// Error appends an error: a code of capital letters, and what it says in one line.
func (w *Writer) Error(code, text string) {
	w.count++
	w.buf = append(w.buf, '-')
	w.buf = appendWords(w.buf, code)
	w.buf = append(w.buf, ' ')
	w.buf = appendLine(w.buf, text)
}

// String appends a text.
func (w *Writer) String(text string) {
	w.count++
	w.buf = AppendBulk(w.buf, text)
}

// Bulk appends bytes.
func (w *Writer) Bulk(b []byte) {
	w.count++
	w.buf = AppendBulk(w.buf, b)
}

// Int appends a number.
func (w *Writer) Int(n int64) {
	w.count++
	w.buf = appendHeader(w.buf, ':', n)
}

// Float appends a number with a fraction.
func (w *Writer) Float(f float64) {
	w.count++
	var text [32]byte
	digits := strconv.AppendFloat(text[:0], f, 'g', -1, 64)
	switch {
	case math.IsInf(f, 1):
		digits = append(text[:0], "inf"...)
	case math.IsInf(f, -1):
		digits = append(text[:0], "-inf"...)
	case math.IsNaN(f):
		digits = append(text[:0], "nan"...)
	}
	if w.Version != 3 {
		w.buf = AppendBulk(w.buf, digits)
		return
	}
	w.buf = append(w.buf, ',')
	w.buf = appendLine(w.buf, digits)
}

// Bool appends true or false.
func (w *Writer) Bool(v bool) {
	w.count++
	switch {
	case w.Version == 3 && v:
		w.buf = append(w.buf, "#t\r\n"...)
	case w.Version == 3:
		w.buf = append(w.buf, "#f\r\n"...)
	case v:
		w.buf = append(w.buf, ":1\r\n"...)
	default:
		w.buf = append(w.buf, ":0\r\n"...)
	}
}

// Null appends nothing.
func (w *Writer) Null() {
	w.count++
	if w.Version == 3 {
		w.buf = append(w.buf, "_\r\n"...)
	} else {
		w.buf = append(w.buf, "$-1\r\n"...)
	}
}

// Array begins an array of n values, which must follow.
func (w *Writer) Array(n int) {
	w.count += 1 - n
	w.buf = appendHeader(w.buf, '*', int64(n))
}

// Map begins a map of n keys, each of which must follow with its value.
func (w *Writer) Map(n int) {
	w.count += 1 - 2*n
	if w.Version == 3 {
		w.buf = appendHeader(w.buf, '%', int64(n))
	} else {
		w.buf = appendHeader(w.buf, '*', int64(2*n))
	}
}

// Push begins a message that answers nothing: its kind and n-1 more values must follow. Never
// part of an aggregate.
func (w *Writer) Push(n int) {
	kind := byte('*')
	if w.Version == 3 {
		kind = '>'
	}
	w.count += 1 - n
	w.buf = appendHeader(w.buf, kind, int64(n))
}

// A Mark is where an aggregate begins whose size is not known yet.
type Mark struct {
	at, count int
	isMap     bool
}

// OpenArray begins an array that has what is appended until Close.
func (w *Writer) OpenArray() Mark { return w.open('*', false) }

// OpenMap begins a map that has what is appended until Close: a key, its value, and so on.
func (w *Writer) OpenMap() Mark {
	if w.Version == 3 {
		return w.open('%', true)
	}
	return w.open('*', false)
}

// open leaves room for a size of one digit, which nearly all have.
func (w *Writer) open(kind byte, isMap bool) Mark {
	m := Mark{at: len(w.buf) + 1, count: w.count + 1, isMap: isMap}
	w.count = 0
	w.buf = append(w.buf, kind, '0', '\r', '\n')
	return m
}

// Close ends what OpenArray or OpenMap began.
func (w *Writer) Close(m Mark) {
	n := w.count
	if m.isMap {
		n /= 2
	}
	w.count = m.count
	if n < 10 {
		w.buf[m.at] = byte('0' + n)
		return
	}
	var text [20]byte
	digits := strconv.AppendInt(text[:0], int64(n), 10)
	more := len(digits) - 1
	w.buf = append(w.buf, digits[:more]...) // for room
	copy(w.buf[m.at+more:], w.buf[m.at:len(w.buf)-more])
	copy(w.buf[m.at:], digits)
}
