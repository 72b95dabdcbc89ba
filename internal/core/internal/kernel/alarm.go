package kernel

import (
	"fmt"
	"slices"
	"time"

	"github.com/tidwall/btree"

	"github.com/leasehold/leasehold"
	"github.com/leasehold/leasehold/internal/core/access"
	"github.com/leasehold/leasehold/internal/core/timeline"
	"github.com/leasehold/leasehold/internal/core/usage"
)

// An alarm is part of the state, so that it is an event like any other: in order, once, and the
// same on every node. There is one for each thing, however often it happens, and only the first
// time is an event: a fault that repeats every second must not fill history. What is kept of
// alarms is bounded.

// An Alarm is one that is active. It is never changed in place.
type Alarm struct {
	Kind     leasehold.AlarmKind
	Resource string
	ID       string // of the lease
	Holder   string
	Token    leasehold.Token
	Session  string

	Order     uint64 // larger for those that happened later
	SinceWall int64
	Last      Time // when it happened last
	LastWall  int64
	Count     int
	Text      string
	Limit     int // of a queue: the length that is not too long yet

	// Quiet: somebody has looked at it. It is kept only so that it is not raised again while its cause
	// goes on.
	Quiet bool

	filed     string // its key, once it is active
	namespace string // that it is active in
}

// How many alarms can be active. Beyond it the oldest of the namespace makes room.
const (
	maxAlarms    = 10000 // in all namespaces
	maxAlarmsOne = 1000  // in one

	// maxAlarmsAtOnce is how many alarms of leases that ended one command raises: when
	// thousands end together nobody looks at each, the newest would drive out the rest anyway, and their
	// events would cost as much as the ends.
	maxAlarmsAtOnce = 100
)

// What is worth an alarm, besides what is in usual.go.
const (
	lateGap     = usage.Whole * 9 / 10 // of a TTL: more of it should not pass without a renewal
	flapTime    = 5 * time.Minute
	flapTimes   = 3  // that holders went away within flapTime
	minQueue    = 10 // waiters that are never too many
	queueFactor = 4  // times as many as usual
)

// alarms are those of all namespaces, by kind and by age.
type alarms struct {
	order  uint64
	stand  [16]int    // how many there are, by kind
	raised [16]uint64 // how often there was reason for one, by kind
	all    int
	past   btree.Map[uint64, *Alarm] // those about something past, by Order
}

// key identifies what an alarm is about. There is one active alarm for each key.
func (a *Alarm) key() string {
	kind := string(rune('a' + a.Kind))
	switch {
	case a.Kind == leasehold.HeldLong:
		return kind + "lease " + a.ID
	case a.Session != "" && a.ID == "":
		return kind + "session " + a.Session
	}
	return kind + "resource " + a.Resource
}

// isActive reports whether an alarm is still active at a moment, collected or not. One about
// something past is forgotten by time alone.
func (a *Alarm) isActive(now Time) bool {
	return !a.Kind.Past() || a.Last.Add(leasehold.AlarmMemory) > now
}

// about begins an alarm about a lease.
func about(c *Claim, kind leasehold.AlarmKind) *Alarm {
	return &Alarm{Kind: kind, Resource: c.Resource, ID: c.ID, Holder: c.Holder, Token: c.Token, Session: c.Session}
}

// raise makes an alarm active, or extends it.
func (t *turn) raise(sp *space, a *Alarm, format string, args ...any) {
	a.Text = fmt.Sprintf(format, args...)
	t.activate(sp, a)
}

