// Package socket has TCP connections that can leave Go's poller for a while.
//
// Go's poller watches each connection from its first moment to its last, and wakes a thread for whatever comes on it,
// also if no goroutine waits for that. A loop that watches many connections itself would pay for each request twice.
package socket

import (
	"net"
	"sync"
	"sync/atomic"
	"time"
)

// A Socket is a TCP connection. While it is detached, only Close and the addresses work.
type Socket struct {
	tcp atomic.Pointer[net.TCPConn] // closed while the socket is detached

	local, remote net.Addr // kept here, since a connection that was reset does not know them

	mu     sync.Mutex // guards what follows
	fd     int        // of the socket while it is detached; else none
	closed bool
}

const none = -1

// New returns a socket in place of a TCP connection, and other connections as they are.
func New(c net.Conn) net.Conn {
	tcp, ok := c.(*net.TCPConn)
	if !ok {
		return c
	}
	s := &Socket{fd: none, local: tcp.LocalAddr(), remote: tcp.RemoteAddr()}
	s.tcp.Store(tcp)
	return s
}

// Close ends the connection. The descriptor of a detached one stays valid until Attach, and whoever watches it sees
// the end.
func (s *Socket) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.fd == none {
		s.closed = true
		return s.tcp.Load().Close()
	}
	if s.closed {
		return net.ErrClosed
	}
	s.closed = true
	return shutdown(s.fd)
}

// Read reads what has come.
func (s *Socket) Read(b []byte) (int, error) { return s.tcp.Load().Read(b) }

// Write sends something.
func (s *Socket) Write(b []byte) (int, error) { return s.tcp.Load().Write(b) }

// CloseWrite says that nothing more will be sent.
func (s *Socket) CloseWrite() error { return s.tcp.Load().CloseWrite() }

// SetWriteBuffer sets how much the system buffers of what the peer does not read.
func (s *Socket) SetWriteBuffer(bytes int) error { return s.tcp.Load().SetWriteBuffer(bytes) }

// LocalAddr returns the address of this end.
func (s *Socket) LocalAddr() net.Addr { return s.local }

// RemoteAddr returns the address of the other end.
func (s *Socket) RemoteAddr() net.Addr { return s.remote }

// SetDeadline limits reads and writes. Deadlines are gone after Detach.
func (s *Socket) SetDeadline(t time.Time) error { return s.tcp.Load().SetDeadline(t) }

// SetReadDeadline limits reads.
func (s *Socket) SetReadDeadline(t time.Time) error { return s.tcp.Load().SetReadDeadline(t) }

// SetWriteDeadline limits writes.
func (s *Socket) SetWriteDeadline(t time.Time) error { return s.tcp.Load().SetWriteDeadline(t) }
