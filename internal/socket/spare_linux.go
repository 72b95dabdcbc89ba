package socket

import (
	"errors"
	"net"
	"os"
	"sync"

	"golang.org/x/sys/unix"
)

// Attach needs one descriptor more for a moment. Where the process has as many as it may have, that must not end a
// connection that others depend on: one descriptor is kept in reserve for it.
var reserve spare

type spare struct {
	mu   sync.Mutex // guards what follows
	file *os.File   // nil: it is in use, or could not be opened
}

// fill opens the descriptor in reserve, if there is none.
func (s *spare) fill() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.file == nil {
		s.file, _ = os.Open(os.DevNull)
	}
}

// conn is net.FileConn, with the descriptor in reserve if there is no other.
func (s *spare) conn(file *os.File) (net.Conn, error) {
	c, err := net.FileConn(file)
	if !errors.Is(err, unix.EMFILE) {
		return c, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.file == nil {
		return nil, err
	}
	_ = s.file.Close()
	s.file = nil
	return net.FileConn(file)
}
