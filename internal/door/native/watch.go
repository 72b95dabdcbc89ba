package native

import (
	"encoding/json"
	"net/http"
	"strings"
	"sync/atomic"
	"time"

	"github.com/leasehold/leasehold"
	v1 "github.com/leasehold/leasehold/api/v1"
	"github.com/leasehold/leasehold/internal/core"
)

const (
	// keepAlive is how often a silent watch says that it is still there.
	keepAlive = 15 * time.Second

	// A watch takes a breath between two writes, and what happens in between goes out
	// together. The more watch, the longer it is: all of them together write so often,
	// and no more, however busy the server is.
	leastBreath = 5 * time.Millisecond
	breathEach  = 100 * time.Microsecond

	// chunk is how many events are looked at before they are written. A slow reader
	// keeps no more of an old history from being forgotten than that.
	chunk = 512

	// maxFlush is where a write of events with large values is cut short: it bounds what
	// a slow reader costs.
	maxFlush = 256 << 10
)

// A stream is one watch. It reads the shared history at its own pace.
type stream struct {
	*call
	prefix  string
	session string      // the beginning of a session's id; only what belongs to such
	values  bool        // with the values of records
	at      v1.Position // the last event that was looked at
	told    v1.Position // the last position that the reader knows of
	begun   bool        // hello was said
	out     paper
}

func (c *call) watch() error {
	if c.r.Method == http.MethodHead {
		c.w.Header()["Content-Type"] = streamType
		return nil
	}
	prefix, badPrefix := c.prefix()
	session := c.query.Get("session")
	since, asked, badSince := c.since()
	values, badValues := c.flag("values")
	if err := firstError(badPrefix, checkText("session", session), badSince, badValues); err != nil {
		return err
	}
	leave, err := c.door.enter(c.door.metrics.Watches)
	if err != nil {
		return err
	}
	defer leave()
	c.door.watching.Add(1)
	defer c.door.watching.Add(-1)
	var now leasehold.Revision
	if err := c.look(func(v core.View) { now = v.History(c.namespace).Revision }); err != nil {
		return err
	}
	if !asked {
		since = v1.Position{Revision: uint64(now), N: v1.Whole}
	}
	c.stay()
	h := c.w.Header()
	h["Content-Type"], h["Cache-Control"], h["X-Content-Type-Options"] = streamType, noStore, noSniff
	h.Set("X-Accel-Buffering", "no") // a proxy that collects would turn a stream into silence
	s := &stream{call: c, prefix: prefix, session: session, values: values, at: since, told: since}
	if since.Revision > uint64(now) {
		// Not a place in this history: the caller saw another one.
		s.gone(v1.Position{Revision: uint64(now), N: v1.Whole}, uint64(now))
		return nil
	}
	s.run()
	return nil
}

// since reads where to begin. A reader that reconnects on its own repeats the
// query of its first try, so what it saw last stands above it.
func (c *call) since() (at v1.Position, asked bool, err error) {
	name, s := "header Last-Event-ID", c.r.Header.Get("Last-Event-ID")
	if s == "" {
		name, s = "since", c.query.Get("since")
	}
	if s == "" {
		return v1.Position{}, false, nil
	}
	at, err = position(name, s)
	return at, true, err
}

// run writes what happens until the reader leaves, is too slow, or the server
// stops.
func (s *stream) run() {
	alive := time.NewTicker(keepAlive)
	defer alive.Stop()
	for {
		history, grew, ok := s.door.engine.Feed().History(s.namespace)
		if !ok {
			return
		}
		events, known := history.After(leasehold.Revision(s.at.Revision), s.at.N)
		if !known {
			revision, n := history.Oldest()
			s.gone(v1.Position{Revision: uint64(revision), N: n}, uint64(history.Revision))
			return
		}
		if !s.tell(events) {
			return
		}
		if len(events) > 0 {
			grew = nil // there may be more already: look again after a breath
		}
		if !s.wait(grew, alive.C) {
			return
		}
	}
}

// wait returns when it is time to look again: after a breath if grew is nil. It
// returns false when the watch is over.
func (s *stream) wait(grew <-chan struct{}, alive <-chan time.Time) bool {
	var breathed <-chan time.Time
	if grew == nil {
		timer := time.NewTimer(s.door.breath())
		defer timer.Stop()
		breathed = timer.C
	}
	select {
	case <-grew:
		return true
	case <-breathed:
		return true
	case <-alive:
		return s.stillThere()
	case <-s.door.stopping.Done():
		s.comment("the server is stopping: come back with the last id")
		s.flush()
	case <-s.r.Context().Done():
	}
	return false
}

