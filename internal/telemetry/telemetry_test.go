package telemetry

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/leasehold/leasehold"
	"github.com/leasehold/leasehold/internal/core"
)

func scrape(t *testing.T, m *Metrics) string {
	t.Helper()
	w := httptest.NewRecorder()
	m.Handler().ServeHTTP(w, httptest.NewRequest("GET", "/metrics", nil))
	if w.Code != http.StatusOK {
		t.Fatalf("the scrape answers %d", w.Code)
	}
	return w.Body.String()
}

func TestRequestsAreCounted(t *testing.T) {
	m := NewMetrics()
	v := m.Requests("native", slog.New(slog.DiscardHandler)).Verb("acquire")
	v.Done(t.Context(), Outcome{Took: time.Millisecond})
	for _, code := range leasehold.Codes {
		v.Done(t.Context(), Outcome{Err: fmt.Errorf("wrapped: %w", &leasehold.Error{Code: code}), Took: time.Millisecond})
	}
	v.Done(t.Context(), Outcome{Err: errors.New("unheard of")})
	v.Done(t.Context(), Outcome{Err: &leasehold.Error{Code: 200}})
	v.Done(t.Context(), Outcome{Waited: true, Took: time.Hour})
	v.Done(t.Context(), Outcome{Endless: true, Took: time.Hour})
	text := scrape(t, m)
	for _, line := range []string{
		`leasehold_requests_total{code="ok",door="native",verb="acquire"} 3`,
		`leasehold_requests_total{code="held",door="native",verb="acquire"} 1`,
		`leasehold_requests_total{code="not-found",door="native",verb="acquire"} 1`,
		`leasehold_requests_total{code="undecided",door="native",verb="acquire"} 3`,
		`leasehold_request_seconds_count{verb="acquire"} 12`,
		`leasehold_wait_seconds_count 1`,
		`go_goroutines `, `process_cpu_seconds_total `,
	} {
		if !strings.Contains(text, line) {
			t.Errorf("there is no %s", line)
		}
	}
}

// What there is is counted when somebody asks; when it cannot be counted there is
// a gap, and the rest is there all the same.
func TestCensus(t *testing.T) {
	m := NewMetrics()
	state, fails := core.New(), error(nil)
	m.CountBy(func(_ context.Context, fn func(core.View)) error {
		if fails == nil {
			fn(state.View(0))
		}
		return fails
	})
	m.Registerer().MustRegister(prometheus.NewGauge(prometheus.GaugeOpts{Name: "of_another"}))
	for i := range 3 {
		command := &core.Acquire{Namespace: "n", Resource: fmt.Sprint(i / 2), ID: fmt.Sprint(i), Holder: "h", Wait: time.Second}
		if _, err := state.Apply(1, 1, []core.Command{command}); err != nil {
			t.Fatal(err)
		}
	}
	text := scrape(t, m)
	for _, line := range []string{"leasehold_leases 2\n", "leasehold_waiters 1\n", "leasehold_sessions 0\n", "leasehold_namespaces 1\n", "leasehold_resources 2\n", "leasehold_records 0\n", "leasehold_alarms{kind=\"held-long\"} 0\n", "leasehold_alarms_total{kind=\"late-renewal\"} 0\n", "of_another 0\n"} {
		if !strings.Contains(text, line) {
			t.Errorf("there is no %s", line)
		}
	}
	fails = errors.New("no leader")
	if text = scrape(t, m); strings.Contains(text, "leasehold_leases") || !strings.Contains(text, "of_another 0\n") {
		t.Errorf("without an engine: %s", text)
	}
}

// After a restore the metric counts down from the length of the quarantine, also between stamps.
func TestCensusShowsTheQuarantine(t *testing.T) {
	m := NewMetrics()
	state, passed := core.New(), time.Duration(0)
	m.CountBy(func(_ context.Context, fn func(core.View)) error {
		fn(state.View(passed))
		return nil
	})
	shows := func(want string) {
		t.Helper()
		if text := scrape(t, m); !strings.Contains(text, "leasehold_quarantine_seconds "+want+"\n") {
			t.Errorf("want leasehold_quarantine_seconds %s in\n%s", want, text)
		}
	}
	shows("0")
	if _, err := state.FromBackup(core.Restoration{Quarantine: time.Minute}); err != nil {
		t.Fatal(err)
	}
	shows("60") // it has not begun to run down
	if _, err := state.Apply(1, 1, []core.Command{&core.Lead{Node: 1}}); err != nil {
		t.Fatal(err)
	}
	passed = 20 * time.Second
	shows("40")
	passed = time.Minute
	shows("0")
}

// A flood of failures is ten lines a second, and a count of the rest.
func TestFailuresAreWrittenDown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var b bytes.Buffer
		v := NewMetrics().Requests("native", slog.New(slog.NewTextHandler(&b, nil))).Verb("renew")
		failed := Outcome{Namespace: "n", Err: &leasehold.Error{Code: leasehold.Unavailable, Message: "no leader"}}
		for range 1000 {
			v.Done(t.Context(), failed)
		}
		if n := strings.Count(b.String(), "no leader"); n != perSecond {
			t.Errorf("%d lines", n)
		}
		time.Sleep(time.Second)
		v.Done(t.Context(), failed)
		if !strings.Contains(b.String(), "left_out=990") {
			t.Errorf("the log says %s", b.String())
		}
		b.Reset()
		v.Done(t.Context(), Outcome{Err: &leasehold.Error{Code: leasehold.Undecided}, Expected: true})
		v.Done(t.Context(), Outcome{Err: &leasehold.Error{Code: leasehold.Held}})
		v.Done(t.Context(), Outcome{})
		if b.Len() > 0 {
			t.Errorf("the log says %s", b.String())
		}
		v.Done(t.Context(), Outcome{Err: errors.New("unheard of")})
		if !strings.Contains(b.String(), `level=ERROR msg=request door=native verb=renew namespace="" took=0s code=undecided error="unheard of"`) {
			t.Errorf("the log says %s", b.String())
		}
	})
}

// At debug level, every request is written down.
func TestDebug(t *testing.T) {
	var b bytes.Buffer
	log, err := NewLog(&b, JSON, slog.LevelDebug)
	if err != nil {
		t.Fatal(err)
	}
	v := NewMetrics().Requests("native", log).Verb("renew")
	for range 100 {
		v.Done(t.Context(), Outcome{Namespace: "n", Took: time.Millisecond})
	}
	if n := strings.Count(b.String(), `"verb":"renew"`); n != 100 {
		t.Errorf("%d lines", n)
	}
}

func TestLogFormats(t *testing.T) {
	for _, format := range []string{Text, JSON} {
		if _, err := NewLog(&bytes.Buffer{}, format, slog.LevelInfo); err != nil {
			t.Error(err)
		}
	}
	if _, err := NewLog(&bytes.Buffer{}, "xml", slog.LevelInfo); err == nil || !strings.Contains(err.Error(), "text and json") {
		t.Errorf("the error is %v", err)
	}
}

func TestPprof(t *testing.T) {
	w := httptest.NewRecorder()
	PprofHandler().ServeHTTP(w, httptest.NewRequest("GET", "/debug/pprof/", nil))
	if w.Code != http.StatusOK || !strings.Contains(w.Body.String(), "goroutine") {
		t.Errorf("it answers %d", w.Code)
	}
}

func BenchmarkDone(b *testing.B) {
	v := NewMetrics().Requests("native", slog.New(slog.DiscardHandler)).Verb("renew")
	b.ReportAllocs()
	for b.Loop() {
		v.Done(b.Context(), Outcome{Namespace: "default", Took: time.Millisecond})
	}
}
