package listen

import (
	"container/list"
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"net/http"
	"net/netip"
	"sync/atomic"
	"time"
)

// A Conn is a connection that a gate let in.
//
// It can collect what is written to it and send it in one piece. net/http has a buffer of 4 KiB
// and no way to ask for another: it hands a batch of events to the system in two parts, each at
// the price of a packet and of waking the reader.
type Conn struct {
	net.Conn
	gate *Gate
	host *Host // nil: in tests
	from netip.Prefix

	kept atomic.Bool // it is not evicted

	// The gate's lock guards what follows.
	place     *list.Element // among those of its address that may be evicted; nil: it is kept
	certified bool          // its client has shown a certificate
	left      bool

	met atomic.Pointer[introduction] // nil: its client has not said anything yet

	stranger stranger

	collecting  bool
	collected   []byte
	handshaking atomic.Bool // nobody knows yet who it is: the TLS handshake is not over
}

// Write must be called only by the goroutine that answers the request.
func (c *Conn) Write(b []byte) (int, error) {
	if !c.collecting {
		return c.Conn.Write(b)
	}
	c.collected = append(c.collected, b...)
	return len(b), nil
}

// Collect holds back what is written from now on, in a buffer.
func (c *Conn) Collect(buffer []byte) { c.collecting, c.collected = true, buffer[:0] }

// Send sends what was held back, and returns the buffer. If only a part of it left, nothing may
// follow that part: the connection is closed.
func (c *Conn) Send() (buffer []byte, err error) {
	buffer = c.collected
	c.collecting, c.collected = false, nil
	if _, err = c.Conn.Write(buffer); err != nil {
		_ = c.Close()
	}
	return buffer, err
}

// Bound limits what the system buffers for a client that does not read. By default it may
// buffer several MiB for each connection. A connection that cannot be bounded is still cut off
// in time.
func (c *Conn) Bound(bytes int) {
	if inner, ok := c.Conn.(interface{ SetWriteBuffer(int) error }); ok {
		_ = inner.SetWriteBuffer(bytes)
	}
}

// Greeted says that the client has sent something whole, and what its handshake proved. One that has shown a
// certificate is not evicted from then on.
func (c *Conn) Greeted(state *tls.ConnectionState) {
	if c.kept.Load() || state == nil || len(state.VerifiedChains) == 0 {
		return
	}
	g := c.gate
	g.mu.Lock()
	defer g.mu.Unlock()
	g.certify(c)
}

// Proven says that a credential was accepted on the connection, or where none is needed, that something real was asked.
// From then on it is not evicted, unless its address has many that are not. It is cheap to say so with each request.
func (c *Conn) Proven() {
	c.introduced()
	if c.kept.Load() || c.gate == nil {
		return
	}
	g := c.gate
	g.mu.Lock()
	defer g.mu.Unlock()
	g.keep(c)
}

// Close ends the connection. One that is refused for its certificate is not ended at once: that
// would reset it, and the client, which has sent a request by then, would never learn why, and
// could not tell whether anything was done.
func (c *Conn) Close() error {
	if !c.handshaking.Swap(false) || c.CloseWrite() != nil {
		return c.closeNow()
	}
	select {
	case c.host.away <- struct{}{}:
		go c.leave()
		return nil
	default:
		return c.closeNow()
	}
}

// leave reads for a moment what still comes, and then ends the connection.
func (c *Conn) leave() {
	defer func() { <-c.host.away }()
	defer c.closeNow()
	_ = c.SetReadDeadline(time.Now().Add(turnAwayTime))
	_, _ = io.Copy(io.Discard, c.Conn)
}

func (c *Conn) closeNow() error {
	if c.gate != nil {
		c.gate.mu.Lock()
		c.gate.leave(c)
		c.gate.mu.Unlock()
	}
	return c.Conn.Close()
}

// NetConn is the connection below this one.
func (c *Conn) NetConn() net.Conn { return c.Conn }

// CloseWrite says that nothing more will be sent, and lets net/http still read what comes.
func (c *Conn) CloseWrite() error {
	if inner, ok := c.Conn.(interface{ CloseWrite() error }); ok {
		return inner.CloseWrite()
	}
	return errors.ErrUnsupported
}

// SetWriteBuffer sets how much the system buffers of what the client does not read.
func (c *Conn) SetWriteBuffer(bytes int) error {
	if inner, ok := c.Conn.(interface{ SetWriteBuffer(int) error }); ok {
		return inner.SetWriteBuffer(bytes)
	}
	return errors.ErrUnsupported
}

// ConnOf finds the Conn that carries a connection, such as one with TLS; nil if there is none.
func ConnOf(c net.Conn) *Conn {
	for {
		if conn, ok := c.(*Conn); ok {
			return conn
		}
		outer, ok := c.(interface{ NetConn() net.Conn })
		if !ok {
			return nil
		}
		c = outer.NetConn()
	}
}

// Greeted says that the client of a connection has sent something whole; see [Conn.Greeted].
func Greeted(c net.Conn) {
	if conn := ConnOf(c); conn != nil {
		conn.Greeted(tlsOf(c))
	}
}

// Proven says that something was proven on a connection; see [Conn.Proven].
func Proven(c net.Conn) {
	if conn := ConnOf(c); conn != nil {
		conn.Proven()
	}
}

// ProvenIn says that who sends a request has proven something. The context is that of the request.
func ProvenIn(request context.Context) {
	if c, ok := request.Value(connKey{}).(net.Conn); ok {
		Proven(c)
	}
}

// tlsOf returns what a connection proved of itself; nil: it is plain.
func tlsOf(c net.Conn) *tls.ConnectionState {
	for {
		if secure, ok := c.(*tls.Conn); ok {
			state := secure.ConnectionState()
			return &state
		}
		outer, ok := c.(interface{ NetConn() net.Conn })
		if !ok {
			return nil
		}
		c = outer.NetConn()
	}
}

type connKey struct{}

// withConn lets the handler of a request find its connection.
func withConn(ctx context.Context, c net.Conn) context.Context {
	return context.WithValue(ctx, connKey{}, c)
}

// Outer returns the connection of a request as the port's Wrap made it, or what a host made of
// it; nil if it came some other way, such as in a test.
func Outer(r *http.Request) net.Conn {
	c, _ := r.Context().Value(connKey{}).(net.Conn)
	return c
}

// Collecting returns the connection of a request if what is written to it can be collected:
// nobody else writes to it, and there is nothing in between. It returns nil if not, as in TLS
// and HTTP/2.
func Collecting(r *http.Request) *Conn {
	if r.ProtoMajor >= 2 {
		return nil
	}
	c := Outer(r)
	if again, ok := c.(*replayed); ok {
		c = again.Conn
	}
	conn, _ := c.(*Conn)
	return conn
}

// Carrier returns the connection that carries a request, also one in TLS, which other requests
// may share. Nothing may be written to it.
func Carrier(r *http.Request) *Conn {
	if c := Outer(r); c != nil {
		return ConnOf(c)
	}
	return nil
}
