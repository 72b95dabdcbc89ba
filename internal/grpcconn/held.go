package grpcconn

import (
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/leasehold/leasehold/internal/socket"
)

const (
	// maxHeld is how much a connection may have under way: headers of calls, parts of messages, and messages that a
	// service did not take yet.
	maxHeld = 64 << 20
	// freeHeld is the part of it that each connection always has, so that clients with small requests are served
	// whatever others do.
	freeHeld = 256 << 10
	// maxLent is how much all connections together may have beyond that.
	maxLent = 512 << 20
	// strangerHeld is what a connection always has on which nothing was proven, enough to log in by one request: of
	// those there can be as many as there are connections, and nobody knows who they are. What they have beyond it is
	// Strangers of the configuration.
	strangerHeld = streamCost + plainCost + 8<<10
	// streamCost is what a call costs beside its header and messages: a goroutine, which may have to wait until its
	// client takes the answer.
	streamCost = 4 << 10
	// refusing is how much more there may be of calls that are told that there is too much. Those after them are reset.
	refusing = 8 << 20
)

// held is how much a connection has under way. Its mu guards it.
type held struct {
	bytes int
	lent  int // of them, beyond what it always has

	known bool // lent is counted among that of clients who have shown who they are
}

// hold counts bytes that came, or that are gone.
func (c *conn) hold(n int) {
	c.held.bytes += n
	known, free := c.proven.Load(), strangerHeld
	if known {
		free = freeHeld
	}
	if lent := max(0, c.held.bytes-free); lent != c.lent || known != c.known {
		c.lend(-c.lent)
		c.known, c.lent = known, lent
		c.lend(lent)
	}
}

// lend counts what is lent among that of connections such as this one.
func (c *conn) lend(n int) {
	switch {
	case n == 0:
	case c.known:
		c.server.lent.Add(int64(n))
	case n > 0:
		c.server.Strangers.Add(c.network(), n)
	default:
		c.server.Strangers.Give(c.network(), -n)
	}
}

// network is where the client is, as it shares with others.
func (c *conn) network() string { return socket.Network(c.from).String() }

// tooMuch says that a connection holds more than it may.
func (c *conn) tooMuch() error { return c.exceeds(0) }

// exceeds says that a connection holds more than it may, and so many bytes beyond that.
func (c *conn) exceeds(beyond int) error {
	switch {
	case c.held.bytes > maxHeld+beyond:
		return status.Errorf(codes.ResourceExhausted, "more than %d bytes are under way on one connection", maxHeld)
	case c.lent > 0 && !c.known && c.server.Strangers.Over(c.network(), beyond):
		return status.Errorf(codes.ResourceExhausted, "more than %d bytes of clients that have not shown who they are "+
			"are under way, or more than their part of one network of them: try again in a moment",
			c.server.Strangers.Most)
	case c.lent > 0 && c.server.lent.Load() > int64(maxLent+beyond):
		return status.Errorf(codes.ResourceExhausted, "more than %d bytes are under way on all connections", maxLent)
	}
	return nil
}
