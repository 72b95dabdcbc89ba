package native

import (
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/leasehold/leasehold"
	v1 "github.com/leasehold/leasehold/api/v1"
	"github.com/leasehold/leasehold/internal/door"
	"github.com/leasehold/leasehold/internal/engine"
)

// requests is one good request for each route.
var requests = []struct{ method, target, body string }{
	{"POST", "/v1/acquire", `{"resource":"r","holder":"h"}`},
	{"POST", "/v1/acquire", `{"resource":"r","holder":"h","wait":"1s"}`},
	{"POST", "/v1/renew", `{"id":"a"}`},
	{"POST", "/v1/release", `{"id":"a"}`},
	{"POST", "/v1/change", `{"id":"a","holder":"b"}`},
	{"POST", "/v1/break", `{"id":"a"}`},
	{"POST", "/v1/sessions", `{}`},
	{"POST", "/v1/sessions/s/renew", ``},
	{"GET", "/v1/sessions/s", ``},
	{"DELETE", "/v1/sessions/s", ``},
	{"GET", "/v1/resources", ``},
	{"GET", "/v1/resources/r", ``},
	{"GET", "/v1/history", ``},
	{"GET", "/v1/watch", ``},
	{"GET", "/v1/records", ``},
	{"DELETE", "/v1/records?prefix=a", ``},
	{"GET", "/v1/records/a", ``},
	{"PUT", "/v1/records/a", `v`},
	{"DELETE", "/v1/records/a", ``},
	{"POST", "/v1/txn", `{}`},
}

// Every code has a status of its own, and every route tells every code.
func TestEveryCode(t *testing.T) {
	seen := map[int]leasehold.Code{}
	for _, code := range leasehold.Codes {
		s := door.StandingOf(code)
		if s.Status < 400 || s.Title == "" {
			t.Errorf("%v has no status or title: %+v", code, s)
		}
		if other, taken := seen[s.Status]; taken {
			t.Errorf("%v and %v have the same status", code, other)
		}
		seen[s.Status] = code
		for _, r := range requests {
			err := fmt.Errorf("on the way: %w", &leasehold.Error{Code: code, Message: "so it is"})
			a := askPlain(t, open(&stub{err: err, feed: engine.NewFeed()}, Config{}), r.method, r.target, r.body)
			a.expect(s.Status, `"code":"`+code.String()+`"`, `"detail":"so it is"`, fmt.Sprintf(`"status":%d`, s.Status))
			if later := a.header.Get("Retry-After") != ""; later != (code == leasehold.Limited || code == leasehold.Unavailable) {
				t.Errorf("%v: Retry-After is there: %v", code, later)
			}
			if got := a.header.Get("Content-Type"); got != "application/problem+json" {
				t.Errorf("%v: the type is %q", code, got)
			}
		}
	}
}

// askPlain asks without a look at openapi.yaml: no engine gives every code on
// every route.
func askPlain(t testing.TB, door *opened, method, target, body string) answer {
	t.Helper()
	w := record(door, method, target, body)
	return answer{t, w.Code, w.Header(), w.Body.String()}
}

// What nobody foresaw is not called a success, nor shown to the caller; the log
// has it.
func TestUnforeseen(t *testing.T) {
	log := &lines{}
	door := open(&stub{err: errors.New("secret cause")}, Config{Log: slog.New(slog.NewTextHandler(log, nil))})
	askPlain(t, door, "POST", "/v1/release", `{"id":"a"}`).expect(504, `"code":"undecided"`).without("secret")
	askPlain(t, open(&stub{}, Config{}), "POST", "/v1/renew", `{"id":"a"}`).expect(504)
	askPlain(t, open(&stub{}, Config{}), "POST", "/v1/sessions", `{}`).expect(504)
	if !strings.Contains(log.String(), "level=ERROR") || !strings.Contains(log.String(), "secret cause") {
		t.Errorf("the log says %s", log)
	}
}

// Failures of the server are written once each, up to a limit; what callers do
// wrong is not written at all.
func TestLogIsQuiet(t *testing.T) {
	log := &lines{}
	slogger := slog.New(slog.NewTextHandler(log, nil))
	door := newDoor(t, Config{Log: slogger})
	ask(t, door, "POST", "/v1/acquire", `{"resource":"r","holder":"h"}`).expect(200)
	ask(t, door, "POST", "/v1/acquire", `{"resource":"r","holder":"h"}`).expect(409)
	ask(t, door, "POST", "/v1/acquire", `{`).expect(400)
	if log.String() != "" {
		t.Errorf("the log says %s", log)
	}
	door = open(&stub{err: engine.Unavailable("no leader")}, Config{Log: slogger})
	for range 100 {
		askPlain(t, door, "POST", "/v1/release", `{"id":"a"}`).expect(503)
	}
	if n := strings.Count(log.String(), "no leader"); n < 1 || n > 30 {
		t.Errorf("100 failures are written down %d times", n)
	}
}

func TestProblemOfHeld(t *testing.T) {
	lease := &leasehold.Lease{
		Namespace: "n", Resource: "r", ID: "a", Holder: "ann", State: leasehold.Breaking, Token: 9, Reason: "why",
		Acquired: time.UnixMilli(1000), Expires: time.UnixMilli(5000), Remaining: 1999 * time.Microsecond,
	}
	e := &leasehold.Error{Code: leasehold.Held, Message: "m", Lease: lease, Waiting: 3, Position: 2}
	p := read[v1.Problem](askPlain(t, open(&stub{err: e}, Config{}), "POST", "/v1/renew", `{"id":"a"}`))
	if p.Position != 2 || *p.Waiting != 3 || *p.RemainingMS != 1 || p.Since.UnixMilli() != 1000 || p.Expires.UnixMilli() != 5000 || p.State != "breaking" || p.AvailableAt != nil {
		t.Errorf("the problem is %+v", p)
	}
}
