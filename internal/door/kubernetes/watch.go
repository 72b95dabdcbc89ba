package kubernetes

import (
	"errors"
	"math/rand/v2"
	"net/http"
	"os"
	"strconv"
	"time"

	"github.com/leasehold/leasehold"
	"github.com/leasehold/leasehold/internal/core"
	"github.com/leasehold/leasehold/internal/door"
	"github.com/leasehold/leasehold/internal/door/kubernetes/object"
	"github.com/leasehold/leasehold/internal/engine"
)

const (
	// bookmarkTime is how often a watch that wants it is told how far it has come.
	bookmarkTime = time.Minute

	// A watch that says nothing of its end lasts for some time between these two, so that not all come back together.
	minWatch, maxWatch = 30 * time.Minute, time.Hour

	// A watch pauses between two writes, and what happens in between goes out together. The pause grows with the
	// number of watches, so that all of them together write at a bounded rate.
	leastPause = 5 * time.Millisecond
	pauseEach  = 20 * time.Microsecond

	// maxFlush is where a write of events is cut short: it bounds what a slow reader costs.
	maxFlush = 256 << 10

	// writeTime is how long a reader may take for one write. A slower one is cut off, and goes on where it was.
	writeTime = 10 * time.Second
)

// A stream is one watch.
type stream struct {
	*call
	query    listQuery
	watcher  *engine.Watcher
	bookmark bool
	seen     leasehold.Revision // events of it are known already, unless it has several
	told     leasehold.Revision // that the reader knows of
	out      []byte
}

// A watchQuery is where a watch begins.
type watchQuery struct {
	initial bool               // with what is there
	ends    bool               // and then it says that this was all
	since   leasehold.Revision // or after this
	last    time.Duration
}

// watch answers with what happens to objects, until its time is over.
func (c *call) watch() error {
	s := &stream{call: c}
	begin, err := s.readWatch()
	if err != nil {
		return err
	}
	backend := c.door.backend
	leave, err := backend.StayAs(backend.Metrics().Watches)
	if err != nil {
		return err
	}
	defer leave()
	c.door.watching.Add(1)
	defer c.door.watching.Add(-1)
	ctx, cancel := backend.Staying(c.signed(), c.proof)
	defer cancel()
	c.ctx = ctx
	var first *found
	if begin.initial {
		if first, err = s.present(); err != nil {
			return err
		}
		begin.since = first.revision
	}
	if err := s.follow(begin); err != nil {
		return s.farewell(err)
	}
	s.open()
	if first != nil && !s.sendInitial(first, begin.ends) {
		return nil
	}
	s.run(begin.last)
	return nil
}

// readWatch reads what to watch, and from where on.
func (s *stream) readWatch() (begin watchQuery, err error) {
	if s.query, err = s.selectors(); err != nil {
		return begin, err
	}
	revision, err := revisionOf(s.call.query.Get("resourceVersion"))
	if err != nil {
		return begin, badRequest("%v", err)
	}
	sends, match := s.call.query.Get("sendInitialEvents"), s.call.query.Get("resourceVersionMatch")
	s.bookmark = isTrue(s.call.query.Get("allowWatchBookmarks"))
	switch {
	case sends == "" && match != "":
		return begin, invalidOptions("resourceVersionMatch",
			"Forbidden: resourceVersionMatch is forbidden for watch unless sendInitialEvents is provided")
	case sends != "" && match != "NotOlderThan":
		return begin, invalidOptions("resourceVersionMatch",
			"Forbidden: sendInitialEvents requires setting resourceVersionMatch to NotOlderThan")
	case isTrue(sends):
		begin.initial, begin.ends, s.query.least = true, s.bookmark, revision
	case sends == "" && revision == 0:
		begin.initial = true
	}
	begin.since = revision
	begin.last, err = s.lasts()
	return begin, err
}

// lasts reads how long the watch is to last.
func (s *stream) lasts() (time.Duration, error) {
	text := s.call.query.Get("timeoutSeconds")
	if text == "" || text == "0" {
		return minWatch + rand.N(maxWatch-minWatch), nil
	}
	seconds, err := strconv.ParseUint(text, 10, 31)
	if err != nil {
		return 0, badRequest("timeoutSeconds %q is not a number from 0 on", text)
	}
	return time.Duration(seconds) * time.Second, nil
}

// present reads what is there before the watch begins.
func (s *stream) present() (*found, error) {
	leave, err := s.door.lists.Enter()
	if err != nil {
		return nil, err
	}
	defer leave()
	f, err := s.collect(s.query)
	return &f, err
}

// follow begins to read events.
//
// A reader comes back with the version of the last object that it saw. Several objects can have the same version, as
// when the leases of many holders expire together, and it may have seen only some of them. So the watch begins with
// that revision, not after it; if that has one event, the reader has seen it.
func (s *stream) follow(begin watchQuery) (err error) {
	filter := engine.Filter{
		Namespace: s.door.config.Namespace, Prefix: s.path(),
		Kinds: []leasehold.Kind{leasehold.RecordPut, leasehold.RecordDeleted},
	}
	if s.space != "" && s.query.fields.Name != "" {
		filter.Resource, filter.Prefix = s.path()+s.query.fields.Name, ""
	}
	var from *engine.Position
	switch {
	case begin.initial:
		from = &engine.Position{Revision: begin.since, N: core.AllOf}
	case begin.since > 0:
		from, s.seen = &engine.Position{Revision: begin.since - 1, N: core.AllOf}, begin.since
	}
	s.told = begin.since
	s.watcher, err = engine.Watch(s.ctx, s.door.backend.Engine(), filter, from)
	return err
}

