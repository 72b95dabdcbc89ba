package core

import (
	"strings"
	"time"

	"github.com/leasehold/leasehold"
	"github.com/leasehold/leasehold/internal/core/usage"
)

func (s *State) leaseAnswer(sp *space, c *Claim) Answer {
	lease := s.lease(sp, c)
	return Answer{Lease: &lease}
}

// leasesAnswer shows the first of several leases, and the others beside it.
func (s *State) leasesAnswer(sp *space, claims []*Claim) Answer {
	answer := s.leaseAnswer(sp, claims[0])
	for _, c := range claims[1:] {
		answer.Also = append(answer.Also, s.lease(sp, c))
	}
	return answer
}

// lease shows a claim that is held, as of the stamp.
func (s *State) lease(sp *space, c *Claim) leasehold.Lease {
	t := c.terms()
	l := leasehold.Lease{
		Namespace: sp.name, Resource: c.Resource, ID: c.ID, Holder: c.Holder, Labels: t.Labels, Reason: t.Reason,
		Session: c.Session, State: c.state(), Token: c.Token, Floor: s.floor(sp, c), Slots: int(c.Slots), Units: t.Units, TTL: c.TTL, HoldLimit: t.HoldLimit,
		Acquired: calendar(c.SinceWall), Revision: c.Revision, After: t.After.shown(), Foreign: t.Foreign,
	}
	if session, ok := sp.sessions.Get(c.Session); ok {
		l.Interventions = session.touched().Count
	}
	if at := s.deadlineOf(sp, c); at != 0 {
		l.Remaining, l.Expires = time.Duration(max(0, at-s.now)), s.moment(at)
	}
	return l
}

func (c *Claim) state() leasehold.State {
	if c.Terms != nil && c.Terms.BreakAt != 0 {
		return leasehold.Breaking
	}
	return leasehold.Leased
}

func (s *State) sessionAnswer(sp *space, session *Session) Answer {
	shown := s.session(sp, session)
	return Answer{Session: &shown}
}

func (s *State) session(sp *space, session *Session) leasehold.Session {
	return leasehold.Session{
		Namespace: sp.name, ID: session.ID, TTL: session.TTL, Labels: session.Labels,
		Remaining: time.Duration(max(0, session.Expires-s.now)), Opened: calendar(session.OpenedWall), Expires: s.moment(session.Expires),
		Claims: session.Claims, Interventions: session.touched().Count, Intervened: session.touched().IDs,
	}
}

func (s *State) waiterAnswer(sp *space, c *Claim) Answer {
	waiter := s.waiter(sp, c, s.position(sp, c))
	waiter.Forecast = s.waiterForecast(sp, c)
	return Answer{Waiter: &waiter}
}

func (s *State) waiter(sp *space, c *Claim, position int) leasehold.Waiter {
	return leasehold.Waiter{
		Namespace: sp.name, Resource: c.Resource, ID: c.ID, Holder: c.Holder, Labels: c.terms().Labels, Reason: c.terms().Reason,
		Session: c.Session, Slots: int(c.Slots), Priority: c.Wait.Priority, Position: position,
		Since: calendar(c.SinceWall), Until: s.moment(c.Wait.Until), Foreign: c.terms().Foreign,
	}
}

// broken shows the lease that a break just ended.
func (s *State) broken(sp *space, c *Claim) Answer {
	lease := s.lease(sp, c)
	lease.State, lease.Remaining, lease.Expires = leasehold.Broken, 0, calendar(s.wall)
	lease.AvailableAt = s.restsAfter(sp, c.Resource, c.ID)
	return Answer{Lease: &lease}
}

// brokenBefore shows a lease that an earlier try of the same break ended.
func (s *State) brokenBefore(sp *space, e *EndedClaim) Answer {
	return Answer{Lease: &leasehold.Lease{
		Namespace: sp.name, Resource: e.Resource, ID: e.ID, Holder: e.Holder, State: leasehold.Broken, Token: e.Token, Floor: e.Token,
		Expires: s.moment(e.At), AvailableAt: s.restsAfter(sp, e.Resource, e.ID),
	}}
}

// restsAfter returns until when a resource rests after a lease; zero if it does not.
func (s *State) restsAfter(sp *space, path, id string) time.Time {
	r, ok := sp.resources.Get(path)
	if !ok {
		return time.Time{}
	}
	for _, rest := range r.more().resting(s.now) {
		if rest.After.ID == id {
			return s.moment(rest.Until)
		}
	}
	return time.Time{}
}

