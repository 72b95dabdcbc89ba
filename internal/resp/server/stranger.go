package server

import (
	"github.com/leasehold/leasehold/internal/resp"
	"github.com/leasehold/leasehold/internal/socket"
)

// Of a connection on which nothing was proven.
const (
	strangerFree   = 8 << 10  // bytes that it has without asking
	strangerOutput = 16 << 10 // answers are sent at once beyond it
)

// Proven says that the client has shown who it is, or need not. Until then its connection has little memory, and ends
// when nothing comes on it. Only for commands.
func (c *Conn) Proven() {
	if !c.proven.Load() {
		c.proven.Store(true)
		c.in.Tight = false
	}
}

var errStrangers = &resp.Failure{Code: "LIMITED", Text: "clients that have not logged in have as much under way as " +
	"they can: log in with a shorter command first, or try again in a moment"}

// space returns room to read into; nil: there is none for a stranger.
func (c *Conn) space() []byte {
	if !c.proven.Load() && !c.borrow() {
		return nil
	}
	return c.in.Space()
}

// borrow takes of the memory that strangers share what the next read needs.
func (c *Conn) borrow() bool {
	shared := c.server.config.Strangers
	more := c.in.Needs() - strangerFree - c.borrowed
	if shared == nil || more <= 0 {
		return true
	}
	if c.network == "" {
		c.network = socket.Network(c.net.RemoteAddr().String()).String()
	}
	if !shared.Take(c.network, more) {
		return false
	}
	c.borrowed += more
	return true
}

// giveBack gives back what is not used any more of the memory that strangers share. What was answered is sent by then.
func (c *Conn) giveBack() {
	if c.borrowed == 0 {
		return
	}
	left := 0
	if !c.proven.Load() && !c.isEnded() {
		left = min(c.borrowed, max(0, c.in.Needs()-strangerFree))
	}
	c.server.config.Strangers.Give(c.network, c.borrowed-left)
	c.borrowed = left
}

// noRoom ends the connection, with why.
func (c *Conn) noRoom() {
	c.turn, c.ending = turn{bad: errStrangers}, true
}

// mayHave reports whether a buffer that others have used is not too large for the client.
func (c *Conn) mayHave(buffer []byte) bool { return len(buffer) <= strangerFree || c.proven.Load() }

// kept returns a buffer of answers for the next use, unless it is too large to be kept for the client.
func (c *Conn) kept(b []byte) []byte {
	if cap(b) > strangerFree && !c.proven.Load() {
		return nil
	}
	return kept(b)
}

// full is how many bytes of answers wait for more.
func (c *Conn) full() int {
	if c.proven.Load() {
		return fullOutput
	}
	return strangerOutput
}

// mayAskMuch reports whether the client may have a long answer, and answers if not.
func (c *Conn) mayAskMuch() bool {
	costly := c.server.config.Costly
	if costly == nil || c.proven.Load() {
		return true
	}
	err := costly(c)
	if err != nil {
		c.server.config.Fail(c, &c.out, err)
	}
	return err == nil
}
