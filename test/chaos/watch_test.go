//go:build linux

package chaos

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/leasehold/leasehold"
	v1 "github.com/leasehold/leasehold/api/v1"
)

// A watcher sees everything that happens in the namespace, and goes on at another server
// whenever its connection is lost.
type watcher struct {
	*party

	mu     sync.Mutex // guards what follows
	at     string     // where it has come to
	events []string   // each as a line, its position first
	gone   bool       // what comes next was already forgotten
	moved  int        // to other servers
}

// run watches until ctx ends.
func (w *watcher) run(ctx context.Context) {
	w.at = "0"
	for ctx.Err() == nil {
		for e, err := range w.callers[w.party.at%len(w.callers)].Watch(ctx, w.query()) {
			if err != nil {
				w.lost(err)
				break
			}
			w.saw(e)
		}
		w.party.at++
		pause(ctx, w.between(20*time.Millisecond, 200*time.Millisecond))
	}
}

func (w *watcher) query() v1.WatchQuery {
	w.mu.Lock()
	defer w.mu.Unlock()
	return v1.WatchQuery{Since: w.at, Once: true, Passed: func(position string) {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.at = position
	}}
}

func (w *watcher) saw(e v1.Event) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.events = append(w.events, fmt.Sprintf("%v %s %s %s %s %d %s %s %d", e.Position(), e.Kind, e.Resource, e.ID, e.Holder, e.Token, e.Session, e.How, e.Version))
}

func (w *watcher) lost(err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.moved++
	var gone *v1.Gone
	if !errors.As(err, &gone) {
		return
	}
	if gone.Revision < gone.Since.Revision {
		w.load.report.violated(watchGap, "%s has seen %v, and a server has come to %d only", w.name, gone.Since, gone.Revision)
	}
	w.gone, w.at = true, gone.Oldest.String()
}

// cameTo returns an error until an event was seen.
func (w *watcher) cameTo(text string) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	for i := len(w.events) - 1; i >= 0; i-- {
		if strings.Contains(w.events[i], text) {
			return nil
		}
	}
	return fmt.Errorf("it has seen %d events and is at %s", len(w.events), w.at)
}

// watchesAgree waits until every watcher has come to the end, and compares them.
func (l *load) watchesAgree(p *party) {
	marker := "record/the-end"
	l.insist("the last record is put", func() error {
		_, err := p.caller().PutRecord(context.Background(), v1.PutRequest{Path: marker, Value: []byte("x")})
		if errors.Is(err, leasehold.ErrUnavailable) || errors.Is(err, leasehold.ErrUndecided) {
			p.at++
		}
		return err
	})
	for _, w := range l.watched {
		l.insist(w.name+" comes to the end", func() error { return w.cameTo(" put " + marker + " ") })
	}
	l.unwatch()
	l.watches.Wait()
	for i, w := range l.watched {
		l.report.count("events watched", len(w.events))
		l.report.count("times a watch went to another server", w.moved)
		if w.gone {
			l.report.count("watches that history was gone for", 1)
			continue
		}
		w.inOrder()
		w.complete()
		if first := l.watched[0]; i > 0 && !first.gone {
			w.same(first)
		}
	}
}

// inOrder wants each position once, and larger than the one before.
func (w *watcher) inOrder() {
	var last v1.Position
	for _, line := range w.events {
		text, _, _ := strings.Cut(line, " ")
		at, err := v1.ParsePosition(text)
		if err != nil || at.Revision < last.Revision || at.Revision == last.Revision && at.N <= last.N {
			w.load.report.violated(watchGap, "%s sees %v after %v", w.name, text, last)
			return
		}
		last = at
	}
}

// complete wants everything that was acknowledged.
func (w *watcher) complete() {
	seen := map[string]int{}
	for _, line := range w.events {
		f := strings.Fields(line)
		switch f[1] {
		case "put":
			revision, _, _ := strings.Cut(f[0], ".")
			seen[f[2]+"@"+revision]++
		case "acquired":
			seen[f[3]]++
		}
	}
	for put := range w.load.puts {
		if seen[put] != 1 {
			w.load.report.violated(watchGap, "%s sees %s %d times", w.name, put, seen[put])
			break
		}
	}
	for _, c := range w.load.history.leases {
		if c.verb == acquire && c.outcome == yes && seen[c.id] != 1 {
			w.load.report.violated(watchGap, "%s sees the grant to %s %d times", w.name, c.id, seen[c.id])
			return
		}
	}
}

// same wants what another saw.
func (w *watcher) same(other *watcher) {
	for i := range min(len(w.events), len(other.events)) {
		if w.events[i] != other.events[i] {
			w.load.report.violated(watchGap, "%s sees %q where %s sees %q", w.name, w.events[i], other.name, other.events[i])
			return
		}
	}
}