// lastLease shows the lease after which a resource rests.
func (s *State) lastLease(sp *space, r *Resource, rest *Rest) *leasehold.Lease {
	after := rest.After
	return &leasehold.Lease{
		Namespace: sp.name, Resource: r.Path, ID: after.ID, Holder: after.Holder, State: stateAfter(after), Token: after.Token, Floor: after.Token,
		Slots: int(rest.Slots), Units: rest.Units, Expires: calendar(after.Wall), AvailableAt: s.moment(rest.Until), Foreign: after.Foreign,
	}
}

// shown is an ending as people see it.
func (e *Ending) shown() *leasehold.Ending {
	if e == nil {
		return nil
	}
	return &leasehold.Ending{
		ID: e.ID, Holder: e.Holder, Token: e.Token, How: e.How, By: e.By, Reason: e.Reason, At: calendar(e.Wall),
		Foreign: e.Foreign, TTL: e.TTL,
	}
}

func stateAfter(last *Ending) leasehold.State {
	switch {
	case last == nil || last.How.Clean():
		return leasehold.Available
	case last.How == leasehold.ByBreak:
		return leasehold.Broken
	}
	return leasehold.Expired
}

// A View reads a state at the position in the log that it has reached. What is
// left of a lease is shown by a clock that may be further; whether it is over is
// for the log alone to say, or two readers could be told different things.
type View struct {
	s      *State
	passed time.Duration // since the last stamp
	calm   bool          // nothing is over that was not collected
	work   *work
}

// View returns what can be read of the state while nothing is applied to it.
// passed is the time since the last stamp, for what is left of each lease.
func (s *State) View(passed time.Duration) View {
	return View{s, max(0, passed), s.calm(), &work{most: maxReadWork}}
}

// Level returns the level that the state is at.
func (v View) Level() Level { return v.s.level }

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
func (v View) Counts() (n Counts) {
	v.s.spaces.Scan(func(_ string, sp *space) bool {
		n.Namespaces++
		n.Waiters += sp.queue.Len()
		n.Leases += sp.claims.Len() - sp.queue.Len()
		n.Sessions += sp.sessions.Len()
		n.Resources += sp.resources.Len()
		n.Records += sp.records.Len()
		return true
	})
	n.Versions = v.s.records.Versions()
	n.Larges, n.LargeBytes = v.s.records.Larges()
	n.Alarms = v.s.countAlarms()
	return n
}

// Claim tells what became of an id, as an acquire of it would answer.
func (v View) Claim(namespace, id string) Answer {
	sp := v.s.space(namespace)
	if sp == nil {
		return v.s.noClaim(nil, id)
	}
	c, ok := sp.claims.Get(id)
	switch {
	case !ok:
		return v.s.noClaim(sp, id)
	case c.waiting() && sp.left(c.Session) != nil:
		return lostClaim(id, c.Resource, sp.left(c.Session).How)
	case c.waiting():
		return v.s.waiterAnswer(sp, c)
	}
	if _, how, over := v.s.over(sp, c); over {
		return lostClaim(id, c.Resource, how)
	}
	lease := v.lease(sp, c)
	return Answer{Lease: &lease}
}

