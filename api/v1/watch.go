package v1

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"net/http"
	"net/url"
	"time"

	"github.com/leasehold/leasehold"
	"github.com/leasehold/leasehold/internal/eventstream"
)

// A WatchQuery says what to watch.
type WatchQuery struct {
	Resource string // one resource; empty: all that begin with Prefix
	Prefix   string // empty: everything in the namespace, sessions too
	Since    string // a position; empty: from now on
	Values   bool   // with the values of records that were put
	Previous bool   // with the values before
	Session  string // the prefix of a session's id: only events of such sessions and their claims

	// Interventions leaves out what the sessions did themselves, such as acquiring and releasing leases.
	Interventions bool

	Started func(Hello) // called each time that the watch has connected; may be nil

	Passed func(position string) // called with each position that the watch has reached; may be nil

	// Once ends the watch, with an error, when its connection is lost: for callers that go
	// on at another server from the last position they passed.
	Once bool
}

// A Hello begins a watch of every event after Position. Time is the server's wall clock, for
// showing countdowns.
type Hello struct {
	Namespace string   `json:"namespace"`
	Position  Position `json:"position"`
	Time      Time     `json:"time"`
}

// A Gone ends a watch that asked for events which the server no longer has. Oldest is the first
// position from which a watch can go on, Revision the newest one: read the resources again and
// watch since that, or go on from Oldest with a gap.
type Gone struct {
	Since    Position `json:"since"`
	Oldest   Position `json:"oldest"`
	Revision uint64   `json:"revision"`
}

// Error makes a Gone an error.
func (g *Gone) Error() string {
	return fmt.Sprintf("events after %v are no longer known: "+
		"read the resources again and watch since %d, or go on from %v with a gap", g.Since, g.Revision, g.Oldest)
}

// A Cut ends a watch whose consumer was too slow. It got everything up to Resume, and can go on
// from there.
type Cut struct {
	Resume Position `json:"resume"`
}

// Watch yields events, each once and in order. When its connection is lost it reconnects and
// goes on where it was, until ctx ends. It ends with an error if it cannot begin, or if the
// server no longer has the events that follow: that error wraps a *Gone and is a
// leasehold.ErrLost.
func (c *Caller) Watch(ctx context.Context, q WatchQuery) iter.Seq2[Event, error] {
	return func(yield func(Event, error) bool) {
		w := &watch{caller: c, query: q, at: q.Since, yield: yield}
		for {
			err := w.connect(ctx)
			switch {
			case w.over:
				return
			case ctx.Err() != nil:
				yield(Event{}, &failure{&leasehold.Error{Code: leasehold.Unavailable, Message: "the watch was ended"},
					ctx.Err()})
				return
			// A watch that never began fails at once, so that a wrong address is not retried for
			// ever.
			case !w.begun || w.query.Once || !resumable(err):
				yield(Event{}, err)
				return
			}
			w.failures++
			watchBackoff.Sleep(ctx, w.failures)
		}
	}
}

// resumable reports whether a watch that ended with an error may go on later.
func resumable(err error) bool { return Transient(err) || errors.Is(err, leasehold.ErrLimited) }

// A watch is one call of Watch.
type watch struct {
	caller   *Caller
	query    WatchQuery
	at       string // the last position, where to go on
	begun    bool
	over     bool // the consumer has stopped
	failures int  // in a row
	yield    func(Event, error) bool
}

// watchBackoff is how long to wait before a watch that was cut off begins again.
var watchBackoff = Backoff{First: 100 * time.Millisecond, Most: 5 * time.Second}

// maxSilence is three times the interval between two heartbeats of a watch: after it the
// connection is taken for dead.
const maxSilence = 45 * time.Second

// connect follows the watch over one connection, until it ends.
func (w *watch) connect(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	// A dead connection gives no error; only the missing heartbeats tell.
	silence := time.AfterFunc(maxSilence, cancel)
	defer silence.Stop()

	query := url.Values{}
	setText(query, "resource", w.query.Resource)
	setText(query, "prefix", w.query.Prefix)
	setText(query, "session", w.query.Session)
	if w.query.Values {
		query.Set("values", "true")
	}
	if w.query.Interventions {
		query.Set("interventions", "true")
	}
	if w.query.Previous {
		query.Set("previous", "true")
	}
	r := request{method: "GET", path: "/v1/watch", query: query, options: []Option{func(h http.Header) {
		if w.at != "" {
			h.Set("Last-Event-ID", w.at)
		}
	}}}
	response, err := w.caller.open(ctx, r)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	messages := eventstream.NewReader(response.Body, func() { silence.Reset(maxSilence) })
	for {
		m, err := messages.Read()
		if err != nil {
			return unanswered(addressOf(response), r.method, err)
		}
		silence.Stop() // the time that the consumer takes is not the server's silence
		if err := w.take(m); err != nil || w.over {
			return err
		}
		silence.Reset(maxSilence)
	}
}

// addressOf returns the address of the server that gave an answer.
func addressOf(response *http.Response) string {
	return response.Request.URL.Scheme + "://" + response.Request.URL.Host
}

// take handles one message of the stream.
func (w *watch) take(m eventstream.Message) error {
	// The position counts as passed after the consumer has had the event: a consumer that crashes
	// in between sees it again rather than never.
	if m.ID != "" {
		w.at = m.ID
		defer w.passed()
	}
	switch m.Event {
	case "":
		if len(m.Data) == 0 {
			return nil
		}
		var e Event
		if err := json.Unmarshal(m.Data, &e); err != nil {
			return &leasehold.Error{Code: leasehold.Refused,
				Message: "the watch sent an invalid event: " + err.Error()}
		}
		w.over = !w.yield(e, nil)
	case "hello":
		w.begun, w.failures = true, 0
		var h Hello
		if json.Unmarshal(m.Data, &h) == nil && w.query.Started != nil {
			w.query.Started(h)
		}
	case "cut":
		return &leasehold.Error{Code: leasehold.Unavailable,
			Message: "the watch was cut off: its events were read too slowly"}
	case "gone":
		g := new(Gone)
		if err := json.Unmarshal(m.Data, g); err != nil {
			return &leasehold.Error{Code: leasehold.Lost,
				Message: "the watch ended: the events that follow are no longer known"}
		}
		return &failure{&leasehold.Error{Code: leasehold.Lost, Message: g.Error()}, g}
	}
	return nil
}

// passed reports the position, after the consumer has had the event there.
func (w *watch) passed() {
	if w.query.Passed != nil {
		w.query.Passed(w.at)
	}
}
