package v1_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/leasehold/leasehold"
	v1 "github.com/leasehold/leasehold/api/v1"
	"github.com/leasehold/leasehold/internal/door"
	"github.com/leasehold/leasehold/internal/door/native"
	"github.com/leasehold/leasehold/internal/engine"
	"github.com/leasehold/leasehold/internal/engine/memory"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// call returns a caller of a server that lives as long as the test.
func call(t *testing.T, namespace string) *v1.Caller {
	t.Helper()
	e := memory.Start(engine.NewGoClock())
	backend := door.NewBackend(e, door.Options{Version: v1.Version{Version: "1"}})
	server := httptest.NewServer(door.NewHost(backend, door.HostConfig{}, native.New(backend).Door()))
	t.Cleanup(func() { server.Close(); e.Close() })
	return newCaller(t, v1.CallerConfig{Server: server.URL, Namespace: namespace})
}

func newCaller(t *testing.T, config v1.CallerConfig) *v1.Caller {
	t.Helper()
	c, err := v1.NewCaller(config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.CloseIdle)
	return c
}

// must returns a value, and fails on an error.
func must[T any](t *testing.T) func(T, error) T {
	return func(v T, err error) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
}

func TestCallerLeases(t *testing.T) {
	for _, namespace := range []string{"", "blue & green"} {
		c, ctx, lease := call(t, namespace), t.Context(), must[v1.Lease](t)
		l := lease(c.Acquire(ctx, v1.AcquireRequest{Resource: "a b/ü", Holder: "ann", ID: "a", Reason: "why", TTL: v1.TTL{Duration: v1.Duration(time.Minute)}}))
		if l.Token != 1 || l.Resource != "a b/ü" || time.Duration(*l.TTL) != time.Minute || namespace != "" && l.Namespace != namespace {
			t.Errorf("the lease is %+v", l)
		}
		_, err := c.Acquire(ctx, v1.AcquireRequest{Resource: "a b/ü", Holder: "bob"})
		var held *leasehold.Error
		if !errors.Is(err, leasehold.ErrHeld) || !errors.As(err, &held) {
			t.Fatalf("the error is %v", err)
		}
		if h := held.Lease; h.Holder != "ann" || h.ID != "a" || h.Reason != "why" || h.Token != 1 || h.State != leasehold.Leased || h.Resource != "a b/ü" ||
			h.Acquired.IsZero() || h.Expires.IsZero() || h.Remaining < 50*time.Second || h.Namespace == "" {
			t.Errorf("what is in the way is %+v", h)
		}
		if !strings.Contains(err.Error(), "a b/ü is held by ann (why); ends in") {
			t.Errorf("the error is %v", err)
		}
		lease(c.Renew(ctx, v1.RenewRequest{ID: "a"}))
		if l = lease(c.Change(ctx, v1.ChangeRequest{ID: "a", Holder: "bob", NewID: "b"})); l.Token != 2 {
			t.Errorf("the lease is %+v", l)
		}
		zero := v1.Duration(0)
		if l = lease(c.Break(ctx, v1.BreakRequest{Resource: "a b/ü", Token: 2, Period: &zero, By: "op"})); l.State != "broken" {
			t.Errorf("the lease is %+v", l)
		}
		if err := c.Release(ctx, v1.ReleaseRequest{ID: "b"}); !errors.Is(err, leasehold.ErrLost) {
			t.Errorf("the error is %v", err)
		}
		if _, err := c.Renew(ctx, v1.RenewRequest{ID: "never"}); !errors.Is(err, leasehold.ErrNotFound) {
			t.Errorf("the error is %v", err)
		}
		if _, err := c.Acquire(ctx, v1.AcquireRequest{Resource: "r"}); !errors.Is(err, leasehold.ErrInvalid) || !strings.Contains(err.Error(), "holder is missing") {
			t.Errorf("the error is %v", err)
		}
		r := must[v1.Resource](t)(c.Resource(ctx, "a b/ü", 5))
		if r.State != "broken" || r.Last.By != "op" {
			t.Errorf("the resource is %+v", r)
		}
		page := must[v1.EventPage](t)(c.History(ctx, v1.HistoryQuery{Resource: "a b/ü", Limit: 2}))
		if len(page.Items) != 2 || page.Items[0].Kind != "changed" || page.Items[1].Kind != "ended" || page.Next == "" {
			t.Errorf("the history is %+v", page)
		}
		// A lease that runs out is an alarm.
		lease(c.Acquire(ctx, v1.AcquireRequest{Resource: "a b/ü", Holder: "cyd", TTL: v1.TTL{Duration: v1.Duration(leasehold.MinTTL)}}))
		var alarms []string
		for until := time.Now().Add(20 * time.Second); len(alarms) == 0 && time.Now().Before(until); time.Sleep(20 * time.Millisecond) {
			for a, err := range c.Alarms(ctx, v1.AlarmQuery{Prefix: "a b", Kind: "unclean-end", Limit: 1}) {
				if err != nil {
					t.Fatal(err)
				}
				alarms = append(alarms, a.Holder)
			}
		}
		if !slices.Equal(alarms, []string{"cyd"}) {
			t.Errorf("the alarms are %q", alarms)
		}
		if _, err := c.AlarmPage(ctx, v1.AlarmQuery{Kind: "fire"}); !errors.Is(err, leasehold.ErrInvalid) {
			t.Errorf("alarms of no kind: %v", err)
		}
		if a := must[v1.Advice](t)(c.Advice(ctx, "a b/ü")); a.Learned || time.Duration(a.TTL) != 30*time.Second || a.Resource != "a b/ü" {
			t.Errorf("the advice is %+v", a)
		}
		if v := must[v1.Version](t)(c.Version(ctx)); v.Version != "1" {
			t.Errorf("the version is %+v", v)
		}
	}
}

