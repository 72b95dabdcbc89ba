package core

import (
	"time"

	"github.com/leasehold/leasehold"
)

// A Claim is a lease, or the wait for one: it keeps its id from one to the other.
type Claim struct {
	ID       string
	Resource string
	Holder   string
	Reason   string
	Session  string
	Labels   leasehold.Labels
	TTL      time.Duration

	Token     leasehold.Token // 0 while it waits
	Since     Time            // when it began to hold, or to wait
	SinceWall int64
	Revision  leasehold.Revision

	// Expires ends a claim that has no session: the lease by its own TTL, the
	// waiter by waiterTTL. 0: it never does.
	Expires Time

	Priority int    // in the queue while it waits, largest first
	Order    uint64 // among equals, smallest first
	Terms    *Terms // what few claims have

	timer *timer
}

// Terms are the parts of a claim that most do without.
type Terms struct {
	Grace       time.Duration
	HoldLimit   time.Duration
	WaitUntil   Time
	BreakAt     Time
	BreakBy     string
	BreakReason string
	Waited      time.Duration // in the queue, before the grant
	ChangedWall int64         // when its holder got it from another
}

// waiterTTL is how long a waiter without a session stays in the queue after the
// last sign that somebody still wants it.
const waiterTTL = 15 * time.Second

func (c *Claim) waiting() bool { return c.Token == 0 }

func (c *Claim) terms() Terms {
	if c.Terms == nil {
		return Terms{}
	}
	return *c.Terms
}

func (c *Claim) setTerms(t Terms) {
	if t == (Terms{}) {
		c.Terms = nil
		return
	}
	c.Terms = &t
}

// end returns when and how time alone ends the claim, its session aside.
// Without such a moment it returns zero.
func (c *Claim) end() (Time, leasehold.How) {
	at, how := c.Expires, leasehold.ByTTL
	if c.waiting() {
		how = leasehold.Withdrawn
	}
	if c.Terms == nil {
		return at, how
	}
	sooner := func(t Time, h leasehold.How) {
		if t != 0 && (at == 0 || t <= at) {
			at, how = t, h
		}
	}
	if c.waiting() {
		sooner(c.Terms.WaitUntil, leasehold.WaitOver)
		return at, how
	}
	if c.Terms.HoldLimit != 0 {
		sooner(c.Since.add(c.Terms.HoldLimit), leasehold.ByHoldLimit)
	}
	sooner(c.Terms.BreakAt, leasehold.ByBreak)
	return at, how
}

// A Resource is kept while somebody has it or wants it, and for a while after,
// for what it remembers.
type Resource struct {
	Path        string
	Claim       string // the id of the lease on it; empty: nobody has it
	Waiting     int
	AvailableAt Time // end of a grace; 0: none ran, or nothing remains of it
	Idle        uint64
	Last        *Ending

	timer *timer // while somebody waits for the end of a grace
}

// An Ending is what a resource remembers of its last lease.
type Ending struct {
	ID     string
	Holder string
	Token  leasehold.Token
	How    leasehold.How
	By     string
	Reason string
	Wall   int64
}

// A Session is a promise of liveness.
type Session struct {
	ID         string
	TTL        time.Duration
	Labels     leasehold.Labels
	OpenedWall int64
	Expires    Time
	Claims     int
	Sequence   uint64 // the largest request number seen

	timer *timer
}

// put stores a claim: in the queue too while it waits, and in time.
func (s *State) put(sp *space, c *Claim) {
	if c.timer == nil {
		c.timer = &timer{kind: dueClaim, space: sp, key: c.ID}
	}
	at, _ := c.end()
	s.due.set(c.timer, at)
	sp.claims.Set(c.ID, c)
	if c.waiting() {
		sp.queue.Set(c)
	}
}

// bind makes a claim end with its session.
func (s *State) bind(sp *space, c *Claim) {
	if c.Session == "" {
		return
	}
	sp.bound.Set(binding{c.Session, c.ID})
	countBound(sp, c.Session, 1)
}

