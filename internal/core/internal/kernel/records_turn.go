package kernel

import (
	"fmt"
	"time"

	"github.com/leasehold/leasehold"
	"github.com/leasehold/leasehold/internal/core/access"
	"github.com/leasehold/leasehold/internal/core/record"
)

// What records ask of the kernel, beside what Namespace, Look and Turn have for every subject. They take, keep and end
// leases as commands do, by the same code: what a put takes with a link is asked for like an acquire.

// A Timer says when one thing is due, and a Budget how much work may be done.
type (
	Timer  = timer
	Budget = work
)

// NewBudget returns a budget of so much work.
func NewBudget(most int) Budget { return Budget{most: most} }

// Take counts more work, and reports whether the budget covers it. Done is how much was done.
func (w *work) Take(n int) bool { return w.take(n) }

func (w *work) Done() int { return w.done }

// Budget is that of a look.
func (k Look) Budget() *Budget { return k.l.work }

// IsNew reports whether a namespace has not begun: nothing ever happened in it.
func (n Namespace) IsNew() bool { return n.s.space(n.sp.name) != n.sp }

// Revision is the newest of a namespace, and Token the newest that was granted there.
func (n Namespace) Revision() leasehold.Revision { return n.sp.revision }

func (n Namespace) Token() leasehold.Token { return n.sp.token }

// NewestRevision is Revision, which a new namespace has before it begins.
func (n Namespace) NewestRevision() leasehold.Revision { return n.s.revisionOf(n.s.space(n.sp.name)) }

// Mirrors is how many resources show who has them as records, and CountMirrors changes that.
func (n Namespace) Mirrors() int { return n.sp.mirrors }

func (k Turn) CountMirrors(n int) { k.sp.mirrors += n }

// Left is what is known of a session that has ended and is not collected yet; nil if there is no such session. EachLeft
// goes over them.
func (n Namespace) Left(session string) *Left { return n.sp.left(session) }

func (n Namespace) EachLeft(yield func(session string) bool) { n.sp.eachLeft(yield) }

// IsOver reports whether time has ended a lease or waiter, collected or not.
func (n Namespace) IsOver(c *Claim) bool {
	_, _, over := n.s.isOverByTime(n.sp, c)
	return over
}

// Senior returns the one who has held a resource for longest.
func (n Namespace) Senior(r *Resource) *Claim { return n.sp.senior(r) }

// HasPool reports whether a resource has units of hosts.
func (n Namespace) HasPool(path string) bool { return n.sp.pools.Has(path) }

// AgreedSlots is how many slots those who share a resource agreed on; 0: nobody did.
func (r *Resource) AgreedSlots() int { return r.more().shares().Capacity }

// SameParty reports whether two claims are of one party, which does not wait for itself.
func (c *Claim) SameParty(other *Claim) bool { return c.party() == other.party() }

// WhyQuarantined says why nothing is granted yet since a restore, and what to do.
func (n Namespace) WhyQuarantined() string { return n.s.whyQuarantined() + n.s.orEnd() }

// RecordOwner returns whose a record is; nil: nobody's.
func (n Namespace) RecordOwner(path string) *access.Owner { return n.sp.recordOwner(path) }

// OwnedBytes returns the bytes of a record that somebody may own.
func (n Namespace) OwnedBytes(path string) int { return n.sp.ownedBytes(path) }

// NoClaim and NoSession refuse what names a lease or a session that is not there, and WasReleased reports whether a
// lease was given back.
func (n Namespace) NoClaim(id string) *leasehold.Error { return n.s.noClaim(n.sp, id).Err }

func (n Namespace) NoSession(id string) *leasehold.Error { return n.s.noSession(n.sp, id).Err }

func (n Namespace) WasReleased(id string) bool { return n.s.wasReleased(n.sp, id) }

// RoomIn refuses more than a session has room for. One that is not there has room.
func (n Namespace) RoomIn(id string, more int) *leasehold.Error {
	session, ok := n.sp.sessions.Get(id)
	if !ok || session.used()+more <= leasehold.MaxClaimsPerSession {
		return nil
	}
	return refuse(leasehold.Limited, "session %q has %d leases, waiters and records, and %d more were asked for: %d "+
		"are as many as it can have", id, session.used(), more, leasehold.MaxClaimsPerSession).Err
}

