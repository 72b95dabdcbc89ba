package native

import (
	"encoding/json"
	"errors"
	"net/http"
	"os"
	"strconv"
	"time"

	"github.com/leasehold/leasehold"
	v1 "github.com/leasehold/leasehold/api/v1"
	"github.com/leasehold/leasehold/internal/door"
	"github.com/leasehold/leasehold/internal/door/native/encode"
	"github.com/leasehold/leasehold/internal/engine"
)

const (
	// keepAlive is how often a silent watch says that it is still there.
	keepAlive = 15 * time.Second

	// A watch pauses between two writes, and what happens in between goes out together. The
	// pause grows with the number of watches, so that all of them together write at a bounded
	// rate, however busy the server is.
	leastPause = 5 * time.Millisecond
	pauseEach  = 20 * time.Microsecond

	maxFlush = encode.MaxFlush

	// slowTime is how long a reader may take for one write. A slower one is sent away with the
	// position to go on from; one that takes streamTime cannot even be told.
	slowTime = streamTime / 2
)

// A stream is one watch over HTTP. It reads the shared history at its own pace, and keeps
// nothing of it while it writes.
type stream struct {
	*call
	*httpWire
	conn    *door.Conn // nil: the writer is not one of ours
	watcher *engine.Watcher
	values  encode.Values
	told    v1.Position // the last position that the reader knows of
	limited time.Time   // when the time for a write was last set
	alive   *time.Ticker
	pause   *time.Timer
	out     []byte
}

// watch streams events until the client goes away.
func (c *call) watch() error {
	h := c.stream()
	if h.r.Method == http.MethodHead {
		h.w.Header()["Content-Type"] = streamType
		return nil
	}
	s := &stream{call: c, httpWire: h, conn: door.Collecting(h.r)}
	filter, since, err := c.readWatch(&s.values)
	if err != nil {
		return err
	}
	if err := h.skipBody(); err != nil {
		return err
	}
	leave, err := c.stayWatching()
	if err != nil {
		return err
	}
	defer leave()
	var gone *engine.GoneError
	s.watcher, err = engine.Watch(c.ctx, c.door.backend.Engine(), filter, since)
	switch {
	case errors.As(err, &gone):
		s.open(gone.Revision)
		s.gone(gone)
		s.flush()
		return nil
	case err != nil:
		return err
	}
	s.open(s.watcher.Began())
	s.hello()
	s.run()
	return nil
}

// stayWatching counts the request as a watch, for as long as it stays.
func (c *call) stayWatching() (leave func(), err error) {
	left, err := c.door.backend.StayAs(c.signed(), c.door.backend.Metrics().Watches)
	if err != nil {
		return nil, err
	}
	c.door.watching.Add(1)
	ctx, cancel := c.door.backend.Staying(c.signed(), c.proof)
	c.ctx = ctx
	return func() {
		cancel() // the watch counts until then
		c.door.watching.Add(-1)
		left()
	}, nil
}

// readWatch reads the query: what to show, and from where on. Without a place to begin, that is nil.
func (c *call) readWatch(values *encode.Values) (filter engine.Filter, since *engine.Position, err error) {
	var bad [7]error
	filter.Namespace = c.namespace
	filter.Prefix, bad[0] = c.prefix()
	filter.Resource, bad[1] = c.wanted()
	since, bad[2] = c.since()
	values.Now, bad[3] = c.flag("values")
	values.Before, bad[4] = c.flag("previous")
	filter.Session = c.query.Get("session")
	bad[5] = checkText("session", filter.Session)
	filter.Interventions, bad[6] = c.flag("interventions")
	return filter, since, firstError(bad[:]...)
}

// wanted reads the one resource to show, if there is one.
func (c *call) wanted() (string, error) {
	resource := c.query.Get("resource")
	switch {
	case !c.query.Has("resource"):
		return "", nil
	case c.query.Has("prefix"):
		return "", invalid("the query has both resource and prefix: " +
			"give resource for one path, or prefix for all that begin with it")
	}
	return resource, checkPath("resource", resource)
}

// open sends the head of the stream, which tells the newest revision of the namespace.
func (s *stream) open(revision leasehold.Revision) {
	s.stay()
	if carrier := door.Carrier(s.r); carrier != nil {
		carrier.Bound(maxFlush)
	}
	h := s.w.Header()
	h[v1.RevisionHeader] = []string{strconv.FormatUint(uint64(revision), 10)}
	h["Content-Type"], h["Cache-Control"], h["X-Content-Type-Options"] = streamType, noStore, noSniff
	h.Set("X-Accel-Buffering", "no") // a proxy that collects would turn a stream into silence
}

// since reads where to begin. A reader that reconnects on its own repeats the
// query of its first try, so what it saw last stands above it.
func (c *call) since() (*engine.Position, error) {
	name, s := "since", c.query.Get("since")
	if last := c.head("Last-Event-Id"); len(last) > 0 && last[0] != "" {
		name, s = "header Last-Event-ID", last[0]
	}
	if s == "" {
		return nil, nil
	}
	at, err := position(name, s)
	return &engine.Position{Revision: leasehold.Revision(at.Revision), N: at.N}, err
}

