// Package pipeline is a client's connection to a RESP server that many goroutines share. It knows no leases.
//
// Commands are written in the order in which they come, and a write takes all that came while the one before was under
// way: the more goroutines, the fewer system calls for each. Replies are matched in order. A caller that gives up
// leaves the connection as it is: its reply is dropped when it comes.
//
// A connection that is silent for too long while replies are due counts as dead. All its calls then fail, and each says
// whether its command may have been sent.
package pipeline

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/leasehold/leasehold/internal/limit"
	"github.com/leasehold/leasehold/internal/resp"
)

// A LostError is the error of a command without a reply.
type LostError struct {
	Sent bool // some of the command may have been sent; false: nothing happened
	Err  error
}

func (e *LostError) Error() string { return e.Err.Error() }

// Unwrap returns the cause.
func (e *LostError) Unwrap() error { return e.Err }

var (
	// ErrOutOfStep is the error of a reply that belongs to another command. None that follows can be trusted.
	ErrOutOfStep = errors.New("a reply does not belong to its command")

	// ErrSilent ends a connection on which replies are due and nothing comes.
	ErrSilent = errors.New("the connection is silent")

	// ErrNotRESP is the error of a greeting whose answer is something else.
	ErrNotRESP = errors.New("the other end does not speak RESP")

	errClosed = errors.New("the connection is closed")
)

// Config says how patient a connection is, and how much it takes.
type Config struct {
	Patience Patience
	Idle     time.Duration // after which a connection without calls is closed; 0: never
	MaxCalls int           // whose replies may be due; further ones wait for room. 0: 16,384
}

// maxQueued is how many bytes of commands may wait to be written.
const maxQueued = 4 << 20

// A Conn is one connection. Its methods may be called from any goroutine, but for Greet, which comes before Start.
type Conn struct {
	conn     net.Conn
	reader   *resp.Reader
	idle     time.Duration
	maxCalls int
	born     time.Time
	first    byte          // that was read
	wake     chan struct{} // has one when something is queued
	ended    chan struct{} // closed at the end
	live     atomic.Int64  // calls whose callers wait
	calls    sync.Pool     // of *call
	heard    atomic.Int64  // when something was read last, since born
	socket   *socket       // nil: it is none

	mu      sync.Mutex // guards what follows
	out     []byte     // commands that nobody writes yet
	spare   []byte
	writing bool   // somebody writes what was taken from it
	queued  uint64 // how many bytes were ever put into out
	handed  uint64 // how many of them may have been sent
	due     queue
	reading bool             // somebody reads
	alone   *call            // whose caller does; nil: the connection's own goroutine
	unasked bool             // the socket has bytes that nobody asked for
	waits   map[string]*call // those whose push is or may be to follow, by their tags
	room    chan struct{}    // closed when there is room again; nil: there is
	err     error            // why it has ended
	retired bool
	watch   watch

	interrupted bool // the caller who reads is to stop
	ends        ends
}

// New returns a connection that was made. Start it, or Close it.
func New(conn net.Conn, config Config) *Conn {
	c := &Conn{
		conn: conn, idle: config.Idle, maxCalls: config.MaxCalls, born: time.Now(),
		wake: make(chan struct{}, 1), ended: make(chan struct{}), waits: map[string]*call{},
	}
	if c.maxCalls == 0 {
		c.maxCalls = 16 << 10
	}
	c.watch.patience = config.Patience
	c.reader = resp.NewReader((*ears)(c))
	c.socket = newSocket(conn)
	return c
}

// ears reads the connection, and notes when something came.
type ears Conn

func (e *ears) Read(b []byte) (int, error) {
	n, err := e.conn.Read(b)
	if e.first == 0 && n > 0 {
		e.first = b[0]
	}
	if n > 0 {
		e.heard.Store(int64(time.Since(e.born)))
	}
	return n, err
}

// Greet sends the first commands of a connection, and takes the reply to each in turn. It is over within the
// limit.
func (c *Conn) Greet(limit time.Duration, commands []byte, take ...func(v *resp.Value) error) error {
	if err := c.conn.SetDeadline(time.Now().Add(limit)); err != nil {
		return err
	}
	if _, err := c.conn.Write(commands); err != nil {
		return err
	}
	for _, take := range take {
		v, err := c.reader.Read()
		switch {
		case err != nil && c.first != 0 && !strings.ContainsRune(kinds, rune(c.first)):
			return ErrNotRESP
		case err == nil:
			err = take(v)
		}
		if err != nil {
			return err
		}
	}
	return c.conn.SetDeadline(time.Time{})
}

// kinds are the bytes that a reply can begin with.
const kinds = "+-:$*_#,(%~>=!|"

// Start makes the connection ready for Do. It ends with Close, Retire, or the first failure.
func (c *Conn) Start() {
	c.mu.Lock()
	c.startWatchLocked()
	c.mu.Unlock()
	go c.write()
}

// Do sends a command and waits for its reply. The error is a *resp.Failure if the server refused it, that of its
// Answer, or a *LostError.
func (c *Conn) Do(ctx context.Context, r Request) error {
	if err := ctx.Err(); err != nil {
		return &LostError{Err: err} // a fast reply must not win against it
	}
	c.live.Add(1)
	defer c.leave()
	call := c.newCall(r)
	call.endWith(ctx)
	alone, err := c.enqueue(ctx, call, r.Command)
	if err != nil {
		call.recycle()
		return err
	}
	if alone {
		c.readAlone(call)
	}
	if call.giveUp(call.wait()) {
		c.forget(r.Tag)
		return &LostError{Sent: true, Err: cmp.Or(ctx.Err(), context.DeadlineExceeded)}
	}
	err = call.err
	call.recycle()
	return err
}