// open sends the head of the stream.
func (s *stream) open() {
	door.Unhurried(s.w)
	if carrier := door.Carrier(s.r); carrier != nil {
		carrier.Bound(maxFlush)
	}
	h := s.w.Header()
	h["Cache-Control"], h["X-Content-Type-Options"] = noCache, noSniff
	if h["Content-Type"] = jsonHeader; s.form.protobuf {
		h["Content-Type"] = protobufStream
	}
	s.w.WriteHeader(http.StatusOK)
	_ = http.NewResponseController(s.w).Flush()
}

// sendInitial sends what was there when the watch began, and says if that was all.
func (s *stream) sendInitial(f *found, ends bool) bool {
	for _, item := range f.items {
		s.out = s.appendEvent(s.out, added, s.shaped(item.lease))
		if len(s.out) >= maxFlush && !s.flush() {
			return false
		}
	}
	if ends {
		s.appendBookmark(f.revision, true)
	}
	return s.flush()
}

// run writes what happens until the reader leaves, is too slow, or the watch has lasted as long as it should.
func (s *stream) run(last time.Duration) {
	end, pause := time.NewTimer(last), time.NewTimer(0)
	defer end.Stop()
	defer pause.Stop()
	bookmarked := time.Now()
	for {
		more, err := s.collectEvents()
		if err != nil {
			s.appendError(s.ended(err))
			s.flush()
			return
		}
		if s.bookmark && more != nil && time.Since(bookmarked) >= bookmarkTime {
			s.appendBookmark(s.watcher.At().Revision, false)
			bookmarked = time.Now()
		}
		if !s.flush() || !s.wait(more, pause, end, bookmarked) {
			return
		}
	}
}

// collectEvents encodes the next events that the reader wants, up to a limit. If there were none to look at, more tells
// when there are.
func (s *stream) collectEvents() (more <-chan struct{}, err error) {
	var again []*leasehold.Event
	more, err = s.watcher.Each(func(e *leasehold.Event) bool {
		if e.Revision == s.seen {
			again = append(again, e)
			return true
		}
		s.repeat(&again)
		s.event(e)
		return len(s.out) <= maxFlush
	})
	s.repeat(&again)
	if more != nil {
		s.seen = 0
	}
	return more, err
}

// repeat sends the events of the revision that the reader came back with, if these are several.
func (s *stream) repeat(again *[]*leasehold.Event) {
	if len(*again) > 1 {
		for _, e := range *again {
			s.event(e)
		}
	}
	*again = nil
}

// wait returns when it is time to look again: after a pause if more is nil. It returns false when the watch is over.
func (s *stream) wait(more <-chan struct{}, pause, end *time.Timer, bookmarked time.Time) bool {
	var rest <-chan time.Time
	switch {
	case more == nil:
		pause.Reset(max(leastPause, time.Duration(s.door.watching.Load())*pauseEach))
		rest = pause.C
	case s.bookmark:
		pause.Reset(max(leastPause, time.Until(bookmarked.Add(bookmarkTime))))
		rest = pause.C
	}
	select {
	case <-more:
		return true
	case <-rest:
		return true
	case <-end.C:
		if s.bookmark && more != nil {
			s.appendBookmark(s.watcher.At().Revision, false)
			s.flush()
		}
	case <-s.ctx.Done():
		if err := s.door.backend.Ended(s.ctx, s.proof, nil); err != nil {
			s.appendError(err)
			s.flush()
		}
	}
	return false
}

// farewell returns the error of a watch that could not begin; or nil, if the reader was told in an event, as Kubernetes
// does when a version is too old.
func (s *stream) farewell(err error) error {
	var gone *engine.GoneError
	if !errors.As(err, &gone) {
		return err
	}
	s.open()
	s.appendError(s.ended(err))
	s.flush()
	return nil
}

// ended returns why a watch cannot go on.
func (s *stream) ended(err error) error {
	var gone *engine.GoneError
	if errors.As(err, &gone) {
		return expired("too old resource version: %d (%d)", s.told, gone.Revision)
	}
	if ended := s.door.backend.Ended(s.ctx, s.proof, err); ended != nil {
		return ended
	}
	return err
}

// flush sends what was collected, and reports whether the watch goes on. A reader that takes it too slowly is cut off.
func (s *stream) flush() bool {
	if len(s.out) == 0 {
		return true
	}
	metrics, size := s.door.backend.Metrics(), float64(len(s.out))
	metrics.Unsent.Add(size)
	defer metrics.Unsent.Sub(size)
	door.WriteWithin(s.w, writeTime)
	_, err := s.w.Write(s.out)
	if err == nil {
		err = http.NewResponseController(s.w).Flush()
	}
	s.out = nil // a silent watch keeps no buffer
	if s.r.ProtoMajor >= 2 {
		_ = http.NewResponseController(s.w).SetWriteDeadline(time.Time{})
	}
	if errors.Is(err, os.ErrDeadlineExceeded) {
		metrics.Cut.Inc()
	}
	return err == nil
}

// object returns the object of an event's record as the reader sees it; nil if the reader does not want it.
func (s *stream) object(r *leasehold.Record, other string) *object.Lease {
	if r == nil {
		return nil
	}
	l, err := show(r, other)
	if err != nil || !s.query.picks(l) {
		return nil
	}
	return l
}
