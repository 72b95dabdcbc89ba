package server

import (
	"crypto/tls"
	"errors"
	"net"
	"time"

	"golang.org/x/sys/unix"

	"github.com/leasehold/leasehold/internal/socket"
)

// place is what a connection has that is in a loop.
type place struct {
	conn *Conn
	loop *loop
	fd   int           // which the loop reads and writes
	left chan struct{} // closed when the loop has let go of it

	// The rest belongs to the loop, and when that has let go of it, to the goroutine of the connection.
	away     bool // the loop does not have it: its batch takes long, or it was let go
	readable bool // there may be more to read
	last     bool // the client sends no more: the end is told once, and may come with bytes before it
	over     bool // nothing more can be read, or is to be
	listed   bool // it is in next
	why      pause
	calls    int // that are in the loop's round
}

// enter has the loop read the connection, until something has to be done that may block. It reports whether the
// connection goes on: its goroutine reads then.
func (c *Conn) enter() bool {
	s := c.socket()
	if s == nil {
		return true
	}
	l := c.server.enterLoop()
	if l == nil {
		c.secure = true
		return true
	}
	p := c.detach(s, l)
	if p == nil {
		c.server.leaveLoop()
		return true
	}
	l.post(p) // something may have come before
	<-p.left
	goesOn := c.attach(s)
	c.server.leaveLoop()
	return goesOn && c.goOn(p) && !p.over
}

// socket returns what a loop can read; nil: nothing.
func (c *Conn) socket() *socket.Socket {
	if c.secure {
		return nil
	}
	s := socketOf(c.net)
	c.secure = s == nil
	return s
}

// detach takes the connection from Go's poller and gives it to the loop. It returns nil if that is not possible, or
// not now.
func (c *Conn) detach(s *socket.Socket, l *loop) *place {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.writing {
		return nil
	}
	fd, err := s.Detach()
	if err != nil {
		return nil
	}
	p := &place{conn: c, loop: l, fd: fd, left: make(chan struct{})}
	c.place = p
	if l.admit(p) != nil {
		c.place = nil
		_ = s.Attach()
		return nil
	}
	if c.draining.Load() {
		time.AfterFunc(time.Until(c.until), c.lingered)
	}
	return p
}

// attach gives the connection back to Go's poller. It reports whether it goes on.
func (c *Conn) attach(s *socket.Socket) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.place = nil
	if s.Attach() != nil {
		return false
	}
	_ = c.net.SetReadDeadline(c.until)
	return true
}

// goOn carries out what the loop could not: what blocks. It reports whether the connection goes on.
func (c *Conn) goOn(p *place) bool {
	if p.why == pauseTurn && (!c.ending || c.turn.bad != nil) {
		c.outside = visit
		c.perform()
	}
	if c.ending {
		c.flush() // what comes after QUIT is not carried out
		return false
	}
	return c.work()
}

// socketOf returns the plain TCP connection below a connection; nil: there is none.
func socketOf(c net.Conn) *socket.Socket {
	for {
		switch inner := c.(type) {
		case *socket.Socket:
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

// send writes what can be written at once. The caller has the connection's lock.
func (p *place) send(b []byte) (int, error) {
	n, err := unix.Write(p.fd, b)
	switch {
	case err == nil:
		return n, nil
	case errors.Is(err, unix.EAGAIN), errors.Is(err, unix.EINTR):
		return 0, nil
	}
	return 0, err
}
