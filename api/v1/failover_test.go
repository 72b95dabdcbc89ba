package v1_test

import (
	"context"
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

// gone is the address of a server that no longer exists.
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
	if _, err := c.Version(t.Context()); err == nil || !strings.Contains(err.Error(), "none of 2 servers could be reached:\n  cannot reach") {
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
// What an earlier try may have deleted is not missed at the next server; what nobody can have deleted is.
func TestDeletionsWhoseAnswerIsLost(t *testing.T) {
	missing := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/problem+json")
		w.WriteHeader(http.StatusNotFound)
		_, _ = io.WriteString(w, `{"code":"not-found","detail":"there is no token t","status":404}`)
	}))
	t.Cleanup(missing.Close)
	for way, want := range map[string]error{cut: nil, undecided: nil, unavailable: leasehold.ErrNotFound} {
		first := newFront(t, way)
		caller := newCaller(t, v1.CallerConfig{Servers: []string{first.URL, missing.URL}})
		if err := caller.RevokeToken(t.Context(), "t", v1.Intent{}); !errors.Is(err, want) || first.asked.Load() != 1 {
			t.Errorf("%s: %v after %d", way, err, first.asked.Load())
		}
	}
}

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

// newServers returns servers one, two, … that are never connected to: a test's Send answers.
func newServers(t *testing.T, n int) *v1.Servers {
	t.Helper()
	config := v1.CallerConfig{Client: &http.Client{Transport: roundTrip(func(*http.Request) (*http.Response, error) {
		t.Error("a request was sent")
		return nil, http.ErrNotSupported
	})}}
	for _, name := range []string{"one", "two", "three"}[:n] {
		config.Servers = append(config.Servers, "http://"+name)
	}
	s, err := v1.NewServers(config)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// A script is what servers answer, one attempt after the other.
type script struct {
	answers []error
	asked   []string        // which server, of each attempt
	at      []time.Duration // when
	began   time.Time
}

func (s *script) send(_ context.Context, server *v1.Caller) error {
	n := len(s.asked)
	s.asked = append(s.asked, strings.TrimPrefix(server.Asked(), "http://"))
	s.at = append(s.at, time.Since(s.began))
	if n < len(s.answers) {
		return s.answers[n]
	}
	return nil
}

// Which errors make a request go to another server, and which of them end it.
func TestWhichServerIsAsked(t *testing.T) {
	no, lost, held := leasehold.ErrUnavailable, leasehold.ErrUndecided, leasehold.ErrHeld
	for _, c := range []struct {
		name    string
		answers []error
		try     func(s *v1.Servers, send v1.Send) error
		want    error
		asked   string
		next    string // who is asked by the next request
	}{
		{"once is once", []error{no}, once, no, "one", "two"},
		{"a refusal is an answer", []error{held}, once, held, "one", "one"},
		{"each, the third answers", []error{no, no}, each(false), nil, "one two three", "three"},
		{"each, none answers", []error{no, no, no}, each(false), no, "one two three", "one"},
		{"each, undecided ends it", []error{no, lost}, each(false), lost, "one two", "three"},
		{"each, undecided and idempotent", []error{lost, no}, each(true), nil, "one two three", "three"},
		{"each, undecided once is undecided", []error{lost, no, no}, each(true), lost, "one two three", "one"},
		{"retry goes round", []error{no, lost, no, lost}, retry, nil, "one two three one two", "two"},
		{"retry ends with a refusal", []error{no, held}, retry, held, "one two", "two"},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				servers, script := newServers(t, 3), &script{answers: c.answers, began: time.Now()}
				if err := c.try(servers, script.send); !errors.Is(err, c.want) || c.want == nil && err != nil {
					t.Errorf("got %v, want %v", err, c.want)
				}
				if asked := strings.Join(script.asked, " "); asked != c.asked {
					t.Errorf("asked %s, want %s", asked, c.asked)
				}
				if next := servers.Choose().Asked(); next != "http://"+c.next {
					t.Errorf("the next is %s, want %s", next, c.next)
				}
			})
		})
	}
}

func once(s *v1.Servers, send v1.Send) error { return s.Once(context.Background(), time.Second, send) }

func retry(s *v1.Servers, send v1.Send) error {
	return s.Retry(context.Background(), time.Second, send)
}

func each(idempotent bool) func(*v1.Servers, v1.Send) error {
	return func(s *v1.Servers, send v1.Send) error {
		return s.Each(context.Background(), v1.Attempts{Limit: time.Second, Idempotent: idempotent}, send)
	}
}

// Within a round there is no pause; after each round it is longer, up to a second.
func TestRetryPausesAfterARound(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		servers, script := newServers(t, 2), &script{began: time.Now()}
		for range 20 {
			script.answers = append(script.answers, leasehold.ErrUnavailable)
		}
		if err := retry(servers, script.send); err != nil {
			t.Fatal(err)
		}
		for n := 1; n < len(script.at); n++ {
			pause := script.at[n] - script.at[n-1]
			most := min(50*time.Millisecond<<max(n/2-1, 0), time.Second)
			if n%2 == 1 && pause != 0 || n%2 == 0 && (pause < most/2 || pause > most) {
				t.Errorf("pause %d is %v", n, pause)
			}
		}
	})
}

// A hundred requests that fail at one server at the same time move on by one.
func TestManyLeaveOneServerOnce(t *testing.T) {
	servers := newServers(t, 3)
	var choices []v1.Choice
	for range 100 {
		choices = append(choices, servers.Choose())
	}
	for _, c := range choices {
		servers.Leave(c)
	}
	if next := servers.Choose().Asked(); next != "http://two" {
		t.Errorf("the next is %s", next)
	}
}

// An attempt ends at its limit, and a retry at the end of its context.
func TestAttemptsAreLimited(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		servers := newServers(t, 2)
		attempts := 0
		silent := func(ctx context.Context, _ *v1.Caller) error {
			attempts++
			<-ctx.Done()
			return leasehold.ErrUndecided
		}
		began := time.Now()
		if err := servers.Once(t.Context(), 3*time.Second, silent); !errors.Is(err, leasehold.ErrUndecided) || time.Since(began) != 3*time.Second {
			t.Errorf("after %v: %v", time.Since(began), err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		began, attempts = time.Now(), 0
		if err := servers.Retry(ctx, 3*time.Second, silent); !errors.Is(err, leasehold.ErrUndecided) || time.Since(began) != 10*time.Second || attempts != 4 {
			t.Errorf("after %v and %d attempts: %v", time.Since(began), attempts, err)
		}
	})
}