// OtherID refuses an id that another request has.
func OtherID(c *Claim) *leasehold.Error { return otherID(c).Err }

// TooMuchAtOnce refuses what there is no time for.
func TooMuchAtOnce() *leasehold.Error { return tooMuchAtOnce() }

// Keep begins a namespace, unless it has begun.
func (k Turn) Keep() *leasehold.Error { return k.t.keepSpace(k.sp) }

// LiveSession returns a session that is not over; one that is ends here.
func (k Turn) LiveSession(id string) *Session { return k.t.liveSession(k.sp, id) }

// CountBound counts what is bound to a session in records.
func (k Turn) CountBound(session string, n int) { k.t.countRecord(k.sp, session, n) }

// Unsettled reports whether something was looked at of which not all that is over has ended.
func (k Turn) Unsettled() bool { return k.t.unsettled }

// ReviseRecord returns the revision of a change of a record, which may be nil: a command makes one revision of a
// namespace, and a record changes once at each. ReviseAgain begins another one, and ReviseAfter lets the next change do
// so if the command has changed the record.
func (k Turn) ReviseRecord(r *leasehold.Record) leasehold.Revision { return k.t.reviseRecord(k.sp, r) }

func (k Turn) ReviseAgain() { k.t.reviseAgain(k.sp) }

func (k Turn) ReviseAfter(r *leasehold.Record) {
	if k.ChangedNow(r) {
		k.ReviseLater()
	}
}

// ReviseLater lets the next change begin another revision, and ChangedNow reports whether the command has changed a
// record.
func (k Turn) ReviseLater() { k.sp.touched = 0 }

func (k Turn) ChangedNow(r *leasehold.Record) bool { return k.t.changedNow(k.sp, r) }

// RoomForEvents makes room for so many more events.
func (k Turn) RoomForEvents(more int) { k.t.roomForEvents(more) }

// SetTimer lets something happen to a record at a moment, or never if that is 0. The timer before may be nil.
func (k Turn) SetTimer(due *Timer, path string, at Time) *Timer {
	if due == nil {
		due = newTimer(dueShelf, k.sp, path)
	}
	k.t.due.Set(due, at)
	return due
}

// OwnRecord notes whose a record is that was written, and how many bytes it had before. DisownRecord forgets that and
// returns it, before the record is deleted.
func (k Turn) OwnRecord(path string, isNew bool, before int) {
	k.t.ownRecord(k.sp, path, isNew, before)
}

func (k Turn) DisownRecord(path string) *access.Owner { return k.t.disownRecord(k.sp, path) }

// DropTask removes the task whose record is deleted.
func (k Turn) DropTask(path string) { k.sp.tasks.Drop(k, path) }

// HolderChanged notes that a record may have to show another holder.
func (k Turn) HolderChanged(path string) { k.t.holderChanged(k.sp, path) }

// Door is that which the command came through, and Author who does something, as it says or as it was proven.
func (k Turn) Door() string { return k.t.door }

func (k Turn) Author(said string) string {
	if said == "" && k.t.asker != nil {
		return k.t.asker.Principal
	}
	return said
}

// Sees reports whether the asker may know of a lease or waiter.
func (k Turn) Sees(c *Claim) bool { return k.t.sees(k.sp, c.ID, c.Resource) }

// MayEnd refuses to end a lease or waiter through its record, MayRelease to release one, and MayTake to take a lease
// through its record for another holder.
func (k Turn) MayEnd(c *Claim) *leasehold.Error { return k.t.mayEnd(k.sp, c) }

func (k Turn) MayRelease(id string) *leasehold.Error {
	if k.t.permit == nil {
		return nil
	}
	return k.t.allowClaim(access.Release, k.sp.name, id)
}

func (k Turn) MayTake(c *Claim, l *Link) *leasehold.Error { return k.t.mayTakeOver(k.sp, c, l) }

// Gains reports whether a lease that is taken was not the asker's before.
func (k Turn) Gains(c *Claim) bool { return k.t.gains(k.sp, c) }

// WithinQuotas refuses writes that would be more than the asker, the namespace or the owners of the records may have.
// MadeWithinQuotas is for records that are made for claims, which are nobody's.
func (k Turn) WithinQuotas(writes []record.Write) *leasehold.Error {
	return k.t.writesWithinQuotas(k.sp.name, writes)
}

