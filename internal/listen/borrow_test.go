package listen_test

import (
	"bufio"
	"context"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/leasehold/leasehold/internal/door/doortest"
	"github.com/leasehold/leasehold/internal/listen"
)

// A lender is a port at which /long is answered by a request that borrows its connection, and the rest at once.
type lender struct {
	t     *testing.T
	pipe  *doortest.Pipe
	gates *listen.Gates
	stop  context.CancelFunc
	ended chan error

	borrowed *listen.Borrowed // of the last request to /long
	gone     int              // how often its client was seen to leave
}

// lend runs a test at such a port, in virtual time.
func lend(t *testing.T, protocols []*listen.Protocol, run func(t *testing.T, l *lender)) {
	t.Helper()
	lendAt(t, listen.Config{Protocols: protocols}, run)
}

func lendAt(t *testing.T, config listen.Config, run func(t *testing.T, l *lender)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		l := &lender{t: t, pipe: doortest.NewPipe(), gates: &listen.Gates{}, ended: make(chan error, 1)}
		config.Gates = l.gates
		config.HTTP = []listen.HTTP{{Name: "test", Routes: []listen.Route{{Handler: l}}}}
		host := listen.NewHost(config)
		ctx, stop := context.WithCancel(context.Background())
		l.stop = stop
		go func() { l.ended <- host.Serve(ctx, l.pipe) }()
		run(t, l)
		stop()
		if err := <-l.ended; err != nil {
			t.Errorf("the port ended with %v", err)
		}
		l.expect("after the end", 0, l.gone)
	})
}

func (l *lender) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.URL.Path != "/long" {
		_, _ = io.WriteString(w, "at once")
		return
	}
	_, _ = io.WriteString(w, "begun,")
	_ = http.NewResponseController(w).Flush()
	l.borrowed = listen.Borrow(w, r, func() { l.gone++ })
}

// A reader reads answers at the other end of a connection.
type reader struct {
	net.Conn
	*bufio.Reader
}

func (r *reader) Read(p []byte) (int, error) { return r.Reader.Read(p) }

func (l *lender) dial() *reader {
	c, err := l.pipe.Dial(context.Background(), "", "")
	if err != nil {
		l.t.Fatal(err)
	}
	return &reader{c, bufio.NewReader(c)}
}

// get returns the text of a request.
func get(path string) string { return "GET " + path + " HTTP/1.1\r\nHost: x\r\n\r\n" }

func (l *lender) say(c net.Conn, text string) {
	l.t.Helper()
	if _, err := io.WriteString(c, text); err != nil {
		l.t.Error(err) // perhaps on another goroutine, where Fatal may not be called
	}
}

// answer reads the head of an answer, and lets the port do what it does after that.
func (l *lender) answer(r *reader) *http.Response {
	l.t.Helper()
	answer, err := http.ReadResponse(r.Reader, nil)
	if err != nil {
		l.t.Fatal(err)
	}
	synctest.Wait()
	return answer
}

// hear expects the rest of an answer.
func (l *lender) hear(answer *http.Response, want string) {
	l.t.Helper()
	text, err := io.ReadAll(answer.Body)
	if string(text) != want || err != nil {
		l.t.Errorf("the answer is %q, %v, want %q", text, err, want)
	}
}

// expect expects so many connections, and clients that were seen to leave.
func (l *lender) expect(when string, open, gone int) {
	l.t.Helper()
	synctest.Wait()
	if l.gates.Open() != open || l.gone != gone {
		l.t.Errorf("%s there are %d connections, and %d have left; want %d and %d", when, l.gates.Open(), l.gone, open, gone)
	}
}