func TestCallerSessions(t *testing.T) {
	c, ctx, session := call(t, ""), t.Context(), must[v1.Session](t)
	for _, id := range []string{"s", "a/b", ".", "..", "%2F", "ü ?#"} {
		if s := session(c.OpenSession(ctx, v1.SessionRequest{ID: id, TTL: v1.TTL{Duration: v1.Duration(time.Minute)}})); s.ID != id {
			t.Errorf("the session is %+v", s)
		}
		if s := session(c.RenewSession(ctx, id)); s.ID != id {
			t.Errorf("%q is renewed as %+v", id, s)
		}
		if s := session(c.Session(ctx, id)); s.ID != id {
			t.Errorf("%q is shown as %+v", id, s)
		}
		if err := c.CloseSession(ctx, id); err != nil {
			t.Errorf("%q: %v", id, err)
		}
		if _, err := c.Session(ctx, id); !errors.Is(err, leasehold.ErrLost) {
			t.Errorf("%q: the error is %v", id, err)
		}
	}
}

func TestCallerOnce(t *testing.T) {
	c, ctx, lease := call(t, ""), t.Context(), must[v1.Lease](t)
	one := lease(c.Acquire(ctx, v1.AcquireRequest{Resource: "r", Holder: "h"}, v1.WithKey("k")))
	two := lease(c.Acquire(ctx, v1.AcquireRequest{Resource: "r", Holder: "h"}, v1.WithKey("k")))
	if one.ID != two.ID {
		t.Errorf("%+v and %+v", one, two)
	}
	must[v1.Session](t)(c.OpenSession(ctx, v1.SessionRequest{ID: "s"}))
	one = lease(c.Acquire(ctx, v1.AcquireRequest{Resource: "q", Holder: "h"}, v1.WithSequence("s", 1)))
	two = lease(c.Acquire(ctx, v1.AcquireRequest{Resource: "q", Holder: "h"}, v1.WithSequence("s", 1)))
	if one.ID != two.ID {
		t.Errorf("%+v and %+v", one, two)
	}
}

