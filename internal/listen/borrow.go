package listen

import (
	"net/http"
	"strconv"
	"sync"
	"time"
)

// A Borrowed connection is one that a request has taken from net/http, to go on with its answer for long.
//
// While a handler runs, net/http keeps the request, two buffers and two goroutines for it: 20 KB or more. A handler
// that has borrowed its connection returns, and all that is free. What is left is a goroutine that waits for the client
// to leave. When the answer is complete, net/http gets the connection back for the next request.
type Borrowed struct {
	conn *Conn
	gone func()

	mu    sync.Mutex // guards what follows
	phase phase
	early []byte // what came of the next request

	first [1]byte // where it is read to
}

// A phase is how far a borrowed connection is.
type phase int

const (
	answering phase = iota
	resting         // the answer is complete, and the next request has not begun
	left            // the client has, or the connection was closed
)

// Borrow takes the connection of a request whose answer has begun: its head is sent, and says that the rest comes in
// chunks. It returns nil if it cannot: others share the connection, as in HTTP/2, it is encrypted, the answer has no
// chunks, or the client says that it has no further request. Otherwise the handler returns soon, and touches neither w
// nor r any more.
//
// When the client leaves before the answer is complete, gone is called, once, by another goroutine. Return or Close has
// to follow in any case.
func Borrow(w http.ResponseWriter, r *http.Request, gone func()) *Borrowed {
	conn := Collecting(r)
	if conn == nil || !conn.lendable() || !r.ProtoAtLeast(1, 1) || r.Close || r.ContentLength != 0 {
		return nil
	}
	_, buffers, err := http.NewResponseController(w).Hijack()
	if err != nil {
		return nil
	}
	b := &Borrowed{conn: conn, gone: gone}
	conn.host.underWay.add(conn)
	if n := buffers.Reader.Buffered(); n > 0 {
		early, _ := buffers.Reader.Peek(n)
		b.early = append(b.early, early...)
		return b
	}
	go b.read()
	return b
}

// lendable reports whether the port takes the connection back.
func (c *Conn) lendable() bool {
	return c.host != nil && c.host.intake != nil && c.host.config.TLS == nil && c.host.config.Wrap == nil
}

// read waits for the next request to begin, or for the client to leave.
func (b *Borrowed) read() {
	n, _ := b.conn.Conn.Read(b.first[:])
	b.mu.Lock()
	before := b.phase
	if b.early = b.first[:n]; n == 0 {
		b.phase = left
	}
	b.mu.Unlock()
	switch {
	case before == resting && n > 0:
		b.giveBack()
	case before == resting:
		_ = b.conn.Close()
	case before == answering && n == 0:
		b.gone()
	}
}

// chunks has buffers in which chunks are put together, of up to maxChunk bytes.
var chunks = sync.Pool{New: func() any { return new([]byte) }}

const maxChunk = 64 << 10

// Write sends the next part of the answer as one chunk, within some time. After an error the connection has to be
// closed: only a part of the chunk may have been sent.
func (b *Borrowed) Write(p []byte, within time.Duration) error {
	buffer := chunks.Get().(*[]byte)
	out := strconv.AppendUint((*buffer)[:0], uint64(len(p)), 16)
	out = append(append(append(out, "\r\n"...), p...), "\r\n"...)
	err := b.send(out, within)
	if cap(out) <= maxChunk {
		*buffer = out
		chunks.Put(buffer)
	}
	return err
}

func (b *Borrowed) send(p []byte, within time.Duration) error {
	_ = b.conn.SetWriteDeadline(time.Now().Add(within))
	_, err := b.conn.Write(p)
	return err
}

var lastChunk = []byte("0\r\n\r\n")

// Return completes the answer. The connection then carries the client's next request, also while the port drains: that
// request is refused then, and its client knows that nothing was done. If the client has left, or does not take the end
// of the answer within some time, the connection is closed.
func (b *Borrowed) Return(within time.Duration) {
	if b.send(lastChunk, within) != nil {
		b.Close()
		return
	}
	_ = b.conn.SetReadDeadline(time.Now().Add(idleTime))
	// Before the connection can be given back: the next request may borrow it, and is then under way.
	b.conn.host.underWay.remove(b.conn)
	b.mu.Lock()
	before, early := b.phase, len(b.early) > 0
	b.phase = max(b.phase, resting)
	b.mu.Unlock()
	switch {
	case before == left:
		_ = b.conn.Close()
	case early:
		b.giveBack()
	}
}

// Close ends the connection. If the answer is not complete, the client sees that.
func (b *Borrowed) Close() {
	b.mu.Lock()
	b.phase = left
	b.mu.Unlock()
	_ = b.conn.Close()
	b.conn.host.underWay.remove(b.conn)
}

// giveBack hands the connection to net/http, with what came of the next request.
func (b *Borrowed) giveBack() {
	_ = b.conn.SetDeadline(time.Time{})
	b.conn.host.intake.give(&replayed{b.conn, b.early}, nil)
}
