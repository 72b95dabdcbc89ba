package terraform

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/leasehold/leasehold"
	"github.com/leasehold/leasehold/internal/core"
	"github.com/leasehold/leasehold/internal/door"
	"github.com/leasehold/leasehold/internal/engine"
	"github.com/leasehold/leasehold/internal/tfstate"
)

// serve puts the bench behind a real connection, so that a client can leave.
func (b *bench) serve(handler http.Handler) string {
	b.t.Helper()
	s := httptest.NewServer(handler)
	b.t.Cleanup(s.Close)
	return s.URL
}

// A client is a Terraform of which one can count on the retries.
type client struct {
	t    testing.TB
	url  string
	http http.Client
}

func newClient(t testing.TB, url string) *client {
	c := &client{t: t, url: url, http: http.Client{Transport: &http.Transport{DisableKeepAlives: true}}}
	t.Cleanup(c.http.CloseIdleConnections)
	return c
}

// send sends a request again until it gets an answer, as go-retryablehttp does.
func (c *client) send(ctx context.Context, method, target, body string) (status int, text string, err error) {
	for try := 0; ; try++ {
		r, _ := http.NewRequestWithContext(ctx, method, c.url+target, strings.NewReader(body))
		response, failed := c.http.Do(r)
		if failed == nil {
			b, bad := io.ReadAll(response.Body)
			_ = response.Body.Close()
			if bad == nil && response.StatusCode < 500 {
				return response.StatusCode, string(b), nil
			}
			failed = fmt.Errorf("status %d, %v", response.StatusCode, bad)
		}
		if ctx.Err() != nil || try == 100 {
			return 0, "", failed
		}
	}
}

func (c *client) must(method, target, body string) {
	c.t.Helper()
	if status, text, err := c.send(c.t.Context(), method, target, body); err != nil || status != 200 {
		c.t.Fatalf("%s %s: %d %s %v", method, target, status, text, err)
	}
}

// until waits for something that will be.
func until(t testing.TB, what string, is func() bool) {
	t.Helper()
	for end := time.Now().Add(time.Minute); !is(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("it did not come to this: " + what)
		}
	}
}

func TestWaitIsAQueue(t *testing.T) {
	b := newBench(t)
	url := b.serve(b.door)
	c := newClient(t, url)
	c.must("LOCK", "/terraform/s?wait=10m", info("id-0"))
	order := make(chan string, 10)
	var wg sync.WaitGroup
	for i := 1; i <= 5; i++ {
		id := fmt.Sprintf("id-%d", i)
		wg.Go(func() {
			c := newClient(t, url)
			status, text, err := c.send(t.Context(), "LOCK", "/terraform/s?wait=10m", info(id))
			if status != 200 {
				t.Errorf("%s: %d %s %v", id, status, text, err)
			}
			order <- id
			if status, text, err := c.send(t.Context(), "UNLOCK", "/terraform/s", info(id)); status != 200 {
				t.Errorf("%s: %d %s %v", id, status, text, err)
			}
		})
		until(t, "it waits", func() bool { return b.status("s").Waiting == i })
	}
	c.must("UNLOCK", "/terraform/s", info("id-0"))
	wg.Wait()
	for i := 1; i <= 5; i++ {
		if got := <-order; got != fmt.Sprintf("id-%d", i) {
			t.Errorf("place %d has %s", i, got)
		}
	}
}

func TestWaitEnds(t *testing.T) {
	b := newBench(t)
	b.ask("LOCK", "/terraform/s", info("mine")).expect(200)
	// A poller uses the same ID again and again.
	for range 12 {
		b.ask("LOCK", "/terraform/s?wait=1ms", info("other")).expect(423, `"ID":"mine (`)
	}
	if s := b.status("s"); s.Waiting != 0 {
		t.Errorf("%d still wait", s.Waiting)
	}
	b.ask("UNLOCK", "/terraform/s", info("mine")).expect(200)
	b.ask("LOCK", "/terraform/s?wait=1ms", info("other")).expect(200)
	b.ask("UNLOCK", "/terraform/s", info("other")).expect(200)
}

