package server

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/leasehold/leasehold/internal/resp"
)

// nopConn takes everything and has nothing.
type nopConn struct{ net.Conn }

func (nopConn) Write(b []byte) (int, error)     { return len(b), nil }
func (nopConn) Close() error                    { return nil }
func (nopConn) SetReadDeadline(time.Time) error { return nil }

func push(c *Conn, text string) error {
	return c.Push(func(w *resp.Writer) {
		w.Push(2)
		w.String("lh.watch")
		w.String(text)
	})
}

// connOf returns the only connection of a server.
func (b *bench) connOf(t *testing.T) *Conn {
	b.mu.Lock()
	defer b.mu.Unlock()
	for c := range b.conns {
		return c
	}
	t.Fatal("there is no connection")
	return nil
}

func TestPush(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(Config{})
		b.gate = make(chan struct{})
		c := b.start(t, t.Context())
		c.send("HELLO 3")
		c.read()
		conn := b.connOf(t)
		// While nothing is under way, at once.
		for i := range 3 {
			if err := push(conn, fmt.Sprint(i)); err != nil {
				t.Error(err)
			}
		}
		c.expect(">(lh.watch 0)", ">(lh.watch 1)", ">(lh.watch 2)")
		// While a batch is under way, after its answers.
		c.send("HOT 1", "HOT 2")
		synctest.Wait()
		_ = push(conn, "3")
		synctest.Wait()
		b.gate <- struct{}{}
		c.expect("*(1)", "*(2)", ">(lh.watch 3)")
		// While a command waits, at once; the answer of an earlier one, before.
		c.send("PING", "WAIT")
		c.expect("PONG")
		<-b.started
		_ = push(conn, "4")
		c.expect(">(lh.watch 4)")
		b.finish <- "yes"
		c.expect("yes")
		c.send("HELLO 2")
		c.read()
		_ = push(conn, "5")
		c.expect("*(lh.watch 5)")
		_ = c.Close()
		<-c.ended
		if err := push(conn, "6"); !errors.Is(err, ErrEnded) {
			t.Error(err)
		}
	})
}

// What is pushed by many is written whole, and in as few writes as the client lets it.
func TestPushMany(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(Config{})
		c := b.start(t, t.Context())
		c.send("PING")
		c.expect("PONG")
		conn := b.connOf(t)
		for range 100 {
			go func() { _ = push(conn, "x") }()
		}
		synctest.Wait() // one is being written, the others wait together
		for range 100 {
			c.expect("*(lh.watch x)")
		}
		if n := b.writes.Load(); n > 4 {
			t.Errorf("%d writes", n)
		}
	})
}

// A client that does not read what is pushed is cut off when too much waits for it.
func TestPushToSlowReader(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(Config{Queue: 10_000})
		c := b.start(t, t.Context())
		c.send("PING")
		c.expect("PONG")
		conn := b.connOf(t)
		var err error
		pushed := 0
		for ; err == nil; pushed++ {
			err = push(conn, strings.Repeat("x", 1000))
			synctest.Wait()
		}
		if !errors.Is(err, ErrSlow) || pushed < 10 || pushed > 12 {
			t.Errorf("after %d: %v", pushed, err)
		}
		<-c.ended
		if b.closed.Load() != 1 || b.slow.Load() != 1 {
			t.Errorf("closed %d, slow %d", b.closed.Load(), b.slow.Load())
		}
	})
}

// A client that does not take an answer is cut off in time.
func TestSlowReader(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(Config{})
		c := b.start(t, t.Context())
		begun := time.Now()
		c.send("PING")
		<-c.ended
		if took := time.Since(begun); took < 30*time.Second || took > 32*time.Second {
			t.Errorf("it was cut off after %v", took)
		}
	})
}

// A client that reads slowly, but reads, is not cut off.
func TestSteadyReader(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(Config{})
		c := b.start(t, t.Context())
		text := bytes.Repeat([]byte("x"), 900<<10)
		go func() {
			_, _ = c.Write(resp.AppendBulk(resp.AppendBulk(resp.AppendArray(nil, 2), "ECHO"), text))
		}()
		got, part := 0, make([]byte, 32<<10)
		for got < len(text) {
			time.Sleep(10 * time.Second)
			n, err := c.Conn.Read(part)
			if err != nil {
				t.Fatalf("after %d bytes: %v", got, err)
			}
			got += n
		}
	})
}

// A command that waits learns that its client has left; what comes while it waits is carried
// out afterwards.
func TestWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(Config{})
		c := b.start(t, t.Context())
		c.send("WAIT")
		<-b.started
		c.send("PING 1")
		c.send("HOT 2", "WAIT")
		synctest.Wait()
		b.finish <- "first"
		c.expect("first", "1", "*(2)")
		<-b.started
		time.Sleep(time.Hour) // no limit of its own
		_ = c.Close()
		<-c.ended
		if err := b.lastError(); err != nil {
			t.Error(err)
		}
	})
}

func (b *bench) lastError() error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if n := len(b.conns); n > 0 {
		return fmt.Errorf("%d connections are left", n)
	}
	return nil
}

// Much more than may wait for a command that waits is taken afterwards.
func TestWaitWithLongPipeline(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(Config{})
		c := b.start(t, t.Context())
		const n = 300
		go func() {
			c.send("WAIT")
			for range n {
				c.send("RUN " + strings.Repeat("x", 1000))
			}
		}()
		conn := (<-b.started).Conn
		synctest.Wait()
		if got := conn.in.Buffered(); got < 64<<10 || got > 256<<10 {
			t.Errorf("%d bytes were taken", got)
		}
		b.finish <- "first"
		c.expect("first")
		for range n {
			c.read()
		}
		c.send("PING")
		c.expect("PONG")
	})
}

// When the server drains, what is under way is finished, what comes is refused, and then the
// connection ends.
func TestDrain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, drain := context.WithCancel(context.Background())
		b := newBench(Config{Linger: 5 * time.Second})
		b.gate = make(chan struct{})
		busy, waiting, idle := b.start(t, ctx), b.start(t, ctx), b.start(t, ctx)
		idle.send("PING")
		idle.expect("PONG")
		busy.send("HOT 1")
		waiting.send("WAIT")
		conn := (<-b.started).Conn
		synctest.Wait()
		begun := time.Now()
		drain()
		synctest.Wait()
		if conn.Stopping().Err() == nil || conn.Context().Err() != nil {
			t.Error(conn.Stopping().Err(), conn.Context().Err())
		}
		time.Sleep(2 * time.Second)
		b.gate <- struct{}{}
		busy.expect("*(1)")
		busy.send("HOT 2", "PING")
		busy.expect("-LOADING the server is stopping: try again", "-LOADING the server is stopping: try again")
		busy.expect("EOF")
		idle.expect("EOF")
		if took := time.Since(begun); took != 5*time.Second {
			t.Errorf("they ended after %v", took)
		}
		time.Sleep(2 * time.Second)
		b.finish <- "late"
		waiting.expect("late", "EOF")
		<-waiting.ended
	})
}

func TestRefuse(t *testing.T) {
	ours, theirs := net.Pipe()
	go func() {
		newBench(Config{}).Refuse(theirs, errors.New("the server is starting"))
		_ = theirs.Close()
	}()
	c := &client{t: t, Conn: ours, reader: resp.NewReader(ours)}
	c.expect("-LOADING the server is starting", "EOF")
}
