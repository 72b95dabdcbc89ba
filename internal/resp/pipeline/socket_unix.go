//go:build unix

package pipeline

import (
	"crypto/tls"
	"net"
	"os"
	"syscall"
)

// A socket is what is below a connection. One goroutine uses it at a time.
type socket struct {
	writes  bool // nothing, such as TLS, is above it
	raw     syscall.RawConn
	attempt func(fd uintptr) bool
	b       []byte
	n       int
	err     error
}

// newSocket returns nil for connections that are no sockets.
func newSocket(conn net.Conn) *socket {
	secure, above := conn.(*tls.Conn)
	if above {
		conn = secure.NetConn()
	}
	tcp, ok := conn.(*net.TCPConn)
	if !ok {
		return nil
	}
	raw, err := tcp.SyscallConn()
	if err != nil {
		return nil
	}
	s := &socket{raw: raw, writes: !above}
	s.attempt = func(fd uintptr) bool {
		s.n, s.err = syscall.Write(int(fd), s.b)
		return true // it does not wait for room
	}
	return s
}

// write writes what there is room for.
func (s *socket) write(b []byte) (n int, err error) {
	s.b, s.n, s.err = b, 0, nil
	err = s.raw.Write(s.attempt)
	s.b = nil
	switch {
	case err != nil:
		return 0, err
	case s.err == nil:
		return s.n, nil
	case s.err == syscall.EAGAIN || s.err == syscall.EINTR:
		return 0, nil
	}
	return 0, os.NewSyscallError("write", s.err)
}

// look says what a read would find.
func (s *socket) look() (state socketState) {
	err := s.raw.Control(func(fd uintptr) {
		var one [1]byte
		n, _, err := syscall.Recvfrom(int(fd), one[:], syscall.MSG_PEEK|syscall.MSG_DONTWAIT)
		switch {
		case err == syscall.EAGAIN || err == syscall.EINTR:
			state = socketQuiet
		case err != nil || n == 0:
			state = socketClosed
		default:
			state = socketHasBytes
		}
	})
	if err != nil {
		return socketClosed
	}
	return state
}
