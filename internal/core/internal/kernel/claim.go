package kernel

import (
	"time"

	"github.com/leasehold/leasehold"
	"github.com/leasehold/leasehold/internal/core/access"
	"github.com/leasehold/leasehold/internal/core/pool"
	"github.com/leasehold/leasehold/internal/core/usage"
)

// A Claim is a lease, or the wait for one: it keeps its id from one to the other.
type Claim struct {
	ID       string
	Resource string
	Holder   string
	Session  string
	TTL      time.Duration

	Token     leasehold.Token // 0 while it waits
	Since     Time            // when it began to hold, or to wait
	SinceWall int64
	Revision  leasehold.Revision

	// Expires ends a claim that has no session: the lease by its own TTL, the
	// waiter by waiterTTL. 0: it never does.
	Expires Time

	Slots   uint32 // 0: all that there are
	Gap     uint8  // of its TTL, in parts of usage.Whole: the most that passed without a renewal
	Long    uint8  // on the scale: to hold it for longer is unusual; 0: nobody knows
	Overdue bool   // it is held for too long, and there was an alarm
	Native  bool   // it came through nativeDoor

	Wait  *Wait  // while it waits
	Terms *Terms // what few claims have

	timer *timer
}

// A Wait is a place in a queue.
type Wait struct {
	Until    Time
	Priority int    // largest first
	Order    uint64 // among equals, smallest first
	With     []string
	// With names all claims that are granted together with this one, itself among
	// them, in the order in which they were asked for; nil if it is alone.
}

// Terms are the parts of a claim that most do without.
type Terms struct {
	Reason      string
	Labels      leasehold.Labels
	Foreign     string // the id that a foreign protocol gave it
	MayExpire   bool   // to expire is an ordinary end
	Task        bool   // it is on a task or, while it waits, for one in a folder
	Door        string // that it came through, if not nativeDoor; empty: not known
	Note        string // what its holder last said with a renewal
	NotedWall   int64  // when that was
	Party       string
	Grace       time.Duration
	HoldLimit   time.Duration
	Expected    time.Duration // to hold it for longer is worth an alarm; 0: as learned
	BreakAt     Time
	BreakBy     string
	BreakReason string
	Units       []string      // that a lease got
	After       *Ending       // of which the holder is warned
	Waited      time.Duration // in the queue, before the grant
	ChangedWall int64         // when its holder got it from another
	Linked      *LinkedRecord // the record by which it shows

	Reservation string // that it claims

	Select *leasehold.Select // which units of a pool it asked for
	ask    *pool.Ask         // the same, to be compared with units
}

// waiterTTL is how long a waiter without a session stays in the queue after the
// last sign that somebody still wants it.
const waiterTTL = 15 * time.Second

func (c *Claim) Waiting() bool { return c.Token == 0 }

func (c *Claim) terms() Terms {
	if c.Terms == nil {
		return Terms{}
	}
	return *c.Terms
}

func (c *Claim) setTerms(t Terms) {
	c.Terms = nil
	if t.Reason == "" && len(t.Labels) == 0 && t.Party == "" && t.Grace == 0 && t.HoldLimit == 0 && t.Expected == 0 &&
		t.BreakAt == 0 && t.BreakBy == "" && t.BreakReason == "" && len(t.Units) == 0 && t.After == nil &&
		t.Waited == 0 && t.ChangedWall == 0 && t.Linked == nil && t.Select == nil && t.Reservation == "" &&
		t.Foreign == "" && !t.MayExpire && !t.Task && t.Door == "" && t.Note == "" {
		return
	}
	c.Terms = new(t)
}

// nativeDoor is the door that most leases come through: its name costs them one bit. It has two wires, of which the
// journal tells the second by a name of its own; leases do not.
const (
	nativeDoor = "native"
	respWire   = "resp"
)

// door returns the door that a claim came through; empty if it is not known.
func (c *Claim) door() string {
	switch {
	case c.Native:
		return nativeDoor
	case c.Terms != nil:
		return c.Terms.Door
	}
	return ""
}

// End returns when and how time alone ends the claim, its session aside, or zero if there is no
// such moment. Of several ends at the same moment the one that is looked at last gives the
// reason: a break that was promised is reported as a break, although the lease would have
// expired then too.
func (c *Claim) End() (Time, leasehold.How) {
	at, how := c.Expires, leasehold.ByTTL
	sooner := func(t Time, h leasehold.How) {
		if t != 0 && (at == 0 || t <= at) {
			at, how = t, h
		}
	}
	switch {
	// A waiter expires when nobody shows an interest in it, which is a withdrawal and no
	// unclean end: it never held anything.
	case c.Waiting():
		how = leasehold.Withdrawn
		sooner(c.Wait.Until, leasehold.WaitOver)
	case c.Terms != nil:
		if c.Terms.HoldLimit != 0 {
			sooner(c.Since.Add(c.Terms.HoldLimit), leasehold.ByHoldLimit)
		}
		sooner(c.Terms.BreakAt, leasehold.ByBreak)
	}
	return at, how
}

