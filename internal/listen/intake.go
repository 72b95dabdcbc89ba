package listen

import (
	"errors"
	"net"
	"sync"
)

// An intake is the listener from which the HTTP server takes connections that others hand to it: a sorter, or a request
// that had borrowed one.
type intake struct {
	net.Listener
	http   chan accepted
	closed chan struct{}
	once   sync.Once
}

type accepted struct {
	conn net.Conn
	err  error
}

func newIntake(l net.Listener) *intake {
	return &intake{Listener: l, http: make(chan accepted), closed: make(chan struct{})}
}

// give hands a connection to the HTTP server, and closes it if that takes no more. It hands over errors as well: the
// server knows after which of them to go on, and when.
func (i *intake) give(c net.Conn, err error) {
	select {
	case i.http <- accepted{c, err}:
	case <-i.closed:
		if c != nil {
			_ = c.Close()
		}
	}
}

// fill hands over what comes in at the listener.
func (i *intake) fill() {
	for {
		c, err := i.Listener.Accept()
		i.give(c, err)
		if errors.Is(err, net.ErrClosed) {
			return
		}
	}
}

// Accept returns the next connection that speaks HTTP.
func (i *intake) Accept() (net.Conn, error) {
	select {
	case a := <-i.http:
		return a.conn, a.err
	case <-i.closed:
		return nil, net.ErrClosed
	}
}

// Close ends the listener.
func (i *intake) Close() error {
	i.once.Do(func() { close(i.closed) })
	return i.Listener.Close()
}
