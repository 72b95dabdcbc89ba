package sim

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"github.com/leasehold/leasehold"
	"github.com/leasehold/leasehold/internal/core"
	"github.com/leasehold/leasehold/internal/sim/rights"
)

// How the events of the log change what a witness knows, and which of them break a promise.

func (t *witness) event(c core.Command, e *leasehold.Event) {
	switch e.Kind {
	case leasehold.SessionOpened:
		l := &life{ttl: c.(*core.OpenSession).TTL}
		l.until, l.since = t.now+core.Time(l.ttl), t.world.now
		t.sessions[spot{e.Namespace, e.Session}] = l
	case leasehold.SessionEnded:
		t.sessionEnded(e)
	case leasehold.Queued:
		t.queued(c, e)
	case leasehold.Acquired:
		t.acquired(c, e)
	case leasehold.Changed:
		t.changed(c.(*core.Change), e)
	case leasehold.BreakSet:
		t.breakSet(c.(*core.Break), e)
	case leasehold.Ended, leasehold.Left:
		t.ended(c, e)
	case leasehold.Defined:
		if _, units := c.(*core.Define); !units {
			return // of a pool
		}
		before := t.defined[spot{e.Namespace, e.Resource}]
		before.Path = e.Resource
		t.defined[spot{e.Namespace, e.Resource}] = c.(*core.Define).Over(&before)
	case leasehold.Undefined:
		delete(t.defined, spot{e.Namespace, e.Resource})
	case leasehold.Acknowledged:
		at := t.place(spot{e.Namespace, e.Resource})
		at.rests = slices.DeleteFunc(at.rests, func(r rest) bool { return r.id == e.ID })
	case leasehold.RecordPut, leasehold.RecordDeleted:
		t.writings.event(t, c, e)
		t.tasked(c, e)
	case leasehold.Moved:
		t.moved(e)
	case leasehold.Reserved, leasehold.ReservationBegun, leasehold.ReservationFreed, leasehold.ReservationCancelled:
		t.reserved(c, e)
	}
}

// sessionEnded checks that a session that expired did so neither early nor late. Whatever was
// bound to it must follow in the same entry: see look.
func (t *witness) sessionEnded(e *leasehold.Event) {
	at := spot{e.Namespace, e.Session}
	l := t.sessions[at]
	if l == nil {
		t.world.violated("session %s ends, and is not there", e.Session)
		return
	}
	delete(t.sessions, at)
	if e.How == leasehold.SessionExpired {
		t.notEarly("session "+e.Session, l)
		t.notLate("session "+e.Session, l)
	}
	l.closed = true
}

// notEarly checks that what ends by time has lasted long enough: by the log, and on real time
// for as long as its holder may believe in it. The second is promised only while clocks are
// within their bound.
func (t *witness) notEarly(what string, l *life) {
	if t.now < l.until {
		t.world.violated("%s ends %v early", what, time.Duration(l.until-t.now))
	}
	if t.world.now < l.safe && !t.world.wild() {
		t.world.violated("%s ends %v before its holder may stop to believe, on real time", what, l.safe-t.world.now)
	}
}

// notLate checks that what ends by time did not last longer than promised: its TTL on the
// slowest clock, the time without a leader, and a little more.
func (t *witness) notLate(what string, l *life) {
	w := t.world
	if w.Strict.Late == 0 {
		return
	}
	most := l.since + real(l.ttl, -bound) + w.truth.without(l.since) + w.Strict.Late
	if w.now > most {
		w.violated("%s ends %v late", what, w.now-most+w.Strict.Late)
	}
}

// atLeast returns the shortest real time that a duration on a server's clock can take.
func atLeast(d time.Duration) time.Duration { return real(d, bound) }

// definition is what was defined for a place.
func (t *witness) definition(at spot) (longest leasehold.Definition) {
	for d, definition := range t.defined {
		fits := d.name == at.name || d.name == "/" || strings.HasSuffix(d.name, "/") &&
			strings.HasPrefix(at.name, d.name)
		if d.space == at.space && fits && len(d.name) > len(longest.Path) {
			longest = definition
		}
	}
	return longest
}

// fits reports whether a number of slots of a place may be granted. With surely it reports
// whether they must be free, however the rests are counted.
func (t *witness) fits(at spot, slots, said int, surely bool) bool {
	p, d := t.place(at), t.definition(at)
	room := cmp.Or(len(d.Units), d.Capacity, p.agreed, said, leasehold.MaxCapacity)
	kept, all := t.kept(at)
	if all {
		return false
	}
	room -= kept
	exclusive := len(p.holders) > 0 || kept > 0
	for _, o := range p.holders {
		if room -= o.slots; o.slots == 0 {
			return false
		}
	}
	for _, r := range p.rests {
		if !surely && r.until <= t.now || r.over <= t.now {
			continue
		}
		exclusive = true
		if room -= r.slots; r.slots == 0 {
			return false
		}
	}
	if slots == 0 {
		return !exclusive
	}
	return room >= slots
}

// begins adds a claim that was not there before; nil if nobody asked for it, which is a
// violation in itself.
func (t *witness) begins(c core.Command, e *leasehold.Event) *promise {
	a, id, at := rights.Asked(c, e), spot{e.Namespace, e.ID}, spot{e.Namespace, e.Resource}
	if a == nil {
		t.world.violated("%s is granted %s or waits for it, and did not ask", e.ID, e.Resource)
		return nil
	}
	if a = t.claimed(a, e); t.claims[id] != nil {
		t.world.violated("%s begins twice", e.ID)
	}
	if l := t.withdrawn[id]; l != nil && !l.closed && t.now < l.until {
		t.world.violated("%s begins, and was withdrawn before", e.ID)
	}
	d := t.definition(at)
	p := &promise{id: e.ID, at: at, slots: a.Slots, priority: a.Priority, grace: a.Grace, limit: d.HoldLimit,
		own: life{ttl: a.TTL}, waiting: t.waitingFor(c, a)}
	if a.HoldLimit != 0 && (p.limit == 0 || a.HoldLimit < p.limit) {
		p.limit = a.HoldLimit
	}
	if a.Session != "" {
		if p.session = t.sessions[spot{a.Namespace, a.Session}]; p.session == nil {
			t.world.violated("%s begins in session %s, which is not there", e.ID, a.Session)
			p.session = &life{}
		}
	}
	if place := t.place(at); a.Slots != 0 && place.agreed == 0 {
		place.agreed = cmp.Or(len(d.Units), d.Capacity, a.Capacity, leasehold.MaxCapacity)
	}
	t.claims[id] = p
	return p
}

// queued adds a waiter behind those of its priority.
func (t *witness) queued(c core.Command, e *leasehold.Event) {
	p, at := t.begins(c, e), t.place(spot{e.Namespace, e.Resource})
	if p == nil {
		return
	}
	at.line(p)
}

// line puts a waiter into the queue, by priority and arrival.
func (at *place) line(p *promise) {
	i := slices.IndexFunc(at.queue, func(o *promise) bool { return p.before(o) })
	if i < 0 {
		i = len(at.queue)
	}
	at.queue = slices.Insert(at.queue, i, p)
}

// acquired checks a grant, which is where most promises meet: it was the waiter's turn, there
// is room, the token is larger than any before in any cluster, the session is alive, no
// quarantine runs, and nobody else still believes in the resource.
func (t *witness) acquired(c core.Command, e *leasehold.Event) {
	w, at, p := t.world, t.place(spot{e.Namespace, e.Resource}), t.claims[spot{e.Namespace, e.ID}]
	if p == nil {
		if p = t.begins(c, e); p == nil {
			return
		}
		t.comes(p, e)
	} else {
		t.turn(p, e)
	}
	t.grantsSubject(p, e)
	last := max(t.tokens[e.Namespace], t.restored.base, w.truth.ever[e.Namespace])
	switch {
	case t.subjects.pools[p.at] == nil && !t.fits(p.at, p.slots, 0, false):
		w.violated("%s is granted %s, which %s", e.ID, e.Resource, at.why())
	case e.Token <= last:
		w.violated("token %d of %s comes after %d", e.Token, e.ID, last)
	case p.session != nil && (p.session.closed || p.session.until <= t.now):
		w.violated("%s is granted %s, and its session is over", e.ID, e.Resource)
	case t.quarantined():
		w.violated("%s is granted %s in the quarantine", e.ID, e.Resource)
	}
	w.truth.othersBelieve(p.at, e.Token, p.slots)
	t.tokens[e.Namespace], w.truth.ever[e.Namespace], p.token = e.Token, e.Token, e.Token
	at.holders = append(at.holders, p)
	t.byToken[grant{e.Namespace, p.token}] = p
	p.own.until, p.own.since = t.now+core.Time(p.own.ttl), w.now
	if p.limit != 0 {
		p.hard = t.now + core.Time(p.limit)
	}
	t.claimHard(p)
	t.grants++
	t.canary = t.canary || w.quiet
}

