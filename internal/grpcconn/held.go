package grpcconn

import (
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
	// maxLent is how much all connections together may have beyond that. Nobody knows who the clients are until their
	// requests are whole: those on whose connections nothing was proven leave half of it to the others.
	maxLent = 512 << 20
	// streamCost is what a call costs beside its header and messages.
	streamCost = 512
)

// held is how much a connection has under way. Its mu guards it.
type held struct {
	bytes int
	lent  int // of them, beyond what it always has
}

// hold counts bytes that came, or that are gone.
func (c *conn) hold(n int) {
	c.held.bytes += n
	if lent := max(0, c.held.bytes-freeHeld); lent != c.lent {
		c.server.lent.Add(int64(lent - c.lent))
		c.lent = lent
	}
}

// tooMuch says that a connection holds more than it may.
func (c *conn) tooMuch() error {
	most := int64(maxLent)
	if !c.proven.Load() {
		most /= 2
	}
	switch {
	case c.held.bytes > maxHeld:
		return status.Errorf(codes.ResourceExhausted, "more than %d bytes are under way on one connection", maxHeld)
	case c.lent > 0 && c.server.lent.Load() > most:
		return status.Errorf(codes.ResourceExhausted, "more than %d bytes are under way on all connections", most)
	}
	return nil
}
