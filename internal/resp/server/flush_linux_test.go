package server

import (
	"net"
	"testing"
	"time"

	"github.com/leasehold/leasehold/internal/resp"
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
	theirs, err := listener.Accept()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _, _ = ours.Close(), theirs.Close() })
	_ = ours.SetDeadline(time.Now().Add(time.Minute))
	l, err := newLoop(b.Server)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.post(nil) })
	raw, err := theirs.(*net.TCPConn).SyscallConn()
	if err != nil {
		t.Fatal(err)
	}
	c := b.open(t.Context(), theirs)
	t.Cleanup(func() { b.close(c) })
	c.place = &place{conn: c, loop: l, raw: raw, left: make(chan struct{})}
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
	go conn.flush()
	if v, err := c.reader.Read(); err != nil || string(v.Text) != string(text) {
		t.Fatalf("the answer is not what was written: %v", err)
	}
	c.expect("*(lh.watch x)")
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
