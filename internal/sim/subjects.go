package sim

import (
	"maps"
	"slices"
	"time"

	"github.com/leasehold/leasehold"
	"github.com/leasehold/leasehold/internal/core"
)

// Subjects are what is asked for that is no plain resource: names of areas, tasks, units of pools, reservations, and
// several resources at once. Each is how many of the requests are for it, in percent; 0: none.
type Subjects struct {
	Areas, Tasks, Pools, Reservations, Together int
}

// A subject is what a grip asks for beside the name of a resource.
type subject interface {
	asks(*core.Acquire)
	begun()    // is called when it is granted
	end() bool // does something else than to release it, and reports whether it did
}

// beginSubjects starts those who put tasks, bring units and reserve.
func (w *World) beginSubjects() {
	if w.Subjects.Tasks > 0 {
		w.after(2*time.Second, w.putTasks)
	}
	if w.Subjects.Pools > 0 {
		w.after(2*time.Second, w.bringUnits)
	}
	if w.Subjects.Reservations > 0 {
		w.after(2*time.Second, w.reserve)
	}
}

// pickSubject lets a grip ask for something else than a plain resource, now and then.
func (w *World) pickSubject(g *grip) {
	s := w.Subjects
	if s == (Subjects{}) || g.linked {
		return
	}
	n := w.random.IntN(100)
	for _, kind := range []struct {
		percent int
		pick    func()
	}{
		{s.Areas, g.inArea}, {s.Tasks, g.byTask}, {s.Pools, g.ofPool}, {s.Reservations, g.byReservation},
		{s.Together, g.several},
	} {
		if n -= kind.percent; n < 0 {
			g.slots = 0
			kind.pick()
			g.inTxn = g.inTxn && g.subject == nil
			return
		}
	}
}

// subjects is what a witness knows of them.
type subjects struct {
	commands     int // that were seen
	tasks        map[spot]*task
	finished     map[spot]core.FinishTask // by the id of the lease
	pools        map[spot]map[string]*card
	reservations map[spot]*booking
	series       map[spot]*booking // what each of them is like
	date         time.Duration     // what the calendar says
}

func newSubjects() subjects {
	return subjects{tasks: map[spot]*task{}, finished: map[spot]core.FinishTask{}, pools: map[spot]map[string]*card{},
		reservations: map[spot]*booking{}, series: map[spot]*booking{}}
}

func (s *subjects) clone() subjects {
	c := *s
	c.tasks, c.reservations, c.series = cloned(s.tasks), cloned(s.reservations), cloned(s.series)
	c.finished, c.pools = maps.Clone(s.finished), map[spot]map[string]*card{}
	for at, units := range s.pools {
		c.pools[at] = cloned(units)
	}
	return c
}

// cloned returns a map with copies of all that it has.
func cloned[K comparable, V any](m map[K]*V) map[K]*V {
	c := make(map[K]*V, len(m))
	for k, v := range m {
		c[k] = new(*v)
	}
	return c
}

// waiting is what is known of a promise as somebody who waits.
type waiting struct {
	order  int       // of arrival
	until  core.Time // it gives up
	sign   core.Time // when it last showed that it is wanted
	with   []string  // the ids that it is granted together with, itself among them; nil: it is alone
	folder string    // of the task that it asks for; empty: none
	ask    ask       // of a pool
	kind   string    // by which it is known how long it takes
	claims string    // the id of the reservation that it claims; empty: none
}

// waitingFor makes of a part of a command what is to be known of it.
func (t *witness) waitingFor(c core.Command, a *core.Acquire) waiting {
	x := waiting{order: t.subjects.commands, until: t.now + core.Time(a.Wait), sign: t.now, ask: newAsk(a)}
	if len(a.Labels) > 0 {
		x.kind = a.Labels[0].Value
	}
	if whole, ok := c.(*core.Acquire); ok && len(whole.Also) > 0 {
		for _, item := range whole.Items() {
			x.with = append(x.with, item.ID)
		}
	}
	if a.Task {
		x.folder = a.Resource
	}
	if a.Reservation != "" {
		x.claims = t.openReservation(a)
	}
	return x
}

// before reports whether a waiter comes before another in the order of priority and arrival.
func (p *promise) before(o *promise) bool {
	return p.priority > o.priority || p.priority == o.priority && p.waiting.order < o.waiting.order
}

// signOfLife is how long a waiter without a session stays after the last of them.
const signOfLife = 15 * time.Second

// wanted reports whether a waiter surely is not over.
func (t *witness) wanted(p *promise) bool {
	if p.session != nil {
		return !p.session.closed && min(p.session.until, p.waiting.until) > t.now
	}
	return min(p.waiting.sign+core.Time(signOfLife), p.waiting.until) > t.now
}

// special reports whether more is needed than that a resource is free.
func special(a *core.Acquire) bool {
	return a.Task || len(a.Also) > 0 || a.Reservation != "" || a.Select != nil
}

