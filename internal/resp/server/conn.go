package server

import (
	"context"
	"errors"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/leasehold/leasehold/internal/resp"
)

// What Push returns.
var (
	ErrEnded = errors.New("the connection has ended")
	ErrSlow  = errors.New("the client does not read what it is sent")
)

// A Conn is one connection.
type Conn struct {
	// State belongs to the owner of the commands. Commands of a connection are carried out one
	// after the other, or begin one after the other.
	State any

	server   *Server
	net      net.Conn
	id       int64
	ctx      context.Context
	cancel   context.CancelFunc
	stopping context.Context
	allow    func(command string) error

	in      resp.Input
	out     resp.Writer // answers; only who carries out the commands uses it
	call    Call        // of the command that runs
	name    string      // that the client gave itself
	library [2]string   // name and version, as it says
	greeted bool
	ending  bool // after the answers that are in out
	turn    turn // what is carried out next, alone

	secure   bool        // or for another reason not to be read by a loop
	outside  int         // how often it is read before it enters a loop again
	expired  atomic.Bool // nothing more is read in a loop
	draining atomic.Bool // what comes is refused

	proven   atomic.Bool // its client has shown who it is
	borrowed int         // bytes of what strangers share
	network  string      // that the client counts as; empty: nobody asked yet

	heard       atomic.Int64 // since when nothing is under way; 0: something is
	asked, sent atomic.Int64 // since when half a command is there, or a write takes; 0: none

	mu      sync.Mutex // guards what follows
	written sync.Cond  // writing ended
	stuck   []byte     // the rest of what was pushed and did not leave: nothing may leave before it
	pushed  []byte     // what waits to be written
	spare   []byte
	held    bool // pushes wait for an answer
	writing bool
	ended   bool
	waking  bool      // who reads is being stopped
	until   time.Time // for reads; zero: for ever
	place   *place    // in a loop; nil: its goroutine reads
}

// Net returns the connection itself. Nothing may be read from it or written to it.
func (c *Conn) Net() net.Conn { return c.net }

// ID is what CLIENT ID says: unique among the connections of this server.
func (c *Conn) ID() int64 { return c.id }

// Version is the protocol's version that the client chose, 2 or 3. Only for commands.
func (c *Conn) Version() int { return c.out.Version }

// Context is done when the connection has ended.
func (c *Conn) Context() context.Context { return c.ctx }

// Stopping is done when the server drains.
func (c *Conn) Stopping() context.Context { return c.stopping }

// Allow sets what decides whether a command may be used: its error is the answer if not, see
// Config.Fail. It is asked for every command but HELLO, AUTH, QUIT and RESET. Nil, as at first
// and after RESET: all are allowed, which is the only case that costs nothing.
func (c *Conn) Allow(allow func(command string) error) { c.allow = allow }

// Close ends the connection at once.
func (c *Conn) Close() { c.end() }

func (c *Conn) end() {
	c.mu.Lock()
	first := !c.ended
	c.ended = true
	c.mu.Unlock()
	if first {
		c.cancel()
		_ = c.net.Close()
		c.wake()
	}
}

func (c *Conn) isEnded() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.ended
}

// Push sends something that is no answer: write appends it, in the version that the client
// speaks, and must not block. It leaves after the answers of what is carried out now. Push
// does not wait for the client. If too much waits for the client already, the connection is
// ended.
func (c *Conn) Push(write func(*resp.Writer)) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.ended {
		return ErrEnded
	}
	w := resp.NewWriter(c.out.Version, c.pushed)
	write(w)
	c.pushed = w.Bytes()
	if len(c.pushed) > c.server.config.Queue {
		c.server.slow.Add(1)
		go c.end()
		return ErrSlow
	}
	if !c.held && !c.writing {
		c.writing = true
		go c.writePushed()
	}
	return nil
}

// Settle has all that was pushed so far leave before the answer of the command that is carried
// out, which is not written yet, and not after it. Only for commands.
func (c *Conn) Settle() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.out.Reset(append(c.out.Bytes(), c.pushed...))
	c.pushed = c.pushed[:0]
}

// Queued returns how many bytes that were pushed wait for the client.
func (c *Conn) Queued() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.pushed)
}

// hold keeps back pushes while commands are carried out.
func (c *Conn) hold() {
	c.mu.Lock()
	c.held = true
	c.mu.Unlock()
}

// flush writes the answers, and what was pushed meanwhile. It reports whether the connection
// goes on.
func (c *Conn) flush() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.held = false
	for c.writing {
		c.written.Wait()
	}
	b := c.unsent()
	if len(b) > 0 && !c.ended {
		c.writing = true
		c.writeUnlocked(b)
		c.writing = false
		c.written.Broadcast()
	}
	c.out.Reset(c.kept(b))
	if len(c.pushed) > 0 {
		c.writing = true
		go c.writePushed() // not here: there may be no end to it
	}
	return !c.ended && !c.ending
}

// unsent takes all that waits to be written, in its order. The caller has the lock, and carries out the commands.
func (c *Conn) unsent() []byte {
	b := append(c.out.Bytes(), c.pushed...)
	c.pushed = c.pushed[:0]
	if len(c.stuck) > 0 {
		b = append(c.stuck, b...)
		c.stuck = nil
	}
	return b
}

// writePushed writes what was pushed, until there is nothing left. Its caller has set writing.
func (c *Conn) writePushed() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.sendPushed()
	for len(c.pushed) > 0 && !c.ended && c.place == nil {
		b := c.pushed
		c.pushed = c.spare
		c.writeUnlocked(b)
		c.spare = kept(b)
	}
	c.writing = false
	c.written.Broadcast()
}

// sendPushed sends what was pushed to a connection in a loop, which leaves it to a goroutine if the client does not
// take all of it.
func (c *Conn) sendPushed() {
	if c.place == nil || c.held || c.ended {
		return
	}
	n, err := c.place.send(c.pushed)
	if rest := c.pushed[n:]; len(rest) > 0 || err != nil {
		c.stuck, c.held = append(c.stuck, rest...), true
		c.place.loop.post(c.place)
	}
	c.pushed = c.pushed[:0]
}

// writeUnlocked writes without the lock, which the caller has.
func (c *Conn) writeUnlocked(b []byte) {
	c.mu.Unlock()
	err := c.write(b)
	c.mu.Lock()
	if err != nil && !c.ended {
		c.ended = true
		c.cancel()
		_ = c.net.Close()
	}
}

// kept returns a buffer for the next use, unless it has grown too large to be kept.
func kept(b []byte) []byte {
	if cap(b) > keptOutput {
		return nil
	}
	return b[:0]
}

const (
	keptOutput = 64 << 10  // of a buffer that was larger once
	fullOutput = 256 << 10 // answers are sent at once beyond it
	chunk      = 64 << 10  // that a client has to take in time
)

func (c *Conn) write(b []byte) error {
	defer c.sent.Store(0)
	for len(b) > 0 {
		n := min(len(b), chunk)
		c.sent.Store(c.server.now())
		if _, err := c.net.Write(b[:n]); err != nil {
			return err
		}
		b = b[n:]
	}
	return nil
}