func TestCallerResources(t *testing.T) {
	c, ctx := call(t, ""), t.Context()
	var want []string
	for i := range 10 {
		name := fmt.Sprintf("jobs/%d", i)
		want = append(want, name)
		must[v1.Lease](t)(c.Acquire(ctx, v1.AcquireRequest{Resource: name, Holder: "h"}))
	}
	var got []string
	for r, err := range c.Resources(ctx, v1.ResourceQuery{Prefix: "jobs/", Limit: 3, All: true}) {
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, r.Resource)
	}
	if !slices.Equal(got, want) {
		t.Errorf("the resources are %q", got)
	}
	for range c.Resources(ctx, v1.ResourceQuery{Limit: 3}) {
		break
	}
	for _, err := range c.Resources(ctx, v1.ResourceQuery{After: "?"}) {
		if !errors.Is(err, leasehold.ErrInvalid) {
			t.Errorf("the error is %v", err)
		}
	}
	page := must[v1.ResourcePage](t)(c.ResourcePage(ctx, v1.ResourceQuery{}))
	if page.Revision != 10 || len(page.Items) != 10 {
		t.Errorf("the page is %+v", page)
	}
	for e, err := range c.Watch(ctx, v1.WatchQuery{Since: "9"}) {
		if err != nil || e.Resource != "jobs/9" {
			t.Errorf("the event is %+v, %v", e, err)
		}
		break
	}
	for _, err := range c.Watch(ctx, v1.WatchQuery{Since: "x"}) {
		if !errors.Is(err, leasehold.ErrInvalid) {
			t.Errorf("the error is %v", err)
		}
	}
	ended, end := context.WithCancel(ctx)
	for _, err := range c.Watch(ended, v1.WatchQuery{Started: func(v1.Hello) { end() }}) {
		if !errors.Is(err, context.Canceled) {
			t.Errorf("the error is %v", err)
		}
	}
}

func TestNewCaller(t *testing.T) {
	for _, server := range []string{":4653", "localhost:", "ftp://x", "http://", "http://x?y", "http://u:secret@x", "http://x#y", "\x00"} {
		_, err := v1.NewCaller(v1.CallerConfig{Server: server})
		if !errors.Is(err, leasehold.ErrInvalid) || strings.Contains(err.Error(), "secret") {
			t.Errorf("%q: the error is %v", server, err)
		}
	}
	c, err := v1.NewCaller(v1.CallerConfig{Server: "localhost"})
	if err != nil || c.Asked() != "http://localhost:4653" {
		t.Errorf("a host alone: %v", err)
	}
}

// A name that JSON cannot carry is not sent as another one.
func TestCallerRefusesWhatIsNotUTF8(t *testing.T) {
	c, ctx := call(t, ""), t.Context()
	for _, r := range []v1.AcquireRequest{
		{Resource: "a\xff", Holder: "h"}, {Resource: "a", Holder: "\xc3"}, {Resource: "a", Holder: "h", Labels: map[string]string{"k": "\xff"}},
	} {
		if _, err := c.Acquire(ctx, r); !errors.Is(err, leasehold.ErrInvalid) || !strings.Contains(err.Error(), "not valid UTF-8") {
			t.Errorf("%+v: the error is %v", r, err)
		}
	}
	if _, err := c.Resource(ctx, "a\xff", 0); !errors.Is(err, leasehold.ErrInvalid) {
		t.Errorf("the error is %v", err)
	}
	must[v1.Lease](t)(c.Acquire(ctx, v1.AcquireRequest{Resource: "\ufffd", Holder: `\ufffd`}))
}

