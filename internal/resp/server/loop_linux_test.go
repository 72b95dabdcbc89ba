package server

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/leasehold/leasehold/internal/resp"
	"github.com/leasehold/leasehold/internal/socket"
)

// dial connects to a server by TCP. The connection is in the loop when dial returns.
func (b *bench) dial(t testing.TB, ctx context.Context) *client {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	ours, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	accepted, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	theirs := socket.New(accepted)
	c := &client{t: t, Conn: ours, reader: resp.NewReader(ours), ended: make(chan struct{})}
	go func() {
		defer close(c.ended)
		defer theirs.Close()
		b.Serve(ctx, theirs)
	}()
	t.Cleanup(func() {
		_ = ours.Close()
		<-c.ended
	})
	_ = ours.SetDeadline(time.Now().Add(time.Minute))
	c.send("PING")
	c.expect("PONG")
	return c
}

func TestLoop(t *testing.T) {
	b := newBench(Config{Crowd: 1})
	c := b.dial(t, t.Context())
	for range 3 {
		c.send("HOT 1", "PING", "HOT 2", "HOT 3", "RUN 4", "NOPE", "HOT 6", "NOUN RUN 7", "PING 8")
		c.expect("*(1)", "PONG", "*(2)", "*(3)", "*(4)", "-ERR unknown command 'NOPE', with args beginning with: ",
			"*(6)", "*(7)", "8")
	}
	c.sendBytes("*2\r\n$3\r\nHOT\r\n$1")
	c.sendBytes("\r\n9\r\n")
	c.expect("*(9)")
	if c.ask("QUIT") != "OK" || c.read() != "EOF" {
		t.Error("it goes on after QUIT")
	}
	<-c.ended
	if b.loop != nil {
		t.Error("the loop goes on without connections")
	}
}

func TestLoopLongPipeline(t *testing.T) {
	b := newBench(Config{Crowd: 1, Pipeline: 10})
	c := b.dial(t, t.Context())
	var commands []string
	for i := range 5000 {
		commands = append(commands, fmt.Sprint("HOT ", i))
	}
	go c.send(commands...)
	for i := range 5000 {
		c.expect(fmt.Sprintf("*(%d)", i))
	}
}

// Many connections at once each get their own answers.
func TestLoopMany(t *testing.T) {
	b := newBench(Config{Crowd: 1})
	var all sync.WaitGroup
	for i := range 50 {
		c := b.dial(t, t.Context())
		all.Go(func() {
			for j := range 20 {
				text := fmt.Sprint(i, "-", j)
				c.send("HOT "+text, "RUN "+text, "HOT "+text)
				c.expect("*("+text+")", "*("+text+")", "*("+text+")")
			}
		})
	}
	all.Wait()
}

// A command that waits, or a batch that takes long, keeps nobody else waiting.
func TestLoopGoesOn(t *testing.T) {
	b := newBench(Config{Crowd: 1})
	b.gate = make(chan struct{})
	waiting, busy, other := b.dial(t, t.Context()), b.dial(t, t.Context()), b.dial(t, t.Context())
	waiting.send("WAIT")
	conn := (<-b.started).Conn
	busy.send("HOT 1", "RUN 2")
	for range 3 {
		other.send("PING", "RUN 1")
		other.expect("PONG", "*(1)")
	}
	if err := push(conn, "x"); err != nil {
		t.Error(err)
	}
	waiting.expect("*(lh.watch x)")
	waiting.send("PING 3")
	b.finish <- "yes"
	waiting.expect("yes", "3")
	b.gate <- struct{}{}
	busy.expect("*(1)", "*(2)")
	busy.send("PING")
	busy.expect("PONG")
	if err := push(conn, "y"); err != nil {
		t.Error(err)
	}
	waiting.expect("*(lh.watch y)")
	// Who leaves while a command waits is noticed.
	waiting.send("WAIT")
	<-b.started
	_ = waiting.Close()
	<-waiting.ended
}

// A Submit that takes long keeps nobody else waiting, either: it may carry everything out itself.
func TestLoopGoesOnDuringSubmit(t *testing.T) {
	b := newBench(Config{Crowd: 1})
	b.inSubmit = make(chan struct{})
	busy, other := b.dial(t, t.Context()), b.dial(t, t.Context())
	for range 3 {
		busy.send("HOT 1", "RUN 2", "HOT 3")
		<-b.inSubmit // it has begun
		for range 3 {
			other.send("PING", "RUN 1")
			other.expect("PONG", "*(1)")
		}
		b.inSubmit <- struct{}{}
		busy.expect("*(1)", "*(2)")
		<-b.inSubmit
		b.inSubmit <- struct{}{}
		busy.expect("*(3)")
	}
}

// A batch that takes long does not cost its connections their places in the loop.
func TestLoopKeepsThoseOfALateBatch(t *testing.T) {
	b := newBench(Config{Crowd: 1})
	b.inSubmit = make(chan struct{})
	places := func() map[*Conn]*place {
		b.mu.Lock()
		defer b.mu.Unlock()
		all := map[*Conn]*place{}
		for c := range b.conns {
			c.mu.Lock()
			all[c] = c.place
			c.mu.Unlock()
		}
		return all
	}
	busy, other := b.dial(t, t.Context()), b.dial(t, t.Context())
	for _, c := range []*client{busy, other} {
		c.send("NOW 0")
		c.expect("*(0)")
	}
	before := places()
	for range 3 {
		busy.send("HOT 1")
		<-b.inSubmit
		other.send("NOW 2")
		other.expect("*(2)")
		busy.send("NOW 3") // which the loop hears of while it does not have the connection
		b.inSubmit <- struct{}{}
		busy.expect("*(1)", "*(3)")
	}
	if after := places(); !maps.Equal(before, after) {
		t.Errorf("the places were %v, and are %v", before, after)
	}
}

