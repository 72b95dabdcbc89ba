package pipeline

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http/httptest"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/leasehold/leasehold/internal/limit"
	"github.com/leasehold/leasehold/internal/resp"
)

// readBy returns who reads a connection.
func readBy(c *Conn) string {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case !c.reading:
		return "nobody"
	case c.alone != nil:
		return "a caller"
	}
	return "a goroutine"
}

// A caller that is alone reads its own reply. If others come meanwhile, it leaves theirs to a goroutine, which ends once
// a caller is alone again.
func TestWhoReads(t *testing.T) {
	bubble(t, Config{}, func(t *testing.T, c *Conn, p *peer) {
		expect := func(when, who string) {
			t.Helper()
			synctest.Wait()
			if by := readBy(c); by != who {
				t.Errorf("%s, it is read by %s", when, by)
			}
		}
		go func() {
			p.say(fmt.Sprintf("+%s\r\n", p.next()))
		}()
		_, _ = ask(t.Context(), c, "zero") // from here on both begin alike
		expect("at rest", "nobody")
		var wg sync.WaitGroup
		for _, command := range []string{"a", "b", "c"} {
			wg.Go(func() {
				if got, err := ask(t.Context(), c, command); got != command || err != nil {
					t.Errorf("%s is answered by %q, %v", command, got, err)
				}
			})
			synctest.Wait()
			if got := p.next(); got != command {
				t.Errorf("%q is sent", got)
			}
		}
		expect("with three callers", "a caller")
		p.say("+a\r\n")
		expect("with two callers", "a goroutine")
		p.say("+b\r\n+c\r\n")
		wg.Wait()
		go p.echo()
		_, _ = ask(t.Context(), c, "d")
		expect("after one caller", "nobody")
	})
}

// A caller that reads and gives up leaves the connection as it is, in the midst of a reply too.
func TestAReaderGivesUp(t *testing.T) {
	for name, limited := range map[string]func(ctx context.Context) (context.Context, error){
		"time limit": func(ctx context.Context) (context.Context, error) {
			return limit.After(ctx, time.Second), context.DeadlineExceeded
		},
		"context": func(ctx context.Context) (context.Context, error) {
			ctx, cancel := context.WithCancel(ctx)
			time.AfterFunc(time.Second, cancel)
			return ctx, context.Canceled
		},
		"second context": func(ctx context.Context) (context.Context, error) {
			also, cancel := context.WithCancel(context.Background())
			time.AfterFunc(time.Second, cancel)
			return limit.Both(ctx, also), context.Canceled
		},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, Config{Patience: testPatience}, func(t *testing.T, c *Conn, p *peer) {
				go func() {
					p.next()
					p.say("$10\r\n01234")
					time.Sleep(2 * time.Second)
					p.say("56789\r\n")
					p.echo()
				}()
				ctx, want := limited(t.Context())
				began := time.Now()
				_, err := ask(ctx, c, "a")
				if took := time.Since(began); !wasSent(t, err) || !errors.Is(err, want) || took != time.Second {
					t.Errorf("after %v: %v", took, err)
				}
				for _, command := range []string{"b", "c"} {
					if got, err := ask(t.Context(), c, command); got != command || err != nil {
						t.Errorf("then %s is answered by %q, %v", command, got, err)
					}
				}
			})
		})
	}
}

// Contexts of earlier callers do not concern later ones, and those that callers have in common count for each.
func TestContextsOfReaders(t *testing.T) {
	bubble(t, Config{}, func(t *testing.T, c *Conn, p *peer) {
		go func() {
			for range 3 {
				p.say(fmt.Sprintf("+%s\r\n", p.next()))
			}
			p.next()
			time.Sleep(time.Second)
			p.say("+late\r\n")
			p.next()
		}()
		earlier, end := context.WithCancel(t.Context())
		for range 3 {
			if _, err := ask(earlier, c, "a"); err != nil {
				t.Fatal(err)
			}
		}
		time.AfterFunc(time.Millisecond, end)
		if got, err := ask(t.Context(), c, "b"); got != "late" || err != nil {
			t.Errorf("the context of another ended, and %q is the answer, %v", got, err)
		}
		shared, end := context.WithCancel(t.Context())
		time.AfterFunc(time.Second, end)
		if _, err := ask(shared, c, "c"); !errors.Is(err, context.Canceled) {
			t.Errorf("its own context ended: %v", err)
		}
	})
}

