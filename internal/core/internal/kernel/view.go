package kernel

import (
	"strings"
	"time"

	"github.com/leasehold/leasehold"
	"github.com/leasehold/leasehold/internal/core/access"
	"github.com/leasehold/leasehold/internal/core/reservation"
	"github.com/leasehold/leasehold/internal/core/usage"
)

// A View reads a state at the position in the log that it has reached. What is
// left of a lease is shown by a clock that may be further; whether it is over is
// for the log alone to say, or two readers could be told different things.
//
// It is an interface for the compiler's sake. A package that names a type which leads to the State
// compiles all methods of all its trees again: 6,000 functions, five seconds. Doors name views.
type View interface {
	Level() Level
	Namespaces() []string
	Counts() Counts
	Caps() (allowed, used leasehold.Caps)
	Forgot() []string
	Work() int
	Quarantine() (Quarantine, bool)
	Alarms(namespace string, q AlarmQuery) (list []leasehold.Alarm, next uint64)
	History(namespace string) History

	Status(namespace, path string, waiters int) leasehold.Status
	List(namespace, prefix, after string, most int, all bool) (list []leasehold.Status, next string)
	Find(namespace string, q ListQuery) (list []leasehold.Status, next string)
	Held(namespace string, paths ...string) *leasehold.Error
	Definition(namespace, path string) (leasehold.Definition, bool)
	Definitions(namespace, prefix, after string, most int) (list []leasehold.Definition, next string)
	Pool(namespace, path string, q PoolQuery) (status leasehold.PoolStatus, ok bool)
	Task(namespace, path string) (task leasehold.Task, ok bool)
	Tasks(namespace string, q TaskQuery) (list []leasehold.Task, next string)
	Pools(namespace, prefix, after string, most int) (list []leasehold.PoolStatus, next string)
	Advice(namespace, path string) leasehold.Advice
	Kinds(namespace, path, name string) []leasehold.LearnedKind
	Reservations(namespace string, q ReservationQuery) (list []leasehold.Reservation, next string)
	Reservation(namespace, id string) (shown leasehold.Reservation, owner *access.Owner, ok bool)
	Series(namespace string, show func(path string, owner *access.Owner) bool) []leasehold.Series
	Date() reservation.Moment

	NewestToken() leasehold.Token
	NewestTokenIn(namespace string) leasehold.Token
	Claim(namespace, id string) Answer
	Claims(c *Acquire) Answer
	Ended(namespace, id string) leasehold.How
	EndedAs(namespace, id string) (last string, how leasehold.How)
	Session(namespace, id string) (leasehold.Session, *leasehold.Error)
	Sessions(namespace, prefix, after string, most int) (list []leasehold.Session, next string)

	Record(namespace, path string, at leasehold.Revision) (*leasehold.Record, *leasehold.Error)
	Records(namespace string, q RecordQuery) (RecordPage, *leasehold.Error)
	Version(namespace, path string, revision leasehold.Revision) (leasehold.Version, *leasehold.Error)
	Versions(
		namespace, path string, before leasehold.Revision, most int,
	) (list []leasehold.Version, next leasehold.Revision)
	Keeps(namespace, path string) int
	NamesLarge(d leasehold.Digest) bool

	Policy() *access.Policy
	UseOf(q *access.Quota) Use
	OwnerOfClaim(namespace, id string) *access.Owner
	OwnerOfSession(namespace, id string) *access.Owner
	OwnerOfRecord(namespace, path string) *access.Owner
	PathOfClaim(namespace, id string) string
	StandsFor(namespace, path, id string) (holder string, other bool)
}

// A Machine is a State for a package that only applies commands to it and looks at it: an interface as View is, and for
// the same reason.
type Machine interface {
	Now() Time
	Due() (Time, bool)
	DueBy(now Time) bool
	Apply(stamp Time, wall int64, commands []Command, from ...From) (Result, error)
	View(passed time.Duration) View
	Check() error
	Level() Level
	FromBackup(how Restoration) (Restored, error)
	LiftTokens(namespace string, above leasehold.Token) *leasehold.Error
	NamesLarge(d leasehold.Digest) bool
}

// A view is the View of a state.
type view struct {
	s      *look
	passed time.Duration // since the last stamp
	calm   bool          // nothing is over that was not collected
	work   work
	shared sharing
}

// A sharing is the resource whose sharers a view looked at last, and the smallest token among those
// that are alive: many of them may be over, and a view that shows all who share it looks at these once.
type sharing struct {
	resource *Resource
	lowest   leasehold.Token
}

