package doortest

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/leasehold/leasehold"
	"github.com/leasehold/leasehold/internal/audit"
	"github.com/leasehold/leasehold/internal/door"
	"github.com/leasehold/leasehold/internal/metric"
)

// A check is one promise of every door.
type check struct {
	name  string
	waits bool // only doors whose clients can wait keep it
	run   func(t testing.TB, a *Adapter)
}

var checks = []check{
	{"starting", false, starting},
	{"draining", false, draining},
	{"draining ends waits", true, drainingEndsWaits},
	{"any server", false, anyServer},
	{"no leader", false, noLeader},
	{"no leader ends waits", true, noLeaderEndsWaits},
	{"undecided, and done", false, undecidedAndDone},
	{"undecided, and not done", false, undecidedAndNotDone},
	{"limits", true, limits},
	{"bad bytes", false, badBytes},
	{"waits", true, waits},
	{"a client that leaves", true, leaving},
	{"denied goes to the journal", false, denied},
	{"metrics", false, metrics},
}

// Run holds a door to the contract: to all of it, or, if its clients cannot wait, to what is
// not about waiting.
func Run(t *testing.T, a *Adapter) {
	for _, c := range checks {
		if c.waits && !a.Waits {
			continue
		}
		t.Run(c.name, func(t *testing.T) { synctest.Test(t, func(t *testing.T) { c.run(t, a) }) })
	}
}

// with runs a check on one server.
func with(t testing.TB, a *Adapter, options door.Options, run func(*server)) {
	t.Helper()
	e := newEngine(t, a)
	defer finish(t, e)
	s := start(t, a, e, options)
	defer s.end()
	run(s)
}

func finish(t testing.TB, e *Engine) {
	t.Helper()
	if err := e.Check(); err != nil {
		t.Errorf("the state contradicts itself: %v", err)
	}
	_ = e.Close()
}

// A server that is starting says so, in the protocol's own words, and answers once it is open.
func starting(t testing.TB, a *Adapter) {
	s := start(t, a, nil, door.Options{})
	defer s.end()
	c := s.dial()
	if got := s.expect(c, "ann", leasehold.Unavailable); !strings.Contains(got.Text, "starting") {
		t.Errorf("the answer does not say that the server is starting: %s", got.Text)
	}
	s.engine = newEngine(t, a)
	defer finish(t, s.engine)
	s.openWhileAsked()
	s.expect(c, "ann", 0)
}

// openWhileAsked opens the server among requests, of which each is answered as before it or as
// after it. What a door touches too early, the race detector finds.
func (s *server) openWhileAsked() {
	const clients = 8
	begun, ended := make(chan struct{}, clients), make(chan wait, clients)
	for range clients {
		c := s.dial()
		go func() {
			for got := (wait{Answer: Answer{Code: leasehold.Unavailable}}); ; {
				if got.Code != leasehold.Unavailable || got.err != nil {
					ended <- got
					return
				}
				got.Answer, got.err = c.Acquire(context.Background(), "ann", 0)
				select {
				case begun <- struct{}{}:
				default:
				}
			}
		}()
	}
	<-begun
	s.backend.Open(s.engine)
	for range clients {
		if got := <-ended; got.err != nil || got.Code != 0 {
			s.t.Errorf("acquire was answered %v when the server had opened: %s %v", codeName(got.Code), got.Text,
				got.err)
		}
	}
}

// A server that drains still answers on connections that it has, and sends clients elsewhere.
func draining(t testing.TB, a *Adapter) {
	with(t, a, door.Options{}, func(s *server) {
		c := s.dial()
		s.expect(c, "ann", 0)
		s.stop()
		synctest.Wait()
		if got := s.expect(c, "bob", leasehold.Unavailable); !strings.Contains(got.Text, "stopping") {
			t.Errorf("the answer does not say that the server is stopping: %s", got.Text)
		}
		if n := len(s.status().Holders); n != 1 {
			t.Errorf("%d hold the resource after the server was stopped", n)
		}
	})
}

// A server that drains lets nobody wait: another one can go on with it.
func drainingEndsWaits(t testing.TB, a *Adapter) {
	with(t, a, door.Options{}, func(s *server) {
		c := s.dial()
		s.expect(c, "ann", 0)
		waiting := s.wait(context.Background(), s.dial(), "bob")
		s.stop()
		if got := s.within(waiting, linger); got.err != nil || got.Code != leasehold.Unavailable {
			t.Errorf("the wait ended with %v, want unavailable: %s %v", codeName(got.Code), got.Text, got.err)
		}
	})
}

// Any server answers any request: a door keeps nothing to itself.
func anyServer(t testing.TB, a *Adapter) {
	e := newEngine(t, a)
	defer finish(t, e)
	one, other := start(t, a, e, door.Options{}), start(t, a, e, door.Options{})
	defer one.end()
	defer other.end()
	here, there := one.dial(), other.dial()
	one.expect(here, "ann", 0)
	other.expect(there, "bob", leasehold.Held)
	other.expect(there, "ann", 0)
	other.release(there, "ann")
	one.expect(here, "bob", 0)
}

