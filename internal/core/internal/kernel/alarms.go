package kernel

import (
	"time"

	"github.com/leasehold/leasehold"
	"github.com/leasehold/leasehold/internal/core/usage"
)

// Alarms are those of all namespaces: see package alarm. As long as nothing is worth one, nobody is asked.
type Alarms interface {
	// Ended raises and clears what the end of a lease is a reason for. lostBefore is when a holder of the resource went
	// away the last time but one, by what was known before that end. What a session took with it that expired or was
	// abandoned is one alarm for all: see SessionEnded.
	Ended(t Turn, c *Claim, how leasehold.How, lostBefore Time)
	SessionEnded(t Turn, session string, left *Left)
	// Overdue raises the alarm of a lease that is held for longer than a limit.
	Overdue(t Turn, c *Claim, limit time.Duration)
	// Renamed keeps the alarm of a lease that continues under another id or holder.
	Renamed(t Turn, from, to *Claim)
	// LateLease and LateSession raise the alarm of a renewal that came when only so much was left.
	LateLease(t Turn, c *Claim, left time.Duration)
	LateSession(t Turn, session *Session, left time.Duration)
	// Lengthened raises the alarm of a queue that became too long, and Shortened clears it.
	Lengthened(t Turn, r *Resource)
	Shortened(t Turn, path string)
	// LookedAt clears the alarms that tell of what was acknowledged on a resource: all about something past. One that
	// tells of a later lease than the caller saw stays.
	LookedAt(t Turn, path string, token leasehold.Token)
	Acknowledge(t Turn, c *AcknowledgeAlarm) Answer
	// Forget drops one that has become too old, and reports whether there was one.
	Forget(t Turn) bool

	Count(namespace string) int
	Counts(now Time) []AlarmCount // without the quarantine's
	Show(n Namespace, q AlarmQuery, list []leasehold.Alarm, last uint64) (all []leasehold.Alarm, next uint64)

	// Raised is what the head of a snapshot has: the order of the newest, and how often there was reason for one.
	Raised() (order uint64, raised []uint64)
	RestoreRaised(order uint64, raised []uint64) error
	Pieces(namespace string, yield func(piece any) bool) bool
	Restore(t Turn, piece any) (known bool, err error)
	Copy() Alarms
	Check(n Namespace, that func(ok bool, format string, args ...any))
	CheckAll(counted int, that func(ok bool, format string, args ...any))
}

// What is never worth an alarm.
const (
	promptGap  = usage.Whole * 9 / 10 // of a TTL that passes without a renewal
	ShortQueue = 10                   // waiters
)

// overdue notes that a lease is held for too long. The claim remembers that somebody was told, or its timer would be
// due again at once.
func (t *turn) overdue(sp *space, c *Claim) {
	t.work.take(EndCost)
	long := *c
	long.Overdue = true
	t.put(sp, &long)
	t.alarms.Overdue(t.in(sp), c, c.long())
}

// renamed keeps the alarm of a lease that continues under another id or holder.
func (t *turn) renamed(sp *space, from, to *Claim) {
	if from.Overdue {
		t.alarms.Renamed(t.in(sp), from, to)
	}
}

// lateLease tells of a lease whose renewal came late, the first time.
func (t *turn) lateLease(sp *space, before, renewed *Claim) {
	if renewed.Gap > promptGap && before.Gap <= promptGap {
		t.alarms.LateLease(t.in(sp), renewed, time.Duration(before.Expires-t.now))
	}
}

// lateSession is lateLease for a session.
func (t *turn) lateSession(sp *space, before, renewed *Session) {
	if renewed.Gap > promptGap && before.Gap <= promptGap {
		t.alarms.LateSession(t.in(sp), renewed, time.Duration(before.Expires-t.now))
	}
}

// lengthened tells of a queue that may have become too long.
func (t *turn) lengthened(sp *space, path string) {
	if r, _ := sp.resources.Get(path); r.Waiting > ShortQueue {
		t.alarms.Lengthened(t.in(sp), r)
	}
}

// shortened tells of a queue that may be no longer too long.
func (t *turn) shortened(sp *space, path string) {
	if t.totals.alarms > 0 {
		t.alarms.Shortened(t.in(sp), path)
	}
}

func (t *turn) acknowledgeAlarm(c *AcknowledgeAlarm) Answer {
	sp := t.space(c.Namespace)
	if sp == nil {
		return Answer{} // an earlier try may have done it
	}
	return t.alarms.Acknowledge(t.in(sp), c)
}

// forgetAlarm drops an alarm that has become too old, and reports whether there was one.
func (t *turn) forgetAlarm() bool { return t.totals.alarms > 0 && t.alarms.Forget(t.in(nil)) }

// emitLast makes an event that comes after all others of the command.
func (t *turn) emitLast(sp *space, e *leasehold.Event) { t.lasts = append(t.lasts, lastEvent{sp, e}) }

// A lastEvent is such an event before the end of the command.
type lastEvent struct {
	space *space
	event *leasehold.Event
}

func (t *turn) emitLasts() {
	for _, l := range t.lasts {
		t.emit(l.space, l.event)
	}
	clear(t.lasts)
	t.lasts = t.lasts[:0]
}
