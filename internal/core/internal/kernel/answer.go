package kernel

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/leasehold/leasehold"
	"github.com/leasehold/leasehold/internal/core/access"
	"github.com/leasehold/leasehold/internal/core/timeline"
	"github.com/leasehold/leasehold/internal/pattern"
)

// What a command answers: leases, sessions and waiters as of the stamp, and refusals that name
// what is in the way. Remaining times are counted at the stamp, which is after the request was
// sent; a holder that counts them from before it sent the request is never more optimistic than
// the server.

func (l *look) leaseAnswer(sp *space, c *Claim) Answer {
	lease := l.lease(sp, c)
	return Answer{Lease: &lease}
}

// leasesAnswer shows the first of several leases, and the others beside it.
func (l *look) leasesAnswer(sp *space, claims []*Claim) Answer {
	answer := l.leaseAnswer(sp, claims[0])
	for _, c := range claims[1:] {
		answer.Also = append(answer.Also, l.lease(sp, c))
	}
	return answer
}

// lease shows a claim that is held, as of the stamp.
func (l *look) lease(sp *space, c *Claim) leasehold.Lease {
	return l.leaseAbove(sp, c, l.floor(sp, c))
}

// leaseAbove is lease, where the floor is known.
func (l *look) leaseAbove(sp *space, c *Claim, floor leasehold.Token) leasehold.Lease {
	t := c.terms()
	shown := leasehold.Lease{
		Namespace: sp.name, Resource: c.Resource, ID: c.ID, Holder: c.Holder, Labels: t.Labels, Reason: t.Reason,
		Session: c.Session, State: c.state(), Token: c.Token, Floor: floor, Slots: int(c.Slots), Units: t.Units,
		TTL: c.TTL, HoldLimit: t.HoldLimit,
		Acquired: calendar(c.SinceWall), Revision: c.Revision, After: t.After.shown(), Foreign: t.Foreign,
		Door: c.door(), Note: t.Note, Reserved: l.upcoming(sp, c),
	}
	if l.permit != nil && !l.permit.May(access.Read, sp.name, c.Resource, nil) {
		shown.After = nil // that was somebody else's
	}
	if t.NotedWall != 0 {
		shown.Noted = calendar(t.NotedWall)
	}
	// How often others intervened is in every answer about a lease of a session: the holder
	// compares it with the number it knew before it trusts a later renewal.
	if session, ok := sp.sessions.Get(c.Session); ok {
		shown.Interventions = session.touched().Count
	}
	if at := l.deadlineOf(sp, c); at != 0 {
		shown.Remaining, shown.Expires = time.Duration(max(0, at-l.now)), l.moment(at)
	}
	return shown
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
		Remaining: time.Duration(max(0, session.Expires-s.now)), Opened: calendar(session.OpenedWall),
		Expires: s.moment(session.Expires),
		Claims:  session.Claims, Interventions: session.touched().Count, Intervened: slices.Clip(session.touched().IDs),
	}
}

func (l *look) waiterAnswer(sp *space, c *Claim) Answer {
	waiter := l.waiter(sp, c, l.position(sp, c))
	waiter.Forecast, waiter.ForecastError = l.waiterForecast(sp, c)
	return Answer{Waiter: &waiter}
}

func (s *State) waiter(sp *space, c *Claim, position int) leasehold.Waiter {
	return leasehold.Waiter{
		Namespace: sp.name, Resource: c.Resource, ID: c.ID, Holder: c.Holder, Labels: c.terms().Labels,
		Reason:  c.terms().Reason,
		Session: c.Session, Slots: int(c.Slots), Position: position,
		Priority: min(max(c.Wait.Priority, -leasehold.MaxPriority), leasehold.MaxPriority),
		Since:    calendar(c.SinceWall), Until: s.moment(c.Wait.Until), Foreign: c.terms().Foreign,
	}
}

// broken shows the lease that a break has just ended.
func (l *look) broken(sp *space, c *Claim) Answer {
	lease := l.lease(sp, c)
	lease.State, lease.Remaining, lease.Expires = leasehold.Broken, 0, calendar(l.wall)
	lease.AvailableAt = l.restsAfter(sp, c.Resource, c.ID)
	return Answer{Lease: &lease}
}

