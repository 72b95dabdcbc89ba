package v1_test

import (
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/leasehold/leasehold"
	v1 "github.com/leasehold/leasehold/api/v1"
)

// A front answers in one way, and counts.
type front struct {
	*httptest.Server
	asked atomic.Int64
}

// The ways of a front.
const (
	answers     = "answers"
	unavailable = "unavailable"
	undecided   = "undecided"
	cut         = "cut"
	held        = "held"
)

func newFront(t *testing.T, way string) *front {
	f := &front{}
	f.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		f.asked.Add(1)
		_, _ = io.Copy(io.Discard, r.Body)
		status := map[string]int{unavailable: 503, undecided: 504, held: 409}[way]
		switch way {
		case answers:
			_, _ = io.WriteString(w, `{}`)
		case cut:
			panic(http.ErrAbortHandler)
		default:
			w.Header().Set("Content-Type", "application/problem+json")
			w.WriteHeader(status)
			_, _ = io.WriteString(w, `{"code":"`+way+`","detail":"this one is `+way+`"}`)
		}
	}))
	t.Cleanup(f.Close)
	return f
}

// gone is the address of a server that is no more.
func gone(t *testing.T) string {
	f := newFront(t, answers)
	f.Close()
	return f.URL
}

func TestSeveralServers(t *testing.T) {
	ask := map[string]func(*v1.Caller) error{
		"named": func(c *v1.Caller) error {
			_, err := c.Acquire(t.Context(), v1.AcquireRequest{Resource: "r", Holder: "h", ID: "a"})
			return err
		},
		"keyed": func(c *v1.Caller) error {
			_, err := c.Break(t.Context(), v1.BreakRequest{Resource: "r", Token: 1}, v1.WithKey("k"))
			return err
		},
		"nameless": func(c *v1.Caller) error {
			_, err := c.Acquire(t.Context(), v1.AcquireRequest{Resource: "r", Holder: "h"})
			return err
		},
		"read": func(c *v1.Caller) error {
			_, err := c.Resource(t.Context(), "r", 0)
			return err
		},
	}
	for _, c := range []struct {
		ways, request string
		want          error
		second        int64 // how often the second was asked
	}{
		{"answers answers", "nameless", nil, 0},
		{"gone answers", "nameless", nil, 1},
		{"gone answers", "read", nil, 1},
		{"unavailable answers", "nameless", nil, 1},
		{"unavailable held", "nameless", leasehold.ErrHeld, 1},
		{"held answers", "nameless", leasehold.ErrHeld, 0},
		{"undecided answers", "nameless", leasehold.ErrUndecided, 0},
		{"cut answers", "nameless", leasehold.ErrUndecided, 0},
		{"undecided answers", "named", nil, 1},
		{"cut answers", "named", nil, 1},
		{"cut answers", "keyed", nil, 1},
		{"cut answers", "read", nil, 1},
		{"cut unavailable", "named", leasehold.ErrUndecided, 1},
		{"gone undecided", "nameless", leasehold.ErrUndecided, 1},
		{"unavailable unavailable", "nameless", leasehold.ErrUnavailable, 1},
		{"gone gone", "named", leasehold.ErrUnavailable, 0},
	} {
		t.Run(c.request+" "+c.ways, func(t *testing.T) {
			var servers []string
			var second *front
			for _, way := range strings.Fields(c.ways) {
				if way == "gone" {
					servers = append(servers, gone(t))
					continue
				}
				second = newFront(t, way)
				servers = append(servers, second.URL)
			}
			caller := newCaller(t, v1.CallerConfig{Servers: servers})
			if err := ask[c.request](caller); !errors.Is(err, c.want) {
				t.Errorf("got %v, want %v", err, c.want)
			}
			if second != nil && second.URL == servers[1] && second.asked.Load() != c.second {
				t.Errorf("the second was asked %d times, want %d", second.asked.Load(), c.second)
			}
		})
	}
}

// Whoever answered last is asked first.
func TestCallerStaysWhereItIsAnswered(t *testing.T) {
	first, second := newFront(t, unavailable), newFront(t, answers)
	c := newCaller(t, v1.CallerConfig{Servers: []string{first.URL + "/", second.URL}})
	for range 5 {
		if _, err := c.Version(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	if first.asked.Load() != 1 || second.asked.Load() != 5 {
		t.Errorf("they were asked %d and %d times", first.asked.Load(), second.asked.Load())
	}
	c = newCaller(t, v1.CallerConfig{Servers: []string{gone(t), gone(t)}})
	if _, err := c.Version(t.Context()); err == nil || !strings.Contains(err.Error(), "2 servers were asked, in vain:\n  cannot reach") {
		t.Errorf("got %v", err)
	}
	c = newCaller(t, v1.CallerConfig{Servers: []string{first.URL, gone(t)}})
	if _, err := c.Version(t.Context()); err == nil || !strings.Contains(err.Error(), first.URL+" says: ") {
		t.Errorf("got %v", err)
	}
	if _, err := v1.NewCaller(v1.CallerConfig{Servers: []string{first.URL, "ftp://x"}}); !errors.Is(err, leasehold.ErrInvalid) {
		t.Errorf("got %v", err)
	}
}

// A server that takes a question and says nothing does not keep others from being asked.
func TestSilentServer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		silent := func(r *http.Request) (*http.Response, error) {
			if r.URL.Host == "one" {
				<-r.Context().Done()
				return nil, r.Context().Err()
			}
			return &http.Response{StatusCode: 200, Body: io.NopCloser(strings.NewReader("{}")), Header: http.Header{}}, nil
		}
		c := newCaller(t, v1.CallerConfig{Servers: []string{"http://one", "http://two"}, Client: &http.Client{Transport: roundTrip(silent)}})
		began := time.Now()
		if _, err := c.Version(t.Context()); err != nil || time.Since(began) != 5*time.Second {
			t.Errorf("after %v: %v", time.Since(began), err)
		}
		alone := newCaller(t, v1.CallerConfig{Server: "http://one", Client: &http.Client{Transport: roundTrip(silent)}})
		began = time.Now()
		if _, err := alone.Version(t.Context()); !errors.Is(err, leasehold.ErrUnavailable) || time.Since(began) != 30*time.Second {
			t.Errorf("after %v: %v", time.Since(began), err)
		}
	})
}
