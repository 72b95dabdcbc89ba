package native

import (
	"encoding/json"
	"errors"
	"net/http"
	"os"
	"strings"
	"time"

	"github.com/leasehold/leasehold"
	v1 "github.com/leasehold/leasehold/api/v1"
	"github.com/leasehold/leasehold/internal/core"
	"github.com/leasehold/leasehold/internal/door"
)

const (
	// keepAlive is how often a silent watch says that it is still there.
	keepAlive = 15 * time.Second

	// A watch takes a breath between two writes, and what happens in between goes out
	// together. The more watch, the longer it is: all of them together write so often,
	// and no more, however busy the server is.
	leastBreath = 5 * time.Millisecond
	breathEach  = 20 * time.Microsecond

	// maxFlush is where a write of events is cut short: it bounds what a slow reader
	// costs.
	maxFlush = 256 << 10

	// slowTime is how long a reader may take for one write. Who takes longer is sent
	// away with where to go on; who takes streamTime can not even be told.
	slowTime = streamTime / 2
)

// A stream is one watch. It reads the shared history at its own pace, and keeps
// nothing of it while it writes.
type stream struct {
	*call
	conn     *door.Conn // nil: the writer is not one of ours
	resource string     // shown alone, if not empty
	prefix   string     // else those that begin with it
	session  string     // the beginning of a session's id; only what belongs to such
	values   values
	at       v1.Position // the last event that was looked at
	told     v1.Position // the last position that the reader knows of
	begun    bool        // hello was said
	limited  time.Time   // when the time for a write was last set
	alive    *time.Ticker
	breath   *time.Timer
	out      jsonBuffer
}

// values says which values of records are shown.
type values struct{ now, before bool }

func (c *call) watch() error {
	if c.r.Method == http.MethodHead {
		c.w.Header()["Content-Type"] = streamType
		return nil
	}
	s := &stream{call: c, conn: door.Collecting(c.r)}
	asked, err := s.read()
	if err != nil {
		return err
	}
	leave, err := c.door.backend.StayAs(c.door.backend.Metrics().Watches)
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
		s.at = v1.Position{Revision: uint64(now), N: v1.Whole}
	}
	s.told = s.at
	s.begin()
	if s.at.Revision > uint64(now) {
		// Not a place in this history: the caller saw another one.
		s.gone(v1.Position{Revision: uint64(now), N: v1.Whole}, uint64(now))
		s.flush()
		return nil
	}
	s.run()
	return nil
}

// read reads the query, and whether it says where to begin.
func (s *stream) read() (asked bool, err error) {
	var bad [6]error
	s.prefix, bad[0] = s.call.prefix()
	s.resource, bad[1] = s.wanted()
	s.at, asked, bad[2] = s.since()
	s.values.now, bad[3] = s.flag("values")
	s.values.before, bad[4] = s.flag("previous")
	s.session = s.query.Get("session")
	bad[5] = checkText("session", s.session)
	return asked, firstError(bad[:]...)
}

// wanted reads the one resource to show, if there is one.
func (c *call) wanted() (string, error) {
	resource := c.query.Get("resource")
	switch {
	case !c.query.Has("resource"):
		return "", nil
	case c.query.Has("prefix"):
		return "", invalid("the query has both resource and prefix: give resource for one path, or prefix for all that begin with it")
	}
	return resource, checkPath("resource", resource)
}

func (s *stream) begin() {
	s.stay()
	if carrier := door.Carrier(s.r); carrier != nil {
		carrier.Bound(maxFlush)
	}
	h := s.w.Header()
	h["Content-Type"], h["Cache-Control"], h["X-Content-Type-Options"] = streamType, noStore, noSniff
	h.Set("X-Accel-Buffering", "no") // a proxy that collects would turn a stream into silence
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
	s.alive, s.breath = time.NewTicker(keepAlive), time.NewTimer(0)
	defer s.alive.Stop()
	defer s.breath.Stop()
	for {
		grew, goesOn := s.collect()
		if !s.flush() || !goesOn || !s.wait(grew) {
			return
		}
	}
}

