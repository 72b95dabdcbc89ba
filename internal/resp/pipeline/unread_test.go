//go:build unix

package pipeline

import (
	"context"
	"net"
	"testing"
	"testing/synctest"
	"time"

	"github.com/leasehold/leasehold/internal/resp"
)

// busyReader is an answer that holds up the goroutine which reads the connection, as a process without a free
// processor does.
type busyReader struct{ entered, leave chan struct{} }

func (b busyReader) Take(*resp.Value) (bool, error) {
	close(b.entered)
	<-b.leave
	return false, nil
}

// Replies that have come and were not read yet are no silence, however long that takes: a new connection would only
// cost a busy process more.
func TestUnreadRepliesAreNotSilence(t *testing.T) {
	c, p := overTCP(t)
	busy := busyReader{make(chan struct{}), make(chan struct{})}
	replies := make(chan error, 2)
	go func() {
		replies <- c.Do(t.Context(), Request{Command: resp.AppendCommand(nil, "a"), Answer: busy})
	}()
	p.next()
	p.say("+a\r\n")
	<-busy.entered
	go func() {
		_, err := ask(t.Context(), c, "b")
		replies <- err
	}()
	p.next()
	// Nothing was heard for a minute, and the look comes in time.
	dead := func() bool {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.watch.patience = testPatience
		c.heard.Store(int64(c.now() - time.Minute))
		c.watch.since, c.watch.at = c.now()-time.Minute, c.now()
		return c.deadLocked()
	}
	if !dead() {
		t.Error("a silent connection is not dead")
	}
	p.say("+b\r\n")
	for !c.hasUnread() { // it is on its way
		time.Sleep(time.Millisecond)
	}
	if dead() {
		t.Error("a connection with an unread reply is dead")
	}
	close(busy.leave)
	for range 2 {
		if err := <-replies; err != nil {
			t.Error(err)
		}
	}
}

// A call ran out of time: the connection is replaced if nothing came on it meanwhile, and kept if others were answered.
func TestOnlySilentConnectionsAreRetired(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var dialled []*peer
		pool := NewPool(PoolConfig{
			Dial: func(context.Context, string, string) (net.Conn, error) {
				ours, theirs := net.Pipe()
				dialled = append(dialled, &peer{Conn: theirs})
				go dialled[len(dialled)-1].echo()
				return ours, nil
			},
			Greeting: func(string) []byte { return resp.AppendCommand(nil, "HELLO") },
			Greeted:  []func(*resp.Value) error{func(*resp.Value) error { return nil }},
			Patience: func(Lane) Patience { return Patience{} },
		})
		get := func(l Lane) *Conn {
			c, err := pool.Get(t.Context(), "", l)
			if err != nil {
				t.Fatal(err)
			}
			return c
		}
		renewals, commands := get(Renewals), get(Commands)
		time.Sleep(time.Second)
		sent := time.Now()
		time.Sleep(time.Second)
		if _, err := ask(t.Context(), renewals, "a"); err != nil {
			t.Fatal(err)
		}
		pool.RetireSilent(sent)
		if get(Renewals) != renewals || get(Commands) != commands {
			t.Error("a connection is replaced although the server answers")
		}
		pool.RetireSilent(time.Now())
		if get(Renewals) == renewals || get(Commands) == commands || len(dialled) != 4 {
			t.Errorf("after silence there are %d connections, with the old ones among them", len(dialled))
		}
		pool.Retire()
		for _, p := range dialled {
			_ = p.Close()
		}
	})
}