// activate is raise for an alarm that has its text. An alarm that is raised again is the newest of
// all, so that what still goes on is the last to make room.
func (t *turn) activate(sp *space, a *Alarm) {
	a.SinceWall, a.Last, a.LastWall, a.Count = t.wall, t.now, t.wall, 1
	a.filed, a.namespace = a.key(), sp.name
	// It takes its place before there is room for it: one search instead of two, and when
	// thousands of leases end together there is one for each.
	before, known := sp.alarms.Set(a.filed, a)
	again := known && before.isActive(t.now)
	if again {
		a.SinceWall, a.Count = before.SinceWall, before.Count+1
	}
	if known {
		sp.alarmOrder.Delete(before.Order)
		t.uncountAlarm(before)
	}
	t.alarms.raised[a.Kind]++
	if !t.roomForAlarm(sp) {
		sp.alarms.Delete(a.filed)
		return
	}
	t.alarms.order++
	a.Order = t.alarms.order
	sp.alarmOrder.Set(a.Order, a)
	t.countAlarm(a)
	if !again {
		t.tellAlarm(sp, a, leasehold.Alarmed)
	}
}

// tellAlarm makes an event of an alarm. It comes after all other events of the command, which
// say what it is about.
func (t *turn) tellAlarm(sp *space, a *Alarm, kind leasehold.Kind) {
	var owner *access.Owner
	if session, ok := sp.sessions.Get(a.Session); ok && a.Resource == "" {
		owner = session.Owner
	}
	t.untold = append(t.untold, untold{sp, &leasehold.Event{
		Kind: kind, Alarm: a.Kind, Resource: a.Resource, ID: a.ID, Holder: a.Holder, Token: a.Token, Session: a.Session,
		Owner: owner, Reason: a.Text,
	}})
}

// An untold is the event of an alarm before the end of the command.
type untold struct {
	space *space
	event *leasehold.Event
}

func (t *turn) tellAlarms() {
	for _, u := range t.untold {
		t.emit(u.space, u.event)
	}
	clear(t.untold)
	t.untold = t.untold[:0]
}

// roomForAlarm makes room for the alarm that is about to be counted, and reports whether there is any.
// If there are too many in all and this namespace has none to give up, there is no room: nobody's
// alarms are dropped for those of others.
func (t *turn) roomForAlarm(sp *space) bool {
	if sp.alarms.Len() <= maxAlarmsOne && t.alarms.all < maxAlarms {
		return true
	}
	_, oldest, ok := sp.alarmOrder.PopMin()
	if ok {
		sp.alarms.Delete(oldest.filed)
		t.uncountAlarm(oldest)
	}
	return ok
}

func (t *turn) fileAlarm(sp *space, a *Alarm) {
	a.namespace = sp.name
	sp.alarms.Set(a.filed, a)
	sp.alarmOrder.Set(a.Order, a)
	t.countAlarm(a)
}

func (t *turn) dropAlarm(sp *space, a *Alarm) {
	sp.alarms.Delete(a.filed)
	sp.alarmOrder.Delete(a.Order)
	t.uncountAlarm(a)
}

// countAlarm counts an alarm among those of all namespaces.
func (t *turn) countAlarm(a *Alarm) {
	if !a.Quiet {
		t.alarms.stand[a.Kind]++
	}
	t.alarms.all++
	if a.Kind.Past() {
		t.alarms.past.Set(a.Order, a)
	}
}

func (t *turn) uncountAlarm(a *Alarm) {
	if !a.Quiet {
		t.alarms.stand[a.Kind]--
	}
	t.alarms.all--
	if a.Kind.Past() {
		t.alarms.past.Delete(a.Order)
	}
}

// forgetAlarm drops the oldest alarm about something past if it is no longer active, and
// reports whether it did.
func (t *turn) forgetAlarm() bool {
	_, a, ok := t.alarms.past.Min()
	if !ok || a.isActive(t.now) {
		return false
	}
	t.dropAlarm(t.space(a.namespace), a)
	return true
}

// activeAlarm returns the active alarm about the same thing as another; nil if there is none.
func (s *State) activeAlarm(sp *space, like *Alarm) *Alarm {
	if sp.alarms.Len() == 0 {
		return nil
	}
	a, ok := sp.alarms.Get(like.key())
	if !ok || !a.isActive(s.now) {
		return nil
	}
	return a
}

