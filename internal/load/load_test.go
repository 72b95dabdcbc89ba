package load

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/leasehold/leasehold"
	v1 "github.com/leasehold/leasehold/api/v1"
	"github.com/leasehold/leasehold/internal/door"
	"github.com/leasehold/leasehold/internal/door/native"
	"github.com/leasehold/leasehold/internal/engine"
	"github.com/leasehold/leasehold/internal/engine/memory"
)

// startServer serves from memory until the test ends. Before puts something in
// front of it, or is nil.
func startServer(t *testing.T, before func(http.ResponseWriter, *http.Request) bool) string {
	t.Helper()
	e := memory.Start(engine.NewGoClock())
	port := door.MustHost(e, door.HostConfig{}, native.Kind)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = port.Serve(ctx, listener)
	}()
	t.Cleanup(func() {
		cancel()
		<-ended
		if err := errors.Join(e.Check(), e.Close()); err != nil {
			t.Error(err)
		}
	})
	url := "http://" + listener.Addr().String()
	if before == nil {
		return url
	}
	return inFront(t, url, before)
}

// inFront answers some requests itself and hands on the others.
func inFront(t *testing.T, url string, before func(http.ResponseWriter, *http.Request) bool) string {
	t.Helper()
	front := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if before(w, r) {
			return
		}
		request, err := http.NewRequestWithContext(r.Context(), r.Method, url+r.URL.RequestURI(), r.Body)
		if err != nil {
			t.Error(err)
			return
		}
		request.Header = r.Header
		response, err := http.DefaultTransport.RoundTrip(request)
		if err != nil {
			w.WriteHeader(http.StatusBadGateway)
			return
		}
		defer response.Body.Close()
		w.Header().Set("Content-Type", response.Header.Get("Content-Type"))
		w.WriteHeader(response.StatusCode)
		_, _ = io.Copy(w, response.Body) // whoever is gone needs no answer
	}))
	t.Cleanup(front.Close)
	return front.URL
}

// runUntil runs an operation until its progress is enough: no test depends on how
// fast the machine is.
func runUntil(t *testing.T, config Config, operation string, enough func(Progress) bool) (Result, *Runner) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	config.Namespace, config.Holder, config.Duration, config.Every = "bench", "tester", time.Hour, time.Millisecond
	config.Progress = func(p Progress) {
		if p.Operation != operation {
			t.Errorf("progress of %q while %s runs", p.Operation, operation)
		}
		if enough(p) {
			cancel()
		}
	}
	if err := config.Check(operation); err != nil {
		t.Fatal(err)
	}
	r, err := New(config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(r.Close)
	return r.Run(ctx, operation), r
}

func hundred(p Progress) bool { return p.Phase == Measuring && p.Count >= 100 }

// wantNothingHeld looks at what the server has when a run is over.
func wantNothingHeld(t *testing.T, server string) {
	t.Helper()
	c, err := v1.NewCaller(v1.CallerConfig{Server: server, Namespace: "bench"})
	if err != nil {
		t.Fatal(err)
	}
	defer c.CloseIdle()
	for r, err := range c.Resources(t.Context(), v1.ResourceQuery{}) {
		if err != nil {
			t.Fatal(err)
		}
		t.Errorf("%s was left behind: held by %d, %d waiting", r.Resource, len(r.Holders), r.Waiting)
	}
}

func TestEachOperationIsMeasuredAndLeavesNothing(t *testing.T) {
	for _, c := range []struct {
		operation                    string
		clients, leases, leasesThere int
	}{
		{Cycle, 1, 1, 1}, {Cycle, 3, 10, 10}, {Cycle, 2, 0, 1000},
		{Renew, 1, 1, 1}, {Renew, 3, 10, 10},
		{Handover, 2, 0, 1}, {Handover, 7, 2, 2}, {Handover, 8, 100, 4},
	} {
		server := startServer(t, nil)
		got, r := runUntil(t, Config{Servers: []string{server}, Clients: c.clients, Leases: c.leases}, c.operation, hundred)
		if got.Errors != 0 || got.First != nil || got.Left != 0 {
			t.Errorf("%+v: %d errors, the first: %v; %d left", c, got.Errors, got.First, got.Left)
		}
		if got.Operation != c.operation || got.Leases != c.leasesThere || got.Count < 100 || got.Measured <= 0 || got.Rate <= 0 {
			t.Errorf("%+v: the result is %+v", c, got)
		}
		if got.P50 <= 0 || got.P50 > got.P90 || got.P90 > got.P99 || got.P99 > got.P999 || got.P999 > got.Max {
			t.Errorf("%+v: the percentiles are not in order: %+v", c, got.Figures)
		}
		if !strings.HasPrefix(r.Prefix(), "bench/") || !strings.HasSuffix(r.Prefix(), "/") {
			t.Errorf("the prefix is %q", r.Prefix())
		}
		wantNothingHeld(t, server)
	}
}

