//go:build unix

package pipeline

import "syscall"

// unread reports whether a socket has bytes that nobody has read. It does not wait.
func unread(socket syscall.Conn) (found bool) {
	raw, err := socket.SyscallConn()
	if err != nil {
		return false
	}
	err = raw.Control(func(fd uintptr) {
		n, _, err := syscall.Recvfrom(int(fd), make([]byte, 1), syscall.MSG_PEEK) // Go's sockets never block
		found = err == nil && n > 0
	})
	return found && err == nil
}