// why says why a place cannot be granted.
func (at *place) why() string {
	if len(at.holders) > 0 {
		return at.holders[0].id + " holds"
	}
	return "rests"
}

// changed follows a lease to another id or holder. A new holder has a new token, and the old
// one must not believe any longer.
func (t *witness) changed(c *core.Change, e *leasehold.Event) {
	w, at, p := t.world, t.place(spot{e.Namespace, e.Resource}), t.claims[spot{e.Namespace, c.ID}]
	if p == nil || !slices.Contains(at.holders, p) {
		w.violated("%s is changed, and does not hold %s", c.ID, e.Resource)
		return
	}
	if e.Token != p.token {
		if last := max(t.tokens[e.Namespace], t.restored.base, w.truth.ever[e.Namespace]); e.Token <= last {
			w.violated("token %d of %s comes after %d", e.Token, e.ID, last)
		}
		w.truth.nobodyBelieves(p.at, p.token, "it was handed to another holder")
		delete(t.byToken, grant{e.Namespace, p.token})
		t.tokens[e.Namespace], w.truth.ever[e.Namespace], p.token = e.Token, e.Token, e.Token
		t.byToken[grant{e.Namespace, p.token}] = p
	}
	delete(t.claims, spot{e.Namespace, c.ID})
	if r := t.claimOf(p); r != nil && r.lease == p.id {
		r.lease = e.ID
	}
	p.id = e.ID
	t.claims[spot{e.Namespace, e.ID}] = p
}

// breakSet checks that a break is never put off.
func (t *witness) breakSet(c *core.Break, e *leasehold.Event) {
	p := t.claims[spot{e.Namespace, e.ID}]
	if p == nil {
		t.world.violated("%s is to be broken, and is not there", e.ID)
		return
	}
	at := t.now + core.Time(c.Period)
	if c.Remains {
		at = p.ends()
	}
	if p.breaks != 0 && at >= p.breaks {
		t.world.violated("a break of %s that was promised was put off", e.ID)
	}
	p.breaks = at
}

// ended checks that a lease ended neither early nor without a reason, and that its holder no
// longer believes in it.
func (t *witness) ended(c core.Command, e *leasehold.Event) {
	w, id := t.world, spot{e.Namespace, e.ID}
	p := t.claims[id]
	if p == nil {
		w.violated("%s ends, and is not there", e.ID)
		return
	}
	delete(t.claims, id)
	t.unclaimed(p, e)
	at := t.place(t.queueOf(p))
	if p.token != 0 {
		at = t.place(p.at)
	}
	if len(at.holders)+len(at.queue) == 1 {
		at.agreed = 0
	}
	if e.Kind == leasehold.Left {
		at.queue = slices.DeleteFunc(at.queue, func(o *promise) bool { return o == p })
		return
	}
	if !slices.Contains(at.holders, p) {
		w.violated("%s ends, and does not hold %s", e.ID, e.Resource)
		return
	}
	switch e.How {
	case leasehold.ByTTL:
		t.notEarly(e.ID, &p.own)
		t.notLate(e.ID, &p.own)
	case leasehold.ByHoldLimit:
		if p.hard == 0 || t.now < p.hard {
			w.violated("%s ends by its hold limit %v early", e.ID, time.Duration(p.hard-t.now))
		}
	case leasehold.ByBreak:
		_, now := c.(*core.Break)
		_, deletes := c.(*core.DeleteRecord) // the record of somebody else's lease
		if !now && t.now < p.breaks && !(deletes && t.faces.Mirrored(p.at.space, p.at.name)) {
			w.violated("%s is broken %v early", e.ID, time.Duration(p.breaks-t.now))
		}
	}
	at.holders = slices.DeleteFunc(at.holders, func(o *promise) bool { return o == p })
	delete(t.byToken, grant{e.Namespace, p.token})
	t.endedTask(c, p, e)
	t.restsAfter(at, p, e)
	w.truth.nobodyBelieves(p.at, p.token, e.How.String())
}

// restsAfter lets what a lease had rest after an unclean end.
func (t *witness) restsAfter(at *place, p *promise, e *leasehold.Event) {
	if e.How.Clean() {
		return
	}
	d := t.definition(p.at)
	// At the earliest it ended when it could, and at the latest now.
	grace := core.Time(max(p.grace, d.Grace))
	r := rest{p.id, p.slots, min(t.now, p.ends()) + grace, t.now + grace}
	if d.Unclean == leasehold.AwaitAcknowledgement {
		r.until, r.over = forever, forever
	}
	at.rests = append(at.rests, r)
}