func TestWhoLeavesDoesNotWait(t *testing.T) {
	b := newBench(t)
	c := newClient(t, b.serve(b.door))
	c.must("LOCK", "/terraform/s", info("mine"))
	ctx, leave := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_, _, _ = c.send(ctx, "LOCK", "/terraform/s?wait=10m", info("other"))
	}()
	until(t, "it waits", func() bool { return b.status("s").Waiting == 1 })
	leave()
	<-ended
	until(t, "it does not wait any more", func() bool { return b.status("s").Waiting == 0 })
	// The same ID may ask again: its client was only cut off.
	again := make(chan int)
	go func() {
		status, _, _ := c.send(t.Context(), "LOCK", "/terraform/s?wait=10m", info("other"))
		again <- status
	}()
	until(t, "it waits again", func() bool { return b.status("s").Waiting == 1 })
	c.must("UNLOCK", "/terraform/s", info("mine"))
	if status := <-again; status != 200 {
		t.Errorf("the status is %d", status)
	}
	c.must("POST", "/terraform/s?ID=other", state(1, "L", ""))
	c.must("UNLOCK", "/terraform/s", info("other"))
}

// A request that was left behind must not take from its client what a newer one has got
// for it, whichever of the two is first.
func TestTheRequestLeftBehindTakesNothing(t *testing.T) {
	for round := range 30 {
		b := newBench(t)
		url := b.serve(b.door)
		c := newClient(t, url)
		c.must("LOCK", "/terraform/s", info("mine"))
		old, leave := context.WithCancel(t.Context())
		var wg sync.WaitGroup
		wg.Go(func() { _, _, _ = newClient(t, url).send(old, "LOCK", "/terraform/s?wait=10m", info("other")) })
		until(t, "it waits", func() bool { return b.status("s").Waiting == 1 })
		wg.Go(func() {
			if status, text, err := newClient(t, url).send(t.Context(), "LOCK", "/terraform/s?wait=10m", info("other")); status != 200 {
				t.Errorf("round %d: %d %s %v", round, status, text, err)
			}
		})
		wg.Go(leave)
		wg.Go(func() { c.must("UNLOCK", "/terraform/s", info("mine")) })
		wg.Wait()
		// Whoever was told yes has it, and the one who left will not end it.
		b.ask("POST", "/terraform/s?ID=other", state(1, "L", "")).expect(200)
		s := b.status("s")
		if len(s.Holders) != 1 || lockOf(&s.Holders[0]) != "other" {
			t.Fatalf("round %d: the lock is %+v", round, s)
		}
		b.ask("UNLOCK", "/terraform/s", info("other")).expect(200)
	}
}

func TestStoppingServerSendsWaitersElsewhere(t *testing.T) {
	b := newBench(t)
	backend := door.NewBackend(b.engine, door.Options{})
	door := New(backend, Config{})
	b.ask("LOCK", "/terraform/s", info("mine")).expect(200)
	said := make(chan answer)
	go func() {
		w := httptest.NewRecorder()
		door.ServeHTTP(w, httptest.NewRequest("LOCK", "/terraform/s?wait=10m", strings.NewReader(info("other"))))
		said <- answer{t, w.Code, w.Header(), w.Body.String()}
	}()
	until(t, "it waits", func() bool { return b.status("s").Waiting == 1 })
	backend.State().Stop()
	if a := (<-said).expect(503, "keeps its place"); a.header.Get("Retry-After") != "1" {
		t.Errorf("the answer has %v", a.header)
	}
	if b.status("s").Waiting != 1 {
		t.Error("it lost its place")
	}
	b.ask("UNLOCK", "/terraform/s", info("mine")).expect(200)
	b.ask("LOCK", "/terraform/s", info("other")).expect(200)
}

// A shaky engine cannot tell of every so many commands what became of them, whether it did
// them or not.
type shaky struct {
	engine.Engine
	engine.Values
	n     atomic.Int64
	every int64
	first bool // before it does them, else after
}

