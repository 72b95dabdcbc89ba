package grpcconn

import (
	"sync/atomic"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
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
	// strangerHeld and strangersLent are the same for connections on which nothing was proven: of those there can be
	// as many as there are connections, and nobody knows who they are.
	strangerHeld  = 16 << 10
	strangersLent = 64 << 20
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
		c.budget().Add(int64(-c.lent))
		c.known, c.lent = known, lent
		c.budget().Add(int64(lent))
	}
}

// budget counts what is lent to connections such as this one.
func (c *conn) budget() *atomic.Int64 {
	if c.known {
		return &c.server.lent
	}
	return &c.server.strangers
}

// tooMuch says that a connection holds more than it may.
func (c *conn) tooMuch() error { return c.exceeds(0) }

// exceeds says that a connection holds more than it may, and so many bytes beyond that.
func (c *conn) exceeds(beyond int) error {
	switch {
	case c.held.bytes > maxHeld+beyond:
		return status.Errorf(codes.ResourceExhausted, "more than %d bytes are under way on one connection", maxHeld)
	case c.lent > 0 && !c.known && c.server.strangers.Load() > int64(strangersLent+beyond):
		return status.Errorf(codes.ResourceExhausted, "more than %d bytes of clients that have not shown who they are "+
			"are under way", strangersLent)
	case c.lent > 0 && c.server.lent.Load() > int64(maxLent+beyond):
		return status.Errorf(codes.ResourceExhausted, "more than %d bytes are under way on all connections", maxLent)
	}
	return nil
}
