package etcd

import (
	"errors"
	"slices"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"google.golang.org/protobuf/proto"

	"github.com/leasehold/leasehold"
	"github.com/leasehold/leasehold/internal/core"
	"github.com/leasehold/leasehold/internal/engine"
)

const (
	maxLook    = 1000    // events that are looked at for one batch, or those of one revision if they are more
	maxBatch   = 1 << 20 // bytes of their values
	maxMessage = 1536 << 10
)

// filter lets through what happens to records.
func (d *Door) filter() engine.Filter {
	return engine.Filter{Namespace: d.config.Namespace,
		Kinds: []leasehold.Kind{leasehold.RecordPut, leasehold.RecordDeleted}}
}

// A reader reads the events of history in batches that end with a revision: clients take what they get in one message
// for all that happened at its revisions.
type reader struct {
	watcher *engine.Watcher
	held    *leasehold.Event // the first of the next batch
	ended   bool             // there was nothing more when it looked last
}

// read returns the next batch, and a channel that is closed when there is more; nil: there may be more already.
func (r *reader) read() (batch []*leasehold.Event, more <-chan struct{}, err error) {
	bytes := 0
	add := func(e *leasehold.Event) {
		batch = append(batch, e)
		for _, record := range []*leasehold.Record{e.Record, e.Previous} {
			if record != nil {
				bytes += len(record.Value)
			}
		}
	}
	if r.held != nil {
		add(r.held)
		r.held = nil
	}
	more, err = r.watcher.Each(func(e *leasehold.Event) bool {
		full := len(batch) >= maxLook || bytes >= maxBatch
		if full && batch[len(batch)-1].Revision != e.Revision {
			r.held = e
			return false
		}
		add(e)
		return true
	})
	r.ended = more != nil
	if len(batch) > 0 || r.held != nil {
		more = nil
	}
	return batch, more, err
}

// at is how far the reader is: it has returned everything up to there. What happens at one revision is known at once,
// so a reader that has come to the end has all of it. Where it has come to does not depend on where it began.
func (r *reader) at() engine.Position {
	at := r.watcher.At()
	switch {
	case r.held != nil:
		return engine.Position{Revision: r.held.Revision - 1, N: core.AllOf}
	case r.ended:
		at.N = core.AllOf
	}
	return at
}

// A group is the watches of a stream that have seen all that happened. They share one reader, and each event finds
// those that want it: by its key, or by a look at each range.
type group struct {
	reader  *reader // nil: there is none yet
	singles map[string][]*watched
	ranges  []*watched
}

func (g *group) at() leasehold.Revision {
	if g.reader == nil {
		return 0
	}
	return g.reader.at().Revision
}

func (g *group) join(w *watched) {
	if !w.keys.one {
		g.ranges = append(g.ranges, w)
		return
	}
	if g.singles == nil {
		g.singles = map[string][]*watched{}
	}
	g.singles[w.keys.from] = append(g.singles[w.keys.from], w)
}

func (g *group) leave(w *watched) {
	is := func(other *watched) bool { return other == w }
	if !w.keys.one {
		g.ranges = slices.DeleteFunc(g.ranges, is)
		return
	}
	left := slices.DeleteFunc(g.singles[w.keys.from], is)
	if len(left) == 0 {
		delete(g.singles, w.keys.from)
		return
	}
	g.singles[w.keys.from] = left
}

// each calls fn with the watches whose keys hold one.
func (g *group) each(key string, fn func(*watched)) {
	for _, w := range g.singles[key] {
		fn(w)
	}
	for _, w := range g.ranges {
		if w.keys.holds(key) {
			fn(w)
		}
	}
}

// begin begins to follow history for the group.
func (s *watchStream) begin() error {
	if s.group.reader != nil {
		return nil
	}
	follow, err := engine.Watch(s.ctx, s.backend.Engine(), s.filter(), nil)
	if err == nil {
		s.group.reader = &reader{watcher: follow}
	}
	return err
}