// A server that has no certificate is running, and need not be started.
func TestCallerWithTLSThatTheServerHasNot(t *testing.T) {
	plain := httptest.NewServer(http.NotFoundHandler())
	defer plain.Close()
	c := newCaller(t, v1.CallerConfig{Server: strings.Replace(plain.URL, "http:", "https:", 1)})
	_, err := c.Acquire(t.Context(), v1.AcquireRequest{Resource: "r", Holder: "h"})
	if !errors.Is(err, leasehold.ErrUnavailable) || !strings.HasSuffix(err.Error(), " does not use TLS: write it as "+plain.URL) {
		t.Errorf("the error is %v", err)
	}
}

// When nothing was sent, nothing happened.
func TestCallerWithoutServer(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	l.Close()
	base := "http://" + l.Addr().String()
	c := newCaller(t, v1.CallerConfig{Server: base})
	_, err = c.Acquire(t.Context(), v1.AcquireRequest{Resource: "r", Holder: "h"})
	if !errors.Is(err, leasehold.ErrUnavailable) {
		t.Errorf("the error is %v", err)
	}
	for _, text := range []string{"cannot reach the server at " + base + ": dial tcp", "connection refused: is it running? start one with `leasehold serve`, or set LEASEHOLD_SERVER"} {
		if !strings.Contains(err.Error(), text) {
			t.Errorf("the error has no %q: %v", text, err)
		}
	}
	if err := c.Release(t.Context(), v1.ReleaseRequest{ID: "a"}, v1.WithKey("k")); !errors.Is(err, leasehold.ErrUnavailable) {
		t.Errorf("the error is %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := c.Renew(ctx, v1.RenewRequest{ID: "a"}); !errors.Is(err, leasehold.ErrUnavailable) || !errors.Is(err, context.Canceled) {
		t.Errorf("the error is %v", err)
	}
	for _, err := range c.Watch(t.Context(), v1.WatchQuery{}) {
		if !errors.Is(err, leasehold.ErrUnavailable) {
			t.Errorf("the error is %v", err)
		}
	}
}

// When the request was sent and the answer never came, only a read is known to
// have done nothing.
func TestCallerWithoutAnswer(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.ReadAll(r.Body)
		if r.URL.Path == "/v1/change" {
			w.WriteHeader(http.StatusOK)
			_, _ = io.WriteString(w, `{"resource":`)
			_ = http.NewResponseController(w).Flush()
		}
		if r.URL.Path == "/v1/break" {
			<-r.Context().Done()
		}
		panic(http.ErrAbortHandler)
	}))
	defer server.Close()
	c, ctx := newCaller(t, v1.CallerConfig{Server: server.URL}), t.Context()
	if _, err := c.Acquire(ctx, v1.AcquireRequest{Resource: "r", Holder: "h"}); !errors.Is(err, leasehold.ErrUndecided) || !strings.Contains(err.Error(), "ask again with the same id") {
		t.Errorf("acquire: %v", err)
	}
	if _, err := c.Change(ctx, v1.ChangeRequest{ID: "a", Holder: "b"}); !errors.Is(err, leasehold.ErrUndecided) {
		t.Errorf("change: %v", err)
	}
	if _, err := c.Resource(ctx, "r", 0); !errors.Is(err, leasehold.ErrUnavailable) {
		t.Errorf("resource: %v", err)
	}
	hasty := newCaller(t, v1.CallerConfig{Server: server.URL, Timeout: 20 * time.Millisecond})
	if _, err := hasty.Break(ctx, v1.BreakRequest{ID: "a"}); !errors.Is(err, leasehold.ErrUndecided) || !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("break: %v", err)
	}
}

