package pipeline

import (
	"crypto/tls"
	"syscall"
	"time"
)

// Patience says when a connection counts as dead.
type Patience struct {
	After  time.Duration // the silence after which a connection whose pushes are awaited is asked for a sign of life
	Within time.Duration // how long that may take
}

// limit is how long replies that are due may take. Zero: as long as they need.
func (p Patience) limit() time.Duration { return p.After + p.Within }

// A watch looks at a connection now and then. The connection's lock guards it. Moments are counted since the
// connection was made.
type watch struct {
	patience Patience
	timer    *time.Timer
	at       time.Duration // when it is to look
	since    time.Duration // since when a reply is due
	pinged   time.Duration // when a ping was sent
	asleep   bool          // nothing is due: the next command wakes it up
	uses     int           // counts commands
	seen     int           // how many there were at the last look
	rested   int           // how many there were when somebody looked for a reader
	idle     time.Duration // since when there was none
}

// idleLook is how often a connection without patience is looked at.
const idleLook = 15 * time.Second

var ping = []byte("*1\r\n$4\r\nPING\r\n")

func (c *Conn) startWatchLocked() {
	c.heard.Store(int64(c.now()))
	c.watch.idle = c.now()
	c.watch.timer = time.AfterFunc(idleLook, c.look)
	c.lookAgainLocked()
}

func (c *Conn) stopWatchLocked() {
	if c.watch.timer != nil {
		c.watch.timer.Stop()
	}
}

// SetPatience changes when the connection counts as dead.
func (c *Conn) SetPatience(p Patience) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.watch.patience = p
	if c.err == nil && c.watch.timer != nil {
		c.lookAgainLocked()
	}
}

func (c *Conn) lookAgainLocked() {
	next := c.now() + c.nextLookLocked()
	if !c.reading {
		next = min(next, c.now()+restLook)
	}
	for _, call := range c.due.all() {
		if call.until != 0 {
			next = min(next, call.until)
		}
	}
	c.lookAtLocked(next)
}

func (c *Conn) lookAtLocked(at time.Duration) {
	next := max(at-c.now(), time.Millisecond)
	c.watch.at = c.now() + next
	c.watch.timer.Reset(next)
}

// giveUpLocked tells callers that their time is up.
func (c *Conn) giveUpLocked() {
	now := c.now()
	for _, call := range c.due.all() {
		if call.until != 0 && call.until <= now {
			call.until = 0
			call.timeUp()
			c.interruptLocked(call)
		}
	}
}

// nextLookLocked returns how long to wait before the next look.
func (c *Conn) nextLookLocked() time.Duration {
	w := &c.watch
	w.asleep = false
	switch {
	case w.patience.limit() == 0:
		return idleLook
	case c.due.len() > 0:
		return c.limitLocked() - c.quietLocked()
	case len(c.waits) > 0:
		return w.patience.After - c.silenceLocked()
	case c.live.Load() > 0 || w.uses != w.seen:
		return w.patience.After
	}
	w.asleep = true
	return idleLook
}

// limitLocked returns how long replies that are due may take.
func (c *Conn) limitLocked() time.Duration {
	if c.watch.pinged > time.Duration(c.heard.Load()) {
		return c.watch.patience.Within // and nothing came since
	}
	return c.watch.patience.limit()
}

// silenceLocked returns for how long nothing has come.
func (c *Conn) silenceLocked() time.Duration { return c.now() - time.Duration(c.heard.Load()) }

// look ends a connection that is dead, or that nobody uses, and sends a ping if only pushes are awaited.
func (c *Conn) look() {
	c.mu.Lock()
	if c.err != nil {
		c.mu.Unlock()
		return
	}
	dead, unused := c.deadLocked(), c.unusedLocked()
	if !dead && !unused {
		c.giveUpLocked()
		c.pingLocked()
		c.readAgainLocked()
		c.lookAgainLocked()
	}
	c.mu.Unlock()
	switch {
	case dead:
		c.fail(ErrSilent)
	case unused:
		c.Close()
	}
}

// quietLocked returns how long replies have been due without a byte of any.
func (c *Conn) quietLocked() time.Duration {
	return c.now() - max(time.Duration(c.heard.Load()), c.watch.since)
}

func (c *Conn) deadLocked() bool {
	w := &c.watch
	if w.patience.limit() == 0 || c.due.len() == 0 || c.quietLocked() < c.limitLocked() {
		return false
	}
	if c.now()-w.at > w.patience.Within/2 || c.hasUnread() {
		// This process was paused, or has more to do than it can: what has come was not read yet.
		w.since = c.now()
		return false
	}
	return true
}

// hasUnread reports whether the system has something that was not read yet.
func (c *Conn) hasUnread() bool {
	conn := c.conn
	if secure, ok := conn.(*tls.Conn); ok {
		conn = secure.NetConn()
	}
	socket, ok := conn.(syscall.Conn)
	return ok && unread(socket)
}

// unusedLocked reports whether nothing has used the connection for as long as it may be idle.
func (c *Conn) unusedLocked() bool {
	w := &c.watch
	if w.uses != w.seen || c.live.Load() > 0 {
		w.seen, w.idle = w.uses, c.now()
		return false
	}
	return c.idle > 0 && c.now()-w.idle >= c.idle
}

// pingLocked asks for a sign of life if only pushes are awaited, which may take for ever.
func (c *Conn) pingLocked() {
	w := &c.watch
	if w.patience.limit() == 0 || len(c.waits) == 0 || c.due.len() > 0 || c.silenceLocked() < w.patience.After {
		return
	}
	call := c.newCall(Request{})
	call.over = true // nobody waits for it
	c.enqueueLocked(call, ping)
	w.uses-- // it is no use of the connection
	w.pinged = c.now()
	c.wakeWriter()
}