// clearAlarm ends an alarm, if it is active.
func (t *turn) clearAlarm(sp *space, like *Alarm) {
	if a := t.activeAlarm(sp, like); a != nil {
		t.dropAlarm(sp, a)
		if !a.Quiet {
			t.tellAlarm(sp, a, leasehold.AlarmCleared)
		}
	}
}

// overdue raises the alarm of a lease that is held for too long. The claim remembers that it
// did, or its timer would be due again at once.
func (t *turn) overdue(sp *space, c *Claim) {
	t.work.take(EndCost)
	long := *c
	long.Overdue = true
	t.put(sp, &long)
	held, limit := time.Duration(t.now-c.Since), c.long()
	if c.terms().Expected != 0 {
		t.raise(sp, about(c, leasehold.HeldLong), "%s has held %s for %s: at most %s were expected", c.Holder,
			c.Resource, timeline.Text(held), timeline.Text(limit))
		return
	}
	t.raise(sp, about(c, leasehold.HeldLong), "%s has held %s for %s, which is unusually long here (from %s on)",
		c.Holder, c.Resource, timeline.Text(held), timeline.Text(limit))
}

// renamed keeps the alarm of a lease that continues under another id or holder.
func (t *turn) renamed(sp *space, from, to *Claim) {
	if a := t.activeAlarm(sp, about(from, leasehold.HeldLong)); a != nil {
		other := *a
		other.ID, other.Holder, other.Token = to.ID, to.Holder, to.Token
		other.filed = other.key()
		t.dropAlarm(sp, a)
		t.fileAlarm(sp, &other)
	}
}

// alarmEnd raises or clears the alarms that the end of a lease is a reason for. before is what
// was learned before that end. What a session took with it that expired or was abandoned is one
// alarm for all: see alarmSession.
func (t *turn) alarmEnd(sp *space, c *Claim, how leasehold.How, before usage.Usual) {
	if c.Overdue {
		t.clearAlarm(sp, about(c, leasehold.HeldLong))
	}
	switch {
	case !t.alarming(sp, c, how):
	case len(t.untold) >= maxAlarmsAtOnce && !sp.awaitsAcknowledgement(c):
		t.alarms.raised[leasehold.UncleanEnd]++
	default:
		a := about(c, leasehold.UncleanEnd)
		a.Text = "the lease of " + c.Holder + " on " + c.Resource + " ended uncleanly (" + how.String() + ")"
		t.activate(sp, a)
	}
	again := before.LostBefore != 0 && before.LostBefore.Add(flapTime) > t.now
	if again && usage.WentAway(how) && !ordinary(sp, c, how) {
		t.raise(sp, about(c, leasehold.Flapping), "holders of %s went away %d times within %s, the last one was %s",
			c.Resource, flapTimes, timeline.Text(flapTime), c.Holder)
	}
}

// alarming reports whether somebody should look at the end of a lease. A break is no reason: it is what an operator
// did on purpose, and is in the history and the audit.
func (s *State) alarming(sp *space, c *Claim, how leasehold.How) bool {
	switch how {
	case leasehold.ByBreak, leasehold.SessionExpired, leasehold.Abandoned:
		return false
	}
	return !how.Clean() && !ordinary(sp, c, how)
}

// ordinary reports whether a lease expired that was meant to, as one does whose reservation is over, and nobody has to
// acknowledge it.
func ordinary(sp *space, c *Claim, how leasehold.How) bool {
	meant := how == leasehold.ByTTL && c.terms().MayExpire ||
		how == leasehold.ByHoldLimit && c.terms().Reservation != ""
	return meant && !sp.awaitsAcknowledgement(c)
}

