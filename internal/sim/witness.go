package sim

import (
	"slices"
	"time"

	"github.com/leasehold/leasehold"
	"github.com/leasehold/leasehold/internal/core"
)

// A witness reads the log as it comes to be, and knows the promises and nothing of how
// they are kept.
type witness struct {
	world    *World
	now      core.Time
	claims   map[string]*promise
	byToken  map[leasehold.Token]*promise // those that are held
	sessions map[string]*life
	places   map[string]*place
	token    leasehold.Token // the largest
	grants   int
	canary   bool // a lease was granted in the quiet at the end
}

// A promise is what is known of a lease, or of somebody who waits for one.
type promise struct {
	id, resource string
	session      *life
	priority     int
	grace        time.Duration
	token        leasehold.Token // 0: it waits
	own          life
	breaks       core.Time // 0: no break was set
}

// A life ends by time, unless it is renewed.
type life struct {
	ttl    time.Duration
	until  core.Time     // by the log
	safe   time.Duration // on real time: its holder may believe until then
	since  time.Duration // on real time: it was begun or renewed before then
	closed bool
}

type place struct {
	holder *promise
	queue  []*promise
	rests  core.Time // until then, at the latest
	rested core.Time // until then, at the earliest
}

func newWitness(w *World) *witness {
	return &witness{
		world: w, claims: map[string]*promise{}, byToken: map[leasehold.Token]*promise{}, sessions: map[string]*life{}, places: map[string]*place{},
	}
}

func (t *witness) place(resource string) *place {
	if t.places[resource] == nil {
		t.places[resource] = &place{}
	}
	return t.places[resource]
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
	return at
}

// atLeast is until when a lease lasts on real time, at least.
func (p *promise) atLeast() time.Duration {
	if p.session != nil {
		return p.session.safe
	}
	return p.own.safe
}

// renewed counts a life on from a stamp, by a try that was sent at a moment.
func (l *life) renewed(now core.Time, real time.Duration, from *attempt, remaining time.Duration) {
	l.until, l.since = now+core.Time(l.ttl), real
	if from != nil {
		l.safe = max(l.safe, from.sent+atLeast(remaining))
	}
}

// see takes one command with what it came to.
func (t *witness) see(stamp core.Time, c core.Command, from *attempt, answer core.Answer, events []*leasehold.Event) {
	if stamp < t.now {
		t.world.violated("time goes back from %d to %d", t.now, stamp)
	}
	t.now = stamp
	t.renewal(c, answer)
	for _, e := range events {
		t.event(c, e)
	}
	if answer.Err == nil {
		t.answered(c, from, answer)
	}
}