// brokenBefore shows a lease that an earlier attempt of the same break ended. Only what the
// id's tombstone remembers can still be shown.
func (s *State) brokenBefore(sp *space, e *EndedClaim) Answer {
	return Answer{Lease: &leasehold.Lease{
		Namespace: sp.name, Resource: e.Resource, ID: e.ID, Holder: e.Holder, State: leasehold.Broken, Token: e.Token,
		Floor:   e.Token,
		Expires: s.moment(e.At), AvailableAt: s.restsAfter(sp, e.Resource, e.ID),
	}}
}

// restsAfter returns until when a resource rests after a lease; zero if it does not rest.
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
		Namespace: sp.name, Resource: r.Path, ID: after.ID, Holder: after.Holder, State: stateAfter(after),
		Token: after.Token, Floor: after.Token,
		Slots: int(rest.Slots), Units: rest.Units, Expires: calendar(after.Wall), AvailableAt: s.moment(rest.Until),
		Foreign: after.Foreign,
	}
}

// shown returns an ending as it is shown to people.
func (e *Ending) shown() *leasehold.Ending {
	if e == nil {
		return nil
	}
	return &leasehold.Ending{
		ID: e.ID, Holder: e.Holder, Token: e.Token, How: e.How, By: e.By, Reason: e.Reason, At: calendar(e.Wall),
		Foreign: e.Foreign, TTL: e.TTL,
	}
}

// stateAfter returns the state of a resource that nobody holds, by how its last lease ended.
func stateAfter(last *Ending) leasehold.State {
	switch {
	case last == nil || last.How.Clean():
		return leasehold.Available
	case last.How == leasehold.ByBreak:
		return leasehold.Broken
	}
	return leasehold.Expired
}

// An obstacle is what keeps a request from being granted at once.
type obstacle struct {
	at       *Resource // nil: nothing does
	overlaps string    // what the request asks for, if that is another name than the obstacle's
	units    string    // why the request cannot have units of a pool
	ownLimit bool      // because of a limit of its own
	forever  bool      // because there are too few, whoever gives some back
}

// blockedBy answers a request that cannot have a resource at once.
func (t *turn) blockedBy(sp *space, by obstacle) Answer {
	if t.unsettled {
		return Answer{Err: tooManyOver(by.at.Path)}
	}
	if by.ownLimit {
		return refuse(leasehold.Limited, "%s: this request %s", by.at.Path, by.units)
	}
	t.work.take(t.forecastCost(sp, by.at))
	if by.overlaps != "" {
		return t.heldOverlapping(sp, by.at, by.overlaps, 0)
	}
	answer := t.held(sp, by.at, 0)
	if by.units != "" {
		answer.Err.Message += "; this request " + by.units
	}
	return answer
}

// held answers a request that finds the resource taken, queued for, or at rest. position is the
// place in the queue of the one who asks; 0 if it has none. The text of the answer is part of
// the state once a request is remembered, so replicas of all versions must write the same one.
func (l *look) held(sp *space, r *Resource, position int) Answer {
	if !l.seesAll(sp, r) {
		return l.heldUnseen(sp, r, position)
	}
	failure := &leasehold.Error{Code: leasehold.Held, Waiting: r.Waiting, Position: position}
	rest := r.longestRest(l.now)
	switch {
	case r.Held():
		senior := sp.senior(r)
		lease := l.lease(sp, senior)
		failure.Lease = &lease
		failure.Message = l.heldBy(sp, r, senior, &lease)
	case rest != nil && rest.Until == 0:
		failure.Message = fmt.Sprintf(
			"%s waits for somebody to acknowledge the unclean end of %s's lease with token %d",
			r.Path, rest.After.Holder, rest.After.Token)
		failure.Lease = l.lastLease(sp, r, rest)
	case rest != nil:
		failure.Message = fmt.Sprintf("%s rests after the unclean end of %s's lease for another %s", r.Path,
			rest.After.Holder, left(rest.Until-l.now))
		failure.Lease = l.lastLease(sp, r, rest)
	case !l.quarantined() && l.keeper(sp, r.Path) != nil:
		failure.Message = fmt.Sprintf("%s is free, but %s", r.Path, ReservedText(l.keeper(sp, r.Path)))
	case l.quarantined():
		failure.Message = fmt.Sprintf("%s is free, but %s", r.Path, l.whyQuarantined())
	case sp.isPool(r.Path):
		failure.Message = fmt.Sprintf("%s has no free units that fit", r.Path)
	case pattern.In(r.Path) && r.Waiting > 0:
		waiter := first(sp, r.Path)
		failure.Message = fmt.Sprintf("%s is waited for by %s", r.Path, waiter.Holder+because(waiter.terms().Reason))
	default:
		failure.Message = fmt.Sprintf("%s is free, but not for those behind the first in its queue", r.Path)
	}
	// Who may see a lease because it is its own may not see who reserved the resource.
	if keeper := l.keeper(sp, r.Path); keeper != nil && r.Held() && l.mayShow(sp, r.Path) {
		failure.Message += "; " + ReservedText(keeper)
	}
	// The quarantine would block the request even if the holder went away now.
	if at := l.availableAfter(); at != 0 && (r.Held() || rest != nil) {
		failure.Message += fmt.Sprintf("; after a restore, nothing is granted for another %s", left(at-l.now))
	}
	if r.Waiting > 0 {
		failure.Message += fmt.Sprintf("; %d waiting", r.Waiting)
	}
	ahead := r.Waiting
	if position > 0 {
		ahead = position - 1
	}
	f := l.forecastOf(sp, r, waiterAt(sp, r.Path, position))
	failure.Forecast, failure.ForecastError = f.After(ahead), f.ErrorShown()
	failure.Message += f.Text(ahead)
	if !r.Held() && rest == nil && l.quarantined() {
		failure.Message += l.orEnd()
	}
	return Answer{Err: failure}
}

