package door

import (
	"io"
	"net/http"
	"time"
)

// A Pace is how fast a body has to pass, in either direction: some bytes within some time, and
// all of it within some longer one. A slow client may thus take long, and one that stalls
// may not.
type Pace struct {
	Bytes int           // of a piece; 0: whatever is read or written at once
	Time  time.Duration // for each piece
	Whole time.Duration // for all of them; 0: as long as they take
}

// A pacer moves a deadline on with each piece.
type pacer struct {
	Pace
	set   func(time.Time) error
	left  int       // bytes until the next piece begins
	until time.Time // zero: none
}

func (p Pace) start(set func(time.Time) error) pacer {
	out := pacer{Pace: p, set: set}
	if p.Whole != 0 {
		out.until = time.Now().Add(p.Whole)
	}
	return out
}

// next is called before each read or write.
func (p *pacer) next() {
	if p.left > 0 {
		return
	}
	p.left = p.Bytes
	end := time.Now().Add(p.Time)
	if !p.until.IsZero() && p.until.Before(end) {
		end = p.until
	}
	_ = p.set(end) // some writers in tests have no deadlines
}

// A Body is the body of a request, read at a pace.
type Body struct {
	Err  error // that ended it before its end
	Size int64 // that was read so far

	pacer
	r io.Reader
}

// Body returns the body of a request, to be read at a pace.
func (p Pace) Body(w http.ResponseWriter, r *http.Request) *Body {
	return &Body{pacer: p.start(http.NewResponseController(w).SetReadDeadline), r: r.Body}
}

// Read reads the next piece. At the end the deadline is lifted; after an error it stays, since
// net/http will want to read the rest.
func (b *Body) Read(p []byte) (int, error) {
	b.next()
	n, err := b.r.Read(p)
	b.Size += int64(n)
	b.left -= n
	switch {
	case err == io.EOF:
		_ = b.set(time.Time{})
	case err != nil:
		b.Err = err
	}
	return n, err
}

// A Writer writes an answer at a pace.
type Writer struct {
	http.ResponseWriter
	pacer
}

// Writer returns an answer that is written at a pace.
func (p Pace) Writer(w http.ResponseWriter) *Writer {
	return &Writer{w, p.start(http.NewResponseController(w).SetWriteDeadline)}
}

// Write writes the next piece.
func (w *Writer) Write(p []byte) (int, error) {
	w.next()
	w.left -= len(p)
	return w.ResponseWriter.Write(p)
}

// Unwrap lets http.ResponseController find the writer below.
func (w *Writer) Unwrap() http.ResponseWriter { return w.ResponseWriter }

// Unhurried lifts the port's limits from a request that stays. The one on writing is among them:
// over HTTP/2 it also counts while nothing is written.
func Unhurried(w http.ResponseWriter) {
	control := http.NewResponseController(w)
	_, _ = control.SetReadDeadline(time.Time{}), control.SetWriteDeadline(time.Time{})
}

// WriteWithin limits the next writes. A writer that has no deadlines, as in some tests, does
// without.
func WriteWithin(w http.ResponseWriter, d time.Duration) {
	_ = http.NewResponseController(w).SetWriteDeadline(time.Now().Add(d))
}