// Without a leader nothing happens, the client is told in time, and later it goes on.
func noLeader(t testing.TB, a *Adapter) {
	with(t, a, door.Options{}, func(s *server) {
		c := s.dial()
		s.expect(c, "ann", 0)
		s.engine.down.Store(true)
		began := time.Now()
		s.expect(c, "bob", leasehold.Unavailable)
		if took := time.Since(began); took > 10*time.Second {
			t.Errorf("it took %v to say that there is no leader", took)
		}
		s.engine.down.Store(false)
		s.expect(c, "bob", leasehold.Held)
	})
}

// Where access is on, a wait at a server that hears of no leader ends within a second: nobody can know whose right is
// gone. What it leaves behind is in nobody's way.
func noLeaderEndsWaits(t testing.TB, a *Adapter) {
	with(t, a, door.Options{}, func(s *server) {
		s.govern()
		ann := s.dial()
		s.expect(ann, "ann", 0)
		c := s.dial()
		waiting := s.wait(context.Background(), c, "bob")
		time.Sleep(time.Minute)
		s.engine.down.Store(true)
		got := s.within(waiting, time.Second+time.Millisecond) // else it may be a draw
		if got.err != nil || got.Code != a.Undecided && got.Code != leasehold.Unavailable {
			t.Errorf("the wait ended with %v, want unavailable: %s %v", codeName(got.Code), got.Text, got.err)
		}
		s.engine.down.Store(false)
		time.Sleep(time.Second)
		waiting = s.wait(context.Background(), c, "bob")
		if n := s.status().Waiting; n != 1 {
			t.Errorf("%d wait, want 1", n)
		}
		s.release(ann, "ann")
		if got := s.within(waiting, time.Second); got.err != nil || got.Code != 0 {
			t.Errorf("the wait ended with %v: %s %v", codeName(got.Code), got.Text, got.err)
		}
	})
}

// What happened although nobody could tell is not done twice, and not lost.
func undecidedAndDone(t testing.TB, a *Adapter) {
	with(t, a, door.Options{}, func(s *server) {
		c := s.dial()
		s.engine.undecided.Store(1)
		got, err := c.Acquire(context.Background(), "ann", 0)
		if err != nil || got.Code != 0 && got.Code != a.Undecided {
			t.Errorf("it was answered %v, want granted or %v: %s %v", codeName(got.Code), a.Undecided, got.Text, err)
		}
		s.expect(c, "ann", 0)
		s.expect(s.dial(), "bob", leasehold.Held)
		if n := len(s.status().Holders); n != 1 {
			t.Errorf("%d hold the resource", n)
		}
		s.engine.undecided.Store(1)
		got, err = c.Release(context.Background(), "ann")
		if err != nil || got.Code != 0 && got.Code != a.Undecided {
			t.Errorf("the release was answered %v: %s %v", codeName(got.Code), got.Text, err)
		}
		if got.Code != 0 {
			s.release(c, "ann")
		}
		s.expect(c, "bob", 0)
	})
}

// A client that cannot be told whether something happened is told that, and may ask again.
func undecidedAndNotDone(t testing.TB, a *Adapter) {
	with(t, a, door.Options{}, func(s *server) {
		c := s.dial()
		s.engine.lost.Store(true)
		s.expect(c, "ann", a.Undecided)
		s.engine.lost.Store(false)
		s.expect(c, "ann", 0)
	})
}

// Only so many requests may wait at a time; one more is refused at once, and room is given back.
func limits(t testing.TB, a *Adapter) {
	with(t, a, door.Options{MaxStay: 1}, func(s *server) {
		ann := s.dial()
		s.expect(ann, "ann", 0)
		ctx, leave := context.WithCancel(context.Background())
		first := s.wait(ctx, s.dial(), "bob")
		if got := s.within(s.wait(context.Background(), s.dial(), "eve"), time.Second); got.Code != leasehold.Limited {
			t.Errorf("one too many was answered %v, want limited: %s %v", codeName(got.Code), got.Text, got.err)
		}
		leave()
		<-first
		time.Sleep(time.Second)
		next := s.wait(context.Background(), s.dial(), "dan")
		s.release(ann, "ann")
		if got := s.within(next, time.Second); got.err != nil || got.Code != 0 {
			t.Errorf("after room was made, a wait was answered %v: %s %v", codeName(got.Code), got.Text, got.err)
		}
	})
}

// nonsense is what every door has to survive.
var nonsense = []string{
	"", // says nothing
	"\x00",
	"\x00\x01\x02\x03\xff\xfe\r\n\r\n",
	"GET / HTTP/9.9\r\n\r\n",
	"GET /\x00 HTTP/1.1\r\nHost: x\r\n\r\n",
	"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: -1\r\n\r\n",
	"\x16\x03\x01\x00\x05hello",
	"*1\r\n$-5\r\n",
	strings.Repeat("a", 100<<10),
}