// heldBy says who has a resource, and what of it.
func (s *State) heldBy(sp *space, r *Resource, senior *Claim, lease *leasehold.Lease) string {
	who := lease.Holder + because(lease.Reason)
	text, whose := fmt.Sprintf("%s is held by %s", r.Path, who), ""
	if lease.Slots != 0 {
		others := ""
		whose = "the lease "
		if n := r.Sharers() - 1; n > 0 {
			others, whose = fmt.Sprintf(" and %d more", n), "the oldest lease "
		}
		if resting, _ := r.Rests(s.now); resting > 0 {
			others += fmt.Sprintf(", and %d at rest after an unclean end", resting)
		}
		text = fmt.Sprintf("%s has %d of %d slots taken, by %s%s", r.Path, r.More.Shares.used,
			sp.capacity(r.Path, r, sp.definition(r.Path)), who, others)
	}
	return text + "; " + whose + s.outlook(r, senior, lease).String()
}

// outlook returns what can be said about the end of a lease on a resource.
func (s *State) outlook(r *Resource, c *Claim, lease *leasehold.Lease) (o leasehold.Outlook) {
	if !lease.Expires.IsZero() {
		own, how := c.End()
		o.Left = left(Time(lease.Remaining))
		o.Final = how != leasehold.ByTTL && own <= s.now.Add(lease.Remaining)
	}
	if usual := r.more().Usual.Hold(); usual != 0 {
		o.Usual = left(Time(usual))
	}
	return o
}

// left writes how long it is from one moment to another.
func left(t Time) string { return timeline.Text(time.Duration(t)) }

func because(reason string) string {
	if reason == "" {
		return ""
	}
	return " (" + reason + ")"
}

func refuse(code leasehold.Code, format string, args ...any) Answer {
	return Answer{Err: Refusal(code, format, args...)}
}

// Refusal returns what a subject refuses with.
func Refusal(code leasehold.Code, format string, args ...any) *leasehold.Error {
	return &leasehold.Error{Code: code, Message: fmt.Sprintf(format, args...)}
}

// refusal makes an answer of what Validate found. An error without a code of its own is the
// caller's mistake too, since the command is wrong whatever the state.
func refusal(err error) Answer {
	var e *leasehold.Error
	if errors.As(err, &e) {
		return Answer{Err: e}
	}
	return refuse(leasehold.Invalid, "%v", err)
}

// noClaim answers a request that names a lease that is not there. Lost and NotFound differ for
// the caller: one was its own lease, and it must stop; the other it may have misspelt.
func (s *State) noClaim(sp *space, id string) Answer {
	if sp != nil {
		if ended, ok := sp.claims.Ended(id); ok {
			return lostClaim(id, ended.Resource, ended.How)
		}
	}
	return refuse(leasehold.NotFound, "lease %q is unknown: it never was, or it ended long ago", id)
}

func lostClaim(id, resource string, how leasehold.How) Answer {
	if resource == "" {
		return refuse(leasehold.Lost, "lease %q has ended (%v) before it was asked for: acquire again under another id",
			id, how)
	}
	return refuse(leasehold.Lost, "lease %q on %s has ended (%v): acquire again under another id", id, resource, how)
}
