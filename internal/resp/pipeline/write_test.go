package pipeline

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"sync"
	"testing"
	"time"

	"github.com/leasehold/leasehold/internal/limit"
	"github.com/leasehold/leasehold/internal/resp"
)

// overTCP returns both ends of a connection on which callers that are alone write themselves.
func overTCP(t *testing.T) (*Conn, *peer) {
	t.Helper()
	ours, theirs := pair(t)
	c := New(ours, Config{})
	c.Start()
	t.Cleanup(c.Close)
	return c, &peer{Conn: theirs}
}

// pair returns both ends of a TCP connection.
func pair(t *testing.T) (ours, theirs net.Conn) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	if ours, err = net.Dial("tcp", l.Addr().String()); err != nil {
		t.Fatal(err)
	}
	if theirs, err = l.Accept(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ours.Close()
		theirs.Close()
	})
	return ours, theirs
}

func TestOneAndManyTakeTurnsAtWriting(t *testing.T) {
	c, p := overTCP(t)
	go p.echo()
	for round := range 200 {
		var wg sync.WaitGroup
		for i := range 1 + round%4 {
			wg.Go(func() {
				want := fmt.Sprint(round, ".", i)
				if got, err := ask(t.Context(), c, want); got != want || err != nil {
					t.Errorf("%s is answered by %q, %v", want, got, err)
				}
			})
		}
		wg.Wait()
	}
}

// A caller that writes itself is not held up by a server that does not read, and what it could not write comes
// whole later.
func TestACallerThatWritesDoesNotWaitForRoom(t *testing.T) {
	c, p := overTCP(t)
	large := bytes.Repeat([]byte("x"), 1<<20)
	for range 4 { // more than the kernel takes, and not more than may be queued
		ctx := limit.After(t.Context(), 20*time.Millisecond)
		err := c.Do(ctx, Request{Command: resp.AppendCommand(nil, "a", string(large)), Answer: &reply{}})
		if !errors.Is(err, context.DeadlineExceeded) {
			t.Fatalf("it ends with %v", err)
		}
	}
	p.in.Limits.Bytes = 2 << 20
	go func() {
		for text := p.next(); text != ""; text = p.next() {
			p.say(fmt.Sprintf("+%d\r\n", len(text)))
		}
	}()
	var r reply
	if err := c.Do(t.Context(), Request{Command: resp.AppendCommand(nil, "last"), Answer: &r}); err != nil || r.text != "4" {
		t.Errorf("then the answer is %q, %v", r.text, err)
	}
}

func TestACallerThatWritesSeesThatTheConnectionIsGone(t *testing.T) {
	c, p := overTCP(t)
	_ = p.Close()
	for {
		if _, err := ask(t.Context(), c, "a"); !c.Usable() {
			if wasSent(t, err); errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("it ends with %v", err)
			}
			return
		}
	}
}