func TestBorrow(t *testing.T) {
	sorted := []*listen.Protocol{{Name: "other", First: 1, Matches: func(first []byte) bool { return first[0] == '!' }}}
	for name, protocols := range map[string][]*listen.Protocol{"HTTP alone": nil, "with another protocol": sorted} {
		t.Run(name, func(t *testing.T) {
			lend(t, protocols, func(t *testing.T, l *lender) {
				c := l.dial()
				for range 3 { // it is borrowed again and again
					l.say(c, get("/long"))
					long := l.answer(c)
					go func() {
						_ = l.borrowed.Write([]byte("some time"), time.Second)
						_ = l.borrowed.Write([]byte(" later"), time.Second)
						l.borrowed.Return(time.Second)
					}()
					l.hear(long, "begun,some time later")
					l.expect("between two requests", 1, 0)
					time.Sleep(time.Minute)
					l.say(c, get("/"))
					l.hear(l.answer(c), "at once")
				}
				_ = c.Close()
				l.expect("when the client has left", 0, 0)
			})
		})
	}
}

// What the client sends before its answer is complete is answered afterwards: all of it at once, or a byte first.
func TestBorrowKeepsWhatCameEarly(t *testing.T) {
	for name, before := range map[string]string{"with the request": get("/"), "later": ""} {
		t.Run(name, func(t *testing.T) {
			lend(t, nil, func(t *testing.T, l *lender) {
				c := l.dial()
				l.say(c, get("/long")+before)
				long := l.answer(c)
				if before == "" {
					go l.say(c, get("/"))
				}
				synctest.Wait()
				go l.borrowed.Return(time.Second)
				l.hear(long, "begun,")
				l.hear(l.answer(c), "at once")
				_ = c.Close()
				l.expect("at the end", 0, 0)
			})
		})
	}
}

func TestBorrowerLearnsThatTheClientLeft(t *testing.T) {
	for name, early := range map[string][2]string{
		"silently": {}, "after a request with the first": {get("/"), ""}, "after a later request": {"", get("/")},
	} {
		t.Run(name, func(t *testing.T) {
			lend(t, nil, func(t *testing.T, l *lender) {
				c := l.dial()
				l.say(c, get("/long")+early[0])
				l.answer(c)
				go l.say(c, early[1])
				synctest.Wait()
				_ = c.Close()
				l.expect("when the client has left", 1, 1)
				l.borrowed.Return(time.Second)
				l.expect("when the borrower knows", 0, 1)
			})
		})
	}
}

// A client that sends more ahead than is kept for it is answered to the end. Nobody could see it leave, so the borrower
// is told to come to one.
func TestBorrowWithMuchThatCameEarly(t *testing.T) {
	lend(t, nil, func(t *testing.T, l *lender) {
		const n = 500
		c := l.dial()
		for turn := range 2 { // what was given back once is borrowed again
			l.say(c, get("/long"))
			long := l.answer(c)
			go l.say(c, strings.Repeat(get("/"), n))
			l.expect("when much came", 1, turn+1)
			go l.borrowed.Return(time.Second)
			l.hear(long, "begun,")
			for range n {
				l.hear(l.answer(c), "at once")
			}
		}
		time.Sleep(119 * time.Second)
		l.expect("after 119 seconds", 1, 2)
		_ = c.Close()
	})
}

// A connection on which nothing follows is closed after the time that others have, and not before.
func TestBorrowedConnectionRests(t *testing.T) {
	lend(t, nil, func(t *testing.T, l *lender) {
		c := l.dial()
		l.say(c, get("/long"))
		long := l.answer(c)
		go l.borrowed.Return(time.Second)
		l.hear(long, "begun,")
		time.Sleep(119 * time.Second)
		l.expect("after 119 seconds", 1, 0)
		time.Sleep(2 * time.Second)
		l.expect("after 121 seconds", 0, 0)
	})
}

