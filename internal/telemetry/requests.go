package telemetry

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/leasehold/leasehold"
)

// Requests counts and writes down what one door was asked.
type Requests struct {
	metrics *Metrics
	door    string
	log     *slog.Logger
	budget  budget
}

// Requests returns the account of one door.
func (m *Metrics) Requests(door string, log *slog.Logger) *Requests {
	return &Requests{metrics: m, door: door, log: log}
}

// A Verb is one thing that a door can be asked. It is looked up once, when the
// door is made: counting a request then costs a few atomic additions.
type Verb struct {
	requests *Requests
	name     string
	codes    []prometheus.Counter // by leasehold.Code; 0 is for what was granted
	seconds  prometheus.Observer
}

// Verb returns the account of one verb.
func (r *Requests) Verb(name string) *Verb {
	v := &Verb{requests: r, name: name, seconds: r.metrics.seconds.WithLabelValues(name)}
	v.codes = append(v.codes, r.metrics.requests.WithLabelValues(r.door, name, "ok"))
	for i, code := range leasehold.Codes {
		if int(code) != i+1 {
			panic("telemetry: leasehold.Codes is not in order")
		}
		v.codes = append(v.codes, r.metrics.requests.WithLabelValues(r.door, name, code.String()))
	}
	return v
}

// An Outcome is what one request came to.
type Outcome struct {
	Namespace string
	Err       error // nil: granted
	Took      time.Duration
	Waited    bool // for a resource: that is no measure of the server
	Endless   bool // a watch: its length means nothing
	Expected  bool // to fail: the caller went away, or the server is stopping
}

// Done accounts for one request.
func (v *Verb) Done(ctx context.Context, o Outcome) {
	code, known := codeOf(o.Err)
	v.codes[code].Inc()
	switch {
	case o.Endless:
	case o.Waited:
		v.requests.metrics.waits.Observe(o.Took.Seconds())
	default:
		v.seconds.Observe(o.Took.Seconds())
	}
	v.write(ctx, o, code, known)
}

// codeOf returns the code of an error, and false if it has none.
func codeOf(err error) (leasehold.Code, bool) {
	if err == nil {
		return 0, true
	}
	var e *leasehold.Error
	if errors.As(err, &e) && e.Code != 0 && int(e.Code) <= len(leasehold.Codes) {
		return e.Code, true
	}
	return leasehold.Undecided, false
}

// write puts a request in the log: each one for whoever debugs, and otherwise
// only those that failed through no fault of the caller.
func (v *Verb) write(ctx context.Context, o Outcome, code leasehold.Code, known bool) {
	level := slog.LevelDebug
	switch {
	case !known:
		level = slog.LevelError
	case o.Expected:
	case code == leasehold.Unavailable || code == leasehold.Undecided:
		level = slog.LevelWarn
	}
	r := v.requests
	if !r.log.Enabled(ctx, level) {
		return
	}
	if level > slog.LevelDebug {
		left, ok := r.budget.spend()
		if !ok {
			return
		}
		if left > 0 {
			r.log.LogAttrs(ctx, level, "more requests failed than were written down", slog.Int("left_out", left))
		}
	}
	attrs := []slog.Attr{
		slog.String("door", r.door), slog.String("verb", v.name), slog.String("namespace", o.Namespace),
		slog.Duration("took", o.Took),
	}
	if o.Err != nil {
		attrs = append(attrs, slog.String("code", code.String()), slog.Any("error", o.Err))
	}
	r.log.LogAttrs(ctx, level, "request", attrs...)
}

// perSecond is how many failed requests are written down each second: a flood of
// them is one fact, and a full disk would be the next.
const perSecond = 10

type budget struct {
	mu      sync.Mutex // guards what follows
	since   time.Time
	spent   int
	leftOut int
}

// spend reports whether another line may be written, and how many were left out
// since the last one that was.
func (b *budget) spend() (leftOut int, ok bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if now := time.Now(); now.Sub(b.since) >= time.Second {
		b.since, b.spent = now, 0
	}
	if b.spent >= perSecond {
		b.leftOut++
		return 0, false
	}
	b.spent++
	leftOut, b.leftOut = b.leftOut, 0
	return leftOut, true
}
