package v1

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"net/http"
	"net/url"
	"time"

	"github.com/leasehold/leasehold"
)

// A WatchQuery says what to watch.
type WatchQuery struct {
	Resource string      // this one alone; empty: all that begin with Prefix
	Prefix   string      // empty: everything in the namespace, sessions too
	Since    string      // a position; empty: from now on
	Values   bool        // with the values of records that were put
	Previous bool        // with the values before
	Session  string      // the beginning of a session's id: only what happens to such, and to what is bound to them
	Started  func(Hello) // called each time that the watch is connected; may be nil

	Passed func(position string) // called with each place that the watch has come to; may be nil

	// Once ends the watch, with an error, when its connection is lost: for those who
	// go on at another server, since what they passed last.
	Once bool
}

// A Hello begins a watch: it shows every event after Position. Time is the
// server's calendar, for those who draw countdowns.
type Hello struct {
	Namespace string   `json:"namespace"`
	Position  Position `json:"position"`
	Time      Time     `json:"time"`
}

// A Gone ends a watch that asked for events which are not known any more. Oldest
// is the first position from which a watch can go on, Revision the newest one:
// read the resources again and watch since that, or go on from Oldest with a gap.
type Gone struct {
	Since    Position `json:"since"`
	Oldest   Position `json:"oldest"`
	Revision uint64   `json:"revision"`
}

// Error makes a Gone an error.
func (g *Gone) Error() string {
	return fmt.Sprintf("what happened after %v is not known any more: read the resources again and watch since %d, or go on from %v with a gap", g.Since, g.Revision, g.Oldest)
}

// A Cut ends a watch whose reader took too long for what it was sent. It got all
// up to Resume, and can go on from there.
type Cut struct {
	Resume Position `json:"resume"`
}

// Watch shows what happens, each event once and in order. When the connection is
// lost it comes back and goes on where it was, until ctx ends. It ends with an
// error if it can not begin, or if the server does not know any more what comes
// next: that error holds a *Gone and is a leasehold.ErrLost.
func (c *Caller) Watch(ctx context.Context, q WatchQuery) iter.Seq2[Event, error] {
	return func(yield func(Event, error) bool) {
		w := &watch{caller: c, query: q, at: q.Since, yield: yield}
		for {
			err := w.connect(ctx)
			switch {
			case w.over:
				return
			case ctx.Err() != nil:
				yield(Event{}, &failure{&leasehold.Error{Code: leasehold.Unavailable, Message: "the watch was ended"}, ctx.Err()})
				return
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

type watch struct {
	caller   *Caller
	query    WatchQuery
	at       string // the last id, which is where to go on
	begun    bool
	over     bool // the reader wants no more
	failures int  // in a row
	yield    func(Event, error) bool
}

// watchBackoff is how long to wait before a watch that was cut off begins again.
var watchBackoff = Backoff{First: 100 * time.Millisecond, Most: 5 * time.Second}

// maxSilence is three times the pause between two signs of life: after it, the
// connection leads nowhere.
const maxSilence = 45 * time.Second

// connect watches over one connection, until it ends.
func (w *watch) connect(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	silence := time.AfterFunc(maxSilence, cancel)
	defer silence.Stop()

	query := url.Values{}
	setText(query, "resource", w.query.Resource)
	setText(query, "prefix", w.query.Prefix)
	setText(query, "session", w.query.Session)
	if w.query.Values {
		query.Set("values", "true")
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
	lines := bufio.NewScanner(response.Body)
	lines.Buffer(make([]byte, 0, 16<<10), maxLine)
	for {
		m, err := readMessage(lines, func() { silence.Reset(maxSilence) })
		if err != nil {
			return unanswered(addressOf(response), r.method, err)
		}
		silence.Stop() // however long the reader takes, that is not the server's silence
		if err := w.take(m); err != nil || w.over {
			return err
		}
		silence.Reset(maxSilence)
	}
}

// addressOf is that of the server which gave an answer.
func addressOf(response *http.Response) string {
	return response.Request.URL.Scheme + "://" + response.Request.URL.Host
}

// take hands one message on.
func (w *watch) take(m message) error {
	if m.id != "" {
		w.at = m.id
		defer w.passed()
	}
	switch m.event {
	case "":
		if len(m.data) == 0 {
			return nil
		}
		var e Event
		if err := json.Unmarshal(m.data, &e); err != nil {
			return &leasehold.Error{Code: leasehold.Refused, Message: "the watch sent an event that can not be read: " + err.Error()}
		}
		w.over = !w.yield(e, nil)
	case "hello":
		w.begun, w.failures = true, 0
		var h Hello
		if json.Unmarshal(m.data, &h) == nil && w.query.Started != nil {
			w.query.Started(h)
		}
	case "cut":
		return &leasehold.Error{Code: leasehold.Unavailable, Message: "the watch was cut off: its events were not read fast enough"}
	case "gone":
		g := new(Gone)
		if err := json.Unmarshal(m.data, g); err != nil {
			return &leasehold.Error{Code: leasehold.Lost, Message: "the watch ended: what comes next is not known any more"}
		}
		return &failure{&leasehold.Error{Code: leasehold.Lost, Message: g.Error()}, g}
	}
	return nil
}

// passed tells where the watch is, after the reader had what stands there.
func (w *watch) passed() {
	if w.query.Passed != nil {
		w.query.Passed(w.at)
	}
}

// A message is one block of a stream of server-sent events.
type message struct {
	id    string
	event string
	data  []byte
}

// maxLine is more than the largest event can have.
const maxLine = 1 << 20

// readMessage reads up to the next empty line. A block that is cut off is no
// message: its id must not count.
func readMessage(lines *bufio.Scanner, alive func()) (m message, err error) {
	for lines.Scan() {
		alive()
		line := lines.Bytes()
		if len(line) == 0 {
			return m, nil
		}
		m.field(line)
	}
	return message{}, cmp.Or(lines.Err(), io.ErrUnexpectedEOF)
}

func (m *message) field(line []byte) {
	name, value, _ := bytes.Cut(line, []byte(":"))
	value = bytes.TrimPrefix(value, []byte(" "))
	switch string(name) {
	case "id":
		m.id = string(value)
	case "event":
		m.event = string(value)
	case "data":
		if m.data != nil {
			m.data = append(m.data, '\n')
		}
		m.data = append(m.data, value...)
	}
}
