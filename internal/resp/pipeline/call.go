package pipeline

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/leasehold/leasehold/internal/resp"
)

// A Request is one command, and what takes its reply.
type Request struct {
	Command []byte // as resp.AppendCommand writes it; it is copied
	Answer  Answer

	// Tag is what the server's push to this command carries, if its reply may be followed by one. It
	// is different for each request that is under way.
	Tag string
}

// An Answer takes the reply to a command.
type Answer interface {
	// Take reads a reply, which is no error, and keeps nothing of it. It is called by the goroutine that
	// reads the connection, so it must not block, and never once Do has returned. It reports whether
	// the push with the request's tag is to follow, which it then takes too.
	//
	// An error becomes that of Do; ErrOutOfStep ends the connection.
	Take(v *resp.Value) (follows bool, err error)
}

// A call is a request under way.
type call struct {
	conn   *Conn
	answer Answer
	tag    string
	start  uint64        // where its command begins among all bytes of the connection
	until  time.Duration // when its caller gives up, since the connection was made; 0: never
	done   chan struct{} // has one when the caller is to look

	base, also context.Context // with which its caller gives up; also may be nil

	mu    sync.Mutex // guards what follows
	over  bool       // answered, lost, or given up by its caller
	woken bool       // done has, or had, one
	err   error
}

// newCall returns a call. Those of a connection are used again.
func (c *Conn) newCall(r Request) *call {
	made, _ := c.calls.Get().(*call)
	if made == nil {
		made = &call{conn: c, done: make(chan struct{}, 1)}
	}
	made.answer, made.tag, made.until, made.over, made.woken, made.err = r.Answer, r.Tag, 0, false, false, nil
	return made
}

// recycle is called by the last user of a call. One with a tag may be in two lists, and is left to the
// garbage collector.
func (c *call) recycle() {
	if c.tag == "" {
		c.answer, c.base, c.also = nil, nil, nil
		c.conn.calls.Put(c)
	}
}

// take hands a reply to the caller, if it still waits for one. It reports whether a push is to follow. The error is
// ErrOutOfStep or nil.
func (c *call) take(v *resp.Value) (follows bool, broken error) {
	c.mu.Lock()
	if c.over {
		c.mu.Unlock()
		c.recycle()
		return false, nil
	}
	if v.Kind == resp.Error {
		code, text := v.Code()
		c.err = &resp.Failure{Code: code, Text: text}
		c.finish()
		return false, nil
	}
	follows, err := c.answer.Take(v)
	if follows && err == nil && c.tag != "" {
		c.mu.Unlock()
		return true, nil
	}
	c.err = err
	c.finish()
	if errors.Is(err, ErrOutOfStep) {
		return false, err
	}
	return false, nil
}

// lose tells the caller that there will be no reply.
func (c *call) lose(err *LostError) {
	c.mu.Lock()
	if c.over {
		c.mu.Unlock()
		c.recycle()
		return
	}
	c.err = err
	c.finish()
}

// finish ends a call, and unlocks it. The caller has it from then on.
func (c *call) finish() {
	c.over = true
	c.wake()
}

// wake has the caller look, and unlocks the call.
func (c *call) wake() {
	first, done := !c.woken, c.done
	c.woken = true
	c.mu.Unlock()
	if first {
		done <- struct{}{}
	}
}

// isOver reports whether there is an answer, or never will be.
func (c *call) isOver() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.over
}

// timeUp has the caller give up.
func (c *call) timeUp() {
	c.mu.Lock()
	if c.over {
		c.mu.Unlock()
		return
	}
	c.wake()
}

// giveUp reports whether the caller goes without an answer: none came before. Woken says whether it took what done
// had; nobody else may find that there.
func (c *call) giveUp(woken bool) bool {
	c.mu.Lock()
	given, left := !c.over, c.woken && !woken
	c.over = true
	c.mu.Unlock()
	if left {
		<-c.done
	}
	return given
}

// A queue has the calls whose replies are due, in the order of their commands.
type queue struct {
	calls []*call
	head  int
}

func (q *queue) len() int { return len(q.calls) - q.head }

func (q *queue) all() []*call { return q.calls[q.head:] }

func (q *queue) push(c *call) {
	if q.head > 64 && q.head > len(q.calls)/2 {
		n := copy(q.calls, q.calls[q.head:])
		clear(q.calls[n:])
		q.calls, q.head = q.calls[:n], 0
	}
	q.calls = append(q.calls, c)
}

// pop returns the oldest call; nil if there is none.
func (q *queue) pop() *call {
	if q.len() == 0 {
		return nil
	}
	c := q.calls[q.head]
	q.calls[q.head] = nil
	if q.head++; q.head == len(q.calls) {
		q.calls, q.head = q.calls[:0], 0
	}
	return c
}
