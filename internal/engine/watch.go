package engine

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/leasehold/leasehold"
	"github.com/leasehold/leasehold/internal/core"
)

// A Filter says which events a watch shows. Fields that are empty let everything pass.
type Filter struct {
	Namespace string
	Resource  string           // this one alone
	Prefix    string           // or those whose path begins so; what has no path begins with nothing
	Session   string           // what belongs to sessions whose id begins so
	Kinds     []leasehold.Kind // these alone

	// Interventions shows only what the holder of a lease or session cannot know by itself: that it was
	// broken, changed or asked for, and that it ended, unless its own session released it.
	Interventions bool
}

// Wants reports whether a watch shows an event.
func (f *Filter) Wants(e *leasehold.Event) bool {
	if f.Resource != "" && e.Resource != f.Resource || len(f.Kinds) > 0 && !slices.Contains(f.Kinds, e.Kind) {
		return false
	}
	if f.Interventions && !intervenes(e) {
		return false
	}
	return strings.HasPrefix(e.Resource, f.Prefix) && strings.HasPrefix(e.Session, f.Session)
}

func intervenes(e *leasehold.Event) bool {
	switch e.Kind {
	case leasehold.Ended:
		return !e.Own
	case leasehold.Changed, leasehold.BreakSet, leasehold.Asked, leasehold.SessionEnded:
		return true
	}
	return false
}

// A Position is a place in the history of a namespace: after an event, or, with an N of core.AllOf,
// after all events of a revision.
type Position struct {
	Revision leasehold.Revision
	N        uint32
}

// A GoneError says that a watch cannot go on from a position: what followed it is no longer
// known, or it never was a place in this history. Going on in silence would lose events without
// anybody knowing.
type GoneError struct {
	Since    Position
	Oldest   Position           // from where a watch can go on
	Revision leasehold.Revision // the newest of the namespace
}

func (g *GoneError) Error() string {
	return fmt.Sprintf("what followed %d.%d is no longer known: read the state, and watch from revision %d",
		g.Since.Revision, g.Since.N, g.Revision)
}

// maxLook is how many events a watch passes at a time, wanted or not, so that a filter which
// wants little does not keep its goroutine busy for long.
const maxLook = 100000

// maxBatch is how many events Next returns at most.
const maxBatch = 1024

// A Watcher follows the events of one namespace: in order, all of them, each once. Events have the
// values of records, and those before them. It may be used by one goroutine at a time.
//
// Nothing is kept for it: it reads the history that all watchers share, at its own pace. One that is
// too slow costs the engine nothing, and finds one day that its place is gone.
type Watcher struct {
	feed   *Feed
	filter Filter
	sight  Sight // nil: it may see everything
	at     Position
	newest leasehold.Revision // when it began
}

// Watch begins to follow what a filter wants, after a position; nil: after everything whose answer
// anybody had before the call. The error is a *GoneError if the position is not one of this history. The watch belongs
// to ctx: when that ends, the watch no longer counts.
func Watch(ctx context.Context, e Engine, f Filter, from *Position) (*Watcher, error) {
	feed := e.Feed()
	sight, err := feed.watch(ctx, f.Namespace)
	if err != nil {
		return nil, err
	}
	var now leasehold.Revision
	if err := e.Read(ctx, func(v core.View) { now = v.History(f.Namespace).Revision }); err != nil {
		return nil, err
	}
	newest := Position{now, core.AllOf}
	w := &Watcher{feed: feed, filter: f, sight: sight, at: newest, newest: now}
	if from == nil {
		return w, nil
	}
	if w.at = *from; from.Revision > now {
		return nil, &GoneError{Since: *from, Oldest: newest, Revision: now}
	}
	if err := w.known(); err != nil {
		return nil, err
	}
	return w, nil
}

// known returns an error if the watch cannot go on from where it is.
func (w *Watcher) known() error {
	history, _, open := w.feed.history(w.filter.Namespace, false)
	if !open {
		return errFeedClosed()
	}
	_, err := w.after(history)
	return err
}

// Began returns the newest revision that the namespace had when the watch began.
func (w *Watcher) Began() leasehold.Revision { return w.newest }

// At returns the position of the last event that the watch passed, wanted or not. A watch from there
// misses nothing.
func (w *Watcher) At() Position { return w.at }

// Each calls yield with each event that the watch wants and that is there by now, until yield returns
// false; the watch goes on after that event. Without waiting, it returns a channel that is closed when
// there may be more that it wants; nil if there may be more already. The error is a *GoneError, Denied if the watch may
// not go on, or Unavailable if the engine was closed.
func (w *Watcher) Each(yield func(*leasehold.Event) bool) (more <-chan struct{}, err error) {
	history, grew, open := w.feed.history(w.filter.Namespace, w.filter.Interventions)
	if !open {
		return nil, errFeedClosed()
	}
	// Only after grew is known: a policy that comes later closes it.
	if w.sight != nil {
		if err := w.sight.Look(); err != nil {
			return nil, err
		}
	}
	events, err := w.after(history)
	if err != nil {
		return nil, err
	}
	if len(events) == 0 {
		return grew, nil
	}
	shown := false
	for _, e := range events[:min(len(events), maxLook)] {
		w.at = Position{e.Revision, e.N}
		if w.filter.Wants(e) && (w.sight == nil || w.sight.Shows(e)) {
			if shown = true; !yield(e) {
				break
			}
		}
	}
	if w.filter.Interventions && !shown && len(events) <= maxLook {
		return grew, nil
	}
	return nil, nil
}

// LookTime is how long who waits for the channel that [Watcher.Each] returned may do nothing else; 0: for
// ever. A watch of interventions sleeps through other events, and has to pass them before they are forgotten.
func (w *Watcher) LookTime() time.Duration {
	if w.filter.Interventions {
		return 250 * time.Millisecond
	}
	return 0
}

// Next waits for events that the watch wants, and returns them, some at a time.
func (w *Watcher) Next(ctx context.Context) (events []*leasehold.Event, err error) {
	for {
		more, err := w.Each(func(e *leasehold.Event) bool {
			events = append(events, e)
			return len(events) < maxBatch
		})
		if err != nil || len(events) > 0 {
			return events, err
		}
		if more == nil {
			continue // it passed many that it does not want
		}
		select {
		case <-more:
		case <-w.lookAgain():
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

func (w *Watcher) lookAgain() <-chan time.Time {
	if w.LookTime() == 0 {
		return nil
	}
	return time.After(w.LookTime())
}

// after returns what came after the place where the watch is.
func (w *Watcher) after(history core.History) ([]*leasehold.Event, error) {
	events, known := history.After(w.at.Revision, w.at.N)
	if !known {
		revision, n := history.Oldest()
		return nil, &GoneError{Since: w.at, Oldest: Position{revision, n}, Revision: history.Revision}
	}
	return events, nil
}

func errFeedClosed() error {
	return Unavailable("the server is stopping: watch again, at another one or in a moment, from the last position")
}