// Claims tells what became of an acquire: of all that it asked for.
func (v View) Claims(c *Acquire) Answer {
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

// Held tells a waiter that got nothing who is in the way: of several resources, on the
// first that somebody has.
func (v View) Held(namespace string, paths ...string) *leasehold.Error {
	sp := v.s.space(namespace)
	var queued *Resource
	for _, path := range paths {
		if sp == nil {
			break
		}
		r, ok := sp.resources.Get(path)
		switch {
		case ok && (r.held() || len(r.more().resting(v.s.now)) > 0):
			return v.s.held(sp, r, 0).Err
		case ok && r.Waiting > 0 && queued == nil:
			queued = r
		}
	}
	if queued != nil {
		return v.s.held(sp, queued, 0).Err
	}
	if v.s.quarantined() {
		return &leasehold.Error{Code: leasehold.Held, Message: paths[0] + " is free, but " + v.s.whyQuarantined()}
	}
	return &leasehold.Error{Code: leasehold.Held, Message: paths[0] + " was held for as long as this request waited; it is free now"}
}

// Session shows one session.
func (v View) Session(namespace, id string) (leasehold.Session, *leasehold.Error) {
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

// Status shows one resource with up to so many of its waiters. Of a resource that
// nothing is known of, there is nothing to say but that it is available.
func (v View) Status(namespace, path string, waiters int) leasehold.Status {
	if sp := v.s.space(namespace); sp != nil {
		if r, ok := sp.resources.Get(path); ok {
			return v.status(sp, r, maxHolders, waiters)
		}
		if d := sp.definition(path); d.Path != "" {
			return v.status(sp, &Resource{Path: path}, 0, 0)
		}
	}
	return leasehold.Status{
		Namespace: namespace, Resource: path, State: leasehold.Available, Capacity: 1, AvailableAt: v.s.moment(v.s.availableAfter()),
	}
}

// How many of those who share a resource are shown, of one and of each in a list.
const (
	maxHolders    = 1000
	maxHoldersOne = 10
)

// List shows up to so many resources whose path begins with prefix and comes after
// another path, in order, without their queues. Those that are merely available
// are left out unless all are asked for. next is where to go on from, empty at the
// end; a page may be short and still have a next one.
func (v View) List(namespace, prefix, after string, most int, all bool) (list []leasehold.Status, next string) {
	sp := v.s.space(namespace)
	if sp == nil {
		return nil, ""
	}
	seen, last := 0, ""
	sp.resources.Ascend(max(prefix, after), func(path string, r *Resource) bool {
		if path == after {
			return true
		}
		if !strings.HasPrefix(path, prefix) {
			return false
		}
		if len(list) == most || seen == most+maxLook || seen > 0 && !v.fits(sp, r) {
			next = last
			return false
		}
		seen, last = seen+1, path
		if status := v.status(sp, r, maxHoldersOne, 0); all || status.State != leasehold.Available || status.Waiting > 0 {
			list = append(list, status)
		}
		return true
	})
	return list, next
}

// maxLook is how many resources a page may pass over without showing them.
const maxLook = 1000

// History returns the events of a namespace. That of the empty name, which no namespace
// has, is that of one in which nothing happened yet.
func (v View) History(namespace string) History {
	base := leasehold.Revision(v.s.base())
	sp := v.s.space(namespace)
	if sp == nil {
		return History{base: base, lost: v.s.lostBefore(), Revision: v.s.revisionOf(nil)}
	}
	return History{events: sp.history.items, lost: sp.lost, base: base, late: v.s.plants(ResumeLate), Revision: sp.revision}
}

func (v View) lease(sp *space, c *Claim) leasehold.Lease {
	lease := v.s.lease(sp, c)
	lease.Remaining = max(0, lease.Remaining-v.passed)
	return lease
}

func (v View) status(sp *space, r *Resource, holders, waiters int) leasehold.Status {
	v.work.take(statusCost)
	more := r.more()
	d := sp.definition(r.Path)
	status := leasehold.Status{Namespace: sp.name, Resource: r.Path, Capacity: max(1, sp.capacity(r, d)), Waiting: r.Waiting}
	last, rests := v.showHolders(sp, r, &status, holders)
	if status.Holding == 0 {
		status.State = stateAfter(last)
	}
	v.showRests(&status, rests)
	status.Last = last.shown()
	resting := restingUnits(rests)
	for _, unit := range named(more.shares().Units, d.Units) {
		shown := leasehold.Unit{Name: unit.Name, Lease: unit.lease, Holder: unit.Holder}
		shown.Rests = unit.lease == "" && resting.Contains(unit.Name)
		status.Units = append(status.Units, shown)
	}
	v.work.take(len(status.Units) / perUnit)
	status.Usual = more.Usual.Shown()
	if waiters > 0 && r.Waiting > 0 {
		status.Queue = v.queue(sp, r, waiters)
	}
	return status
}

// showHolders counts and shows those who have a resource, and returns what is
// remembered of those who had it: a lease may be over at the stamp although nobody has
// collected it yet. While very many end at once, there may be more of these than a read
// can look at: those that it does not come to are counted as if they were alive.
func (v View) showHolders(sp *space, r *Resource, status *leasehold.Status, most int) (last *Ending, rests []Rest) {
	last, rests = r.more().Last, r.more().resting(v.s.now)
	status.Holding, status.Used = r.sharers(), r.more().shares().used
	if r.Claim != "" {
		status.Holding, status.Used = 1, status.Capacity
	}
	if junior := sp.junior(r); junior != nil {
		status.State = junior.state()
	}
	collected := v.collected(sp, r)
	newest, looked := status.State, 0
	sp.holders(r, func(c *Claim) bool {
		if looked++; !v.work.take(lookCost) && looked > most {
			newest = status.State
			return false
		}
		if at, how, over := v.s.over(sp, c); over {
			status.Holding--
			status.Used -= int(c.Slots)
			ending, rest := v.s.ending(sp, c, how, at)
			if last = ending; rest != nil {
				rests = append(rests, *rest)
			}
			return true
		}
		newest = c.state()
		if len(status.Holders) < most {
			v.work.take(leaseCost)
			status.Holders = append(status.Holders, v.lease(sp, c))
		}
		return !collected || len(status.Holders) < most
	})
	switch {
	case r.Claim != "" && status.Holding == 0:
		status.Used = 0
	case !collected:
		status.State = newest
	}
	return last, rests
}

// collected reports whether no lease on a resource can be over at the stamp.
func (v View) collected(sp *space, r *Resource) bool {
	soonest := r.more().shares().soonest
	return (v.calm || r.Claim == "" && (soonest == 0 || soonest > v.s.now)) && !sp.leaving()
}

// fits reports whether a resource can be shown with the work that is left.
func (v View) fits(sp *space, r *Resource) bool {
	looks := statusCost
	if !v.collected(sp, r) {
		looks += lookCost * r.sharers()
	}
	return v.work.done+looks <= v.work.most
}

// showRests says when something is free again, unless something is.
func (v View) showRests(status *leasehold.Status, rests []Rest) {
	resting, all := 0, false
	var next Time
	for _, rest := range rests {
		resting, all = resting+int(rest.Slots), all || rest.Slots == 0
		if rest.Until == 0 {
			status.Unacknowledged = rest.After.shown()
		} else if next == 0 || rest.Until < next {
			next = rest.Until
		}
	}
	if !all && (status.Holding > 0 || resting < status.Capacity) {
		next = 0
	}
	if status.Holding == 0 {
		next = max(next, v.s.availableAfter())
	}
	status.AvailableAt = v.s.moment(next)
}

func (v View) queue(sp *space, r *Resource, most int) (queue []leasehold.Waiter) {
	forecast := v.s.forecast(sp, r)
	sp.queue.Ascend(beforeAll(r.Path), func(c *Claim) bool {
		if c.Resource != r.Path || len(queue) == most {
			return false
		}
		waiter := v.s.waiter(sp, c, len(queue)+1)
		waiter.Forecast = forecast.After(len(queue))
		queue = append(queue, waiter)
		return true
	})
	v.work.take(leaseCost * len(queue))
	return queue
}

// Definition shows what applies to a resource, or what was set for a prefix; false if
// that is nothing.
func (v View) Definition(namespace, path string) (leasehold.Definition, bool) {
	sp := v.s.space(namespace)
	if sp == nil {
		return leasehold.Definition{}, false
	}
	d := sp.definition(path)
	return d, d.Path != ""
}

// Definitions shows up to so many definitions whose path begins with prefix and comes
// after another. next is where to go on from, empty at the end.
func (v View) Definitions(namespace, prefix, after string, most int) (list []leasehold.Definition, next string) {
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
func (v View) Advice(namespace, path string) leasehold.Advice {
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
func (v View) Namespaces() []string { return v.s.spaces.Keys() }

// Ended tells how an id ended; zero if it did not, or too long ago.
func (v View) Ended(namespace, id string) leasehold.How {
	if sp := v.s.space(namespace); sp != nil {
		if ended, ok := sp.ended.Get(id); ok {
			return ended.How
		}
	}
	return 0
}

// EndedAs is Ended for whatever a lease was called last: an id that was changed goes on as
// the next one. last is that name.
func (v View) EndedAs(namespace, id string) (last string, how leasehold.How) {
	sp := v.s.space(namespace)
	if sp == nil {
		return id, 0
	}
	for range maxReadWork {
		ended, ok := sp.ended.Get(id)
		if !ok {
			return id, 0
		}
		// An id is used once, so that this comes to an end.
		if ended.How != leasehold.IDChanged || ended.Next == "" {
			return id, ended.How
		}
		v.work.take(lookCost)
		id = ended.Next
	}
	return id, leasehold.IDChanged
}
