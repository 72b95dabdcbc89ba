package native

import (
	"context"
	"crypto/tls"
	"io"
	"net"
	"sync/atomic"
	"time"

	"github.com/leasehold/leasehold/internal/listen"
)

// A conn can collect what is written to it and send it in one piece. net/http has a
// buffer of 4 KiB and no way to ask for another: it hands a batch of events to the
// system in two parts, each with the price of a packet and of waking the reader.
type conn struct {
	net.Conn
	collecting bool
	collected  []byte
	strange    atomic.Bool   // nobody knows yet who it is: the TLS handshake is not over
	away       chan struct{} // has room while one more may be turned away slowly
}

// Write is called by whoever answers the request, and by nobody else meanwhile.
func (c *conn) Write(b []byte) (int, error) {
	if !c.collecting {
		return c.Conn.Write(b)
	}
	c.collected = append(c.collected, b...)
	return len(b), nil
}

// collect holds back what is written from now on.
func (c *conn) collect(sheet []byte) { c.collecting, c.collected = true, sheet[:0] }

// send sends what was held back. If only a part of it left, nothing may follow that
// part: the connection is closed.
func (c *conn) send() error {
	sheet := c.collected
	c.collecting, c.collected = false, nil
	_, err := c.Conn.Write(sheet)
	if err != nil {
		_ = c.Close()
	}
	recycle(sheet)
	return err
}

// Close ends the connection. To end one at once that was refused for its certificate would
// reset it: the caller, who has sent a request by then, would never learn why, and could
// not tell whether anything was done.
func (c *conn) Close() error {
	inner, ok := c.Conn.(interface{ CloseWrite() error })
	if !c.strange.Swap(false) || !ok || inner.CloseWrite() != nil {
		return c.Conn.Close()
	}
	select {
	case c.away <- struct{}{}:
		go c.leave()
		return nil
	default:
		return c.Conn.Close()
	}
}

// leave reads what still comes, for a moment, and ends the connection.
func (c *conn) leave() {
	defer func() { <-c.away }()
	defer c.Conn.Close()
	_ = c.Conn.SetReadDeadline(time.Now().Add(turnAwayTime))
	_, _ = io.Copy(io.Discard, c.Conn)
}

// NetConn is the connection below this one.
func (c *conn) NetConn() net.Conn { return c.Conn }

// CloseWrite lets net/http say that the answer ends and still read what comes.
func (c *conn) CloseWrite() error {
	if inner, ok := c.Conn.(interface{ CloseWrite() error }); ok {
		return inner.CloseWrite()
	}
	return nil
}

// bound limits what the system keeps for a reader that does not read. By itself
// it would let a connection have several MiB.
func (c *conn) bound(bytes int) {
	if inner, ok := c.Conn.(interface{ SetWriteBuffer(int) error }); ok {
		_ = inner.SetWriteBuffer(bytes) // who can not be bounded is still cut off in time
	}
}

type connKey struct{}

func withConn(ctx context.Context, c net.Conn) context.Context {
	return listen.Greet(context.WithValue(ctx, connKey{}, c), c)
}

// connOf is the connection of a request, nil if it came some other way, such as in TLS.
func connOf(ctx context.Context) *conn {
	c, _ := ctx.Value(connKey{}).(*conn)
	return c
}

// carrierOf is the connection that carries a request, also one in TLS, which others may
// share. What is written to it has to be written by TLS.
func carrierOf(ctx context.Context) *conn {
	if secure, ok := ctx.Value(connKey{}).(*tls.Conn); ok {
		c, _ := secure.NetConn().(*conn)
		return c
	}
	return connOf(ctx)
}