// collect writes down the next events that the reader wants, up to a limit. If
// there were none to look at, grew tells when there are.
func (s *stream) collect() (grew <-chan struct{}, goesOn bool) {
	history, grew, open := s.door.backend.Engine().Feed().History(s.namespace)
	if !open {
		return nil, false
	}
	events, known := history.After(leasehold.Revision(s.at.Revision), s.at.N)
	if !known {
		revision, n := history.Oldest()
		s.gone(v1.Position{Revision: uint64(revision), N: n}, uint64(history.Revision))
		return nil, false
	}
	if !s.begun {
		s.hello()
	}
	if len(events) == 0 {
		return grew, true
	}
	for _, e := range events[:min(len(events), maxLook)] {
		s.at = v1.Position{Revision: uint64(e.Revision), N: e.N}
		if s.wants(e) {
			s.event(e)
		}
		if len(s.out) > maxFlush {
			break
		}
	}
	return nil, true // there may be more already: look again after a breath
}

// wants tells whether an event is for this reader. What happens to sessions has no
// resource, and is for those who see all.
func (s *stream) wants(e *leasehold.Event) bool {
	if s.resource != "" && e.Resource != s.resource {
		return false
	}
	return strings.HasPrefix(e.Resource, s.prefix) && strings.HasPrefix(e.Session, s.session)
}

func (s *stream) event(e *leasehold.Event) {
	if s.out == nil {
		s.out = newSheet()
	}
	s.told = s.at
	if s.values.now && e.Record != nil || s.values.before && e.Previous != nil {
		s.out.message(e, s.values) // few ask for it, and a press would keep the values
		return
	}
	s.out = append(s.out, s.door.press.print(e)...)
}

// wait returns when it is time to look again: after a breath if grew is nil. It
// returns false when the watch is over.
func (s *stream) wait(grew <-chan struct{}) bool {
	var breathed <-chan time.Time
	if grew == nil {
		s.breath.Reset(s.door.breath())
		breathed = s.breath.C
	}
	select {
	case <-grew:
		return true
	case <-breathed:
		return true
	case <-s.alive.C:
		return s.stillThere()
	case <-s.door.backend.Stopping().Done():
		s.comment("the server is stopping: come back with the last id")
		s.flush()
	case <-s.r.Context().Done():
	}
	return false
}

func (d *Door) breath() time.Duration {
	return max(leastBreath, time.Duration(d.watching.Load())*breathEach)
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
}

// sendAway is the last thing that a slow reader gets. It has all up to here.
func (s *stream) sendAway() {
	s.door.backend.Metrics().Cut.Inc()
	s.named("cut", s.at, v1.Cut{Resume: s.at})
	s.writeWithin(slowTime)
	_ = s.write() // who does not get it has the last id
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
	s.out.id(at)
	s.told = at
}

func (s *stream) comment(text string) {
	s.out = append(append(append(s.out, ": "...), text...), "\n\n"...)
}

// flush sends what was collected, and tells whether the watch goes on. A reader
// that takes it too slowly is cut off; it can come back and go on where it was.
func (s *stream) flush() bool {
	if len(s.out) == 0 {
		return true
	}
	began := time.Now()
	if began.Sub(s.limited) >= time.Second || s.r.ProtoMajor >= 2 { // to set it costs as much as a look at history
		s.limited = began
		s.writeWithin(streamTime)
	}
	err := s.write()
	s.written()
	switch took := time.Since(began); {
	case errors.Is(err, os.ErrDeadlineExceeded), err != nil && took >= streamTime:
		s.door.backend.Metrics().Cut.Inc()
	case err == nil && took > slowTime:
		s.sendAway()
		return false
	}
	return err == nil
}

// write hands over what was collected, and keeps one copy of it until it is sent.
func (s *stream) write() error {
	out := s.out
	s.out = nil
	size := float64(len(out))
	s.door.backend.Metrics().Unsent.Add(size)
	defer s.door.backend.Metrics().Unsent.Sub(size)
	if s.conn != nil {
		s.conn.Collect(newSheet())
	}
	_, err := s.w.Write(out)
	if err == nil {
		err = http.NewResponseController(s.w).Flush()
	}
	recycle(out)
	if s.conn != nil {
		sent, failed := s.conn.Send()
		err = errors.Join(err, failed)
		recycle(sent)
	}
	return err
}
