package server

import (
	"net"
	"runtime"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/leasehold/leasehold/internal/resp"
	"github.com/leasehold/leasehold/internal/socket"
)

// bareLoop returns a connection of a loop that does not run, and its client.
func bareLoop(t *testing.T, b *bench) (*loop, *Conn, *client) {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	ours, err := net.Dial("tcp", listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	accepted, err := listener.Accept()
	if err != nil {
		t.Fatal(err)
	}
	theirs := socket.New(accepted).(*socket.Socket)
	t.Cleanup(func() { _, _ = ours.Close(), theirs.Close() })
	_ = ours.SetDeadline(time.Now().Add(time.Minute))
	l, err := newLoop(b.Server)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.post(nil) })
	c := b.open(t.Context(), theirs)
	t.Cleanup(func() { b.close(c) })
	fd, err := theirs.Detach()
	if err != nil {
		t.Fatal(err)
	}
	c.place = &place{conn: c, loop: l, fd: fd, left: make(chan struct{})}
	return l, c, &client{t: t, Conn: ours, reader: resp.NewReader(ours)}
}

// A push never leaves in the middle of an answer, of which a client that reads slowly has taken a part.
func TestLoopPushesAfterAWholeAnswer(t *testing.T) {
	b := newBench(Config{})
	l, conn, c := bareLoop(t, b)
	text := make([]byte, 32<<20)
	conn.hold()
	conn.out.Bulk(text)
	if l.flush(conn) {
		t.Fatal("the client took all of it at once")
	}
	if err := push(conn, "x"); err != nil {
		t.Error(err)
	}
	conn.mu.Lock()
	if conn.writing {
		t.Error("the push leaves before the rest of the answer")
	}
	conn.mu.Unlock()
	conn.attach(conn.net.(*socket.Socket))
	go conn.flush()
	if v, err := c.reader.Read(); err != nil || string(v.Text) != string(text) {
		t.Fatalf("the answer is not what was written: %v", err)
	}
	c.expect("*(lh.watch x)")
}

// A push that a client takes slowly arrives whole, and what comes after it stays behind it.
func TestLoopPushHalfWritten(t *testing.T) {
	b := newBench(Config{Crowd: 1, Queue: 64 << 20})
	c := b.dial(t, t.Context())
	conn := b.connOf(t)
	c.send("NOW 0") // the loop has it from now on
	c.expect("*(0)")
	text := strings.Repeat("x", 32<<20)
	if err := push(conn, text); err != nil {
		t.Error(err)
	}
	for { // until the rest of it waits for the client
		conn.mu.Lock()
		done := !conn.writing || conn.place == nil
		conn.mu.Unlock()
		if done {
			break
		}
		runtime.Gosched()
	}
	if err := push(conn, "y"); err != nil {
		t.Error(err)
	}
	c.send("HOT 1")
	if got := c.read(); got != "*(lh.watch "+text+")" {
		t.Fatalf("the first thing has %d bytes", len(got))
	}
	got := []string{c.read(), c.read()}
	slices.Sort(got)
	if !slices.Equal(got, []string{"*(1)", "*(lh.watch y)"}) {
		t.Errorf("then came %q", got)
	}
}

// A connection in a loop ends if somebody else closes it.
func TestLoopClosedByOthers(t *testing.T) {
	b := newBench(Config{Crowd: 1})
	c := b.dial(t, t.Context())
	c.send("NOW 0")
	c.expect("*(0)")
	_ = b.connOf(t).net.Close()
	c.expect("EOF")
	<-c.ended
}

// stall keeps the loop of a bench busy until the returned function is called.
func (b *bench) stall(t *testing.T) (goOn func()) {
	t.Helper()
	c := b.dial(t, t.Context())
	c.send("STALL")
	<-b.stalled
	return func() { b.stalled <- struct{}{} }
}

// What a client sends before it half-closes may come together with the end of it.
func TestLoopEndComesWithTheLastCommand(t *testing.T) {
	b := newBench(Config{Crowd: 1})
	c := b.dial(t, t.Context())
	goOn := b.stall(t)
	c.send("HOT 1")
	_ = c.Conn.(*net.TCPConn).CloseWrite()
	goOn()
	c.expect("*(1)", "EOF")
	<-c.ended
}

// Small commands whose answers are large do not fill the memory with them.
func TestLoopBoundsAnswers(t *testing.T) {
	b := newBench(Config{Crowd: 1})
	var most int
	b.table.add("LARGE", entry{name: "LARGE", builtin: func(c *Conn, _ [][]byte) {
		c.out.Bulk(make([]byte, 10<<10))
		most = max(most, c.out.Len())
	}})
	c := b.dial(t, t.Context())
	const n = 2000
	c.send(slices.Repeat([]string{"NOW 1"}, 100)...) // the buffer grows
	for range 100 {
		c.expect("*(1)")
	}
	go c.send(slices.Repeat([]string{"LARGE"}, n)...)
	for range n {
		if v, err := c.reader.Read(); err != nil || len(v.Text) != 10<<10 {
			t.Fatal(err)
		}
	}
	c.send("QUIT")
	<-c.ended
	if most > fullOutput+20<<10 {
		t.Errorf("%d bytes of answers waited to be written", most)
	}
}

// A client that sends more than is carried out has to wait: what it sent is not all read.
func TestLoopBoundsInput(t *testing.T) {
	b := newBench(Config{Crowd: 1, Pipeline: 10})
	var most int
	b.table.add("SMALL", entry{name: "SMALL", command: &Command{Name: "SMALL", Begin: func(c *Call) {
		most = max(most, c.Conn.in.Buffered())
		c.Done()
	}, Answer: func(_ *Call, w *resp.Writer) { w.OK() }}})
	c := b.dial(t, t.Context())
	const n = 100_000
	go c.send(slices.Repeat([]string{"SMALL"}, n)...)
	for range n {
		c.expect("OK")
	}
	c.send("QUIT")
	<-c.ended
	if most > 128<<10 {
		t.Errorf("%d bytes were read ahead", most)
	}
}

// A command that may have to wait before it can begin keeps no other connection waiting.
func TestLoopLeavesWhatBlocks(t *testing.T) {
	var blocked atomic.Pointer[Conn]
	b := newBench(Config{Crowd: 1, Blocks: func(c *Conn) bool { return c == blocked.Load() }})
	slow := b.dial(t, t.Context())
	blocked.Store(b.connOf(t))
	other := b.dial(t, t.Context())
	slow.send("HOT 1", "STALL", "HOT 2")
	<-b.stalled
	for range 3 {
		other.send("HOT 3", "RUN 4")
		other.expect("*(3)", "*(4)")
	}
	b.stalled <- struct{}{}
	slow.expect("*(1)", "*()", "*(2)")
}

// A batch is bounded however many connections send long pipelines, and each of them has its share of it.
func TestLoopBoundsBatch(t *testing.T) {
	b := newBench(Config{Crowd: 1})
	var clients []*client
	for range 20 {
		clients = append(clients, b.dial(t, t.Context()))
	}
	goOn := b.stall(t)
	const n = 3000
	for _, c := range clients {
		c.send(slices.Repeat([]string{"HOT 1"}, n)...)
	}
	goOn()
	for _, c := range clients {
		for range n {
			c.expect("*(1)")
		}
	}
	b.seen.Lock()
	defer b.seen.Unlock()
	if most := slices.Max(b.submits); most > maxCalls {
		t.Errorf("%d commands were in a batch", most)
	}
}