// comes checks that a newcomer which is granted something passes nobody.
func (t *witness) comes(p *promise, e *leasehold.Event) {
	if t.subjects.pools[p.at] != nil {
		t.sameAsk(p, e)
		return
	}
	queue := t.place(t.queueOf(p)).queue
	if len(queue) > 0 && queue[0].priority >= p.priority {
		t.world.violated("%s is granted %s, and it was the turn of %s", e.ID, e.Resource, queue[0].id)
	}
	t.inOrder(p)
}

// turn checks that it is the turn of a waiter, and takes it out of the queue.
func (t *witness) turn(p *promise, e *leasehold.Event) {
	at := t.place(t.queueOf(p))
	if t.subjects.pools[p.at] != nil {
		t.sameAsk(p, e)
	} else if len(at.queue) == 0 || at.queue[0] != p {
		t.world.violated("%s is granted %s out of turn", e.ID, e.Resource)
	}
	at.queue = slices.DeleteFunc(at.queue, func(o *promise) bool { return o == p })
	t.inOrder(p)
}

// queueOf is where somebody waits: for a task, in its folder.
func (t *witness) queueOf(p *promise) spot {
	if p.waiting.folder != "" {
		return spot{p.at.space, p.waiting.folder}
	}
	return p.at
}

// grantsSubject checks what else a grant promises.
func (t *witness) grantsSubject(p *promise, e *leasehold.Event) {
	if p.waiting.folder != "" {
		p.at = spot{e.Namespace, e.Resource}
		t.begunTask(p)
	}
	if why := t.inTheWay(p.at, p.slots, false); why != "" {
		t.world.violated("%s is granted %s, which overlaps %s", e.ID, e.Resource, why)
	}
	if r := t.claimOf(p); r != nil {
		t.world.count("reservations claimed")
		if !r.begun {
			t.world.violated("%s is granted what is reserved from %v on, at %v", p.id, r.from, t.subjects.date)
		}
	}
}

// ready reports whether the first in a queue must have been granted what it waits for: nothing is in its way, nor in
// that of what it wants at the same time.
func (t *witness) ready(p *promise) bool {
	if p.waiting.with == nil {
		return t.partReady(p)
	}
	for _, id := range p.waiting.with {
		part := t.claims[spot{p.at.space, id}]
		if part == nil || !t.partReady(part) || t.noticed(part.at) {
			return false
		}
	}
	return true
}

// noticed reports whether something rests in a place, or did so until nobody knows when.
func (t *witness) noticed(at spot) bool { return len(t.place(at).rests) > 0 }

func (t *witness) partReady(p *promise) bool {
	at := t.place(p.at)
	switch {
	case len(at.queue) == 0 || at.queue[0] != p || t.early(p):
		return false
	case p.waiting.folder != "":
		return t.nextTask(p.at) != nil
	case t.subjects.pools[p.at] != nil:
		return false // see unitsFree
	}
	return t.fits(p.at, p.slots, 0, true) && t.inTheWay(p.at, p.slots, true) == "" && t.firstInArea(p)
}

// subjectsAfter looks at what a command came to.
func (t *witness) subjectsAfter(c core.Command, again bool, answer core.Answer, events []*leasehold.Event) {
	if a, ok := c.(*core.Acquire); ok && answer.Waiter != nil {
		for _, item := range a.Items() {
			if p := t.claims[spot{a.Namespace, item.ID}]; p != nil {
				p.waiting.sign = t.now
			}
		}
	}
	for _, e := range events {
		if e.Kind == leasehold.Acquired {
			t.allOrNone(e)
		}
	}
	if !again {
		t.whole(c, answer, events)
	}
	t.reservedAfter(c, answer)
	t.unitsChanged(c, answer)
}

// allOrNone checks that what was asked for at once is granted at once.
func (t *witness) allOrNone(e *leasehold.Event) {
	p := t.claims[spot{e.Namespace, e.ID}]
	if p == nil {
		return
	}
	for _, id := range p.waiting.with {
		if part := t.claims[spot{e.Namespace, id}]; part == nil || part.token == 0 {
			t.world.violated("%s is granted, and %s, which was asked for at the same time, is not", e.ID, id)
		}
	}
	if p.waiting.with != nil {
		t.world.count("several granted at once")
	}
	p.waiting.with = nil
}

// whole checks that a transaction did all of what it says.
func (t *witness) whole(c core.Command, answer core.Answer, events []*leasehold.Event) {
	x, ok := c.(*core.Txn)
	if !ok || answer.Txn == nil || answer.Err != nil {
		return
	}
	list := x.Then
	if !answer.Txn.Succeeded {
		list = x.Else
	}
	for _, o := range list {
		if o.Do != core.Put {
			continue
		}
		if !slices.ContainsFunc(events, func(e *leasehold.Event) bool {
			return e.Kind == leasehold.RecordPut && e.Resource == o.Path && e.Record.Value == o.Value
		}) {
			t.world.violated("a transaction was done, and did not put %s", o.Path)
		}
	}
}

// lookSubjects looks at everything after an entry.
func (t *witness) lookSubjects(s *server, events []*leasehold.Event) {
	t.datesKept()
	t.unitsOfAll(s, events)
}