// A run that is over by time, and one runner for all operations.
func TestTheTimeIsOver(t *testing.T) {
	server := startServer(t, nil)
	r, err := New(Config{Servers: []string{server}, Namespace: "bench", Holder: "tester", Clients: 4, WarmUp: time.Millisecond, Duration: 20 * time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	if err := r.Reach(t.Context()); err != nil {
		t.Fatal(err)
	}
	for _, operation := range Operations {
		if got := r.Run(t.Context(), operation); got.Errors != 0 || got.Measured < 20*time.Millisecond {
			t.Errorf("%+v", got)
		}
	}
	wantNothingHeld(t, server)
}

// Somebody loses patience while the leases are being acquired, or before anything
// counts: there is nothing to show, and nothing stays.
func TestEndedBeforeItBegan(t *testing.T) {
	server := startServer(t, nil)
	got, _ := runUntil(t, Config{Servers: []string{server}, Clients: 2, Leases: 100000}, Renew, func(p Progress) bool { return p.Phase == Acquiring && p.Done > 10 })
	if got.Count != 0 || got.Measured != 0 || got.Errors != 0 || got.Left != 0 {
		t.Errorf("%+v", got)
	}
	got, _ = runUntil(t, Config{Servers: []string{server}, Clients: 2, WarmUp: time.Hour}, Handover, func(p Progress) bool { return p.Phase == WarmingUp })
	if got.Count != 0 || got.Measured != 0 || got.Errors != 0 {
		t.Errorf("%+v", got)
	}
	wantNothingHeld(t, server)
}

// What goes wrong is counted, and the first of it kept; the rest goes on.
func TestErrorsAreCounted(t *testing.T) {
	for _, operation := range Operations {
		var n atomic.Int64
		server := startServer(t, func(w http.ResponseWriter, r *http.Request) bool {
			verb := map[string]string{Cycle: "/v1/release", Renew: "/v1/renew", Handover: "/v1/acquire"}[operation]
			if r.URL.Path != verb || n.Add(1) != 5 {
				return false
			}
			w.WriteHeader(http.StatusServiceUnavailable)
			return true
		})
		got, _ := runUntil(t, Config{Servers: []string{server}, Clients: 4, Leases: 4}, operation, hundred)
		if got.Errors != 1 || !errors.Is(got.First, leasehold.ErrUnavailable) || got.Count < 100 {
			t.Errorf("%s: %d errors, the first: %v; count %d", operation, got.Errors, got.First, got.Count)
		}
		wantNothingHeld(t, server)
	}
}

// A lease that somebody broke is lost once, and clients that have none left are
// done before the time is over.
func TestALostLeaseIsOneError(t *testing.T) {
	server := startServer(t, nil)
	c, err := v1.NewCaller(v1.CallerConfig{Server: server, Namespace: "bench"})
	if err != nil {
		t.Fatal(err)
	}
	defer c.CloseIdle()
	broken := false
	got, _ := runUntil(t, Config{Servers: []string{server}, Clients: 1, Leases: 1}, Renew, func(p Progress) bool {
		if p.Count > 0 && !broken {
			broken = true
			for r, err := range c.Resources(t.Context(), v1.ResourceQuery{}) {
				if err != nil {
					t.Error(err)
					break
				}
				at := v1.Duration(0)
				if _, err := c.Break(t.Context(), v1.BreakRequest{ID: r.Holders[0].ID, Period: &at}); err != nil {
					t.Error(err)
				}
			}
		}
		return false
	})
	if got.Errors != 1 || !errors.Is(got.First, leasehold.ErrLost) {
		t.Errorf("%d errors, the first: %v", got.Errors, got.First)
	}
}

// Without a server nothing is measured, and nothing is left behind.
func TestNoServer(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	server := "http://" + listener.Addr().String()
	listener.Close()
	for _, operation := range Operations {
		got, r := runUntil(t, Config{Servers: []string{server}, Clients: 2}, operation, func(p Progress) bool { return p.Errors > 0 })
		if got.Count != 0 || got.Errors == 0 || got.Left != 0 || !errors.Is(got.First, leasehold.ErrUnavailable) {
			t.Errorf("%s: %+v", operation, got)
		}
		if err := r.Reach(t.Context()); !errors.Is(err, leasehold.ErrUnavailable) {
			t.Errorf("it was reached: %v", err)
		}
	}
	if _, err := New(Config{Servers: []string{"ftp://nowhere"}, Clients: 1}); !errors.Is(err, leasehold.ErrInvalid) {
		t.Errorf("an address that is none: %v", err)
	}
}

// Every watcher gets every event, and nothing is left behind.
func TestWatchersGetAll(t *testing.T) {
	server := startServer(t, nil)
	told := make(chan Progress, 1000)
	r, err := New(Config{
		Servers: []string{server + "/"}, Namespace: "bench", Holder: "tester", Clients: 4, Watchers: 70, EventRate: 1000,
		WarmUp: 10 * time.Millisecond, Duration: 200 * time.Millisecond,
		Every: time.Millisecond, Progress: func(p Progress) {
			select {
			case told <- p:
			default:
			}
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	got := r.Run(t.Context(), Watch)
	if got.Operation != Watch || got.Count != 70*200 || got.Errors != 0 || got.First != nil || got.Lost != 0 || got.Left != 0 {
		t.Errorf("the result is %+v", got)
	}
	if got.P50 <= 0 || got.P50 > got.P99 || got.P99 > got.Max || got.Measured <= 0 || got.Rate <= 0 {
		t.Errorf("the figures are %+v in %v", got.Figures, got.Measured)
	}
	if p := <-told; p.Operation != Watch || p.Errors != 0 {
		t.Errorf("the progress is %+v", p)
	}
	wantNothingHeld(t, server)
}

// Somebody loses patience: what was sent by then has arrived, and nothing is lost.
func TestWatchersEndedEarly(t *testing.T) {
	server := startServer(t, nil)
	got, _ := runUntil(t, Config{Servers: []string{server}, Clients: 2, Watchers: 3, EventRate: 1000}, Watch, hundred)
	if got.Count < 100 || got.Errors != 0 || got.Lost != 0 {
		t.Errorf("the result is %+v", got)
	}
	wantNothingHeld(t, server)
}

// A server that leaves out an event, shows one twice, something else, or nothing, is
// found out.
func TestWatchersMissNothing(t *testing.T) {
	const hello = "event: hello\nid: 1\ndata: {}\n\n"
	for answer, says := range map[string]string{
		hello + "id: 2.0\ndata: {\"reason\":\"0\"}\n\nid: 2.0\ndata: {\"reason\":\"0\"}\n\n": "a watch showed 2.0 after 2.0",
		hello + "id: 2.0\ndata: {\"reason\":\"nonsense\"}\n\n":                               "a watch showed an event that the bench did not make",
		hello + "id: x\n": "is not a position",
		hello:             "a watch ended",
		"":                "a watch ended before it began",
		"503":             "a watch was answered with 503",
	} {
		server := startServer(t, func(w http.ResponseWriter, r *http.Request) bool {
			if r.URL.Path != "/v1/watch" {
				return false
			}
			if answer == "503" {
				w.WriteHeader(http.StatusServiceUnavailable)
				return true
			}
			_, _ = io.WriteString(w, answer)
			return true
		})
		r, err := New(Config{Servers: []string{server}, Namespace: "bench", Holder: "tester", Clients: 1, Watchers: 1, EventRate: 1000, Duration: 5 * time.Millisecond})
		if err != nil {
			t.Fatal(err)
		}
		got := r.Run(t.Context(), Watch)
		if got.First == nil || !strings.Contains(got.First.Error(), says) || got.Errors == 0 {
			t.Errorf("%q is found out as %v", answer, got.First)
		}
		r.Close()
	}
}

func TestCheck(t *testing.T) {
	good := Config{Clients: 64, Duration: time.Second, Watchers: 1000, EventRate: 1000}
	for _, operation := range append(Operations, Watch) {
		if err := good.Check(operation); err != nil {
			t.Errorf("%s: %v", operation, err)
		}
	}
	for _, c := range []struct {
		operation string
		change    func(*Config)
		says      string
	}{
		{Cycle, func(c *Config) { c.Clients = 0 }, "there can be 1 to 4096 clients, not 0"},
		{Cycle, func(c *Config) { c.Clients = 4097 }, "clients, not 4097"},
		{Renew, func(c *Config) { c.Leases = 1000001 }, "there can be 1 to 1000000 leases, not 1000001"},
		{Renew, func(c *Config) { c.Leases = -1 }, "leases, not -1"},
		{Renew, func(c *Config) { c.Leases = 63 }, "63 leases are too few for 64 clients: in renew each has at least one of its own"},
		{Cycle, func(c *Config) { c.Duration = 0 }, "a measurement lasts more than 0s and at most 24h, not 0s"},
		{Cycle, func(c *Config) { c.Duration = 25 * time.Hour }, "at most 24h, not 25h"},
		{Cycle, func(c *Config) { c.WarmUp = -1 }, "a warm-up lasts at most 24h, not -1ns"},
		{Handover, func(c *Config) { c.Clients = 1 }, "one client cannot hand over to itself: handover needs 2 clients or more"},
		{Watch, func(c *Config) { c.Watchers = 0 }, "there can be 1 to 8000 watchers, not 0"},
		{Watch, func(c *Config) { c.EventRate = 100001 }, "there can be 1 to 100000 events a second, not 100001"},
	} {
		bad := good
		c.change(&bad)
		err := bad.Check(c.operation)
		if !errors.Is(err, leasehold.ErrInvalid) || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%v, want %q", err, c.says)
		}
	}
}
