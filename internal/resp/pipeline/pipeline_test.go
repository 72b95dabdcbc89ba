package pipeline

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/leasehold/leasehold/internal/resp"
)

// A peer is the server's end of a connection.
type peer struct {
	net.Conn
	in resp.Input
}

// next returns the next command, as one text; empty: there is none.
func (p *peer) next() string {
	for {
		args, err := p.in.Next()
		if err != nil {
			return ""
		}
		if args != nil {
			text := string(bytes.Join(args, []byte(" ")))
			p.in.Release()
			return text
		}
		n, err := p.Read(p.in.Space())
		if p.in.Filled(n); err != nil {
			return ""
		}
	}
}

func (p *peer) say(text string) { _, _ = p.Write([]byte(text)) }

// echo answers each command with itself, until the connection ends.
func (p *peer) echo() {
	for c := p.next(); c != ""; c = p.next() {
		p.say(fmt.Sprintf("+%s\r\n", c))
	}
}

// reply is an Answer that keeps a text.
type reply struct {
	text  string
	waits bool // "wait" announces a push
	err   error
}

func (r *reply) Take(v *resp.Value) (bool, error) {
	if r.waits && string(v.Text) == "wait" {
		return true, nil
	}
	r.text = string(v.Text)
	return false, r.err
}

var testPatience = Patience{After: 2 * time.Second, Within: time.Second}

// bubble runs a test on a connection in virtual time: one that its first caller reads, and one that a goroutine reads.
func bubble(t *testing.T, config Config, test func(t *testing.T, c *Conn, p *peer)) {
	t.Helper()
	for _, by := range []string{"caller", "goroutine"} {
		t.Run("read by a "+by, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ours, theirs := net.Pipe()
				c, p := New(ours, config), &peer{Conn: theirs}
				c.Start()
				if by == "goroutine" {
					c.mu.Lock()
					c.readAgainLocked()
					c.mu.Unlock()
				}
				defer theirs.Close()
				defer c.Close()
				test(t, c, p)
			})
		})
	}
}

func ask(ctx context.Context, c *Conn, command string) (string, error) {
	var r reply
	err := c.Do(ctx, Request{Command: resp.AppendCommand(nil, command), Answer: &r})
	return r.text, err
}

// wasSent reports how a command without a reply ended.
func wasSent(t *testing.T, err error) bool {
	t.Helper()
	var lost *LostError
	if !errors.As(err, &lost) {
		t.Fatalf("the error is %v", err)
	}
	return lost.Sent
}

func TestManyShareAConnection(t *testing.T) {
	bubble(t, Config{MaxCalls: 7}, func(t *testing.T, c *Conn, p *peer) {
		go p.echo()
		var wg sync.WaitGroup
		for i := range 50 {
			wg.Go(func() {
				for n := range 20 {
					want := fmt.Sprint(i, ".", n)
					if got, err := ask(t.Context(), c, want); got != want || err != nil {
						t.Errorf("%s is answered by %q, %v", want, got, err)
					}
				}
			})
		}
		wg.Wait()
	})
}

// A write takes all that came while the one before was under way.
func TestWritesAreGathered(t *testing.T) {
	bubble(t, Config{}, func(t *testing.T, c *Conn, p *peer) {
		var wg sync.WaitGroup
		for i := range 20 {
			wg.Go(func() { _, _ = ask(t.Context(), c, fmt.Sprint(i)) })
		}
		synctest.Wait() // the writer is stuck with the first: nobody reads
		buffer, reads, commands := make([]byte, 64<<10), 0, 0
		for commands < 20 {
			n, err := p.Read(buffer)
			if err != nil {
				t.Fatal(err)
			}
			reads++
			commands += bytes.Count(buffer[:n], []byte("*1"))
		}
		if reads > 2 {
			t.Errorf("20 commands came in %d writes", reads)
		}
		p.say(strings.Repeat("+OK\r\n", 20))
		wg.Wait()
	})
}

// A caller that gives up gets no answer, and the others get theirs.
func TestACallerGivesUp(t *testing.T) {
	bubble(t, Config{}, func(t *testing.T, c *Conn, p *peer) {
		first, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		go func() {
			p.next()
			p.next()
			time.Sleep(5 * time.Second)
			p.say("+late\r\n+in time\r\n")
			p.echo()
		}()
		var wg sync.WaitGroup
		wg.Go(func() {
			if text, err := ask(first, c, "first"); text != "" || !errors.Is(err, context.DeadlineExceeded) || !wasSent(t, err) {
				t.Errorf("the first gets %q, %v", text, err)
			}
		})
		synctest.Wait()
		if text, err := ask(t.Context(), c, "second"); text != "in time" || err != nil {
			t.Errorf("the second gets %q, %v", text, err)
		}
		wg.Wait()
		if text, err := ask(t.Context(), c, "third"); text != "third" || err != nil {
			t.Errorf("the third gets %q, %v", text, err)
		}
	})
}

