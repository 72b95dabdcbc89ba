package sim

import (
	"time"

	"github.com/leasehold/leasehold"
	"github.com/leasehold/leasehold/internal/core"
	"github.com/leasehold/leasehold/internal/engine/replica"
)

// A watcher reads what happens, from one server and then from another, and goes on behind
// the last thing that it saw. It must see everything, once, and in order.
type watcher struct {
	world *World
	name  string
	space string  // the namespace that it watches
	at    *server // nil: it is not connected
	life  int     // of the process that it talks to
	tries int

	revision leasehold.Revision
	n        uint32
	seen     int
	lost     position // where it was before a restore; zero: nowhere
}

// look reads what is new, and now and then goes elsewhere.
func (x *watcher) look() {
	w := x.world
	w.after(w.between(20*time.Millisecond, 300*time.Millisecond), x.look)
	switch {
	case x.at == nil:
	case x.at.node == nil || x.at.life != x.life || x.at.paused && w.chance(30) || !w.quiet && w.chance(3):
		x.at = nil
	case !x.at.paused:
		x.read(x.at)
	}
	if x.at == nil {
		x.connect(w.servers[w.random.IntN(len(w.servers))])
	}
}

// connect begins to read from a server. It first asks, by a linearizable read, how far history
// has come: a server that lags behind has not come to where the watcher is, and must not answer
// that nothing is missing.
func (x *watcher) connect(to *server) {
	w := x.world
	if to.node == nil {
		return
	}
	x.tries++
	try, life := x.tries, to.life
	begin := func(now leasehold.Revision) {
		if try != x.tries || x.at != nil {
			return
		}
		if x.revision > now {
			w.violated("%s saw revision %d, and server %d says that there are %d", x.name, x.revision, to.id, now)
		}
		w.count("watches resumed")
		x.at, x.life = to, life
	}
	var now leasehold.Revision
	to.deliver(x.name, replica.Reads{{
		Read: func(v core.View) { now = v.History(x.space).Revision },
		Done: func(err error) {
			if err == nil && to.life == life {
				begin(now)
			}
		},
	}})
}

// read takes the events after the watcher's position. Each of them must be the next that
// happened, with none left out and none twice.
func (x *watcher) read(s *server) {
	w := x.world
	history, _, ok := s.feed.History(x.space)
	if !ok {
		return
	}
	if x.lost != (position{}) {
		if _, ok := history.After(x.lost.revision, x.lost.n); ok {
			w.violated("%s goes on at server %d behind %d.%d, which was lost in a restore", x.name, s.id,
				x.lost.revision, x.lost.n)
		}
		x.lost = position{}
		w.count("watches that learned of a restore")
	}
	events, ok := history.After(x.revision, x.n)
	if !ok {
		w.violated("%s is told by server %d that history behind %d.%d is gone", x.name, s.id, x.revision, x.n)
		return
	}
	for _, e := range events {
		if x.seen >= len(w.truth.events[x.space]) {
			w.violated("%s sees %d.%d at server %d, and nothing like it happened", x.name, e.Revision, e.N, s.id)
			return
		}
		if want := w.truth.events[x.space][x.seen]; !same(e, want) {
			w.violated("%s sees %d.%d %v of %s at server %d, and what came next was %d.%d %v of %s", x.name, e.Revision,
				e.N, e.Kind, e.ID, s.id, want.Revision, want.N, want.Kind, want.ID)
			return
		}
		x.seen++
		x.revision, x.n = e.Revision, e.N
		w.count("events watched")
	}
}

// same reports whether two events are the same, by everything that decides something.
func same(a, b *leasehold.Event) bool {
	return a.Revision == b.Revision && a.N == b.N && a.Kind == b.Kind && a.How == b.How && a.ID == b.ID &&
		a.Token == b.Token && a.Resource == b.Resource
}

// rest checks, at the end, that nothing was missed, and that each server has all of it.
func (x *watcher) rest() {
	w := x.world
	if x.at != nil && x.at.node != nil && x.at.life == x.life {
		x.read(x.at)
	}
	if x.seen != len(w.truth.events[x.space]) {
		w.violated("%s has seen %d of %d events", x.name, x.seen, len(w.truth.events[x.space]))
	}
	for _, s := range w.servers {
		if s.barred || s.node == nil {
			continue
		}
		history, _, _ := s.feed.History(x.space)
		if len(history.All()) != len(w.truth.events[x.space]) {
			w.violated("server %d shows %d of %d events", s.id, len(history.All()), len(w.truth.events[x.space]))
		}
	}
}
