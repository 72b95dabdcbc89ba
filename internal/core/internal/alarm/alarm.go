// Package alarm tells people what they should look at: leases that ended uncleanly or are held for too long, renewals
// that come late, queues that grow.
//
// An alarm is part of the state, so that it is an event like any other: in order, once, and the
// same on every node. There is one for each thing, however often it happens, and only the first
// time is an event: a fault that repeats every second must not fill history. What is kept of
// alarms is bounded.
package alarm

import (
	"cmp"
	"fmt"
	"time"

	"github.com/leasehold/leasehold"
	"github.com/leasehold/leasehold/internal/core/internal/kernel"
	"github.com/leasehold/leasehold/internal/core/timeline"
	"github.com/leasehold/leasehold/internal/core/usage"
)

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
	Last      kernel.Time // when it happened last
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

// maxAlarmsAtOnce is how many alarms of leases that ended one command raises: when thousands end together nobody looks
// at each, the newest would drive out the rest anyway, and their events would cost as much as the ends.
const maxAlarmsAtOnce = 100

// What is worth an alarm, besides what the kernel knows of.
const (
	flapTime    = 5 * time.Minute
	flapTimes   = 3 // that holders went away within flapTime
	queueFactor = 4 // times as many waiters as usual
)

// about begins an alarm about a lease.
func about(c *kernel.Claim, kind leasehold.AlarmKind) *Alarm {
	return &Alarm{Kind: kind, Resource: c.Resource, ID: c.ID, Holder: c.Holder, Token: c.Token, Session: c.Session}
}

// raise makes an alarm active, or extends it.
func (s *alarms) raise(t kernel.Turn, a *Alarm, format string, args ...any) {
	a.Text = fmt.Sprintf(format, args...)
	s.activate(t, a)
}

// activate is raise for an alarm that has its text. An alarm that is raised again is the newest of
// all, so that what still goes on is the last to make room.
func (s *alarms) activate(t kernel.Turn, a *Alarm) {
	a.SinceWall, a.Last, a.LastWall, a.Count = t.Wall(), t.Now(), t.Wall(), 1
	s.raised[a.Kind]++
	again := false
	if before := s.find(t.Namespace, a); before != nil {
		if again = before.isActive(t.Now()); again {
			a.SinceWall, a.Count = before.SinceWall, before.Count+1
		}
		s.drop(t, before)
	}
	if !s.makeRoom(t) {
		return
	}
	s.order++
	a.Order = s.order
	s.file(t, a)
	if !again {
		tell(t, a, leasehold.Alarmed)
	}
}

// tell makes an event of an alarm. It comes after all other events of the command, which
// say what it is about.
func tell(t kernel.Turn, a *Alarm, kind leasehold.Kind) {
	e := a.event(kind)
	if session := t.Session(a.Session); session != nil && a.Resource == "" {
		e.Owner = session.Owner
	}
	t.EmitLast(e)
}

func (a *Alarm) event(kind leasehold.Kind) *leasehold.Event {
	return &leasehold.Event{
		Kind: kind, Alarm: a.Kind, Resource: a.Resource, ID: a.ID, Holder: a.Holder, Token: a.Token, Session: a.Session,
		Reason: a.Text,
	}
}

// clear ends an alarm, if it is active.
func (s *alarms) clear(t kernel.Turn, like *Alarm) {
	if a := s.active(t.Namespace, like); a != nil {
		s.drop(t, a)
		if !a.Quiet {
			tell(t, a, leasehold.AlarmCleared)
		}
	}
}

func (s *alarms) Overdue(t kernel.Turn, c *kernel.Claim, limit time.Duration) {
	held := time.Duration(t.Now() - c.Since)
	if c.Terms != nil && c.Terms.Expected != 0 {
		s.raise(t, about(c, leasehold.HeldLong), "%s has held %s for %s: at most %s were expected", c.Holder,
			c.Resource, timeline.Text(held), timeline.Text(limit))
		return
	}
	s.raise(t, about(c, leasehold.HeldLong), "%s has held %s for %s, which is unusually long here (from %s on)",
		c.Holder, c.Resource, timeline.Text(held), timeline.Text(limit))
}

func (s *alarms) Renamed(t kernel.Turn, from, to *kernel.Claim) {
	if a := s.active(t.Namespace, about(from, leasehold.HeldLong)); a != nil {
		other := *a
		other.ID, other.Holder, other.Token = to.ID, to.Holder, to.Token
		s.drop(t, a)
		s.file(t, &other)
	}
}

func (s *alarms) Ended(t kernel.Turn, c *kernel.Claim, how leasehold.How, lostBefore kernel.Time) {
	if c.Overdue {
		s.clear(t, about(c, leasehold.HeldLong))
	}
	switch {
	case !alarming(t, c, how):
	case t.EmittedLast() >= maxAlarmsAtOnce && !awaitsAcknowledgement(t, c):
		s.raised[leasehold.UncleanEnd]++
	default:
		a := about(c, leasehold.UncleanEnd)
		a.Text = "the lease of " + c.Holder + " on " + c.Resource + " ended uncleanly (" + how.String() + ")"
		s.activate(t, a)
	}
	again := lostBefore != 0 && lostBefore.Add(flapTime) > t.Now()
	if again && usage.WentAway(how) && !ordinary(t, c, how) {
		s.raise(t, about(c, leasehold.Flapping), "holders of %s went away %d times within %s, the last one was %s",
			c.Resource, flapTimes, timeline.Text(flapTime), c.Holder)
	}
}