// long returns how long a lease may be held before that is worth an alarm; 0 if it may be held
// forever. What the definition expects goes before what was learned.
func (c *Claim) long() time.Duration {
	switch {
	case c.Terms != nil && c.Terms.Expected != 0:
		return c.Terms.Expected
	case c.Long != 0:
		return usage.Time(c.Long)
	}
	return 0
}

// next returns when time alone does something to a claim, its session aside: ends it, or raises
// an alarm; zero if it never does. One timer serves both, since a claim that is due is looked
// at again anyway.
func (c *Claim) next() Time {
	at, _ := c.End()
	if c.Waiting() || c.Overdue || c.long() == 0 {
		return at
	}
	if alarm := c.Since.Add(c.long()); at == 0 || alarm < at {
		return alarm
	}
	return at
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
	Gap        uint8  // as in Claim

	Owner   *access.Owner // whose it is; nil: nobody's
	Touched *Touched      // what others did to its leases; nil: nothing

	marks *marks // ids that were withdrawn before they were known; nil: none

	records uint16 // that are bound to it, which are among Claims
	timer   *timer
}

// put stores a claim, in the queue while it waits, and sets its timer. The claim must not be
// changed afterwards: a frozen copy of the state may share it.
func (t *turn) put(sp *space, c *Claim) {
	if c.timer == nil {
		c.timer = t.claimTimer(sp, c.ID)
	}
	t.due.Set(c.timer, c.next())
	before, known := sp.claims.Set(c)
	if !known {
		t.totals.claims++
	}
	t.countClaim(sp, before, c)
	sp.moveClaimEnd(before, c)
	if c.Waiting() {
		if _, known := sp.queue.Set(c); !known {
			t.totals.waiters++
		}
		sp.parties.Set(binding{c.party(), c.ID})
		if c.Wait.With != nil {
			sp.joint.Set(c)
		}
	}
}

// dequeue takes a waiter out of the queues. c must be the waiter as it was put: the trees find
// it by its priority and arrival, and a changed copy would not be found.
func (t *turn) dequeue(sp *space, c *Claim) {
	if _, known := sp.queue.Delete(c); known {
		t.totals.waiters--
	}
	sp.parties.Delete(binding{c.party(), c.ID})
	sp.joint.Delete(c)
}

// bind makes a claim end with its session.
func (t *turn) bind(sp *space, c *Claim) {
	if c.Session == "" {
		return
	}
	sp.bound.Set(binding{c.Session, c.ID})
	t.countBound(sp, c.Session, 1)
}

func (t *turn) unbind(sp *space, c *Claim) {
	if c.Session == "" {
		return
	}
	sp.bound.Delete(binding{c.Session, c.ID})
	t.countBound(sp, c.Session, -1)
}

// countBound keeps count of what is bound to a session. The session may be ending, and then
// there is nothing left to count in.
func (t *turn) countBound(sp *space, id string, more int) {
	if session, ok := sp.sessions.Get(id); ok {
		t.freshSession(sp, session).Claims += more
	}
}

// countRecord is countBound for records, which also decide when somebody has to look for
// records that are over: see moveSessionEnd.
func (t *turn) countRecord(sp *space, id string, more int) {
	session, ok := sp.sessions.Get(id)
	if !ok {
		return
	}
	before := session.end()
	counted := t.freshSession(sp, session)
	counted.Claims += more
	counted.records = uint16(int(counted.records) + more)
	sp.moveSessionEnd(id, before, counted.end())
}

// freshSession returns a session of the table to be changed in place: a copy, or the session itself if the entry that
// is being applied has made it. Nobody else has seen that one, since copies of the state are made between entries.
func (t *turn) freshSession(sp *space, session *Session) *Session {
	if t.fresh != session {
		t.fresh = new(*session)
		sp.sessions.Set(session.ID, t.fresh)
	}
	return t.fresh
}

// moveSessionEnd tells when the records of a session end now, so that a read can leave them out if the session is over
// and they are not collected yet.
func (sp *space) moveSessionEnd(id string, was, is Time) {
	if was != is {
		sp.records.MoveSession(id, was, is)
	}
}

// end is when the records of a session end; 0 if there are none. The session may be nil.
func (session *Session) end() Time {
	if session == nil || session.records == 0 {
		return 0
	}
	return session.Expires
}
