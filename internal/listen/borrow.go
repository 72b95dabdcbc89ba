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

	mu      sync.Mutex // guards what follows
	early   []byte     // what came of the next request
	phase   phase
	reading bool // somebody waits for what comes

	first [1]byte // where the next request's first byte is read to
}

// A phase is how far a borrowed connection is.
type phase uint8

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
// When the client leaves before the answer is complete, gone is called, once, by another goroutine. It is also called
// when the client has sent so much ahead that nobody could see it leave. Return or Close has to follow in any case.
func Borrow(w http.ResponseWriter, r *http.Request, gone func()) *Borrowed {
	conn := Collecting(r)
	if conn == nil || !conn.lendable() || !r.ProtoAtLeast(1, 1) || r.Close || r.ContentLength != 0 {
		return nil
	}
	_, buffers, err := http.NewResponseController(w).Hijack()
	if err != nil {
		return nil
	}
	b := &Borrowed{conn: conn, gone: gone, reading: true}
	conn.host.underWay.add(conn)
	early, _ := buffers.Reader.Peek(buffers.Reader.Buffered())
	b.early = append(b.early, early...)
	go b.read()
	return b
}

// lendable reports whether the port takes the connection back.
func (c *Conn) lendable() bool {
	return c.host != nil && c.host.intake != nil && c.host.config.TLS == nil && c.host.config.Wrap == nil
}

// maxEarly is how much is kept of what the client sends before its answer is complete. It is no more than net/http
// takes in one read, so that it never hands over a connection that has some of it left to replay.
const maxEarly = 4 << 10

// read waits for the next request to begin, or for the client to leave. A client that sends a request while the answer
// goes on may still leave, so what it sends is kept, up to a limit.
func (b *Borrowed) read() {
	var came []byte
	var err error
	for room := b.take(nil, nil); room > 0; room = b.take(came, err) {
		space := b.first[:]
		if room < maxEarly {
			space = make([]byte, min(room, 512))
		}
		var n int
		n, err = b.conn.Conn.Read(space)
		came = space[:n]
	}
}

// take keeps what came, and returns how much more it can keep; 0: nobody is to read any more.
func (b *Borrowed) take(came []byte, err error) (room int) {
	b.mu.Lock()
	b.early = append(b.early, came...)
	room = maxEarly - len(b.early)
	before, begins := b.phase, b.phase == resting && len(b.early) > 0
	if before == left || begins || err != nil || room == 0 {
		b.reading, room = false, 0
	}
	if err != nil && !begins {
		b.phase = left
	}
	b.mu.Unlock()
	switch {
	case room > 0 || before == left:
	case begins:
		b.giveBack()
	case before == answering:
		b.gone()
	default:
		_ = b.conn.Close()
	}
	return room
}

// chunks has buffers in which chunks of up to maxChunk bytes are put together.
var chunks = sync.Pool{New: func() any { return new([]byte) }}

const maxChunk = 64 << 10

// Write sends the next part of the answer, within some time. After an error the connection has to be closed: only some
// of the part may have been sent.
func (b *Borrowed) Write(p []byte, within time.Duration) error {
	_ = b.conn.SetWriteDeadline(time.Now().Add(within))
	buffer := chunks.Get().(*[]byte)
	defer chunks.Put(buffer)
	for len(p) > 0 {
		n := min(len(p), maxChunk)
		out := append(strconv.AppendUint((*buffer)[:0], uint64(n), 16), "\r\n"...)
		out = append(append(out, p[:n]...), "\r\n"...)
		if _, err := b.conn.Write(out); err != nil {
			return err
		}
		*buffer, p = out, p[n:]
	}
	return nil
}

var lastChunk = []byte("0\r\n\r\n")

// Return completes the answer. The connection then carries the client's next request, also while the port drains: that
// request is refused then, and its client knows that nothing was done. If the client has left, or does not take the end
// of the answer within some time, the connection is closed.
func (b *Borrowed) Return(within time.Duration) {
	_ = b.conn.SetWriteDeadline(time.Now().Add(within))
	if _, err := b.conn.Write(lastChunk); err != nil {
		b.Close()
		return
	}
	// Before the connection can be given back: the next request may borrow it, and is then under way.
	b.conn.host.underWay.remove(b.conn)
	switch before, reads := b.rest(); {
	case before == left:
		_ = b.conn.Close()
	case !reads:
		b.giveBack()
	}
}

// rest lets the connection wait for the next request, and returns its phase before. If somebody reads, that one gives
// the connection back: at once if the request has begun, and else when it does.
func (b *Borrowed) rest() (before phase, reads bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	before, b.phase = b.phase, max(b.phase, resting)
	until := time.Now()
	if len(b.early) == 0 {
		until = until.Add(idleTime)
	}
	if b.reading {
		_ = b.conn.SetReadDeadline(until)
	}
	return before, b.reading
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