func (s *shaky) Do(ctx context.Context, command core.Command) (core.Answer, error) {
	shakes := s.n.Add(1)%s.every == 0
	if shakes && s.first {
		return core.Answer{}, engine.Unavailable("there is no leader")
	}
	answer, err := s.Engine.Do(ctx, command)
	if shakes {
		return core.Answer{}, engine.Undecided("the leader is gone")
	}
	return answer, err
}

func TestUndecidedIsAskedAgain(t *testing.T) {
	for _, first := range []bool{true, false} {
		for every := int64(2); every < 6; every++ {
			synctest.Test(t, func(t *testing.T) { runShakily(t, first, every) })
		}
	}
}

func runShakily(t *testing.T, first bool, every int64) {
	b := newBench(t)
	b.door = newDoor(&shaky{Engine: b.engine, Values: b.engine, every: every, first: first})
	for i := range 10 {
		id := fmt.Sprintf("id-%d", i)
		b.ask("LOCK", "/terraform/s?wait=1m", info(id)).expect(200)
		b.ask("POST", "/terraform/s?ID="+id, state(i, "L", "")).expect(200)
		b.ask("UNLOCK", "/terraform/s", info(id)).expect(200)
	}
	b.ask("GET", "/terraform/s", "").expect(200, `"serial": 9,`)
	b.ask("LOCK", "/terraform/s", info("last")).expect(200)
	b.ask("UNLOCK", "/terraform/s", "").expect(200)
	b.ask("DELETE", "/terraform/s", "").expect(200)
	var page tfstate.Page[tfstate.Version]
	if read(b.ask("GET", "/terraform/s?versions", "").expect(200), &page); len(page.Items) != 10 {
		t.Errorf("10 writes made %d versions", len(page.Items))
	}
}

func TestUnavailableIsSaid(t *testing.T) { synctest.Test(t, unavailableIsSaid) }

func unavailableIsSaid(t *testing.T) {
	b := newBench(t)
	b.door = newDoor(&shaky{Engine: b.engine, Values: b.engine, every: 1, first: true})
	for _, method := range []string{"LOCK", "UNLOCK"} {
		a := b.ask(method, "/terraform/s", info("mine"))
		if method == "LOCK" && (a.status != 503 || a.header.Get("Retry-After") != "1") {
			t.Errorf("%s: %d, %v", method, a.status, a.header)
		}
	}
	if a := b.ask("POST", "/terraform/s", state(1, "L", "")); a.status != 503 || a.header.Get("Retry-After") != "1" {
		t.Errorf("POST: %d, %v", a.status, a.header)
	}
}

// A lossy server does what it is asked, and loses the answers to some requests; or never
// gets the request.
type lossy struct {
	door  http.Handler
	n     atomic.Int64
	loses func(n int64) (before, after bool)
}

func (l *lossy) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	before, after := l.loses(l.n.Add(1))
	if !before && !after {
		l.door.ServeHTTP(w, r)
		return
	}
	if after {
		l.door.ServeHTTP(httptest.NewRecorder(), r)
	}
	if conn, _, err := http.NewResponseController(w).Hijack(); err == nil {
		_ = conn.Close()
	}
}

// The answer to each call of a run is lost in turn, once and twice: there is never an
// orphan, never a second holder, and no state is lost.
func TestLostReplies(t *testing.T) {
	for _, wait := range []string{"", "?wait=1m"} {
		for lost := int64(1); lost <= 6; lost++ {
			for times := int64(1); times <= 2; times++ {
				t.Run(fmt.Sprintf("call %d, %d times%s", lost, times, wait), func(t *testing.T) {
					b := newBench(t)
					c := newClient(t, b.serve(&lossy{door: b.door, loses: func(n int64) (bool, bool) { return false, n >= lost && n < lost+times }}))
					c.must("LOCK", "/terraform/s"+wait, info("mine"))
					c.must("POST", "/terraform/s?ID=mine", state(1, "L", ""))
					c.must("POST", "/terraform/s?ID=mine", state(2, "L", ""))
					c.must("GET", "/terraform/s", "")
					c.must("UNLOCK", "/terraform/s", info("mine"))
					c.must("GET", "/terraform/s", "")
					s := b.status("s")
					if len(s.Holders) != 0 || s.Waiting != 0 || s.Last.How != leasehold.Released || s.Last.Token != 1 {
						t.Errorf("at the end: %+v, last %+v", s, s.Last)
					}
					b.ask("GET", "/terraform/s", "").expect(200, `"serial": 2,`)
				})
			}
		}
	}
}