// What stands before a server, or is none, does not speak our language.
func TestCallerOfSomethingElse(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var status int
		_, _ = fmt.Sscan(r.URL.Query().Get("namespace"), &status)
		if status == http.StatusFound {
			w.Header().Set("Location", "/elsewhere")
		}
		w.Header().Set("Content-Type", "text/html")
		w.WriteHeader(status)
		_, _ = io.WriteString(w, "<html>")
	}))
	defer server.Close()
	for _, test := range []struct {
		status      int
		write, read error
	}{
		{404, leasehold.ErrRefused, leasehold.ErrRefused},
		{302, leasehold.ErrRefused, leasehold.ErrRefused},
		{401, leasehold.ErrDenied, leasehold.ErrDenied},
		{403, leasehold.ErrDenied, leasehold.ErrDenied},
		{429, leasehold.ErrUnavailable, leasehold.ErrUnavailable},
		{500, leasehold.ErrUndecided, leasehold.ErrUnavailable},
		{502, leasehold.ErrUnavailable, leasehold.ErrUnavailable},
		{503, leasehold.ErrUnavailable, leasehold.ErrUnavailable},
		{504, leasehold.ErrUndecided, leasehold.ErrUnavailable},
		{200, leasehold.ErrUndecided, leasehold.ErrUnavailable},
	} {
		c := newCaller(t, v1.CallerConfig{Server: server.URL + "/", Namespace: fmt.Sprint(test.status)})
		if err := c.Release(t.Context(), v1.ReleaseRequest{ID: "a"}); !errors.Is(err, test.write) {
			t.Errorf("%d: release says %v", test.status, err)
		}
		if _, err := c.Session(t.Context(), "a"); !errors.Is(err, test.read) {
			t.Errorf("%d: session says %v", test.status, err)
		}
	}
}

// Every code comes back as itself.
func TestCallerReadsEveryCode(t *testing.T) {
	for _, code := range leasehold.Codes {
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", "application/problem+json")
			w.WriteHeader(418)
			fmt.Fprintf(w, `{"code":%q,"detail":"so it is","waiting":3,"position":2}`, code)
		}))
		err := newCaller(t, v1.CallerConfig{Server: server.URL}).Release(t.Context(), v1.ReleaseRequest{ID: "a"})
		var e *leasehold.Error
		if !errors.As(err, &e) || e.Code != code || e.Message != "so it is" || e.Waiting != 3 || e.Position != 2 {
			t.Errorf("%v comes as %+v", code, err)
		}
		server.Close()
	}
}

// A stream of any bytes ends with an error and never with an event that was not
// whole.
func FuzzWatch(f *testing.F) {
	f.Add([]byte("event: hello\nid: 1\ndata: {}\n\nid: 2.0\ndata: {\"revision\":2}\n\n"))
	f.Add([]byte(": still here\n\nid: 1.0\n\nevent: gone\ndata: {\"since\":\"1\",\"oldest\":\"2.1\",\"revision\":7}\n\n"))
	f.Add([]byte("data: {\ndata: }\r\n\r\nid\n:\n\n"))
	f.Add([]byte("data: {\"revision\":3}"))
	f.Fuzz(func(t *testing.T, stream []byte) {
		whole := 0
		for scan := bufio.NewScanner(strings.NewReader(string(stream))); scan.Scan(); {
			if scan.Text() == "" {
				whole++
			}
		}
		tries := 0
		client := &http.Client{Transport: roundTrip(func(r *http.Request) (*http.Response, error) {
			if tries++; tries > 1 {
				return nil, errors.New("no second time")
			}
			return &http.Response{StatusCode: 200, Body: io.NopCloser(strings.NewReader(string(stream))), Header: http.Header{}}, nil
		})}
		c, err := v1.NewCaller(v1.CallerConfig{Client: client})
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
		defer cancel()
		events, failures := 0, 0
		for _, err := range c.Watch(ctx, v1.WatchQuery{}) {
			if err != nil {
				failures++
			} else {
				events++
			}
		}
		if events > whole || failures != 1 {
			t.Errorf("%q gives %d events and %d errors", stream, events, failures)
		}
	})
}

type roundTrip func(*http.Request) (*http.Response, error)

func (f roundTrip) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }
