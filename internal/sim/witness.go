package sim

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"github.com/leasehold/leasehold"
	"github.com/leasehold/leasehold/internal/core"
	"github.com/leasehold/leasehold/internal/core/access"
	"github.com/leasehold/leasehold/internal/sim/faces"
	"github.com/leasehold/leasehold/internal/sim/rights"
)

// A witness reads the log as it comes to be. It knows the promises, and nothing of how they are
// kept: it follows commands and events with a model of its own, which is as simple as it can be
// and looks at everything each time.
type witness struct {
	world    *World
	now      core.Time
	claims   map[spot]*promise
	byToken  map[grant]*promise // those that are held
	sessions map[spot]*life
	places   map[spot]*place
	defined  map[spot]leasehold.Definition
	tokens   map[string]leasehold.Token // the largest of each namespace
	grants   int
	canary   bool // a lease was granted in the quiet at the end

	writings  writings
	once      map[spot]*outcome // by namespace and name of the request
	revisions map[string]leasehold.Revision
	revised   map[string]core.Time // when that was, by namespace
	withdrawn map[spot]*life       // ids that were taken back before they were known, by their session

	restored restored
	rights   *rights.Judge
	faces    *faces.Judge
	subjects subjects
}

// A spot is something with a name in a namespace.
type spot struct{ space, name string }

// A grant is a token in its namespace.
type grant struct {
	space string
	token leasehold.Token
}

// A promise is what is known of a lease, or of a waiter.
type promise struct {
	id       string
	at       spot
	session  *life
	slots    int // 0: all
	units    []string
	priority int
	grace    time.Duration
	limit    time.Duration   // 0: none
	token    leasehold.Token // 0: it waits
	own      life
	breaks   core.Time // 0: no break was set
	hard     core.Time // however often it is renewed; 0: no such moment

	waiting waiting // what is known of it as a waiter
}

// A life is what ends by time unless it is renewed. It is kept on two clocks: by the log, which
// decides, and on real time, by which the simulator judges whether that was right.
type life struct {
	ttl    time.Duration
	until  core.Time     // by the log
	safe   time.Duration // on real time: its holder may believe until then
	since  time.Duration // on real time: it was begun or renewed before then
	closed bool
}

// A place is a resource, as the witness sees it.
type place struct {
	holders []*promise
	queue   []*promise
	rests   []rest
	agreed  int // how many slots there are, by the first who shared it
}

// A rest keeps slots free after an unclean end. The witness learns of an end when it is an
// event, but does not know exactly when it took effect, so a rest has an earliest and a latest
// end. What is granted is judged by the one, what is refused by the other.
type rest struct {
	id    string
	slots int       // 0: all
	until core.Time // at the earliest
	over  core.Time // at the latest
}

// memory is how long things are remembered that ended.
const memory = 10 * time.Minute

// forever is the end of what does not end by time.
const forever = core.Time(1 << 62)

func newWitness(w *World) *witness {
	return &witness{
		world: w, claims: map[spot]*promise{}, byToken: map[grant]*promise{}, sessions: map[spot]*life{},
		places: map[spot]*place{}, defined: map[spot]leasehold.Definition{}, tokens: map[string]leasehold.Token{},
		writings: newWritings(), once: map[spot]*outcome{}, revisions: map[string]leasehold.Revision{},
		withdrawn: map[spot]*life{}, revised: map[string]core.Time{}, rights: rights.New(w.violated, w.count),
		faces: faces.New(w.violated), subjects: newSubjects(),
	}
}

func (t *witness) place(at spot) *place {
	if t.places[at] == nil {
		t.places[at] = &place{}
	}
	return t.places[at]
}

// ends is when a lease ends by the log, if nothing is done.
func (p *promise) ends() core.Time {
	at := p.own.until
	if p.session != nil {
		at = p.session.until
	}
	if p.breaks != 0 {
		at = min(at, p.breaks)
	}
	if p.hard != 0 {
		at = min(at, p.hard)
	}
	return at
}

// atLeast returns until when, on real time, a holder may believe in its lease.
func (p *promise) atLeast() time.Duration {
	if p.session != nil {
		return p.session.safe
	}
	return p.own.safe
}

// renewed extends a life from a stamp, by an attempt that was sent at some moment.
func (l *life) renewed(now core.Time, real time.Duration, from *attempt, remaining time.Duration) {
	l.until, l.since = now+core.Time(l.ttl), real
	l.tell(from, remaining)
}

// tell records until when somebody may believe, by an answer. It counts from when the attempt
// was sent, as a holder does, and at the slowest clock that is allowed.
func (l *life) tell(from *attempt, remaining time.Duration) {
	if from != nil {
		l.safe = max(l.safe, from.sent+atLeast(remaining))
	}
}

// see takes one command with what it came to. What has to be judged by the state before the
// command comes first, then the events change the model, and what the answer promises is
// compared with the model after them.
func (t *witness) see(stamp core.Time, c core.Command, from *attempt, answer core.Answer, events []*leasehold.Event) {
	if stamp < t.now {
		t.world.violated("time goes back from %d to %d", t.now, stamp)
	}
	t.now = stamp
	var asker *access.Asker
	if from != nil {
		asker = from.asker
	}
	may, shares, again := t.rights.May(c, asker), t.rights.Shares(c, asker), t.known(c) != nil
	t.leads(c)
	if may.Surely {
		t.renewal(c, answer)
	}
	t.withdraw(c, asker, answer)
	t.compared(c, answer)
	t.refusal(c, answer, events)
	if may.Surely || answer.Err == nil || rights.Limited(answer) { // what is not allowed is not remembered
		t.again(c, answer, events)
	}
	before := t.rights.On()
	t.rights.Check(c, asker, may, answer, events)
	if t.rights.On() && !before {
		for _, o := range t.once { // from here on requests are told apart by who asks, and nobody was asked before
			o.unasked = true
		}
	}
	t.finishing(c, answer)
	for _, e := range events {
		t.ordered(e)
		t.event(c, e)
		t.faces.Follow(c, e)
		t.rights.Follow(c, asker, e)
	}
	t.rights.Within(c, shares, again, answer)
	t.subjectsAfter(c, again, answer, events)
	if answer.Err == nil {
		t.answered(c, from, answer)
	}
}

// ordered checks that revisions are counted one by one.
func (t *witness) ordered(e *leasehold.Event) {
	last := max(t.revisions[e.Namespace], leasehold.Revision(t.restored.base))
	// A namespace in which nothing happened for that long may begin anew, above all others.
	anew := e.Revision > last && t.now-t.revised[e.Namespace] >= core.Time(memory)
	if e.Revision != last && e.Revision != last+1 && !anew {
		t.world.violated("%v of %s has revision %d after %d", e.Kind, e.ID, e.Revision, last)
	}
	t.revisions[e.Namespace], t.revised[e.Namespace] = e.Revision, t.now
}

// renewal checks that a renewal in time is not ignored, and that one that comes too late is.
// The stamp alone decides, whether or not a tick has noticed the end.
func (t *witness) renewal(c core.Command, answer core.Answer) {
	var until core.Time
	alive := false
	switch c := c.(type) {
	case *core.Renew:
		p := t.claims[spot{c.Namespace, c.ID}]
		if p != nil && p.token == 0 {
			return // it waits
		}
		if alive = p != nil; alive {
			until = p.ends()
		}
	case *core.RenewSession:
		s := t.sessions[spot{c.Namespace, c.ID}]
		if alive = s != nil; alive {
			until = s.until
		}
	default:
		return
	}
	switch {
	case alive && t.now < until && answer.Err != nil:
		t.world.violated("%T %+v at %d, before %d, was ignored: %v", c, c, t.now, until, answer.Err)
	case (!alive || t.now >= until) && answer.Err == nil:
		t.world.violated("%T %+v at %d revived what was over at %d", c, c, t.now, until)
	}
}