// Answers that a client takes slowly all arrive, and keep nobody waiting.
func TestLoopHalfWritten(t *testing.T) {
	b := newBench(Config{Crowd: 1})
	slow, other := b.dial(t, t.Context()), b.dial(t, t.Context())
	text := bytes.Repeat([]byte("x"), 900<<10)
	const n = 30
	go func() {
		for range n {
			_, _ = slow.Write(resp.AppendBulk(resp.AppendBulk(resp.AppendArray(nil, 2), "ECHO"), text))
		}
	}()
	for range 20 {
		other.send("PING")
		other.expect("PONG")
	}
	for i := range n {
		v, err := slow.reader.Read()
		if err != nil || !bytes.Equal(v.Text, text) {
			t.Fatalf("answer %d: %v", i, err)
		}
	}
	slow.send("PING")
	slow.expect("PONG")
}

func TestLoopEnds(t *testing.T) {
	b := newBench(Config{Crowd: 1, Linger: 100 * time.Millisecond})
	ctx, drain := context.WithCancel(context.Background())
	closed, bad, drained, waiting := b.dial(t, ctx), b.dial(t, ctx), b.dial(t, ctx), b.dial(t, ctx)
	closed.send("WAIT")
	(<-b.started).Conn.Close()
	closed.expect("EOF")
	<-closed.ended
	bad.sendBytes("*1\r\n$4\r\nPING\r\nGET / HTTP/1.1\r\n" + strings.Repeat("x", 100_000))
	bad.expect("PONG", "-ERR Protocol error: expected '*', got 'G'", "EOF")
	_ = bad.Close()
	<-bad.ended
	waiting.send("WAIT")
	<-b.started
	drain()
	got := drained.ask("HOT 1")
	for got == "*(1)" { // it has not heard of it yet
		got = drained.ask("HOT 1")
	}
	if !strings.HasPrefix(got, "-LOADING") {
		t.Error(got)
	}
	drained.expect("EOF")
	_ = drained.Close()
	<-drained.ended
	b.finish <- "late"
	waiting.expect("late")
	if rest, err := io.ReadAll(waiting); err != nil || len(rest) > 0 {
		t.Errorf("%q, %v", rest, err)
	}
}

// A client that half-closes still gets its answers.
func TestLoopHalfClosed(t *testing.T) {
	b := newBench(Config{Crowd: 1})
	c := b.dial(t, t.Context())
	c.send("HOT 1", "RUN 2", "HOT 3")
	_ = c.Conn.(*net.TCPConn).CloseWrite()
	c.expect("*(1)", "*(2)", "*(3)", "EOF")
	<-c.ended
}

// Connections enter the loop when there are many, and leave it when there are few.
func TestLoopCrowd(t *testing.T) {
	b := newBench(Config{Crowd: 4})
	inLoop := func() int {
		b.mu.Lock()
		defer b.mu.Unlock()
		return b.inLoop
	}
	var clients []*client
	for range 6 {
		clients = append(clients, b.dial(t, t.Context()))
	}
	all := func(clients []*client) {
		for range 3 {
			for _, c := range clients {
				c.send("HOT 1", "NOW 2")
				c.expect("*(1)", "*(2)")
			}
		}
	}
	all(clients)
	for deadline := time.Now().Add(10 * time.Second); inLoop() != 6 && time.Now().Before(deadline); {
		all(clients)
	}
	if got := inLoop(); got != 6 {
		t.Errorf("%d of 6 are in the loop", got)
	}
	for _, c := range clients[1:] {
		_ = c.Close()
		<-c.ended
	}
	for deadline := time.Now().Add(10 * time.Second); inLoop() != 0 && time.Now().Before(deadline); {
		all(clients[:1])
	}
	if got := inLoop(); got != 0 {
		t.Errorf("%d of 1 are in the loop", got)
	}
	all(clients[:1])
}

// A command that panics ends its connection, and no other.
func TestLoopPanic(t *testing.T) {
	oops := func(*Call) { panic("oops") }
	late := func(*Call, *resp.Writer) { panic("late") }
	for name, k := range map[string]*Command{
		"begin":  {Name: "OOPS", Begin: oops},
		"answer": {Name: "OOPS", Begin: (*Call).Done, Answer: late},
		"run":    {Name: "OOPS", Run: late},
	} {
		for _, crowd := range []int{1, -1} {
			var log strings.Builder
			b := newBench(Config{Crowd: crowd, Commands: []*Command{k}, Log: slog.New(slog.NewTextHandler(&log, nil))})
			other, c := b.dial(t, t.Context()), b.dial(t, t.Context())
			c.send("HOT 1", "OOPS", "HOT 2")
			_, _ = io.Copy(io.Discard, c)
			<-c.ended
			for range 3 {
				other.send("HOT 1", "RUN 2")
				other.expect("*(1)", "*(2)")
			}
			if !strings.Contains(log.String(), "a command panicked") {
				t.Errorf("%s: the log has %q", name, log.String())
			}
		}
	}
}
