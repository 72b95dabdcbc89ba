package server

import (
	"crypto/tls"
	"net"
	"sync/atomic"
	"syscall"
	"time"
)

// place is what a connection has that is in a loop.
type place struct {
	conn *Conn
	loop *loop
	raw  syscall.RawConn
	fd   int32
	left chan struct{} // closed when the loop has let go of it
	lent atomic.Bool   // a goroutine has it

	// The rest belongs to the loop, or to the goroutine that has it.
	away     bool // a goroutine has it, as far as the loop knows
	gone     bool // the loop has let go of it
	back     bool // it goes on without the loop
	readable bool // there may be more to read
	last     bool // the client sends no more: the end is told once, and may come with bytes before it
	over     bool // nothing more can be read
	listed   bool // it is in next
	why      pause
	calls    int // that are in the loop's round
}

// enter has the loop read a connection, and returns when it no longer does. It reports whether
// the connection has ended; if not, its goroutine reads on.
func (c *Conn) enter() bool {
	if c.secure {
		return false
	}
	c.secure = true // until we know
	tcp := tcpOf(c.net)
	if tcp == nil {
		return false
	}
	raw, err := tcp.SyscallConn()
	if err != nil {
		return false
	}
	l := c.server.enterLoop()
	if l == nil {
		return false
	}
	c.secure = false
	defer c.server.leaveLoop()
	p := &place{conn: c, loop: l, raw: raw, left: make(chan struct{})}
	err = raw.Control(func(fd uintptr) {
		p.fd = int32(fd)
		c.mu.Lock()
		if c.place = p; c.draining.Load() {
			time.AfterFunc(time.Until(c.until), c.lingered)
		}
		c.mu.Unlock()
		l.mu.Lock()
		l.places[p.fd] = p
		l.mu.Unlock()
		if l.watch(int(fd)) != nil {
			_ = c.net.Close()
		}
	})
	if err != nil {
		return false // it has ended
	}
	l.post(p) // something may have come before
	<-p.left
	return !p.back
}

// tcpOf returns the plain TCP connection below a connection; nil: there is none.
func tcpOf(c net.Conn) *net.TCPConn {
	for {
		switch inner := c.(type) {
		case *net.TCPConn:
			return inner
		case *tls.Conn:
			return nil
		case interface{ NetConn() net.Conn }:
			c = inner.NetConn()
		default:
			return nil
		}
	}
}

// enterLoop returns the server's loop, which runs while connections use it.
func (s *Server) enterLoop() *loop {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.loop == nil {
		l, err := newLoop(s)
		if err != nil {
			s.config.Log.Warn("RESP connections are served without a readiness loop", "err", err)
			return nil
		}
		s.loop = l
	}
	s.inLoop++
	return s.loop
}

func (s *Server) leaveLoop() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.inLoop--; s.inLoop == 0 {
		s.loop.post(nil)
		s.loop = nil
	}
}

// wake has the loop look at the connection, if it is in one. The caller has no lock.
func (c *Conn) wake() {
	c.mu.Lock()
	p := c.place
	c.mu.Unlock()
	if p != nil {
		p.loop.post(p)
	}
}

// lost reports whether somebody has closed the connection, which the loop would not notice.
func (c *Conn) lost() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.place != nil && c.place.raw.Control(func(uintptr) {}) != nil
}