// run writes what happens until the reader leaves, is too slow, or the server
// stops.
func (s *stream) run() {
	s.alive, s.pause = time.NewTicker(keepAlive), time.NewTimer(0)
	defer s.alive.Stop()
	defer s.pause.Stop()
	for {
		more, goesOn := s.collect()
		if !s.flush() || !goesOn || !s.wait(more) {
			return
		}
	}
}

// collect encodes the next events that the reader wants, up to a limit. If there were none to look
// at, more tells when there are.
func (s *stream) collect() (more <-chan struct{}, goesOn bool) {
	more, err := s.watcher.Each(func(e *leasehold.Event) bool {
		s.event(e)
		return len(s.out) <= maxFlush
	})
	var gone *engine.GoneError
	switch {
	case errors.As(err, &gone):
		s.gone(gone)
	case err != nil:
		s.comment(err.Error()) // what it is told again, with a status, when it comes back
	}
	return more, err == nil
}

// at is the position of the last event that was looked at.
func (s *stream) at() v1.Position { return shown(s.watcher.At()) }

func shown(at engine.Position) v1.Position {
	return v1.Position{Revision: uint64(at.Revision), N: at.N}
}

func (s *stream) event(e *leasehold.Event) {
	if s.out == nil {
		s.out = encode.NewBatch()
	}
	s.told = v1.Position{Revision: uint64(e.Revision), N: e.N}
	if s.values.Now && e.Record != nil || s.values.Before && e.Previous != nil {
		s.out = encode.AppendMessage(s.out, e, s.values) // few ask for it, and the cache would keep the values
		return
	}
	s.out = append(s.out, s.door.events.Encode(e)...)
}

// wait returns when it is time to look again: after a pause if more is nil. It
// returns false when the watch is over.
func (s *stream) wait(more <-chan struct{}) bool {
	select {
	case <-more:
		return true
	case <-s.door.pause(s.watcher, more, s.pause):
		return true
	case <-s.alive.C:
		return s.stillThere()
	case <-s.ctx.Done():
		s.farewell()
	}
	return false
}

// farewell says why a watch ends, unless that is because the reader left.
func (s *stream) farewell() {
	switch ended := s.door.backend.Ended(s.ctx, nil, nil); {
	case s.door.backend.Stopping().Err() != nil:
		s.comment("the server is stopping: come back with the last id")
	case ended != nil:
		s.comment(ended.Error())
	default:
		return
	}
	s.flush()
}

// pause sets a timer for when a watch looks again, if that is not told by a channel alone.
func (d *Door) pause(w *engine.Watcher, more <-chan struct{}, timer *time.Timer) <-chan time.Time {
	rest := w.LookTime()
	if more == nil {
		rest = max(leastPause, time.Duration(d.watching.Load())*pauseEach)
	}
	if rest == 0 {
		return nil
	}
	timer.Reset(rest)
	return timer.C
}

// hello is the first thing that a reader gets. Its id is where the watch begins,
// so that who is cut off before the first event misses nothing.
func (s *stream) hello() {
	at := s.at()
	s.out = append(s.out, "retry: 1000\n"...)
	s.named("hello", at, s.call.hello(at))
}

// gone is the last event that a reader gets whose place is no longer known, and the only one if it
// never was. Its id is where those go on who reconnect without looking.
func (s *stream) gone(g *engine.GoneError) {
	s.named("gone", shown(g.Oldest), v1.Gone{Since: shown(g.Since), Oldest: shown(g.Oldest),
		Revision: uint64(g.Revision)})
}

// sendAway is the last thing that a slow reader gets. It has all up to here.
func (s *stream) sendAway() {
	s.door.backend.Metrics().Cut.Inc()
	s.named("cut", s.at(), v1.Cut{Resume: s.at()})
	s.within(slowTime)
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
	if at := s.at(); s.told != at {
		s.id(at)
		s.out = append(s.out, '\n')
	}
	return s.flush()
}

func (s *stream) id(at v1.Position) {
	s.out = encode.AppendID(s.out, at)
	s.told = at
}

func (s *stream) comment(text string) {
	s.out = append(append(append(s.out, ": "...), text...), "\n\n"...)
}

// flush sends what was collected, and reports whether the watch goes on. A reader
// that takes it too slowly is cut off; it can come back and go on where it was.
func (s *stream) flush() bool {
	if len(s.out) == 0 {
		return true
	}
	began := time.Now()
	if began.Sub(s.limited) >= time.Second || s.r.ProtoMajor >= 2 { // to set it costs as much as a look at history
		s.limited = began
		s.within(streamTime)
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
		s.conn.Collect(encode.NewBatch())
	}
	_, err := s.w.Write(out)
	if err == nil {
		err = http.NewResponseController(s.w).Flush()
	}
	encode.Recycle(out)
	if s.conn != nil {
		sent, failed := s.conn.Send()
		err = errors.Join(err, failed)
		encode.Recycle(sent)
	}
	return err
}

// hello is what a watch begins with.
func (c *call) hello(at v1.Position) v1.Hello {
	return v1.Hello{Namespace: c.namespace, Position: at, Time: v1.Time{Time: time.Now()}}
}