// The connection is cut: after a command, within a reply, and within a command.
func TestACutConnection(t *testing.T) {
	for name, cut := range map[string]func(p *peer){
		"after the command":  func(p *peer) { p.next() },
		"within the reply":   func(p *peer) { p.next(); p.say("$10\r\nabc") },
		"within the command": func(p *peer) { _, _ = p.Read(make([]byte, 5)) },
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, Config{}, func(t *testing.T, c *Conn, p *peer) {
				go func() {
					cut(p)
					time.Sleep(time.Second)
					p.Close()
				}()
				var wg sync.WaitGroup
				wg.Go(func() {
					if _, err := ask(t.Context(), c, "first"); !wasSent(t, err) {
						t.Error("the command counts as not sent")
					}
				})
				synctest.Wait()
				if name == "within the command" {
					// The writer is stuck with the first, and nothing of this one has left.
					if _, err := ask(t.Context(), c, "second"); wasSent(t, err) {
						t.Error("a command that was never written counts as sent")
					}
				}
				wg.Wait()
				if _, err := ask(t.Context(), c, "third"); wasSent(t, err) || c.Usable() {
					t.Error("a closed connection takes commands")
				}
			})
		})
	}
}

// Nothing comes on a connection: all its calls fail within its patience, however many were answered before.
func TestASilentConnection(t *testing.T) {
	bubble(t, Config{Patience: testPatience, Idle: time.Minute}, func(t *testing.T, c *Conn, p *peer) {
		go func() {
			for range 3 {
				p.say(fmt.Sprintf("+%s\r\n", p.next()))
			}
			for p.next() != "" { // it reads and says nothing
			}
		}()
		for range 3 {
			time.Sleep(10 * time.Second) // unused, it is left alone
			if _, err := ask(t.Context(), c, "a"); err != nil {
				t.Fatal(err)
			}
		}
		began := time.Now()
		_, err := ask(t.Context(), c, "b")
		if took := time.Since(began); !errors.Is(err, ErrSilent) || !wasSent(t, err) || took > 3*time.Second+time.Millisecond {
			t.Errorf("after %v: %v", took, err)
		}
	})
}

// A process that was paused finds its replies, and not that they came too late.
func TestAPauseIsNotSilence(t *testing.T) {
	bubble(t, Config{Patience: testPatience}, func(t *testing.T, c *Conn, p *peer) {
		go func() {
			p.next()
			time.Sleep(2900 * time.Millisecond)
			p.say("+slow\r\n")
		}()
		c.mu.Lock()
		c.watch.at -= time.Minute // the look comes late
		c.watch.since -= time.Minute
		c.mu.Unlock()
		if text, err := ask(t.Context(), c, "a"); text != "slow" || err != nil {
			t.Errorf("%q, %v", text, err)
		}
	})
}

func TestPushes(t *testing.T) {
	bubble(t, Config{Patience: testPatience, Idle: time.Minute}, func(t *testing.T, c *Conn, p *peer) {
		pings := 0
		go func() {
			for command := p.next(); command != ""; command = p.next() {
				switch command {
				case "PING":
					if pings++; pings == 40 {
						p.say(">3\r\n+lh.acquire\r\n$1\r\nx\r\n+for nobody\r\n")
						p.say(">3\r\n+lh.acquire\r\n$1\r\na\r\n+granted\r\n")
					}
					p.say("+PONG\r\n")
				default:
					p.say("+wait\r\n")
				}
			}
		}()
		wait := func(ctx context.Context, tag string) (string, error) {
			r := reply{waits: true}
			err := c.Do(ctx, Request{Command: resp.AppendCommand(nil, "wait"), Answer: &r, Tag: tag})
			return r.text, err
		}
		short, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		go func() {
			if _, err := wait(short, "x"); !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("given up: %v", err)
			}
		}()
		if text, err := wait(t.Context(), "a"); text != "granted" || err != nil {
			t.Errorf("pushed: %q, %v", text, err)
		}
		if pings < 40 {
			t.Errorf("%d pings", pings)
		}
	})
}