// Many clients at once add one to a number in the state, each under the lock, by two
// servers, while every third message is lost one way or the other, clients hang up and ask
// again, and the servers often cannot tell what became of a command: no addition is lost.
func TestManyClientsLoseMessages(t *testing.T) {
	b := newBench(t)
	b.ask("POST", "/terraform/s", state(0, "L", "0")).expect(200)
	servers := []http.Handler{
		newDoor(&shaky{Engine: b.engine, Values: b.engine, every: 11, first: true}),
		newDoor(&shaky{Engine: b.engine, Values: b.engine, every: 13}),
	}
	var turn atomic.Int64
	either := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { servers[turn.Add(1)%2].ServeHTTP(w, r) })
	url := b.serve(&lossy{door: either, loses: func(n int64) (bool, bool) { return n%7 == 0, n%5 == 0 }})
	const clients, runs = 6, 5
	var inside atomic.Int64
	var wg sync.WaitGroup
	for i := range clients {
		wg.Go(func() {
			c := newClient(t, url)
			for n := range runs {
				if err := addOne(t.Context(), c, fmt.Sprintf("c%d-%d", i, n), &inside); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	wg.Wait()
	b.ask("GET", "/terraform/s", "").expect(200, fmt.Sprintf(`"serial": %d,`, clients*runs), fmt.Sprintf(`"resources": [%d]`, clients*runs))
	if s := b.status("s"); len(s.Holders) != 0 || s.Waiting != 0 {
		t.Errorf("an orphan: %+v", s)
	}
}

// addOne is one run.
func addOne(ctx context.Context, c *client, id string, inside *atomic.Int64) error {
	impatient, hangUp := context.WithTimeout(ctx, 20*time.Millisecond)
	_, _, _ = c.send(impatient, "LOCK", "/terraform/s?wait=5m", info(id))
	hangUp()
	if status, text, err := c.send(ctx, "LOCK", "/terraform/s?wait=5m", info(id)); status != 200 {
		return fmt.Errorf("%s: lock: %d %s %w", id, status, text, err)
	}
	if inside.Add(1) != 1 {
		return fmt.Errorf("%s: somebody else holds it too", id)
	}
	status, text, err := c.send(ctx, "GET", "/terraform/s", "")
	if status != 200 {
		return fmt.Errorf("%s: read: %d %s %w", id, status, text, err)
	}
	head, err := tfstate.ReadHead(strings.NewReader(text))
	if err != nil {
		return err
	}
	next := state(int(head.Serial)+1, "L", fmt.Sprint(head.Serial+1))
	if status, text, err := c.send(ctx, "POST", "/terraform/s?ID="+id, next); status != 200 {
		return fmt.Errorf("%s: write: %d %s %w", id, status, text, err)
	}
	inside.Add(-1)
	if status, text, err := c.send(ctx, "UNLOCK", "/terraform/s", info(id)); status != 200 {
		return fmt.Errorf("%s: unlock: %d %s %w", id, status, text, err)
	}
	return nil
}

func TestTTLIsExtendedByWrites(t *testing.T) {
	b := newBench(t)
	b.do(&core.Define{Namespace: "default", Definition: leasehold.Definition{Path: "terraform/", DefaultTTL: 30 * time.Minute}})
	b.ask("LOCK", "/terraform/s", info("mine")).expect(200)
	first := b.status("s").Holders[0].Expires
	until(t, "a write extends the lock", func() bool {
		b.ask("POST", "/terraform/s?ID=mine", state(1, "L", "")).expect(200)
		return b.status("s").Holders[0].Expires.After(first)
	})
}

// A state that stops on its way, or is longer or shorter than it says, changes nothing.
func TestBodiesThatStop(t *testing.T) {
	b := newBench(t)
	b.ask("POST", "/terraform/s", state(1, "L", "")).expect(200)
	address := strings.TrimPrefix(b.serve(b.door), "http://")
	next := state(2, "L", `"`+strings.Repeat("x", 200000)+`"`)
	for name, request := range map[string]string{
		"a length that is not reached": fmt.Sprintf("Content-Length: %d\r\n\r\n%s", len(next)+1, next),
		"half of it":                   fmt.Sprintf("Content-Length: %d\r\n\r\n%s", len(next), next[:len(next)/2]),
		"a chunk without an end":       fmt.Sprintf("Transfer-Encoding: chunked\r\n\r\n%x\r\n%s\r\n", len(next), next),
		"half a chunk":                 fmt.Sprintf("Transfer-Encoding: chunked\r\n\r\n%x\r\n%s", len(next), next[:1000]),
		"no chunk":                     "Transfer-Encoding: chunked\r\n\r\nzz\r\n",
		"nothing":                      "Content-Length: 5\r\n\r\n",
	} {
		t.Run(name, func(t *testing.T) {
			conn, err := net.Dial("tcp", address)
			if err != nil {
				t.Fatal(err)
			}
			defer conn.Close()
			_, _ = io.WriteString(conn, "POST /terraform/s HTTP/1.1\r\nHost: x\r\nConnection: close\r\n"+request)
			_ = conn.(*net.TCPConn).CloseWrite()
			said, _ := io.ReadAll(conn)
			if !strings.HasPrefix(string(said), "HTTP/1.1 400") {
				t.Errorf("the answer is %.60q", said)
			}
		})
	}
	b.ask("GET", "/terraform/s", "").expect(200, `"serial": 1,`)
}

// A meddler does something before or after the first command that it looks for.
type meddler struct {
	engine.Engine
	engine.Values
	meddle func(ctx context.Context, command core.Command) (answer core.Answer, did bool, err error)
}

func (m *meddler) Do(ctx context.Context, command core.Command) (core.Answer, error) {
	if answer, did, err := m.meddle(ctx, command); did {
		return answer, err
	}
	return m.Engine.Do(ctx, command)
}

// A force-unlock of which nobody can tell what became of it is tried again. It must not
// hit the one who has got the lock since.
func TestForceUnlockTriedTwiceHitsOnce(t *testing.T) {
	b := newBench(t)
	b.ask("LOCK", "/terraform/s", info("mine")).expect(200)
	said := make(chan answer)
	go func() { said <- b.ask("LOCK", "/terraform/s?wait=10m", info("other")) }()
	until(t, "it waits", func() bool { return b.status("s").Waiting == 1 })
	var once sync.Once
	shaky := &meddler{Engine: b.engine, Values: b.engine}
	shaky.meddle = func(ctx context.Context, command core.Command) (answer core.Answer, did bool, err error) {
		if _, ok := command.(*core.Break); ok {
			once.Do(func() {
				_, _ = b.engine.Do(ctx, command)
				answer, did, err = core.Answer{}, true, engine.Undecided("the leader is gone")
			})
		}
		return answer, did, err
	}
	w := httptest.NewRecorder()
	newDoor(shaky).ServeHTTP(w, httptest.NewRequest("UNLOCK", "/terraform/s", nil))
	if w.Code != 200 {
		t.Errorf("the unlock got %d %s", w.Code, w.Body)
	}
	(<-said).expect(200)
	if s := b.status("s"); len(s.Holders) != 1 || lockOf(&s.Holders[0]) != "other" {
		t.Errorf("who waited has lost the lock again: %+v", s)
	}
}

// Whoever leaves at the very moment of the grant leaves no lock behind.
func TestWhoLeavesAsItIsGrantedHasNothing(t *testing.T) {
	b := newBench(t)
	b.ask("LOCK", "/terraform/s", info("mine")).expect(200)
	ctx, leave := context.WithCancel(t.Context())
	defer leave()
	late := &meddler{Engine: b.engine, Values: b.engine}
	late.meddle = func(ctx context.Context, command core.Command) (core.Answer, bool, error) {
		if _, ok := command.(*core.Change); ok {
			leave()
		}
		return core.Answer{}, false, nil
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		r := httptest.NewRequest("LOCK", "/terraform/s?wait=10m", strings.NewReader(info("other")))
		newDoor(late).ServeHTTP(httptest.NewRecorder(), r.WithContext(ctx))
	}()
	until(t, "it waits", func() bool { return b.status("s").Waiting == 1 })
	b.ask("UNLOCK", "/terraform/s", info("mine")).expect(200)
	<-done
	if s := b.status("s"); len(s.Holders) != 0 || s.Waiting != 0 {
		t.Errorf("an orphan: %+v", s)
	}
	b.ask("LOCK", "/terraform/s", info("other")).expect(200) // it may come back
	b.ask("UNLOCK", "/terraform/s", info("other")).expect(200)
}

// A lock that was waited for, and given back, stays so for who asks again, whatever came
// after it.
func TestUnlockTwiceAfterAWait(t *testing.T) {
	b := newBench(t)
	b.ask("LOCK", "/terraform/s", info("mine")).expect(200)
	said := make(chan answer)
	go func() { said <- b.ask("LOCK", "/terraform/s?wait=10m", info("other")) }()
	until(t, "it waits", func() bool { return b.status("s").Waiting == 1 })
	b.ask("UNLOCK", "/terraform/s", info("mine")).expect(200)
	(<-said).expect(200)
	b.ask("UNLOCK", "/terraform/s", info("other")).expect(200)
	b.ask("LOCK", "/terraform/s", info("third")).expect(200)
	b.ask("UNLOCK", "/terraform/s", info("other")).expect(200)
	b.ask("UNLOCK", "/terraform/s", info("third")).expect(200)
	b.ask("UNLOCK", "/terraform/s", info("other")).expect(200)
	b.ask("LOCK", "/terraform/s", info("other")).expect(409)
}

// The lock is granted to the request left behind after the newer one has looked, so that the
// newer one does not wait at all; only then is what was left behind withdrawn.
func TestALockGrantedAtOnceIsNotTakenBack(t *testing.T) {
	b := newBench(t)
	held := &lateWithdrawal{Engine: b.engine, came: make(chan struct{}), goOn: make(chan struct{})}
	server := httptest.NewServer(newDoor(held))
	defer server.Close()
	b.ask("LOCK", "/terraform/s", info("mine")).expect(200)
	old, leave := context.WithCancel(t.Context())
	defer leave()
	go func() { _, _, _ = newClient(t, server.URL).send(old, "LOCK", "/terraform/s?wait=10m", info("other")) }()
	until(t, "it waits", func() bool { return b.status("s").Waiting == 1 })
	held.beforeAcquire.Store(new(func() {
		leave()
		<-held.came
		b.ask("UNLOCK", "/terraform/s", info("mine")).expect(200)
	}))
	newClient(t, server.URL).must("LOCK", "/terraform/s?wait=10m", info("other"))
	close(held.goOn)
	server.Close() // after the withdrawal
	b.ask("POST", "/terraform/s?ID=other", state(1, "L", "")).expect(200)
	b.ask("UNLOCK", "/terraform/s", info("other")).expect(200)
}

// A lateWithdrawal is an engine to which a withdrawal comes late.
type lateWithdrawal struct {
	engine.Engine
	beforeAcquire atomic.Pointer[func()]
	came, goOn    chan struct{}
}

func (e *lateWithdrawal) Do(ctx context.Context, command core.Command) (core.Answer, error) {
	switch command.(type) {
	case *core.Acquire:
		if before := e.beforeAcquire.Swap(nil); before != nil {
			(*before)()
		}
	case *core.Txn:
		close(e.came)
		<-e.goOn
	}
	return e.Engine.Do(ctx, command)
}
