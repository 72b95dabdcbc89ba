package grpcconn

import (
	"container/list"
	"context"
	"errors"
	"sync"
	"time"
)

// queues are the streams that wait until they can put something, each for one thing at a time. A client can have
// thousands of them wait and let each go on by one byte: no frame may wake more of them than can go on. The
// connection's mu guards them.
type queues struct {
	forOut  list.List // until what was put before is written
	forRoom list.List // until the client has room on the connection
	forOwn  list.List // until it has room on the stream
}

// A place is where a stream waits.
type place struct {
	queue   *list.List // nil: it does not wait
	element *list.Element
	turn    sync.Cond
}

// obstacle returns where a stream has to wait before it can put data, or its status; nil: it need not.
func (s *Stream) obstacle(data bool) *list.List {
	c := s.conn
	switch {
	case s.gone, c.failed != nil, data && s.Err() != nil:
		return nil
	case len(c.out) >= maxOut:
		return &c.forOut
	case data && c.initial+s.room <= 0:
		return &c.forOwn
	case data && c.room <= 0:
		return &c.forRoom
	}
	return nil
}

// wait waits until a stream can put data, or its status, or nobody wants that any more, for as long as a client may
// take. The connection's mu is held, but not while it waits.
func (s *Stream) wait(data bool) {
	queue := s.obstacle(data)
	if queue == nil {
		return
	}
	c := s.conn
	defer context.AfterFunc(s, func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		s.wake()
	})()
	slow := time.AfterFunc(c.server.SlowTime, func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.fail(errors.New("the client does not take what it is sent"))
	})
	defer slow.Stop()
	s.place.turn.L = &c.mu
	for was := (*list.List)(nil); queue != nil; queue = s.obstacle(data) {
		if len(c.out) > 0 && !c.writing {
			c.flush()
			continue
		}
		s.stand(queue, queue == was)
		was = queue
		c.next() // it was the first, and there may be enough for more
	}
}

// stand waits in a queue until it is woken: at its end, or at its beginning if others were faster when it was woken.
func (s *Stream) stand(queue *list.List, again bool) {
	p := &s.place
	p.queue = queue
	if again {
		p.element = queue.PushFront(s)
	} else {
		p.element = queue.PushBack(s)
	}
	for p.queue != nil {
		p.turn.Wait()
	}
}

// wake lets a stream that waits look again.
func (s *Stream) wake() {
	if p := &s.place; p.queue != nil {
		p.queue.Remove(p.element)
		p.queue, p.element = nil, nil
		p.turn.Signal()
	}
}

// next wakes the first of those that wait for the connection if they can go on. It wakes the one after it.
func (c *conn) next() {
	if first := c.forOut.Front(); first != nil && len(c.out) < maxOut {
		first.Value.(*Stream).wake()
	}
	if first := c.forRoom.Front(); first != nil && c.room > 0 {
		first.Value.(*Stream).wake()
	}
}

// widened wakes those that can go on because the client has more room on all streams.
func (c *conn) widened() {
	for e := c.forOwn.Front(); e != nil; {
		s := e.Value.(*Stream)
		e = e.Next()
		if c.initial+s.room > 0 {
			s.wake()
		}
	}
}

// wakeAll wakes all that wait: the connection is at its end.
func (c *conn) wakeAll() {
	for _, queue := range []*list.List{&c.forOut, &c.forRoom, &c.forOwn} {
		for first := queue.Front(); first != nil; first = queue.Front() {
			first.Value.(*Stream).wake()
		}
	}
}