// A wait alone notices that its connection is dead.
func TestASilentWait(t *testing.T) {
	bubble(t, Config{Patience: testPatience}, func(t *testing.T, c *Conn, p *peer) {
		go func() {
			p.next()
			p.say("+wait\r\n")
			for p.next() != "" {
			}
		}()
		began := time.Now()
		err := c.Do(t.Context(), Request{Command: resp.AppendCommand(nil, "wait"), Answer: &reply{waits: true}, Tag: "a"})
		if took := time.Since(began); !errors.Is(err, ErrSilent) || !wasSent(t, err) || took > 5*time.Second {
			t.Errorf("after %v: %v", took, err)
		}
	})
}

func TestRepliesOutOfStep(t *testing.T) {
	bubble(t, Config{}, func(t *testing.T, c *Conn, p *peer) {
		go func() { p.next(); p.next() }()
		var wg sync.WaitGroup
		wg.Go(func() {
			r := reply{err: fmt.Errorf("%w: about another", ErrOutOfStep)}
			if err := c.Do(t.Context(), Request{Command: resp.AppendCommand(nil, "a"), Answer: &r}); !errors.Is(err, ErrOutOfStep) {
				t.Errorf("the first: %v", err)
			}
		})
		synctest.Wait()
		wg.Go(func() {
			if _, err := ask(t.Context(), c, "b"); !errors.Is(err, ErrOutOfStep) || !wasSent(t, err) {
				t.Errorf("the second: %v", err)
			}
		})
		synctest.Wait()
		p.say("+of somebody else\r\n")
		wg.Wait()
	})
	bubble(t, Config{}, func(t *testing.T, c *Conn, p *peer) {
		p.say("+nobody asked\r\n")
		synctest.Wait()
		if c.Usable() {
			t.Error("a reply that nobody asked for is ignored")
		}
	})
}

// A connection that is retired goes on for those who wait, and one that nobody uses ends.
func TestTheEndOfAConnection(t *testing.T) {
	bubble(t, Config{}, func(t *testing.T, c *Conn, p *peer) {
		go func() {
			p.next()
			time.Sleep(time.Second)
			p.say("+done\r\n")
		}()
		time.AfterFunc(time.Millisecond, c.Retire)
		if text, err := ask(t.Context(), c, "a"); text != "done" || err != nil {
			t.Errorf("%q, %v", text, err)
		}
		if _, err := ask(t.Context(), c, "b"); wasSent(t, err) {
			t.Error("it takes commands")
		}
	})
	bubble(t, Config{Idle: time.Minute, Patience: testPatience}, func(t *testing.T, c *Conn, p *peer) {
		go p.echo()
		for range 10 {
			time.Sleep(40 * time.Second)
			if _, err := ask(t.Context(), c, "a"); err != nil {
				t.Fatal(err)
			}
		}
		time.Sleep(2 * time.Minute)
		if c.Usable() {
			t.Error("it stays for ever")
		}
	})
}

// Room for commands is bounded: further ones wait, and say that nothing happened if they give up.
func TestAFullConnection(t *testing.T) {
	bubble(t, Config{MaxCalls: 2}, func(t *testing.T, c *Conn, p *peer) {
		go func() {
			p.next()
			p.next()
			time.Sleep(time.Minute)
			p.say("+OK\r\n+OK\r\n")
			p.echo()
		}()
		var wg sync.WaitGroup
		for range 2 {
			wg.Go(func() { _, _ = ask(t.Context(), c, "a") })
		}
		synctest.Wait()
		short, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, err := ask(short, c, "b"); wasSent(t, err) {
			t.Error("a command without room counts as sent")
		}
		if text, err := ask(t.Context(), c, "c"); text != "c" || err != nil {
			t.Errorf("%q, %v", text, err)
		}
		wg.Wait()
	})
}

func TestGreetings(t *testing.T) {
	for answer, want := range map[string]error{
		"+OK\r\n":                          nil,
		"HTTP/1.1 400 Bad Request\r\n\r\n": ErrNotRESP,
		"\x15\x03\x01\x00\x02\x02\x16":     ErrNotRESP,
		"-NOAUTH who are you\r\n":          errGreeting,
	} {
		synctest.Test(t, func(t *testing.T) {
			ours, theirs := net.Pipe()
			c, p := New(ours, Config{}), &peer{Conn: theirs}
			defer c.Close()
			defer p.Close()
			go func() { p.next(); p.say(answer) }()
			err := c.Greet(time.Second, resp.AppendCommand(nil, "HELLO"), func(v *resp.Value) error {
				if v.Kind == resp.Error {
					return errGreeting
				}
				return nil
			})
			if !errors.Is(err, want) {
				t.Errorf("%q: %v, want %v", answer, err, want)
			}
		})
	}
}

var errGreeting = errors.New("refused")