// Bytes that are nothing are answered or cut off, and disturb nobody else.
func badBytes(t testing.TB, a *Adapter) {
	with(t, a, door.Options{}, func(s *server) {
		c := s.dial()
		s.expect(c, "ann", 0)
		for _, bad := range append(nonsense, a.Bad...) {
			if err := s.send(bad); errors.Is(err, os.ErrDeadlineExceeded) {
				t.Errorf("%.40q is neither answered nor cut off within a minute", bad)
			}
		}
		s.expect(c, "bob", leasehold.Held)
	})
}

// send writes bytes on a connection, and waits until the server answers or closes it.
func (s *server) send(bad string) error {
	c, err := s.pipe.Dial(context.Background(), "", "")
	if err != nil {
		return err
	}
	defer c.Close()
	_ = c.SetDeadline(time.Now().Add(time.Minute))
	go func() { _, _ = io.WriteString(c, bad) }()
	_, err = c.Read(make([]byte, 1))
	return err
}

// A wait is answered when the resource is free, however long that takes.
func waits(t testing.TB, a *Adapter) {
	with(t, a, door.Options{}, func(s *server) {
		ann := s.dial()
		s.expect(ann, "ann", 0)
		waiting := s.wait(context.Background(), s.dial(), "bob")
		time.Sleep(30 * time.Minute)
		synctest.Wait()
		if n := s.status().Waiting; n != 1 {
			t.Fatalf("%d wait after half an hour, want 1", n)
		}
		s.release(ann, "ann")
		if got := s.within(waiting, time.Second); got.err != nil || got.Code != 0 {
			t.Errorf("the wait ended with %v: %s %v", codeName(got.Code), got.Text, got.err)
		}
	})
}

// A client that leaves while it waits gives up its place.
func leaving(t testing.TB, a *Adapter) {
	with(t, a, door.Options{}, func(s *server) {
		ann := s.dial()
		s.expect(ann, "ann", 0)
		ctx, leave := context.WithCancel(context.Background())
		waiting := s.wait(ctx, s.dial(), "bob")
		if n := s.status().Waiting; n != 1 {
			t.Fatalf("%d wait, want 1", n)
		}
		leave()
		<-waiting
		time.Sleep(20 * time.Second) // longer than a waiter lives without a sign of life
		synctest.Wait()
		if n := s.status().Waiting; n != 0 {
			t.Errorf("%d still wait", n)
		}
		s.release(ann, "ann")
		if state := s.status().State; state != leasehold.Available {
			t.Errorf("the resource is %v after its holder gave it back", state)
		}
	})
}

// Who asked without right is refused, and is in the journal with the door's name.
func denied(t testing.TB, a *Adapter) {
	with(t, a, door.Options{}, func(s *server) {
		got, err := s.dial().Intrude(context.Background())
		if err != nil || got.Code != leasehold.Denied {
			t.Errorf("it was answered %v, want denied: %s %v", codeName(got.Code), got.Text, err)
		}
		page, err := s.engine.Journal().Find(context.Background(),
			audit.Query{Kind: audit.Operation, Namespace: leasehold.DefaultNamespace, Limit: 10})
		if err != nil {
			t.Fatal(err)
		}
		for _, line := range page.Lines {
			if line.Outcome == leasehold.Denied.String() && line.Door == a.Name && line.Address != "" {
				return
			}
		}
		t.Errorf("the journal has no refusal by %s with an address: %+v", a.Name, page.Lines)
	})
}

// Requests are counted by door, verb and code, and timed by verb.
func metrics(t testing.TB, a *Adapter) {
	with(t, a, door.Options{}, func(s *server) {
		c := s.dial()
		s.expect(c, "ann", 0)
		s.expect(c, "bob", leasehold.Held)
		if _, err := c.Intrude(context.Background()); err != nil {
			t.Error(err)
		}
		w := httptest.NewRecorder()
		s.backend.Metrics().Handler().ServeHTTP(w, httptest.NewRequest("GET", "/metrics", nil))
		text := w.Body.String()
		for _, code := range []string{"ok", leasehold.Held.String(), leasehold.Denied.String()} {
			if !counted(text, fmt.Sprintf(`%s{code=%q,door=%q,`, metric.Requests.Name, code, a.Name)) {
				t.Errorf("no request of %s was counted as %s", a.Name, code)
			}
		}
		if !counted(text, metric.RequestSeconds.Name+"_count{") {
			t.Errorf("no request was timed")
		}
	})
}

// counted reports whether a line that begins so has another number than zero.
func counted(metrics, prefix string) bool {
	for line := range strings.Lines(metrics) {
		if strings.HasPrefix(line, prefix) && !strings.HasSuffix(strings.TrimSpace(line), " 0") {
			return true
		}
	}
	return false
}

// within returns what a wait came to, and fails if it goes on.
func (s *server) within(waiting <-chan wait, d time.Duration) wait {
	s.t.Helper()
	select {
	case got := <-waiting:
		return got
	case <-time.After(d):
		s.t.Fatalf("a wait goes on after %v", d)
	}
	return wait{}
}