func (k Turn) MadeWithinQuotas(writes []record.Write) *leasehold.Error {
	if k.t.permit == nil {
		return nil
	}
	var more tally
	for i := range writes {
		g := k.sp.records.Growth(writes[i])
		more.records, more.bytes = more.records+g.Records, more.bytes+g.Bytes
	}
	return k.t.withinNamespace(k.sp.name, more)
}

// RoomForClaims refuses more leases and waiters than there may be. Of the leases that are taken from others, only the
// quota of the asker counts.
func (k Turn) RoomForClaims(leases, waiters, gained int) *leasehold.Error {
	if leases > 0 {
		if failure := k.t.claimsWithinCaps(leases, false); failure != nil {
			return failure
		}
	}
	if waiters > 0 {
		if failure := k.t.claimsWithinCaps(waiters, true); failure != nil {
			return failure
		}
	}
	failure := k.t.withinQuotas(k.sp.name, tally{leases: leases, waiters: waiters})
	if failure != nil || k.t.permit == nil {
		return failure
	}
	return k.t.withinOwn(tally{leases: leases + gained, waiters: waiters})
}

// AllowedTTL returns the TTL that a lease gets.
func (k Turn) AllowedTTL(c *Acquire, path string) (time.Duration, *leasehold.Error) {
	return k.t.allowedTTL(k.sp, c, path, nil)
}

// Prepare makes claims of what is asked for, in memory that is used again, and Admissible says what they would have to
// wait for; nil if nothing. Both refuse what can be neither granted nor wait. Then Take grants all of them or, if they
// are blocked, queues them, and cannot fail.
func (k Turn) Prepare(c *Acquire, items []Item) ([]*Claim, *leasehold.Error) {
	return k.t.prepare(k.sp, c, items)
}

func (k Turn) Admissible(c *Acquire, items []Item, claims []*Claim) (*Resource, *leasehold.Error) {
	blocked, failure := k.t.admissible(k.sp, c, items, claims)
	return blocked.at, failure
}

func (k Turn) GrantOrQueue(c *Acquire, items []Item, claims []*Claim, blocked *Resource) {
	k.t.grantOrQueue(k.sp, c, items, claims, blocked)
}

// MirrorRefuses is what a mirrored resource says to an acquire: see Records.
func (k Turn) MirrorRefuses(c *Acquire, items []Item, claims []*Claim) *leasehold.Error {
	return k.t.mirrorRefuses(k.sp, c, items, claims)
}

// AskedAnswer shows what a request has got, and ClaimAnswer a lease or a waiter; nothing if there is none.
func (k Turn) AskedAnswer(claims []*Claim) Answer { return k.t.askedAnswer(k.sp, claims) }

func (k Turn) ClaimAnswer(c *Claim) Answer { return k.t.claimAnswer(k.sp, c) }

// claimAnswer shows a lease or a waiter; nothing if there is none.
func (l *look) claimAnswer(sp *space, claim *Claim) Answer {
	switch {
	case claim == nil:
		return Answer{}
	case claim.Waiting():
		return l.waiterAnswer(sp, claim)
	}
	return l.leaseAnswer(sp, claim)
}

// Link lets a claim show by a record. It returns the claim as it is now.
func (k Turn) Link(c *Claim, r *LinkedRecord) *Claim {
	shown := *c
	shown.SetLinked(r)
	k.t.put(k.sp, &shown)
	return &shown
}

// StillWanted notes that somebody still waits. Prolong makes a lease last for a TTL from now, and GiveBack ends a lease
// or a wait as its holder does.
func (k Turn) StillWanted(c *Claim) *Claim { return k.t.stillWanted(k.sp, c) }

func (k Turn) Prolong(c *Claim, ttl time.Duration) *Claim {
	longer := *c
	longer.Gap = max(longer.Gap, k.t.gap(c.TTL, c.Expires))
	longer.TTL, longer.Expires = ttl, k.t.now.Add(ttl)
	k.t.put(k.sp, &longer)
	k.t.lateLease(k.sp, c, &longer)
	return &longer
}