// renewal checks that a renewal in time is not ignored, and that one too late is.
func (t *witness) renewal(c core.Command, answer core.Answer) {
	var until core.Time
	alive := false
	switch c := c.(type) {
	case *core.Renew:
		p := t.claims[c.ID]
		if p != nil && p.token == 0 {
			return // it waits
		}
		if alive = p != nil; alive {
			until = p.ends()
		}
	case *core.RenewSession:
		s := t.sessions[c.ID]
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

// answered notes what an answer promises.
func (t *witness) answered(c core.Command, from *attempt, answer core.Answer) {
	if s := answer.Session; s != nil {
		if l := t.sessions[s.ID]; l != nil {
			switch c.(type) {
			case *core.RenewSession:
				l.renewed(t.now, t.world.now, from, s.Remaining)
			case *core.OpenSession:
				l.tell(from, s.Remaining)
			}
		}
	}
	l := answer.Lease
	if l == nil || l.State != leasehold.Leased && l.State != leasehold.Breaking {
		return
	}
	p := t.claims[l.ID]
	if p == nil || p.token != l.Token {
		t.world.violated("%s is shown as held with token %d, and was not granted so", l.ID, l.Token)
		return
	}
	if left := time.Duration(p.ends() - t.now); c != nil && !renews(c) && l.Remaining > left {
		t.world.violated("%s is promised %v, and has %v", l.ID, l.Remaining, left)
	}
	about := &p.own
	if p.session != nil {
		about = p.session
	}
	if renews(c) {
		about.renewed(t.now, t.world.now, from, l.Remaining)
	} else {
		about.tell(from, l.Remaining)
	}
}

func renews(c core.Command) bool { _, ok := c.(*core.Renew); return ok }

// tell notes until when somebody may believe.
func (l *life) tell(from *attempt, remaining time.Duration) {
	if from != nil {
		l.safe = max(l.safe, from.sent+atLeast(remaining))
	}
}

func (t *witness) event(c core.Command, e *leasehold.Event) {
	switch e.Kind {
	case leasehold.SessionOpened:
		l := &life{ttl: c.(*core.OpenSession).TTL}
		l.until, l.since = t.now+core.Time(l.ttl), t.world.now
		t.sessions[e.Session] = l
	case leasehold.SessionEnded:
		t.sessionEnded(e)
	case leasehold.Queued:
		t.queued(c.(*core.Acquire), e)
	case leasehold.Acquired:
		t.acquired(c, e)
	case leasehold.Changed:
		t.changed(c.(*core.Change), e)
	case leasehold.BreakSet:
		t.breakSet(c.(*core.Break), e)
	case leasehold.Ended, leasehold.Left:
		t.ended(e)
	}
}

func (t *witness) sessionEnded(e *leasehold.Event) {
	l := t.sessions[e.Session]
	delete(t.sessions, e.Session)
	if e.How == leasehold.SessionExpired {
		t.notEarly("session "+e.Session, l)
		t.notLate("session "+e.Session, l)
	}
	l.closed = true
}

// notEarly checks that what ends by time has lasted: by the log, and on real time.
func (t *witness) notEarly(what string, l *life) {
	if t.now < l.until {
		t.world.violated("%s ends %v early", what, time.Duration(l.until-t.now))
	}
	if t.world.now < l.safe && !t.world.wild() {
		t.world.violated("%s ends %v before its holder may stop to believe, on real time", what, l.safe-t.world.now)
	}
}

// notLate checks that what ends by time did not last longer than it may.
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

// atLeast is how long a server's time lasts on real time, at least.
func atLeast(d time.Duration) time.Duration { return real(d, bound) }

func (t *witness) begins(a *core.Acquire, e *leasehold.Event) *promise {
	if t.claims[e.ID] != nil {
		t.world.violated("%s begins twice", e.ID)
	}
	p := &promise{id: e.ID, resource: e.Resource, priority: a.Priority, grace: a.Grace, own: life{ttl: a.TTL}}
	if a.Session != "" {
		if p.session = t.sessions[a.Session]; p.session == nil {
			t.world.violated("%s begins in session %s, which is not there", e.ID, a.Session)
			p.session = &life{}
		}
	}
	t.claims[e.ID] = p
	return p
}

func (t *witness) queued(a *core.Acquire, e *leasehold.Event) {
	p, at := t.begins(a, e), t.place(e.Resource)
	i := slices.IndexFunc(at.queue, func(o *promise) bool { return o.priority < p.priority })
	if i < 0 {
		i = len(at.queue)
	}
	at.queue = slices.Insert(at.queue, i, p)
}

func (t *witness) acquired(c core.Command, e *leasehold.Event) {
	w, at, p := t.world, t.place(e.Resource), t.claims[e.ID]
	if p == nil {
		a, ok := c.(*core.Acquire)
		if !ok || a.ID != e.ID {
			w.violated("%s is granted %s, and did not ask", e.ID, e.Resource)
			return
		}
		p = t.begins(a, e)
		if len(at.queue) > 0 && at.queue[0].priority >= p.priority {
			w.violated("%s is granted %s, and it was the turn of %s", e.ID, e.Resource, at.queue[0].id)
		}
	} else if len(at.queue) == 0 || at.queue[0] != p {
		w.violated("%s is granted %s out of turn", e.ID, e.Resource)
	} else {
		at.queue = at.queue[1:]
	}
	switch {
	case at.holder != nil:
		w.violated("%s is granted %s, which %s holds", e.ID, e.Resource, at.holder.id)
	case t.now < at.rested:
		w.violated("%s is granted %s, which rests", e.ID, e.Resource)
	case e.Token <= t.token:
		w.violated("token %d of %s comes after %d", e.Token, e.ID, t.token)
	case p.session != nil && (p.session.closed || p.session.until <= t.now):
		w.violated("%s is granted %s, and its session is over", e.ID, e.Resource)
	}
	w.truth.othersBelieve(e.Resource, e.Token)
	t.token, p.token, at.holder = e.Token, e.Token, p
	t.byToken[p.token] = p
	p.own.until, p.own.since = t.now+core.Time(p.own.ttl), w.now
	t.grants++
	t.canary = t.canary || w.quiet
}

func (t *witness) changed(c *core.Change, e *leasehold.Event) {
	w, at, p := t.world, t.place(e.Resource), t.claims[c.ID]
	if p == nil || at.holder != p {
		w.violated("%s is changed, and does not hold %s", c.ID, e.Resource)
		return
	}
	if e.Token != p.token {
		if e.Token <= t.token {
			w.violated("token %d of %s comes after %d", e.Token, e.ID, t.token)
		}
		w.truth.nobodyBelieves(e.Resource, p.token, "it was handed to another holder")
		delete(t.byToken, p.token)
		t.token, p.token = e.Token, e.Token
		t.byToken[p.token] = p
	}
	delete(t.claims, c.ID)
	p.id = e.ID
	t.claims[e.ID] = p
}

func (t *witness) breakSet(c *core.Break, e *leasehold.Event) {
	p := t.claims[e.ID]
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

func (t *witness) ended(e *leasehold.Event) {
	w, p := t.world, t.claims[e.ID]
	if p == nil {
		w.violated("%s ends, and is not there", e.ID)
		return
	}
	delete(t.claims, e.ID)
	at := t.place(e.Resource)
	if e.Kind == leasehold.Left {
		at.queue = slices.DeleteFunc(at.queue, func(o *promise) bool { return o == p })
		return
	}
	if at.holder != p {
		w.violated("%s ends, and does not hold %s", e.ID, e.Resource)
		return
	}
	if e.How == leasehold.ByTTL {
		t.notEarly(e.ID, &p.own)
		t.notLate(e.ID, &p.own)
	}
	at.holder = nil
	delete(t.byToken, p.token)
	if !e.How.Clean() {
		at.rests = t.now + core.Time(p.grace)
		at.rested = min(t.now, p.ends()) + core.Time(p.grace)
	}
	w.truth.nobodyBelieves(e.Resource, p.token, e.How.String())
}

// look compares what there is with what was promised, after an entry.
func (t *witness) look(commands []core.Command) {
	w := t.world
	_, tick := commands[len(commands)-1].(*core.Tick)
	for _, name := range sortedKeys(t.places) {
		at := t.places[name]
		if at.holder == nil && len(at.queue) > 0 && (at.rests == 0 || tick && at.rests <= t.now) {
			w.violated("%s is free although %s waits for it", name, at.queue[0].id)
		}
	}
	for _, id := range sortedKeys(t.claims) {
		switch p := t.claims[id]; {
		case p.session != nil && p.session.closed:
			w.violated("%s outlived its session", id)
		case tick && p.token != 0 && p.ends() <= t.now:
			w.violated("%s was over at %d, and a tick at %d let it be", id, p.ends(), t.now)
		}
	}
}

// rest is called when nobody has renewed anything for a long time.
func (t *witness) rest() {
	for _, id := range sortedKeys(t.claims) {
		t.world.violated("%s is there, and nobody renewed it", id)
	}
	for _, id := range sortedKeys(t.sessions) {
		t.world.violated("session %s is there, and nobody renewed it", id)
	}
	if !t.canary {
		t.world.violated("nothing was granted after the trouble was over")
	}
}
