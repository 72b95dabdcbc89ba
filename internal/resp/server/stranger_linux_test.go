package server

import (
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/leasehold/leasehold/internal/limit"
	"github.com/leasehold/leasehold/internal/resp"
)

// proving is a server with LOGIN, on which strangers share some memory.
func proving(c Config) *bench {
	c.Strangers = &limit.Budget{Most: 256 << 10, Alone: 192 << 10}
	c.Costly = func(*Conn) error { return errors.New("log in first") }
	c.Commands = append(c.Commands, &Command{Name: "LOGIN", Run: func(call *Call, w *resp.Writer) {
		call.Conn.Proven()
		w.OK()
	}})
	return newBench(c)
}

// Strangers share a bounded amount of memory for commands that are not whole; who is proven is not limited by it, and
// what ends gives back what it has taken.
func TestStrangersShareMemory(t *testing.T) {
	for name, crowd := range map[string]int{"alone": -1, "in the loop": 1} {
		t.Run(name, func(t *testing.T) {
			b := proving(Config{Crowd: crowd})
			shared := b.config.Strangers
			known := b.dial(t, t.Context())
			known.send("LOGIN")
			known.expect("OK")
			var strangers []*client
			for refused := false; !refused; {
				c := b.dial(t, t.Context())
				strangers = append(strangers, c)
				go func() { // it may be refused on the way
					_, _ = io.WriteString(c, "*2\r\n$4\r\nECHO\r\n$1000000\r\n"+strings.Repeat("x", 50<<10))
				}()
				if len(strangers) > 20 {
					t.Fatal("nobody is refused")
				}
				_ = c.SetReadDeadline(time.Now().Add(100 * time.Millisecond))
				v, err := c.reader.Read()
				refused = err == nil && strings.Contains(string(v.Text), "log in with a shorter command")
			}
			if n := shared.Now(); n > shared.Most {
				t.Errorf("strangers have %d bytes, of at most %d", n, shared.Most)
			}
			large := strings.Repeat("y", 500<<10)
			go known.send("ECHO " + large)
			known.expect(large)
			for _, c := range strangers {
				_ = c.Close()
				<-c.ended
			}
			if n := shared.Now(); n != 0 {
				t.Errorf("%d bytes are taken after all have left", n)
			}
		})
	}
}

// Strangers get no long answers.
func TestStrangersGetNoLongAnswers(t *testing.T) {
	b := proving(Config{})
	c := b.dial(t, t.Context())
	for _, command := range []string{"COMMAND", "COMMAND DOCS", "COMMAND DOCS PING", "COMMAND INFO PING"} {
		c.send(command)
		c.expect("-ERR log in first")
	}
	c.send("LOGIN")
	c.expect("OK")
	if got := c.ask("COMMAND DOCS PING"); !strings.Contains(got, "As in Redis.") {
		t.Errorf("who has logged in is told %q", got)
	}
	got := c.ask("COMMAND INFO" + strings.Repeat(" PING", 1000))
	if !strings.HasPrefix(got, "-ERR 1000 commands are named") {
		t.Errorf("an answer is long: %.100q", got)
	}
}

// A connection on which nothing was proven ends when nothing comes on it; any other stays.
func TestStrangersDoNotStay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := proving(Config{})
		stranger, known := b.start(t, t.Context()), b.start(t, t.Context())
		if stranger.ask("PING") != "PONG" || known.ask("LOGIN") != "OK" {
			t.Fatal("they are not answered")
		}
		time.Sleep(3 * time.Minute)
		if got := stranger.read(); got != "EOF" {
			t.Errorf("a stranger is told %q", got)
		}
		if got := known.ask("PING"); got != "PONG" {
			t.Errorf("who has logged in is told %q", got)
		}
	})
}

// What one connection has sent ahead is carried out in several turns of the loop: others do not wait for all of it.
func TestOneTurnIsBounded(t *testing.T) {
	b := newBench(Config{Crowd: -1})
	l := &loop{server: b.Server, round: b.newRound()}
	ours, theirs := net.Pipe()
	defer ours.Close()
	c := b.open(t.Context(), theirs)
	defer b.close(c)
	c.place = &place{conn: c, loop: l}
	for command, most := range map[string]int{"*1\r\n$4\r\nPING\r\n": 16, "*2\r\n$7\r\nCOMMAND\r\n$4\r\nDOCS\r\n": 1} {
		c.in = resp.Input{}
		n := copy(c.in.Space(), strings.Repeat(command, 100))
		c.in.Filled(n - n%len(command))
		c.out.Reset(nil)
		c.place.why = pauseFull
		before := b.commands.Load()
		l.begin(c, 16)
		if n := b.commands.Load() - before; n > int64(most)+1 || c.place.why != pauseFull {
			t.Errorf("%q: %d commands are carried out in one turn, want %d", command, n, most)
		}
	}
	c.place = nil
}

// A stranger in the loop has no more memory than one that is alone: neither for short commands, which have it without
// asking, nor for the buffers of answers that are sent.
func TestStrangersInTheLoop(t *testing.T) {
	b := proving(Config{Crowd: 1})
	known, stranger := b.dial(t, t.Context()), b.dial(t, t.Context())
	known.send("LOGIN")
	known.expect("OK")
	for range 2 * visit { // until it is in the loop again
		known.send("PING")
		known.expect("PONG")
	}
	for range 5 { // its buffer grows, and is left to the loop
		large := strings.Repeat("y", 60<<10)
		go known.send("ECHO "+large, "ECHO "+large)
		known.expect(large, large)
	}
	known.send("PING")
	known.expect("PONG")
	shared := b.config.Strangers
	for n := shared.Most; n > 0; {
		if !shared.Take(fmt.Sprint(n), n) { // by others like it
			n /= 2
		}
	}
	stranger.send("PING")
	stranger.expect("PONG")
	_ = stranger.Close()
	<-stranger.ended
}

func TestStrangersKeepNoLongAnswers(t *testing.T) {
	b := proving(Config{Crowd: 1})
	c := b.dial(t, t.Context())
	go c.send(slices.Repeat([]string{"COMMAND LIST"}, 1000)...)
	for range 1000 {
		c.read()
	}
	b.mu.Lock()
	conn := slices.Collect(maps.Keys(b.conns))[0]
	b.mu.Unlock()
	_ = c.Close()
	<-c.ended
	if n := cap(conn.out.Bytes()); n > strangerFree {
		t.Errorf("it has a buffer of %d bytes", n)
	}
}
