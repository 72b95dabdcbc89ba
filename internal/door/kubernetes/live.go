package kubernetes

import (
	"context"
	"runtime/debug"
	"strings"
	"sync/atomic"
	"time"

	"github.com/leasehold/leasehold"
	"github.com/leasehold/leasehold/internal/door"
	"github.com/leasehold/leasehold/internal/engine"
	"github.com/leasehold/leasehold/internal/telemetry"
)

// A stream is one watch. While nothing happens it has no goroutine, so that ten thousand of them cost little: a change,
// a timer, or the end of its context lets somebody look after it.
type stream struct {
	*call           // without the request, once the stream is on a connection of its own
	cancel   func() // ends the context
	countOut func()
	left     atomic.Bool // it was counted out
	query    listQuery
	watcher  *engine.Watcher
	bookmark bool
	seen     leasehold.Revision // events of it are known already, unless it has several
	told     leasehold.Revision // that the reader knows of
	out      []byte

	borrowed *door.Borrowed // the connection; nil: net/http writes, and a handler waits for done
	done     chan struct{}
	shared   bool // with others, by HTTP/2
	finished bool

	turn    atomic.Int32 // who may look after it
	sleeper door.Sleeper
	timer   *time.Timer
	idle    bool      // it had seen everything when it was looked after last
	began   time.Time // the request
	marked  time.Time // when it was last told how far it has come
	end     time.Time
}

// Who may look after a stream.
const (
	nobody = iota // does
	one           // does
	twice         // one does, and has to look again: something happened meanwhile
	never         // the stream is over
)

// goOn lets the stream live by itself: its handler returns, and what net/http and we have for the request is free.
// Where that cannot be, the handler waits. On a connection of its own the request is over for net/http; left is called
// then, so that the end of the request is not that of the watch.
func (s *stream) goOn(left func() bool) {
	handler := s.call
	s.sleeper.Wake, s.marked = s.look, time.Now()
	if s.borrowed = door.Borrow(s.w, s.r, s.leave); s.borrowed != nil {
		left()
	} else {
		s.done = make(chan struct{})
	}
	handler.lasting = s.borrowed != nil || door.After(s.r, s.wait)
	if handler.lasting {
		s.call = &call{door: s.door, ctx: s.ctx, proof: s.proof, place: s.place, form: s.form, lasting: true}
		if s.borrowed == nil {
			s.w = handler.w
		}
		s.space = strings.Clone(s.space) // the path of the request is not kept for it
	}
	context.AfterFunc(s.ctx, s.look)
	go s.look()
	if !handler.lasting {
		s.wait()
	}
}

// wait waits for the end of the stream.
func (s *stream) wait() { <-s.done }

// look looks after the stream, unless somebody does; who does will look again.
func (s *stream) look() {
	for {
		switch s.turn.Load() {
		case nobody:
			if s.turn.CompareAndSwap(nobody, one) {
				s.tend()
				return
			}
		case one:
			if s.turn.CompareAndSwap(one, twice) {
				return
			}
		default:
			return
		}
	}
}

// tend does what there is to do.
func (s *stream) tend() {
	defer s.survive()
	for s.step() {
		if s.turn.CompareAndSwap(one, nobody) {
			return
		}
		s.turn.Store(one)
	}
	s.turn.Store(never)
}

// survive ends one stream when it panics, as net/http does with a request, and not the server.
func (s *stream) survive() {
	if said := recover(); said != nil {
		s.door.backend.Log().Error("a watch panicked", "door", doorName, "panic", said, "stack", string(debug.Stack()))
		s.turn.Store(never)
		s.finish(false)
	}
}

// step writes what happened, and reports whether the stream goes on: it ends when its reader has left or is too slow,
// when its time is over, and when its context ends.
func (s *stream) step() bool {
	more, err := s.collectNext()
	now := time.Now()
	switch {
	case err != nil:
		s.appendError(err)
		return s.finish(s.flush())
	case s.ctx.Err() != nil:
		return s.finish(true)
	case !now.Before(s.end):
		if s.bookmark && s.idle {
			s.appendBookmark(s.watcher.At().Revision, false)
		}
		return s.finish(s.flush())
	}
	if s.idle = more != nil; s.idle && s.bookmark && now.Sub(s.marked) >= bookmarkTime {
		s.appendBookmark(s.watcher.At().Revision, false)
		s.marked = now
	}
	if !s.flush() {
		return s.finish(false)
	}
	s.sleep(more, now)
	return true
}

// collectNext is collectEvents while the stream lasts. The error is what the reader is to be told at the end.
func (s *stream) collectNext() (more <-chan struct{}, err error) {
	if s.ctx.Err() != nil {
		return nil, s.door.backend.Ended(s.ctx, s.proof, nil)
	}
	if !time.Now().Before(s.end) {
		return nil, nil
	}
	if more, err = s.collectEvents(); err != nil {
		err = s.ended(err)
	}
	return more, err
}

// sleep sees to it that somebody looks after the stream again: after a pause if more is nil.
func (s *stream) sleep(more <-chan struct{}, now time.Time) {
	next := s.end
	switch {
	case more == nil:
		next = now.Add(max(leastPause, time.Duration(s.door.watching.Load())*pauseEach))
	case s.bookmark:
		next = s.marked.Add(bookmarkTime)
	}
	if next.After(s.end) {
		next = s.end
	}
	if s.timer == nil {
		s.timer = time.AfterFunc(next.Sub(now), s.look)
	} else {
		s.timer.Reset(next.Sub(now))
	}
	s.door.backend.SleepUntil(more, &s.sleeper)
}

// finish ends the stream, and returns false. If all that it wrote has left, its answer is complete.
func (s *stream) finish(complete bool) bool {
	if s.finished {
		return false
	}
	s.finished = true
	if s.timer != nil {
		s.timer.Stop()
	}
	s.door.backend.Awake(&s.sleeper)
	s.leave()
	switch {
	case s.borrowed == nil:
		close(s.done)
	case complete:
		s.borrowed.Return(writeTime)
	default:
		s.borrowed.Close()
	}
	if !s.lasting {
		return false
	}
	s.door.verbs[watchVerb].Done(context.Background(), telemetry.Outcome{
		Namespace: s.door.config.Namespace, Took: time.Since(s.began), Endless: true,
	})
	return false
}