// endWith notes what ends the wait for a reply. A time limit is watched by the connection, for all its calls
// together: it is nearly never reached, and a timer for each call costs more than all the rest of it. Waits are few,
// and long.
func (c *call) endWith(ctx context.Context) {
	if c.tag != "" {
		c.base, c.also = ctx, nil
		return
	}
	var at time.Time
	if c.base, c.also, at = limit.Parts(ctx); !at.IsZero() {
		c.until = max(1, at.Sub(c.conn.born))
	}
}

// wait waits until the call is over, or its caller gives up. It reports whether it took what done had.
func (c *call) wait() (woken bool) {
	select {
	case <-c.done: // already, if its caller read the reply itself
		return true
	default:
	}
	var endedToo <-chan struct{}
	if c.also != nil {
		endedToo = c.also.Done()
	}
	select {
	case <-c.done:
		return true
	case <-c.base.Done():
	case <-endedToo:
	}
	return false
}

// enqueue puts a command into the queue, and waits for room if that is full. It reports whether its caller has to read.
func (c *Conn) enqueue(ctx context.Context, call *call, command []byte) (alone bool, err error) {
	c.mu.Lock()
	for c.err == nil && (c.due.len() >= c.maxCalls || len(c.out) >= maxQueued) {
		if c.room == nil {
			c.room = make(chan struct{})
		}
		room := c.room
		c.mu.Unlock()
		select {
		case <-room:
		case <-ctx.Done():
			return false, &LostError{Err: ctx.Err()}
		}
		c.mu.Lock()
	}
	if err := c.askSocketLocked(); err != nil {
		c.mu.Unlock()
		c.fail(err)
		return false, &LostError{Err: err}
	}
	if c.err != nil {
		defer c.mu.Unlock()
		return false, &LostError{Err: c.err}
	}
	c.enqueueLocked(call, command)
	alone = c.startReadingLocked(call)
	if c.socket != nil && c.socket.writes && !c.writing && c.live.Load() == 1 {
		c.writeAloneLocked()
		return alone, nil
	}
	c.mu.Unlock()
	c.wakeWriter()
	return alone, nil
}

func (c *Conn) enqueueLocked(call *call, command []byte) {
	if c.due.len() == 0 {
		c.watch.since = c.now()
	}
	call.start = c.queued
	c.queued += uint64(len(command))
	c.out = append(c.out, command...)
	c.due.push(call)
	if call.tag != "" {
		c.waits[call.tag] = call
	}
	switch c.watch.uses++; {
	case c.watch.asleep:
		c.lookAgainLocked()
	case call.until != 0 && call.until < c.watch.at:
		c.lookAtLocked(call.until)
	}
}

// now returns the time since the connection was made.
func (c *Conn) now() time.Duration { return time.Since(c.born) }

// forget drops the push of a call that was given up, or that needs none.
func (c *Conn) forget(tag string) {
	if tag == "" {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.waits, tag)
}

// leave ends a call. The last one of a connection that was retired ends it.
func (c *Conn) leave() {
	if c.live.Add(-1) > 0 {
		return
	}
	c.mu.Lock()
	retired := c.retired
	c.mu.Unlock()
	if retired {
		c.Close()
	}
}

func (c *Conn) makeRoomLocked() {
	if c.room != nil && c.due.len() <= c.maxCalls/2 && len(c.out) <= maxQueued/2 {
		close(c.room)
		c.room = nil
	}
}

// Retire closes the connection once nobody waits for a reply.
func (c *Conn) Retire() {
	c.live.Add(1)
	c.mu.Lock()
	c.retired = true
	c.mu.Unlock()
	c.leave()
}

// Usable reports whether the connection takes calls.
func (c *Conn) Usable() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.err == nil && !c.retired
}

// heardSince reports whether something came since a moment, if only its greeting.
func (c *Conn) heardSince(at time.Time) bool { return time.Duration(c.heard.Load()) > at.Sub(c.born) }

// busy reports whether replies are due.
func (c *Conn) busy() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.due.len() > 0
}

// Close ends the connection, and its calls. It waits for nothing.
func (c *Conn) Close() { c.fail(errClosed) }

// fail ends the connection, once.
func (c *Conn) fail(err error) {
	c.mu.Lock()
	if c.err != nil {
		c.mu.Unlock()
		return
	}
	c.err = err
	due, waits, handed := c.due, c.waits, c.handed
	c.due, c.waits, c.out = queue{}, nil, nil
	if c.room != nil {
		close(c.room)
		c.room = nil
	}
	c.stopWatchLocked()
	c.ends.dropAllLocked()
	c.mu.Unlock()
	close(c.ended)
	hangUp(c.conn)
	for call := due.pop(); call != nil; call = due.pop() {
		delete(waits, call.tag)
		call.lose(&LostError{Sent: call.start < handed, Err: err})
	}
	for _, call := range waits {
		call.lose(&LostError{Sent: true, Err: err})
	}
}

// hangUp closes a connection without a last word: that of TLS can take seconds if the other end does not read.
func hangUp(conn net.Conn) {
	if secure, ok := conn.(*tls.Conn); ok {
		conn = secure.NetConn()
	}
	_ = conn.Close()
}
