//go:build unix

package pipeline

import (
	"net"
	"os"
	"syscall"
)

// A direct writes to a socket without waiting. One goroutine uses it at a time.
type direct struct {
	raw     syscall.RawConn
	attempt func(fd uintptr) bool
	b       []byte
	n       int
	err     error
}

// newDirect returns nil for connections that are no sockets, or have something above them, such as TLS.
func newDirect(conn net.Conn) *direct {
	socket, ok := conn.(*net.TCPConn)
	if !ok {
		return nil
	}
	raw, err := socket.SyscallConn()
	if err != nil {
		return nil
	}
	d := &direct{raw: raw}
	d.attempt = func(fd uintptr) bool {
		d.n, d.err = syscall.Write(int(fd), d.b)
		return true // it does not wait for room
	}
	return d
}

// write writes what there is room for.
func (d *direct) write(b []byte) (n int, err error) {
	d.b, d.n, d.err = b, 0, nil
	err = d.raw.Write(d.attempt)
	d.b = nil
	switch {
	case err != nil:
		return 0, err
	case d.err == nil:
		return d.n, nil
	case d.err == syscall.EAGAIN || d.err == syscall.EINTR:
		return 0, nil
	}
	return 0, os.NewSyscallError("write", d.err)
}
