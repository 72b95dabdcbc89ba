package server

import (
	"context"
	"fmt"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/leasehold/leasehold/internal/resp"
)

// A bench is a server with a few commands to try it with, and what it saw.
type bench struct {
	*Server
	seen     sync.Mutex
	submits  []int         // how many calls each Submit had
	gate     chan struct{} // if set, a Submit is done when something comes
	inSubmit chan struct{} // if set, a Submit says that it has begun, and waits until it may go on
	started  chan *Call    // WAIT has begun
	finish   chan string   // what WAIT answers
	stalled  chan struct{} // STALL has begun; then: it may go on
	writes   atomic.Int64
	closed   atomic.Int64
	greeted  atomic.Int64
}

// A queue is a Batch that is done when its bench says.
type queue struct {
	bench *bench
	calls []*Call
}

// Submit is done by another goroutine.
func (q *queue) Submit() {
	q.bench.seen.Lock()
	q.bench.submits = append(q.bench.submits, len(q.calls))
	q.bench.seen.Unlock()
	calls := q.calls
	q.calls = nil
	if in := q.bench.inSubmit; in != nil {
		in <- struct{}{}
		<-in
	}
	go func() {
		if q.bench.gate != nil {
			<-q.bench.gate
		}
		for _, c := range calls {
			c.Done()
		}
	}()
}

func newBench(c Config) *bench {
	b := &bench{started: make(chan *Call), finish: make(chan string), stalled: make(chan struct{})}
	c.NewBatch = func() Batch { return &queue{bench: b} }
	c.Closed = func(*Conn) { b.closed.Add(1) }
	c.Greeted = func(net.Conn) { b.greeted.Add(1) }
	answer := func(c *Call, w *resp.Writer) {
		w.Array(len(c.Args))
		for _, a := range c.Args {
			w.Bulk(a)
		}
	}
	c.Commands = append(c.Commands,
		&Command{Name: "HOT", Write: true, Answer: answer, Begin: func(c *Call) {
			q := c.Batch().(*queue)
			q.calls = append(q.calls, c)
		}},
		&Command{Name: "NOW", Min: 1, Max: 2, Answer: answer, Begin: (*Call).Done},
		&Command{Name: "STALL", Answer: answer, Begin: func(c *Call) {
			b.stalled <- struct{}{}
			<-b.stalled
			c.Done()
		}},
		&Command{Name: "RUN", Run: answer},
		&Command{Name: "NOUN RUN", Run: answer},
		&Command{Name: "NOUN HOT", Min: 1, Answer: answer, Begin: (*Call).Done},
		&Command{Name: "WAIT", Run: b.wait},
		&Command{Name: "RESTRICT", Run: func(c *Call, w *resp.Writer) {
			c.Conn.Allow(func(name string) error {
				if name != "PING" && name != "NOW" {
					return &resp.Failure{Code: "NOAUTH", Text: name + " is not allowed"}
				}
				return nil
			})
			w.OK()
		}},
	)
	b.Server = New(c)
	return b
}

func (b *bench) wait(c *Call, w *resp.Writer) {
	ctx := c.Wait()
	b.started <- c
	select {
	case <-ctx.Done():
		w.Error("ERR", "nobody is there")
	case text := <-b.finish:
		w.String(text)
	}
}

// start serves one connection of a pipe, and returns the client's end of it.
func (b *bench) start(t *testing.T, ctx context.Context) *client {
	t.Helper()
	ours, theirs := net.Pipe()
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		defer theirs.Close()
		b.Serve(ctx, &counted{theirs, &b.writes})
	}()
	t.Cleanup(func() {
		_ = ours.Close()
		<-ended
	})
	return &client{t: t, Conn: ours, reader: resp.NewReader(ours), ended: ended}
}

// counted counts what is written to a connection.
type counted struct {
	net.Conn
	writes *atomic.Int64
}

func (c *counted) Write(b []byte) (int, error) {
	c.writes.Add(1)
	return c.Conn.Write(b)
}

type client struct {
	net.Conn
	t      testing.TB
	reader *resp.Reader
	ended  chan struct{}
}

// send sends commands, words divided by spaces, in one piece.
func (c *client) send(commands ...string) {
	c.t.Helper()
	var b []byte
	for _, command := range commands {
		b = resp.AppendCommand(b, strings.Fields(command)...)
	}
	c.sendBytes(string(b))
}

func (c *client) sendBytes(b string) {
	c.t.Helper()
	if _, err := c.Write([]byte(b)); err != nil {
		c.t.Error(err)
	}
}

// read returns the next thing that comes, as a person would write it.
func (c *client) read() string {
	v, err := c.reader.Read()
	if err != nil {
		return err.Error()
	}
	return show(v)
}

func (c *client) ask(command string) string {
	c.t.Helper()
	c.send(command)
	return c.read()
}

// expect reads answers and compares them.
func (c *client) expect(want ...string) {
	c.t.Helper()
	for _, want := range want {
		if got := c.read(); got != want {
			c.t.Errorf("got %q, want %q", got, want)
		}
	}
}

func show(v *resp.Value) string {
	switch v.Kind {
	case resp.Simple, resp.Bulk, resp.Double, resp.Big:
		return string(v.Text)
	case resp.Error:
		return "-" + string(v.Text)
	case resp.Integer, resp.Boolean:
		return fmt.Sprint(v.Int)
	case resp.Null:
		return "null"
	}
	var items []string
	for i := range v.Items {
		items = append(items, show(&v.Items[i]))
	}
	return string(v.Kind) + "(" + strings.Join(items, " ") + ")"
}