// pump sends what is there, some at a time. It returns a channel that is closed when there is more; nil: there may be
// more already, or there is nobody to send it to.
func (s *watchStream) pump() (more <-chan struct{}, err error) {
	if s.group.reader != nil {
		if more, err = s.pumpGroup(); err != nil {
			return nil, err
		}
	}
	if len(s.behind) > 0 {
		more = nil
		if err := s.catchUp(); err != nil {
			return nil, err
		}
	}
	if s.asked && len(s.behind) == 0 && (s.group.reader == nil || more != nil && s.group.at() >= s.askedAt) {
		s.asked = false
		return more, s.send(&pb.WatchResponse{Header: s.header(max(s.askedAt, s.group.at())), WatchId: noWatch})
	}
	return more, nil
}

// pumpGroup sends the next events to the watches of the group.
func (s *watchStream) pumpGroup() (more <-chan struct{}, err error) {
	events, more, err := s.group.reader.read()
	if err != nil {
		return nil, s.loseAll(err)
	}
	var touched []*watched
	for _, e := range events {
		s.group.each(e.Resource, func(w *watched) {
			if !w.wants(e) {
				return
			}
			if len(w.batch) == 0 {
				touched = append(touched, w)
			}
			w.batch = append(w.batch, e)
		})
	}
	for _, w := range touched {
		if err := s.flush(w, s.group.at()); err != nil {
			return nil, err
		}
	}
	return more, nil
}

// loseAll ends all watches of the group, whose place is no longer known. The next one begins anew.
func (s *watchStream) loseAll(err error) error {
	if gone := (*engine.GoneError)(nil); !errors.As(err, &gone) {
		return err
	}
	for _, w := range s.all {
		if w.reader != nil {
			continue
		}
		if err := s.lost(w, err); err != nil {
			return err
		}
	}
	s.group = group{}
	if len(s.behind) > 0 {
		return s.begin() // which they will join
	}
	return nil
}

// catchUp sends the next events to the watches that began in the past. One that has seen as much as the group joins it.
func (s *watchStream) catchUp() error {
	left := s.behind[:0]
	for _, w := range s.behind {
		if s.all[w.id] != w {
			continue // it was cancelled
		}
		events, _, err := w.reader.read()
		if err != nil {
			if err := s.lost(w, err); err != nil {
				return err
			}
			continue
		}
		for _, e := range events {
			if w.keys.holds(e.Resource) && w.wants(e) {
				w.batch = append(w.batch, e)
			}
		}
		at := w.reader.at()
		if err := s.flush(w, at.Revision); err != nil {
			return err
		}
		if group := s.group.reader.at(); later(at, group) != at {
			left = append(left, w)
			continue
		}
		w.cancel()
		w.after, w.reader, w.cancel = later(at, w.after), nil, nil
		s.group.join(w)
	}
	clear(s.behind[len(left):])
	s.behind = left
	return nil
}

// later returns the later of two positions.
func later(a, b engine.Position) engine.Position {
	if a.Revision > b.Revision || a.Revision == b.Revision && a.N > b.N {
		return a
	}
	return b
}

// flush sends the batch of a watch, after which it has everything up to a revision.
func (s *watchStream) flush(w *watched, at leasehold.Revision) error {
	if len(w.batch) == 0 {
		return nil
	}
	r := &pb.WatchResponse{WatchId: w.id}
	for _, e := range w.batch {
		r.Events = append(r.Events, eventOf(e, w.previous))
	}
	w.batch, w.quiet = nil, false
	r.Header = s.header(at)
	if !w.fragment {
		return s.send(r)
	}
	return s.fragments(r)
}

// fragments sends an answer in parts that are not too large, as its client wants it.
func (s *watchStream) fragments(r *pb.WatchResponse) error {
	events := r.Events
	for {
		size, n := 0, 0
		for n < len(events) {
			if size += proto.Size(events[n]); n > 0 && size > maxMessage {
				break
			}
			n++
		}
		part := &pb.WatchResponse{Header: r.Header, WatchId: r.WatchId, Events: events[:n], Fragment: n < len(events)}
		if err := s.send(part); err != nil || n == len(events) {
			return err
		}
		events = events[n:]
	}
}