func (k Turn) GiveBack(c *Claim) { k.t.giveBack(k.sp, c, false) }

// HandOver hands a lease to the holder that takes it, with a new token and under another id. A break that was announced
// stays announced.
func (k Turn) HandOver(claim, to *Claim, by, reason string) *Claim {
	t, sp := k.t, k.sp
	over := new(t.hold(sp, claim, t.now))
	taken := *to
	was, terms := claim.terms(), taken.terms()
	terms.BreakAt, terms.BreakBy, terms.BreakReason = was.BreakAt, was.BreakBy, was.BreakReason
	terms.ChangedWall = t.wall
	terms.Units = was.Units
	taken.setTerms(terms)
	taken.Since, taken.SinceWall, taken.Long, taken.Overdue = claim.Since, claim.SinceWall, claim.Long, claim.Overdue
	if taken.Token = sp.nextToken(); taken.TTL != 0 {
		taken.Expires = t.now.Add(taken.TTL)
	}
	t.rename(sp, claim, &taken)
	sp.setClaimOwner(taken.ID, t.permit.OwnerOf(access.Acquire, sp.name, taken.Resource, taken.Holder))
	t.replace(sp, claim, &taken)
	t.renamed(sp, claim, &taken)
	taken.Revision = t.revise(sp)
	t.put(sp, &taken)
	t.intervene(sp, claim)
	event := t.event(sp, &taken, leasehold.Changed)
	event.Hold, event.Until = over, t.moment(t.deadlineOf(sp, &taken))
	event.By, event.Reason = k.Author(by), reason
	t.emit(sp, event)
	return &taken
}

// leaseFence returns the token of the lease under which somebody writes, or why it may no longer write.
func (t *turn) leaseFence(sp *space, f Fence) (leasehold.Token, *leasehold.Error) {
	claim := t.touch(sp, f.Lease)
	switch {
	case claim != nil && !t.sees(sp, claim.ID, claim.Resource):
		return 0, unknownFence(sp, f)
	case claim == nil:
		return 0, t.lostFence(sp, f)
	case claim.Waiting():
		return 0, refuse(leasehold.Lost, "lease %q still waits for %s: it protects nothing yet", f.Lease,
			claim.Resource).Err
	case f.Token != 0 && f.Token != claim.Token:
		return 0, refuse(leasehold.Lost, "lease %q on %s has token %d and not %d: acquire again", f.Lease,
			claim.Resource, claim.Token, f.Token).Err
	}
	return claim.Token, nil
}

// lostFence explains to a writer under a lease that is over what it had, and who has it now.
// However long ago the lease ended, the answer is that it is lost.
func (t *turn) lostFence(sp *space, f Fence) *leasehold.Error {
	had := hadToken(f)
	ended, ok := sp.claims.Ended(f.Lease)
	if !ok || !t.sees(sp, ended.ID, ended.Resource) || t.permit != nil && ended.Resource == "" {
		return unknownFence(sp, f)
	}
	if ended.Token != 0 {
		had = fmt.Sprintf(" with token %d", ended.Token)
	}
	message := fmt.Sprintf("lease %q%s on %s has ended (%v)", f.Lease, had, ended.Resource, ended.How)
	if r := t.settle(sp, ended.Resource); r != nil && r.Claim != "" {
		next, _ := sp.claims.Get(r.Claim)
		message += fmt.Sprintf(", and %s holds it with token %d", t.nameOf(sp, next), next.Token)
	}
	return refuse(leasehold.Lost, "%s: acquire again under another id", message).Err
}

// NoFence refuses a write in a namespace where nothing ever happened.
func NoFence(f Fence) *leasehold.Error {
	return refuse(leasehold.Lost, "lease %q%s is not held: it never was, or it ended long ago", f.Lease,
		hadToken(f)).Err
}

// unknownFence is lostFence for an id that nobody knows, or that the asker may not know.
func unknownFence(sp *space, f Fence) *leasehold.Error {
	return refuse(leasehold.Lost, "lease %q%s is not held: it never was, or it ended long ago; the newest token is %d",
		f.Lease, hadToken(f), sp.token).Err
}

func hadToken(f Fence) string {
	if f.Token == 0 {
		return ""
	}
	return fmt.Sprintf(" with token %d", f.Token)
}
