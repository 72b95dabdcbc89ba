package kubernetes

import (
	"context"
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

// A watchQuery is where a watch begins.
type watchQuery struct {
	initial bool               // with what is there
	ends    bool               // and then it says that this was all
	since   leasehold.Revision // or after this
	last    time.Duration
}

// watch answers with what happens to objects, until its time is over.
func (c *call) watch() error {
	s := &stream{call: c, began: time.Now(), shared: c.r.ProtoMajor >= 2}
	begin, err := s.readWatch()
	if err != nil {
		return err
	}
	if err := s.skipBody(); err != nil {
		return err
	}
	if err := s.enter(); err != nil {
		return err
	}
	left := context.AfterFunc(c.r.Context(), s.leave) // until the stream has the connection for itself
	if err = s.begin(begin); err == nil {
		s.end = time.Now().Add(begin.last)
		s.goOn(left)
		return nil
	}
	s.leave()
	if err == errOver {
		return nil
	}
	return err
}

// enter counts the watch until leave is called, and gives it a context that does not end with the request.
func (s *stream) enter() error {
	backend := s.door.backend
	out, err := backend.StayAs(s.signed(), backend.Metrics().Watches)
	if err != nil {
		return err
	}
	s.door.watching.Add(1)
	ctx, cancel := backend.Staying(
		door.WithCaller(context.Background(), door.Caller{Origin: s.origin(), Proof: s.proof}), s.proof)
	s.ctx, s.cancel = ctx, cancel
	watching := &s.door.watching
	s.countOut = func() {
		watching.Add(-1)
		out()
	}
	return nil
}

// leave ends the context, and counts the watch out. It may be called more than once, and from anywhere, also while the
// call is replaced.
func (s *stream) leave() {
	s.cancel()
	if !s.left.Swap(true) {
		s.countOut()
	}
}

// errOver says that a watch ended before it went on to wait, and that its reader knows why, or has left.
var errOver = errors.New("the watch is over")

// begin sends what is there, and begins to follow.
func (s *stream) begin(begin watchQuery) (err error) {
	var first *found
	if begin.initial {
		defer s.answer.Done()
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
		return errOver
	}
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
	leave, err := s.door.lists.Enter(s.signed())
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

// farewell returns the error of a watch that could not begin. Where a version is too old, the reader is told in an
// event, as Kubernetes does.
func (s *stream) farewell(err error) error {
	var gone *engine.GoneError
	if !errors.As(err, &gone) {
		return err
	}
	s.open()
	s.appendError(s.ended(err))
	s.flush()
	return errOver
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
	err := s.write()
	s.out = nil // a silent watch keeps no buffer
	if errors.Is(err, os.ErrDeadlineExceeded) {
		metrics.Cut.Inc()
	}
	return err == nil
}

func (s *stream) write() error {
	if s.borrowed != nil {
		return s.borrowed.Write(s.out, writeTime)
	}
	control := http.NewResponseController(s.w)
	door.WriteWithin(s.w, writeTime)
	_, err := s.w.Write(s.out)
	if err == nil {
		err = control.Flush()
	}
	if s.shared {
		_ = control.SetWriteDeadline(time.Time{})
	}
	return err
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