func (d *Door) breath() time.Duration {
	return max(leastBreath, time.Duration(d.watching.Load())*breathEach)
}

// tell writes the next events that the reader wants, in one flush, and tells
// whether it is still there.
func (s *stream) tell(events []*leasehold.Event) bool {
	if !s.begun {
		s.hello()
	}
	if len(events) > chunk {
		events = events[:chunk]
	}
	for _, e := range events {
		s.at = v1.Position{Revision: uint64(e.Revision), N: e.N}
		if s.wants(e) {
			s.event(e)
		}
		if len(s.out) > maxFlush {
			break // the rest after a breath
		}
	}
	return len(s.out) == 0 || s.flush()
}

// wants tells whether an event is for this reader. What happens to sessions has no
// resource, and is for those who see all.
func (s *stream) wants(e *leasehold.Event) bool {
	return (s.prefix == "" || e.Resource != "" && strings.HasPrefix(e.Resource, s.prefix)) &&
		(s.session == "" || strings.HasPrefix(e.Session, s.session))
}

func (s *stream) event(e *leasehold.Event) {
	s.id(s.at)
	s.out = append(s.out, "data: "...)
	if s.values && (e.Record != nil || e.Previous != nil) {
		s.out.event(e, true) // few ask for it, and a press would keep the values
	} else {
		s.out = append(s.out, s.door.press.print(e)...)
	}
	s.out = append(s.out, "\n\n"...)
}

// A press writes an event once for all who watch. Where two events meet in a
// slot, the later one stays; whoever misses the other writes it again.
type press struct {
	slots [1024]atomic.Pointer[printed]
}

type printed struct {
	event *leasehold.Event
	text  []byte
}

func (p *press) print(e *leasehold.Event) []byte {
	slot := &p.slots[(uint64(e.Revision)+uint64(e.N))%uint64(len(p.slots))]
	if found := slot.Load(); found != nil && found.event == e {
		return found.text
	}
	text := make(paper, 0, 256)
	text.event(e, false)
	slot.Store(&printed{e, text})
	return text
}

// hello is the first thing that a reader gets. Its id is where the watch begins,
// so that who is cut off before the first event misses nothing.
func (s *stream) hello() {
	s.begun = true
	s.out = append(s.out, "retry: 1000\n"...)
	s.named("hello", s.at, v1.Hello{Namespace: s.namespace, Position: s.at, Time: v1.Time{Time: time.Now()}})
}

// gone is the last thing that a reader gets whose place is not known any more, and
// the only one if it never was. Its id is where those go on who reconnect without looking.
func (s *stream) gone(oldest v1.Position, revision uint64) {
	s.named("gone", oldest, v1.Gone{Since: s.at, Oldest: oldest, Revision: revision})
	s.flush()
}

func (s *stream) named(name string, at v1.Position, data any) {
	s.out = append(append(append(s.out, "event: "...), name...), '\n')
	s.id(at)
	body, _ := json.Marshal(data)
	s.out = append(append(append(s.out, "data: "...), body...), "\n\n"...)
}

// stillThere keeps a silent connection open. If events passed that this reader did
// not want, it learns the new place: else a quiet prefix in a busy namespace would
// one day be told that its place is gone.
func (s *stream) stillThere() bool {
	s.comment("still here")
	if s.told != s.at {
		s.id(s.at)
		s.out = append(s.out, '\n')
	}
	return s.flush()
}

func (s *stream) id(at v1.Position) {
	s.out = at.Append(append(s.out, "id: "...))
	s.out = append(s.out, '\n')
	s.told = at
}

func (s *stream) comment(text string) {
	s.out = append(append(append(s.out, ": "...), text...), "\n\n"...)
}

// flush sends what was collected. A reader that does not take it in time is cut
// off; it can come back and go on where it was.
func (s *stream) flush() bool {
	s.writeWithin(streamTime)
	_, err := s.w.Write(s.out)
	if err == nil {
		err = http.NewResponseController(s.w).Flush()
	}
	s.out = s.out[:0]
	return err == nil
}
