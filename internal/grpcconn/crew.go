package grpcconn

import (
	"sync"
	"sync/atomic"
)

// A crew is goroutines that carry out calls, one after the other. A goroutine for each call would have to grow its
// stack each time, which costs as much as the call. They end when there is no connection.
type crew struct {
	mu    sync.Mutex // guards what follows
	conns int
	work  chan *Stream

	idle atomic.Int32
}

// maxIdle is how many goroutines wait for work.
const maxIdle = 64

// join counts a connection, and returns where its calls go.
func (c *crew) join() chan *Stream {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.conns++; c.conns == 1 {
		c.work = make(chan *Stream)
	}
	return c.work
}

// leave counts a connection that has ended.
func (c *crew) leave() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.conns--; c.conns == 0 {
		close(c.work)
	}
}

// do has a call carried out.
func (c *crew) do(s *Stream, work chan *Stream) {
	select {
	case work <- s:
	default:
		go c.member(s, work)
	}
}

// member carries out a call, and then others.
func (c *crew) member(s *Stream, work chan *Stream) {
	for more := true; more; {
		s.run()
		s = nil
		if c.idle.Add(1) > maxIdle {
			more = false
		} else {
			s, more = <-work
		}
		c.idle.Add(-1)
	}
}