// withdraw notes an id that was taken back before it was known: nobody may get it afterwards
// while its session lasts, or for a while if it has none.
func (t *witness) withdraw(c core.Command, a *access.Asker, answer core.Answer) {
	r, ok := c.(*core.Release)
	id := spot{}
	if ok {
		id = spot{r.Namespace, r.ID}
	}
	if !ok || !r.Withdraw || answer.Err != nil || t.claims[id] != nil {
		return
	}
	takes := a == nil || !t.rights.On() || t.rights.Somewhere(a, r.Namespace, access.Of(access.Acquire, access.Share))
	if r.Session == "" && !takes {
		return // it leaves no mark where it may take nothing
	}
	if r.Session == "" {
		t.withdrawn[id] = &life{until: t.now + core.Time(memory)}
	} else if l := t.sessions[spot{r.Namespace, r.Session}]; l != nil {
		t.withdrawn[id] = l
	}
}

// refusal checks that nobody is refused a resource that is surely free. A system that grants
// nothing keeps every other promise.
func (t *witness) refusal(c core.Command, answer core.Answer, events []*leasehold.Event) {
	a, ok := c.(*core.Acquire)
	if ok && special(a) {
		t.refusedSubject(a, answer, events)
		return
	}
	if !ok || answer.Err == nil || answer.Err.Code != leasehold.Held || len(events) > 0 || t.known(c) != nil {
		return
	}
	at := spot{a.Namespace, a.Resource}
	known := t.claims[spot{a.Namespace, a.ID}] != nil || len(t.place(at).queue) > 0 || t.quarantined()
	if !known && t.fits(at, a.Slots, a.Capacity, true) && t.openInArea(a) {
		t.world.violated("%s is told that %s is held, and it is free: %v", a.ID, a.Resource, answer.Err)
	}
}

// answered records what an answer promises to the one who gets it.
func (t *witness) answered(c core.Command, from *attempt, answer core.Answer) {
	if s := answer.Session; s != nil {
		if l := t.sessions[spot{s.Namespace, s.ID}]; l != nil {
			switch c.(type) {
			case *core.RenewSession:
				l.renewed(t.now, t.world.now, from, s.Remaining)
			case *core.OpenSession:
				l.tell(from, s.Remaining)
			}
		}
	}
	if answer.Lease != nil {
		t.shown(c, from, answer.Lease)
	}
	if answer.Txn != nil {
		for _, r := range answer.Txn.Results {
			if r.Lease != nil {
				t.shown(c, from, r.Lease)
			}
		}
	}
}

// shown records what the lease in an answer promises, and checks that this is not too much.
func (t *witness) shown(c core.Command, from *attempt, l *leasehold.Lease) {
	if l.State != leasehold.Leased && l.State != leasehold.Breaking {
		return
	}
	w, p := t.world, t.claims[spot{l.Namespace, l.ID}]
	if p == nil || p.token != l.Token {
		w.violated("%s is shown as held with token %d, and was not granted so", l.ID, l.Token)
		return
	}
	if left := time.Duration(p.ends() - t.now); !renews(c) && !puts(c, l.ID) && l.Remaining > left {
		w.violated("%s is promised %v, and has %v", l.ID, l.Remaining, left)
	}
	// A lease that is not over counts in the floor; one that is over and not collected may.
	living, all := l.Token, l.Token
	for _, o := range t.place(p.at).holders {
		if all = min(all, o.token); o.ends() > t.now {
			living = min(living, o.token)
		}
	}
	if l.Floor > living || l.Floor < all || l.Slots != p.slots {
		w.violated("%s is shown with %d slots and floor %d, and has %d and %d to %d", l.ID, l.Slots, l.Floor, p.slots,
			all, living)
	}
	t.unitsOf(p, l.Units)
	about := &p.own
	if p.session != nil {
		about = p.session
	}
	if renews(c) || p.session == nil && puts(c, l.ID) {
		about.renewed(t.now, w.now, from, l.Remaining)
	} else {
		about.tell(from, l.Remaining)
	}
}