func (s *State) unbind(sp *space, c *Claim) {
	if c.Session == "" {
		return
	}
	sp.bound.Delete(binding{c.Session, c.ID})
	countBound(sp, c.Session, -1)
}

// countBound keeps account of what is bound to a session, which may be ending.
func countBound(sp *space, id string, more int) {
	if session, ok := sp.sessions.Get(id); ok {
		counted := *session
		counted.Claims += more
		sp.sessions.Set(id, &counted)
	}
}

// finish ends a claim and, if it was a lease, hands the resource over. at is the
// moment that ended it, which may lie before the stamp.
func (s *State) finish(sp *space, c *Claim, how leasehold.How, at Time) {
	s.ends++
	sp.claims.Delete(c.ID)
	s.due.set(c.timer, 0)
	s.unbind(sp, c)
	s.tombstone(sp, &EndedClaim{ID: c.ID, How: how, At: s.now, Resource: c.Resource, Holder: c.Holder, Token: c.Token})
	if c.waiting() {
		s.leave(sp, c, how)
		return
	}
	r, _ := sp.resources.Get(c.Resource)
	free := *r
	free.Claim = ""
	free.Last, free.AvailableAt = s.ending(c, how, at)
	event := s.event(sp, c, leasehold.Ended)
	event.How, event.By, event.Reason = how, free.Last.By, free.Last.Reason
	event.Hold = s.hold(c, at)
	s.emit(sp, event)
	s.setResource(sp, &free)
	s.handOver(sp, c.Resource)
}

// ending is what a resource remembers of a lease that ended at some moment, and
// until when it rests after it; 0 if it does not.
func (s *State) ending(c *Claim, how leasehold.How, at Time) (*Ending, Time) {
	e := &Ending{ID: c.ID, Holder: c.Holder, Token: c.Token, How: how, Wall: s.wall}
	t := c.terms()
	if how == leasehold.ByBreak {
		e.By, e.Reason = t.BreakBy, t.BreakReason
	}
	if until := at.add(t.Grace); t.Grace > 0 && !how.Clean() && until > s.now {
		return e, until
	}
	return e, 0
}

// hold is what the holder of a lease has had of it when it ends at some moment.
func (s *State) hold(c *Claim, at Time) *leasehold.Hold {
	t := c.terms()
	since := c.SinceWall
	if t.ChangedWall != 0 {
		since = t.ChangedWall
	}
	return &leasehold.Hold{ID: c.ID, Holder: c.Holder, Token: c.Token, Since: calendar(since), Until: s.moment(at), Waited: t.Waited}
}

// leave takes a waiter out of the queue without a lease.
func (s *State) leave(sp *space, c *Claim, how leasehold.How) {
	sp.queue.Delete(c)
	r, _ := sp.resources.Get(c.Resource)
	shorter := *r
	shorter.Waiting--
	s.setResource(sp, &shorter)
	event := s.event(sp, c, leasehold.Left)
	event.How = how
	if how == leasehold.ByBreak {
		event.By, event.Reason = c.terms().BreakBy, c.terms().BreakReason
	}
	s.emit(sp, event)
}

// setResource stores a resource and keeps account of those that nobody has or
// wants, of which only so many are remembered, and of a grace that somebody
// waits for.
func (s *State) setResource(sp *space, r *Resource) {
	if r.Waiting > 0 && r.Claim == "" && r.AvailableAt != 0 {
		if r.timer == nil {
			r.timer = &timer{kind: dueResource, space: sp, key: r.Path}
		}
		s.due.set(r.timer, r.AvailableAt)
	} else if r.timer != nil {
		s.due.set(r.timer, 0)
		r.timer = nil
	}
	idle := r.Claim == "" && r.Waiting == 0
	switch {
	case idle && r.Idle == 0:
		s.idleSeq++
		r.Idle = s.idleSeq
		s.idle.Set(r.Idle, place{sp.name, r.Path})
	case !idle && r.Idle != 0:
		s.idle.Delete(r.Idle)
		r.Idle = 0
	}
	sp.resources.Set(r.Path, r)
}