// awaitsAcknowledgement reports whether nobody gets what a lease had until somebody has looked at its unclean end.
func (sp *space) awaitsAcknowledgement(c *Claim) bool {
	return sp.definition(c.Resource).Unclean == leasehold.AwaitAcknowledgement
}

// lookedAt clears the alarms that tell of what was acknowledged on a resource: all about something past. One that tells
// of a later lease than the caller saw stays.
func (t *turn) lookedAt(sp *space, path string, token leasehold.Token) {
	for _, kind := range leasehold.AlarmKinds {
		like := &Alarm{Kind: kind, Resource: path}
		if a := t.activeAlarm(sp, like); a != nil && kind.Past() && a.Token <= token {
			t.clearAlarm(sp, like)
		}
	}
}

// alarmSession raises the alarm of a session that expired, or was abandoned, while it had leases.
func (t *turn) alarmSession(sp *space, session string, left *Left) {
	if left.Leases == 0 {
		return
	}
	more := ""
	if left.Leases > 1 {
		more = fmt.Sprintf(", and %d more", left.Leases-1)
	}
	a := &Alarm{Kind: leasehold.UncleanEnd, Resource: left.Resource, Holder: left.Holder, Session: session}
	if left.How == leasehold.Abandoned {
		t.raise(sp, a, "the holder %s died, and session %s ended with its lease on %s%s", left.Holder, session,
			left.Resource, more)
		return
	}
	t.raise(sp, a, "session %s expired, and with it the lease of %s on %s%s", session, left.Holder, left.Resource, more)
}

// lateLease raises the alarm of a lease whose renewal came late, the first time.
func (t *turn) lateLease(sp *space, before, renewed *Claim) {
	if renewed.Gap > lateGap && before.Gap <= lateGap {
		t.raise(sp, about(renewed, leasehold.LateRenewal), "%s renewed its lease on %s with %s of %s left",
			renewed.Holder,
			renewed.Resource, timeline.Text(time.Duration(before.Expires-t.now)), timeline.Text(renewed.TTL))
	}
}

// lateSession is lateLease for a session.
func (t *turn) lateSession(sp *space, before, renewed *Session) {
	if renewed.Gap > lateGap && before.Gap <= lateGap {
		a := &Alarm{Kind: leasehold.LateRenewal, Session: renewed.ID}
		t.raise(sp, a, "session %s was renewed with %s of %s left", renewed.ID,
			timeline.Text(time.Duration(before.Expires-t.now)), timeline.Text(renewed.TTL))
	}
}

// lengthened raises the alarm of a queue that became too long.
func (t *turn) lengthened(sp *space, path string) {
	r, _ := sp.resources.Get(path)
	a := &Alarm{Kind: leasehold.LongQueue, Resource: path}
	if r.Waiting <= minQueue || t.activeAlarm(sp, a) != nil {
		return
	}
	learned := r.more().usual()
	usual := learned.Queue()
	if a.Limit = max(minQueue, queueFactor*usual); r.Waiting <= a.Limit {
		return
	}
	if usual == 0 {
		t.raise(sp, a, "%d wait for %s", r.Waiting, path)
		return
	}
	t.raise(sp, a, "%d wait for %s: usual are %d", r.Waiting, path, usual)
}

// shortened clears the alarm of a queue when it is half as long as the length that raised it: a
// queue that wavers around the limit must not raise and clear the alarm with every waiter.
func (t *turn) shortened(sp *space, path string) {
	a := t.activeAlarm(sp, &Alarm{Kind: leasehold.LongQueue, Resource: path})
	if a == nil {
		return
	}
	if r, ok := sp.resources.Get(path); !ok || r.Waiting <= a.Limit/2 {
		t.clearAlarm(sp, a)
	}
}

// counted is what a snapshot keeps of how often there was reason for an alarm.
func (a *alarms) counted() []uint64 {
	n := len(a.raised)
	for n > 1 && a.raised[n-1] == 0 {
		n--
	}
	return slices.Clone(a.raised[1:n])
}
