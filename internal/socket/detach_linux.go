package socket

import (
	"fmt"
	"net"
	"os"

	"golang.org/x/sys/unix"
)

// Detach takes the connection from Go's poller, and returns its descriptor, which never blocks. Nobody may be reading
// or writing. It is valid until Attach, which has to follow.
func (s *Socket) Detach() (fd int, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed || s.fd != none {
		return none, net.ErrClosed
	}
	tcp := s.tcp.Load()
	raw, err := tcp.SyscallConn()
	if err != nil {
		return none, err
	}
	if controlErr := raw.Control(func(own uintptr) {
		fd, err = unix.FcntlInt(own, unix.F_DUPFD_CLOEXEC, 0)
	}); controlErr != nil {
		return none, controlErr
	}
	if err != nil {
		return none, os.NewSyscallError("fcntl", err)
	}
	reserve.fill()
	s.fd = fd
	_ = tcp.Close() // which only ends its part: the socket has another descriptor
	return fd, nil
}

// Attach gives the connection back to Go's poller. The descriptor must not be used any more, nor be watched. The error
// says that the connection has ended.
func (s *Socket) Attach() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.fd == none {
		return nil
	}
	file := os.NewFile(uintptr(s.fd), "socket")
	defer reserve.fill() // when the file is closed, and its descriptor free
	defer file.Close()
	s.fd = none
	if s.closed {
		return net.ErrClosed
	}
	c, err := reserve.conn(file)
	if err == nil {
		if tcp, ok := c.(*net.TCPConn); ok {
			s.tcp.Store(tcp)
			return nil
		}
		_ = c.Close()
		err = fmt.Errorf("a TCP connection became a %T", c)
	}
	s.closed = true
	return err
}

func shutdown(fd int) error { return os.NewSyscallError("shutdown", unix.Shutdown(fd, unix.SHUT_RDWR)) }