// alarming reports whether somebody should look at the end of a lease. A break is no reason: it is what an operator
// did on purpose, and is in the history and the audit.
func alarming(t kernel.Turn, c *kernel.Claim, how leasehold.How) bool {
	switch how {
	case leasehold.ByBreak, leasehold.SessionExpired, leasehold.Abandoned:
		return false
	}
	return !how.Clean() && !ordinary(t, c, how)
}

// ordinary reports whether a lease expired that was meant to, as one does whose reservation is over, and nobody has to
// acknowledge it.
func ordinary(t kernel.Turn, c *kernel.Claim, how leasehold.How) bool {
	if c.Terms == nil {
		return false
	}
	meant := how == leasehold.ByTTL && c.Terms.MayExpire || how == leasehold.ByHoldLimit && c.Terms.Reservation != ""
	return meant && !awaitsAcknowledgement(t, c)
}

// awaitsAcknowledgement reports whether nobody gets what a lease had until somebody has looked at its unclean end.
func awaitsAcknowledgement(t kernel.Turn, c *kernel.Claim) bool {
	return t.Definition(c.Resource).Unclean == leasehold.AwaitAcknowledgement
}

func (s *alarms) LookedAt(t kernel.Turn, path string, token leasehold.Token) {
	for _, kind := range leasehold.AlarmKinds {
		like := &Alarm{Kind: kind, Resource: path}
		if a := s.active(t.Namespace, like); a != nil && kind.Past() && a.Token <= token {
			s.clear(t, like)
		}
	}
}

// Acknowledge clears an alarm that somebody has looked at. If it happened again since, it stays;
// if it is gone, an earlier try may have cleared it.
func (s *alarms) Acknowledge(t kernel.Turn, c *kernel.AcknowledgeAlarm) kernel.Answer {
	a := s.at(t.Namespace, c.Order)
	if a == nil || a.Kind != c.Kind || a.Resource != c.Resource {
		a = s.active(t.Namespace, &Alarm{Kind: c.Kind, Resource: c.Resource, ID: c.ID, Session: c.Session})
	}
	switch {
	case a == nil || a.Quiet || !a.isActive(t.Now()):
		return kernel.Answer{}
	case c.Resource != "" && a.Resource != c.Resource:
		// Whether the caller may was judged by the resource that it named, so this one is as if it were gone.
		return kernel.Answer{}
	case a.Order != c.Order:
		return kernel.Answer{Err: kernel.Refusal(leasehold.Refused,
			"it happened again since you looked (%s): check that, then acknowledge it", a.Text)}
	}
	s.drop(t, a)
	if a.Kind == leasehold.LongQueue {
		// It is still long, and the next waiter must not raise the alarm again.
		quiet := *a
		quiet.Quiet = true
		s.file(t, &quiet)
	}
	e := a.event(leasehold.AlarmCleared)
	e.By, e.Reason = c.By, cmp.Or(c.Reason, a.Text)
	t.EmitLast(e)
	return kernel.Answer{}
}

func (s *alarms) SessionEnded(t kernel.Turn, session string, left *kernel.Left) {
	if left.Leases == 0 {
		return
	}
	more := ""
	if left.Leases > 1 {
		more = fmt.Sprintf(", and %d more", left.Leases-1)
	}
	a := &Alarm{Kind: leasehold.UncleanEnd, Resource: left.Resource, Holder: left.Holder, Session: session}
	if left.How == leasehold.Abandoned {
		s.raise(t, a, "the holder %s died, and session %s ended with its lease on %s%s", left.Holder, session,
			left.Resource, more)
		return
	}
	s.raise(t, a, "session %s expired, and with it the lease of %s on %s%s", session, left.Holder, left.Resource, more)
}

func (s *alarms) LateLease(t kernel.Turn, c *kernel.Claim, left time.Duration) {
	s.raise(t, about(c, leasehold.LateRenewal), "%s renewed its lease on %s with %s of %s left", c.Holder, c.Resource,
		timeline.Text(left), timeline.Text(c.TTL))
}

func (s *alarms) LateSession(t kernel.Turn, session *kernel.Session, left time.Duration) {
	a := &Alarm{Kind: leasehold.LateRenewal, Session: session.ID}
	s.raise(t, a, "session %s was renewed with %s of %s left", session.ID, timeline.Text(left),
		timeline.Text(session.TTL))
}

func (s *alarms) Lengthened(t kernel.Turn, r *kernel.Resource) {
	a := &Alarm{Kind: leasehold.LongQueue, Resource: r.Path}
	if s.active(t.Namespace, a) != nil {
		return
	}
	usual := 0
	if r.More != nil && r.More.Usual != nil {
		usual = r.More.Usual.Queue()
	}
	if a.Limit = max(kernel.ShortQueue, queueFactor*usual); r.Waiting <= a.Limit {
		return
	}
	if usual == 0 {
		s.raise(t, a, "%d wait for %s", r.Waiting, r.Path)
		return
	}
	s.raise(t, a, "%d wait for %s: usual are %d", r.Waiting, r.Path, usual)
}

// Shortened clears the alarm of a queue when it is half as long as the length that raised it: a
// queue that wavers around the limit must not raise and clear the alarm with every waiter.
func (s *alarms) Shortened(t kernel.Turn, path string) {
	a := s.active(t.Namespace, &Alarm{Kind: leasehold.LongQueue, Resource: path})
	if a == nil {
		return
	}
	if r := t.Resource(path); r == nil || r.Waiting <= a.Limit/2 {
		s.clear(t, a)
	}
}