// A connection that nobody reads is read again soon, so that its end is noticed.
func TestAnIdleConnectionIsRead(t *testing.T) {
	bubble(t, Config{Patience: testPatience}, func(t *testing.T, c *Conn, p *peer) {
		go p.echo()
		for range 3 {
			if _, err := ask(t.Context(), c, "a"); err != nil {
				t.Fatal(err)
			}
			synctest.Wait()
			if by := readBy(c); by != "nobody" {
				t.Errorf("after a call it is read by %s", by)
			}
			time.Sleep(3 * restLook)
			if by := readBy(c); by != "a goroutine" {
				t.Errorf("unused, it is read by %s", by)
			}
		}
		_ = p.Close()
		synctest.Wait()
		if c.Usable() {
			t.Error("its end is not noticed")
		}
	})
}

// A command is not sent over a connection that the server has closed, although nobody reads it.
func TestAClosedSocketTakesNoCommand(t *testing.T) {
	c, p := overTCP(t)
	go func() {
		p.say(fmt.Sprintf("+%s\r\n", p.next()))
		_ = p.Close()
	}()
	if _, err := ask(t.Context(), c, "a"); err != nil {
		t.Fatal(err)
	}
	c.mu.Lock()
	for c.socket.look() != socketClosed { // until the kernel knows
		time.Sleep(time.Millisecond)
	}
	c.heard.Store(int64(-time.Second))
	c.mu.Unlock()
	if _, err := ask(t.Context(), c, "b"); wasSent(t, err) || c.Usable() {
		t.Errorf("the error is %v", err)
	}
}

// A wait reads its own grant, and the replies of others until then.
func TestAWaitReads(t *testing.T) {
	bubble(t, Config{Patience: testPatience}, func(t *testing.T, c *Conn, p *peer) {
		go func() {
			p.next()
			p.say("+wait\r\n")
			for range 3 {
				p.say(fmt.Sprintf("+%s\r\n", p.next()))
			}
			p.say(">3\r\n+lh.acquire\r\n$1\r\na\r\n+granted\r\n")
		}()
		var wg sync.WaitGroup
		wg.Go(func() {
			r := reply{waits: true}
			err := c.Do(t.Context(), Request{Command: resp.AppendCommand(nil, "wait"), Answer: &r, Tag: "a"})
			if r.text != "granted" || err != nil {
				t.Errorf("the wait ends with %q, %v", r.text, err)
			}
		})
		synctest.Wait()
		for _, command := range []string{"b", "c", "d"} {
			if got, err := ask(t.Context(), c, command); got != command || err != nil {
				t.Errorf("%s is answered by %q, %v", command, got, err)
			}
		}
		wg.Wait()
	})
}

// A caller that gives up in the midst of a TLS record leaves the connection as it is, too.
func TestAReaderOfTLSGivesUp(t *testing.T) {
	withCertificate := httptest.NewTLSServer(nil)
	defer withCertificate.Close()
	ours, theirs := pair(t)
	cut := &cutter{Conn: theirs}
	secure := tls.Client(ours, &tls.Config{InsecureSkipVerify: true}) //nolint:gosec // there is nobody between
	p := &peer{Conn: tls.Server(cut, &tls.Config{Certificates: withCertificate.TLS.Certificates})}
	given := make(chan struct{})
	go func() {
		p.next()
		cut.half = true
		p.say("+late\r\n")
		<-given
		cut.half = false
		_, _ = theirs.Write(cut.rest)
		p.echo()
	}()
	if err := secure.HandshakeContext(t.Context()); err != nil {
		t.Fatal(err)
	}
	c := New(secure, Config{})
	c.Start()
	defer c.Close()
	if _, err := ask(limit.After(t.Context(), 20*time.Millisecond), c, "a"); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("it ends with %v", err)
	}
	close(given)
	for _, command := range []string{"b", "c"} {
		if got, err := ask(t.Context(), c, command); got != command || err != nil {
			t.Errorf("then %s is answered by %q, %v", command, got, err)
		}
	}
}

// A cutter holds back the second half of what is written.
type cutter struct {
	net.Conn
	half bool
	rest []byte
}

func (c *cutter) Write(b []byte) (int, error) {
	if !c.half {
		return c.Conn.Write(b)
	}
	c.rest = append([]byte(nil), b[len(b)/2:]...)
	if _, err := c.Conn.Write(b[:len(b)/2]); err != nil {
		return 0, err
	}
	return len(b), nil
}