// unitsOf checks that the units of a lease are its own.
func (t *witness) unitsOf(p *promise, units []string) {
	if p.units != nil && !slices.Equal(p.units, units) {
		t.world.violated("%s has units %v of %s, and had %v", p.id, units, p.at.name, p.units)
	}
	p.units = slices.Clone(units)
	for _, o := range t.place(p.at).holders {
		if o != p && slices.ContainsFunc(o.units, func(u string) bool { return slices.Contains(units, u) }) {
			t.world.violated("%s has units %v of %s, and %s has %v", p.id, units, p.at.name, o.id, o.units)
		}
	}
}

func renews(c core.Command) bool { _, ok := c.(*core.Renew); return ok }

// puts reports whether a command puts the record of a lease.
func puts(c core.Command, id string) bool {
	put, ok := c.(*core.PutRecord)
	return ok && put.Link != nil && put.Link.ID == id
}

// look compares the model with the promises about time, after an entry: nothing is free while
// somebody waits, nothing outlives its session, and a tick ends all that is over.
func (t *witness) look(commands []core.Command) {
	w := t.world
	t.faces.Check()
	_, tick := commands[len(commands)-1].(*core.Tick)
	for _, name := range sortedSpots(t.places) {
		at := t.places[name]
		if tick {
			at.rests = slices.DeleteFunc(at.rests, func(r rest) bool { return r.over <= t.now })
		}
		// Only a tick notices the end of a rest, if nothing else is done there.
		unnoticed := slices.ContainsFunc(at.rests, func(r rest) bool { return r.over <= t.now })
		if len(at.queue) > 0 && !unnoticed && !t.resuming(tick) && t.ready(at.queue[0]) {
			w.violated("%s is free although %s waits for it", name.name, at.queue[0].id)
		}
		t.hopeless(name, at)
	}
	for _, id := range sortedSpots(t.claims) {
		switch p := t.claims[id]; {
		case p.session != nil && p.session.closed:
			w.violated("%s outlived its session", id.name)
		case tick && p.token != 0 && p.ends() <= t.now:
			w.violated("%s was over at %d, and a tick at %d let it be", id.name, p.ends(), t.now)
		}
	}
}

// hopeless checks that nobody keeps others waiting by needing more than there is. While one
// has all of it, or all of it rests, nobody could have it anyway.
func (t *witness) hopeless(name spot, at *place) {
	if len(at.queue) == 0 || t.quarantined() {
		return
	}
	whole := slices.ContainsFunc(at.holders, func(o *promise) bool { return o.slots == 0 }) ||
		slices.ContainsFunc(at.rests, func(r rest) bool { return r.slots == 0 })
	d := t.definition(name)
	if slots := cmp.Or(len(d.Units), d.Capacity); !whole && slots != 0 && at.queue[0].slots > slots {
		t.world.violated("%s waits for %d slots of %s, which has %d", at.queue[0].id, at.queue[0].slots, name.name,
			slots)
	}
}

// rest is called at the end of a run, when nobody has renewed anything for a long time:
// everything must be gone, and the cluster must still have granted something.
func (t *witness) rest() {
	for _, id := range sortedSpots(t.claims) {
		t.world.violated("%s is there, and nobody renewed it", id.name)
	}
	for _, id := range sortedSpots(t.sessions) {
		t.world.violated("session %s is there, and nobody renewed it", id.name)
	}
	if !t.canary {
		t.world.violated("nothing was granted after the trouble was over")
	}
}

// sortedSpots returns what a map has, in an order that is the same each time.
func sortedSpots[V any](m map[spot]V) []spot {
	return slices.SortedFunc(maps.Keys(m), func(a, b spot) int {
		return cmp.Or(cmp.Compare(a.space, b.space), cmp.Compare(a.name, b.name))
	})
}