// View returns what can be read of the state while nothing is applied to it.
// passed is the time since the last stamp, for what is left of each lease.
func (s *State) View(passed time.Duration) View {
	v := &view{passed: max(0, passed), calm: s.nothingDue(), work: work{most: MaxReadWork}}
	v.s = s.reader(&v.work)
	return v
}

// Level returns the level that the state is at.
func (v *view) Level() Level { return v.s.level }

// Now returns the last stamp.
func (s *State) Now() Time { return s.now }

// Wall returns the leader's calendar at the last stamp, in Unix nanoseconds. It is for
// people to read.
func (s *State) Wall() int64 { return s.wall }

// Lead returns the newest leader's clock.
func (s *State) Lead() Lead { return s.lead }

// Counts is how much there is, over all namespaces.
type Counts struct {
	Namespaces, Leases, Waiters, Sessions, Resources, Records int

	Versions   int   // former versions of records
	Larges     int   // large values that something names
	LargeBytes int64 // of them

	Alarms []AlarmCount // one for each kind
}

// Counts returns how much there is.
func (v *view) Counts() (n Counts) {
	v.s.spaces.Scan(func(_ string, sp *space) bool {
		n.Namespaces++
		n.Waiters += sp.queue.Len()
		n.Leases += sp.claims.Len() - sp.queue.Len()
		n.Sessions += sp.sessions.Len()
		n.Resources += sp.resources.Len()
		records, _ := sp.records.Size()
		n.Records += records
		return true
	})
	n.Versions = v.s.records.Versions()
	n.Larges, n.LargeBytes = v.s.records.Larges()
	n.Alarms = v.s.countAlarms()
	return n
}

// Claim returns what became of an id, as an acquire of it would be answered. It is a read and
// changes nothing, so a lease that is over and not collected is reported as lost without ending
// it.
func (v *view) Claim(namespace, id string) Answer {
	sp := v.s.space(namespace)
	if sp == nil {
		return v.s.noClaim(nil, id)
	}
	c, ok := sp.claims.Get(id)
	switch {
	case !ok:
		return v.s.noClaim(sp, id)
	case c.Waiting() && sp.left(c.Session) != nil:
		return lostClaim(id, c.Resource, sp.left(c.Session).How)
	case c.Waiting() && v.s.withdrawal != nil && v.s.withdrawn(sp, c):
		return lostClaim(id, c.Resource, leasehold.ByBreak)
	case c.Waiting():
		return v.s.waiterAnswer(sp, c)
	}
	if _, how, over := v.s.isOver(sp, c); over {
		return lostClaim(id, c.Resource, how)
	}
	v.work.take(LeaseCost)
	lease := v.lease(sp, c)
	return Answer{Lease: &lease}
}

// Claims is Claim for all that an acquire asked for.
func (v *view) Claims(c *Acquire) Answer {
	answer := v.Claim(c.Namespace, c.ID)
	if answer.Lease == nil {
		return answer
	}
	for _, item := range c.Also {
		other := v.Claim(c.Namespace, item.ID)
		if other.Lease == nil {
			return other
		}
		answer.Also = append(answer.Also, *other.Lease)
	}
	return answer
}

// Held returns the refusal for a waiter that got nothing: who is in the way, on the first of
// its resources that somebody has.
func (v *view) Held(namespace string, paths ...string) *leasehold.Error {
	sp := v.s.space(namespace)
	if len(paths) == 1 && sp != nil && leasehold.IsTaskFolder(paths[0]) {
		return v.s.noTask(sp, paths[0]).Err
	}
	var queued *Resource
	for _, path := range paths {
		if sp == nil {
			break
		}
		r, ok := sp.resources.Get(path)
		switch {
		case ok && (r.Held() || len(r.more().resting(v.s.now)) > 0):
			return v.s.held(sp, r, 0).Err
		case ok && r.Waiting > 0 && queued == nil:
			queued = r
		}
		if other, _ := v.s.excludedBy(sp, &Claim{Resource: path, Wait: behindAll}); other != nil && other.Held() {
			return v.s.heldOverlapping(sp, other, path, 0).Err
		}
	}
	if queued != nil {
		return v.s.held(sp, queued, 0).Err
	}
	if v.s.quarantined() {
		return &leasehold.Error{Code: leasehold.Held, Message: paths[0] + " is free, but " + v.s.whyQuarantined() +
			v.s.orEnd()}
	}
	for _, path := range paths {
		if sp == nil {
			break
		}
		if r := v.s.keeper(sp, path); r != nil {
			return &leasehold.Error{Code: leasehold.Held, Message: path + " is free, but " + ReservedText(r)}
		}
	}
	return &leasehold.Error{Code: leasehold.Held, Message: paths[0] +
		" was not free for this request while it waited; nobody has it now"}
}

