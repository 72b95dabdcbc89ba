package client

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	v1 "github.com/leasehold/leasehold/api/v1"
	"github.com/leasehold/leasehold/store/server"
)

// generous is a server that grants everything, to everybody, at once.
type generous struct{ token atomic.Uint64 }

func (g *generous) RoundTrip(r *http.Request) (*http.Response, error) {
	answer, err := g.answer(r)
	if err != nil {
		return nil, err
	}
	body, err := json.Marshal(answer)
	if err != nil {
		return nil, err
	}
	return &http.Response{StatusCode: http.StatusOK, Header: http.Header{}, Body: io.NopCloser(bytes.NewReader(body))}, nil
}

func (g *generous) answer(r *http.Request) (any, error) {
	if strings.HasSuffix(r.URL.Path, "/renew") {
		return v1.Session{RemainingMS: 30000, Interventions: new(uint64)}, nil
	}
	switch r.URL.Path {
	case "/v1/sessions":
		var asked v1.SessionRequest
		err := json.NewDecoder(r.Body).Decode(&asked)
		return v1.Session{ID: asked.ID, RemainingMS: time.Duration(asked.TTL.Duration).Milliseconds(), Interventions: new(uint64)}, err
	case "/v1/acquire":
		var asked v1.AcquireRequest
		err := json.NewDecoder(r.Body).Decode(&asked)
		token := g.token.Add(1)
		return v1.Lease{Resource: asked.Resource, ID: asked.ID, Token: token, Floor: token, Interventions: new(uint64)}, err
	case "/v1/watch":
		<-r.Context().Done()
		return nil, r.Context().Err()
	}
	return v1.Nothing{}, nil
}

// newGenerousClient returns a client of a generous server.
func newGenerousClient(t *testing.T) *Client {
	t.Helper()
	s, err := server.Open(t.Context(), v1.CallerConfig{Client: &http.Client{Transport: &generous{}}})
	if err != nil {
		t.Fatal(err)
	}
	c := newClient(Config{}.complete(), s)
	close(c.watchBegun) // it has no watch that could begin
	c.beginOnce.Do(func() {})
	t.Cleanup(func() { _ = c.Close() })
	return c
}

func allocated() uint64 {
	var m runtime.MemStats
	runtime.GC()
	runtime.GC()
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

// A hold costs little, and no goroutine of its own.
func TestHoldsAreSmall(t *testing.T) {
	const n = 2000
	c := newGenerousClient(t)
	goroutines := runtime.NumGoroutine()
	before := allocated()
	holds := make([]*Hold, n)
	for i := range holds {
		h, err := c.Acquire(t.Context(), fmt.Sprintf("queue/worker-%d", i))
		if err != nil {
			t.Fatal(err)
		}
		holds[i] = h
	}
	bare := (allocated() - before) / n
	for _, h := range holds {
		h.Context()
	}
	each := (allocated() - before) / n
	more := runtime.NumGoroutine() - goroutines
	t.Logf("%d bytes a hold, %d with its context; %d more goroutines, %d sessions", bare, each, more, len(c.sessions))
	if each > 2048 {
		t.Errorf("a hold has %d bytes", each)
	}
	if more > 4 {
		t.Errorf("there are %d more goroutines", more)
	}
	if len(c.sessions) != 1 {
		t.Errorf("there are %d sessions", len(c.sessions))
	}
	for _, h := range holds {
		if err := h.Release(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	runtime.KeepAlive(holds)
}

// What a session cannot take goes to another one of the same TTL.
func TestASecondSessionTakesTheRest(t *testing.T) {
	c := newGenerousClient(t)
	h, err := c.Acquire(t.Context(), "first")
	if err != nil {
		t.Fatal(err)
	}
	for room, want := range []int{2, 1} { // the session has no room, then room for one
		h.session.mu.Lock()
		h.session.acquiring = maxHolds - 1 - room
		h.session.mu.Unlock()
		other, err := c.Acquire(t.Context(), fmt.Sprint("other", room))
		if err != nil {
			t.Fatal(err)
		}
		if got := len(map[*Session]bool{h.session: true, other.session: true}); got != want {
			t.Errorf("room for %d: they are in %d sessions", room, got)
		}
	}
}