// A long part of an answer is sent in pieces, so that a slow reader costs no second copy of all of it. An empty part
// must not look like the end.
func TestBorrowerWritesInChunks(t *testing.T) {
	lend(t, nil, func(t *testing.T, l *lender) {
		c := l.dial()
		l.say(c, get("/long"))
		l.hearUntil(c, "begun,\r\n")
		text := strings.Repeat("x", 200<<10)
		go func() {
			for _, part := range []string{"", text, "end"} {
				_ = l.borrowed.Write([]byte(part), time.Second)
			}
			l.borrowed.Return(time.Second)
		}()
		var sizes []string
		for len(sizes) == 0 || sizes[len(sizes)-1] != "0" {
			size := strings.TrimSpace(l.hearUntil(c, "\r\n"))
			sizes = append(sizes, size)
			l.hearUntil(c, "\r\n")
		}
		if got := strings.Join(sizes, " "); got != "10000 10000 10000 2000 3 0" {
			t.Errorf("the chunks have the sizes %s", got)
		}
		_ = c.Close()
	})
}

// hearUntil reads until what was read ends with a text.
func (l *lender) hearUntil(r *reader, end string) (text string) {
	l.t.Helper()
	for !strings.HasSuffix(text, end) {
		line, err := r.ReadString('\n')
		if text += line; err != nil {
			l.t.Fatalf("after %q: %v", text, err)
		}
	}
	synctest.Wait()
	return text
}

// Who does not read is cut off.
func TestBorrowerIsNotHeldUp(t *testing.T) {
	lend(t, nil, func(t *testing.T, l *lender) {
		c := l.dial()
		l.say(c, get("/long"))
		l.answer(c)
		began := time.Now()
		if err := l.borrowed.Write([]byte("more"), time.Second); err == nil || time.Since(began) != time.Second {
			t.Errorf("after %v: %v", time.Since(began), err)
		}
		l.borrowed.Close()
		l.expect("after that", 0, 0)
	})
}

// A port that drains waits for answers that are under way, and not for connections that rest.
func TestDrainFinishesBorrowers(t *testing.T) {
	lend(t, nil, func(t *testing.T, l *lender) {
		resting, busy := l.dial(), l.dial()
		l.say(resting, get("/long"))
		long := l.answer(resting)
		go l.borrowed.Return(time.Second)
		l.hear(long, "begun,")
		l.say(busy, get("/long"))
		long = l.answer(busy)
		began := time.Now()
		l.stop()
		time.Sleep(3 * time.Second)
		go func() {
			_ = l.borrowed.Write([]byte("done"), time.Second)
			l.borrowed.Return(time.Second)
		}()
		l.hear(long, "begun,done")
		if err := <-l.ended; err != nil || time.Since(began) >= 4*time.Second {
			t.Errorf("after %v: %v", time.Since(began), err)
		}
		l.ended <- nil
	})
}

// Some connections cannot be borrowed: net/http goes on with them.
func TestWhatIsNotLent(t *testing.T) {
	lend(t, nil, func(t *testing.T, l *lender) {
		for _, request := range []string{
			"GET /long HTTP/1.0\r\n\r\n",
			strings.Replace(get("/long"), "Host: x", "Host: x\r\nConnection: close", 1),
			strings.Replace(get("/long"), "Host: x", "Host: x\r\nContent-Length: 1", 1) + "b",
		} {
			c := l.dial()
			l.say(c, request)
			l.hear(l.answer(c), "begun,")
			if l.borrowed != nil {
				t.Errorf("borrowed after %q", request)
			}
			_ = c.Close()
		}
	})
}

// A request that follows a long answer while the port drains is refused, as on any other connection: closing the
// connection would leave its client in doubt.
func TestDrainRefusesWhatFollowsABorrower(t *testing.T) {
	lendAt(t, listen.Config{Linger: 5 * time.Second}, func(t *testing.T, l *lender) {
		c := l.dial()
		l.say(c, get("/long"))
		long := l.answer(c)
		l.stop()
		synctest.Wait()
		go l.borrowed.Return(time.Second)
		l.hear(long, "begun,")
		l.say(c, get("/"))
		if refused := l.answer(c); refused.StatusCode != http.StatusServiceUnavailable || !refused.Close {
			t.Errorf("the next request is answered by %s, the last one: %t", refused.Status, refused.Close)
		}
	})
}
