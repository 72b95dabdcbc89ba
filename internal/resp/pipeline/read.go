package pipeline

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/leasehold/leasehold/internal/resp"
)

// One goroutine reads a connection at a time. A caller that finds nobody at it and is alone reads its own reply, which
// saves two switches from one goroutine to another. Callers that share the connection leave it to a goroutine of the
// connection's own, which ends when a caller is alone again. If nobody comes for a while, that goroutine is started: a
// connection that the server closes must not look usable.

// restLook is how long a connection may have no reader before somebody looks whether it still has a use for one.
const restLook = 100 * time.Millisecond

// quiet is how long a connection may have had no reader before the socket is asked whether it was closed meanwhile.
const quiet = time.Millisecond

// startReadingLocked has the connection read, by the caller of a call if that is alone. It reports whether it is.
func (c *Conn) startReadingLocked(call *call) (alone bool) {
	if c.reading {
		return false
	}
	c.reading = true
	if c.live.Load() == 1 && !c.unasked {
		c.alone = call
		c.ends.followLocked(c, call)
		return true
	}
	c.unasked = false
	go c.read()
	return false
}

// read hands replies to their calls, until the connection ends or nobody waits for one.
func (c *Conn) read() {
	for {
		if err := c.readOne(); err != nil {
			c.fail(err)
			return
		}
		if c.live.Load() > 1 {
			continue // they will be back soon
		}
		c.mu.Lock()
		rests := c.restLocked()
		c.mu.Unlock()
		if rests {
			return
		}
	}
}

// readAlone reads for the caller of a call until that is answered, and for others who come meanwhile. It returns
// earlier if the caller gives up; the call then waits for a goroutine that reads on.
func (c *Conn) readAlone(call *call) {
	var err error
	for err == nil && (!call.isOver() || c.reader.Buffered()) {
		err = c.readOne()
	}
	c.mu.Lock()
	c.alone = nil
	interrupted := c.interrupted
	if interrupted {
		c.interrupted = false
		_ = c.conn.SetReadDeadline(time.Time{})
	}
	if err != nil && !(interrupted && errors.Is(err, os.ErrDeadlineExceeded)) {
		c.mu.Unlock()
		c.fail(err)
		return
	}
	if c.err == nil && !c.restLocked() {
		go c.read()
	}
	c.mu.Unlock()
}

// ends are the contexts that may end while a caller reads. They are followed until others come, or the connection is
// idle: callers one after the other often have the same, and to follow one costs more than all else that a caller does
// to read. The connection's lock guards them.
type ends struct {
	done [2]<-chan struct{}
	stop [2]func() bool
}

// followLocked has the caller that reads interrupted when one of its contexts ends, or has ended.
func (e *ends) followLocked(c *Conn, call *call) {
	for i, ctx := range [...]context.Context{call.base, call.also} {
		if ctx == nil || ctx.Done() == nil {
			continue
		}
		if done := ctx.Done(); done != e.done[i] {
			e.dropLocked(i)
			e.done[i], e.stop[i] = done, context.AfterFunc(ctx, c.interrupt)
			continue
		}
		select {
		case <-e.done[i]: // before this caller came to read: nobody will be told again
			c.interruptLocked(call)
		default:
		}
	}
}

// dropLocked follows a context no longer.
func (e *ends) dropLocked(i int) {
	if e.stop[i] != nil {
		e.stop[i]()
	}
	e.done[i], e.stop[i] = nil, nil
}

func (e *ends) dropAllLocked() {
	for i := range e.stop {
		e.dropLocked(i)
	}
}

// interrupt makes a caller that reads stop if one of its contexts has ended.
func (c *Conn) interrupt() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if call := c.alone; call != nil && (call.base.Err() != nil || call.also != nil && call.also.Err() != nil) {
		c.interruptLocked(call)
	}
}

// interruptLocked makes the caller of a call stop reading, if it does.
func (c *Conn) interruptLocked(call *call) {
	if c.alone == call && !c.interrupted {
		c.interrupted = true
		_ = c.conn.SetReadDeadline(time.Unix(1, 0)) // no byte is lost by it
	}
}

// restLocked lets the connection be without a reader, if nothing is due. It reports whether it is. What was read
// already, and nobody asked for, must not wait for the next command: it would be taken for its reply.
func (c *Conn) restLocked() bool {
	if c.due.len() > 0 || len(c.waits) > 0 || c.err != nil || !c.reader.Empty() {
		return false
	}
	c.reading = false
	if at := c.now() + restLook; at < c.watch.at {
		c.lookAtLocked(at)
	}
	return true
}

// readAgainLocked starts the reader if nobody has needed the connection since the last look.
func (c *Conn) readAgainLocked() {
	w := &c.watch
	if !c.reading && w.uses == w.rested {
		c.reading = true
		c.ends.dropAllLocked()
		go c.read()
	}
	w.rested = w.uses
}

// askSocketLocked looks whether the server closed a connection that nobody reads, or sent what nobody asked for.
func (c *Conn) askSocketLocked() error {
	if c.reading || c.socket == nil || c.silenceLocked() < quiet {
		return nil
	}
	switch c.socket.look() {
	case socketClosed:
		return io.EOF
	case socketHasBytes:
		c.unasked = true
	}
	return nil
}

// readOne reads one reply or push, and hands it to its call.
func (c *Conn) readOne() error {
	v, err := c.reader.Read()
	switch {
	case err != nil:
		return err
	case v.Kind == resp.Push:
		return c.pushed(v)
	}
	return c.replied(v)
}

func (c *Conn) replied(v *resp.Value) error {
	c.mu.Lock()
	call := c.due.pop()
	c.makeRoomLocked()
	c.mu.Unlock()
	if call == nil {
		return fmt.Errorf("%w: none was due", ErrOutOfStep)
	}
	tag := call.tag
	follows, err := call.take(v)
	if !follows {
		c.forget(tag)
	}
	return err
}

// pushed hands a push to the call with its tag. Pushes without a call are for callers that gave up.
func (c *Conn) pushed(v *resp.Value) error {
	if len(v.Items) != 3 {
		return nil
	}
	c.mu.Lock()
	tag := string(v.Items[1].Text)
	call := c.waits[tag]
	delete(c.waits, tag)
	c.mu.Unlock()
	if call == nil {
		return nil
	}
	_, err := call.take(&v.Items[2])
	return err
}

// A socketState is what a read of a socket would find.
type socketState int

const (
	socketQuiet socketState = iota
	socketHasBytes
	socketClosed
)