// Session shows one session.
func (v *view) Session(namespace, id string) (leasehold.Session, *leasehold.Error) {
	sp := v.s.space(namespace)
	if sp != nil {
		if session, ok := sp.sessions.Get(id); ok && session.Expires > v.s.now {
			shown := v.s.session(sp, session)
			shown.Remaining = max(0, shown.Remaining-v.passed)
			return shown, nil
		} else if ok {
			return leasehold.Session{}, lostSession(id, leasehold.SessionExpired).Err
		}
	}
	return leasehold.Session{}, v.s.noSession(sp, id).Err
}

// Sessions shows at most most sessions whose id begins with prefix and comes after another id, in
// order. next is where to continue, empty at the end.
func (v *view) Sessions(namespace, prefix, after string, most int) (list []leasehold.Session, next string) {
	sp := v.s.space(namespace)
	if sp == nil {
		return nil, ""
	}
	last := ""
	sp.sessions.Ascend(max(prefix, after), func(id string, session *Session) bool {
		switch {
		case id == after:
			return true
		case !strings.HasPrefix(id, prefix):
			return false
		case len(list) == most || !v.work.take(LeaseCost) && last != "":
			next = last
			return false
		}
		// One that is over counts as work too: very many may end at once.
		if last = id; session.Expires > v.s.now {
			shown := v.s.session(sp, session)
			shown.Remaining = max(0, shown.Remaining-v.passed)
			list = append(list, shown)
		}
		return true
	})
	return list, next
}

// History returns the events of a namespace. That of the empty name, which no namespace
// has, is that of one in which nothing happened yet.
func (v *view) History(namespace string) History {
	base := leasehold.Revision(v.s.base())
	sp := v.s.space(namespace)
	if sp == nil {
		return History{base: base, lost: v.s.lostBefore(), Revision: v.s.revisionOf(nil)}
	}
	return History{events: sp.history.items, lost: sp.lost, base: base, Revision: sp.revision}
}

// Definition shows what applies to a resource, or what was set for a prefix; false if
// that is nothing.
func (v *view) Definition(namespace, path string) (leasehold.Definition, bool) {
	sp := v.s.space(namespace)
	if sp == nil {
		return leasehold.Definition{}, false
	}
	d := sp.definition(path)
	return d, d.Path != ""
}

// Definitions shows at most most definitions whose path begins with prefix and comes after
// another. next is where to continue, empty at the end.
func (v *view) Definitions(namespace, prefix, after string, most int) (list []leasehold.Definition, next string) {
	sp := v.s.space(namespace)
	if sp == nil {
		return nil, ""
	}
	sp.definitions.Ascend(max(prefix, after), func(path string, d *leasehold.Definition) bool {
		switch {
		case path == after:
			return true
		case !strings.HasPrefix(path, prefix):
			return false
		case len(list) == most:
			next = list[most-1].Path
			return false
		}
		list = append(list, *d)
		return true
	})
	return list, next
}

// Advice suggests a TTL for a resource.
func (v *view) Advice(namespace, path string) leasehold.Advice {
	var u *usage.Usual
	var d leasehold.Definition
	if sp := v.s.space(namespace); sp != nil {
		u, d = sp.usual(path), sp.definition(path)
	}
	fallback := leasehold.DefaultTTL
	if d.DefaultTTL != 0 {
		fallback = d.DefaultTTL
	}
	a := usage.Advise(u, d, fallback)
	a.Namespace, a.Resource = namespace, path
	return a
}

// Namespaces returns the names of all namespaces.
func (v *view) Namespaces() []string { return v.s.spaces.Keys() }

// Ended returns how an id ended; zero if it did not, or too long ago.
func (v *view) Ended(namespace, id string) leasehold.How {
	if sp := v.s.space(namespace); sp != nil {
		if ended, ok := sp.claims.Ended(id); ok {
			return ended.How
		}
	}
	return 0
}

// EndedAs is Ended for a lease that may have been renamed since: it follows the id to the last
// one that the lease had, and returns that too.
func (v *view) EndedAs(namespace, id string) (last string, how leasehold.How) {
	sp := v.s.space(namespace)
	if sp == nil {
		return id, 0
	}
	for range MaxReadWork {
		ended, ok := sp.claims.Ended(id)
		if !ok {
			return id, 0
		}
		// An id is used once, so that this comes to an end.
		if ended.How != leasehold.IDChanged || ended.Next == "" {
			return id, ended.How
		}
		v.work.take(LookCost)
		id = ended.Next
	}
	return id, leasehold.IDChanged
}
