package kernel

import (
	"slices"
	"time"

	"github.com/leasehold/leasehold"
	"github.com/leasehold/leasehold/internal/core/command"
)

// acquire grants all that is asked for, or queues all of it, or refuses all of it. It looks at
// everything first and changes nothing until nothing can be refused any longer (see admit), so
// there is nothing to undo.
func (t *turn) acquire(c *Acquire) Answer {
	if c.Session != "" && t.space(c.Namespace) == nil {
		return t.noSession(nil, c.Session) // a refusal must not begin a namespace
	}
	sp, failure := t.makeSpace(c.Namespace)
	if failure != nil {
		return Answer{Err: failure}
	}
	if c.Task {
		return t.claimTask(sp, c)
	}
	// The id is in use: most likely this is a retry, whose first answer was lost.
	if claim := t.touch(sp, c.ID); claim != nil {
		return t.acquireAgain(sp, c)
	}
	if c.Reservation != "" {
		if c, failure = t.reservations.Ask(t.in(sp), c); failure != nil {
			return Answer{Err: failure}
		}
	}
	items := c.Items()
	claims, failure := t.prepare(sp, c, items)
	if failure != nil {
		return Answer{Err: failure}
	}
	// Not sooner: those who wait are looked at before, and what is reserved is still kept from them.
	t.claiming = c.Reservation
	if failure := t.mirrorRefuses(sp, c, items, claims); failure != nil {
		return Answer{Err: failure}
	}
	return t.admit(sp, c, items, claims)
}

// prepare makes claims of what is asked for, or says why they can be neither granted nor
// wait. It changes nothing but what time has changed already.
func (t *turn) prepare(sp *space, c *Acquire, items []Item) (claims []*Claim, failure *leasehold.Error) {
	// An id names one lease for as long as it is remembered, so a late retry learns what
	// became of the first try instead of being granted a second lease.
	for _, item := range items {
		if failure := t.unusedID(sp, item); failure != nil {
			return nil, failure
		}
	}
	var session *Session
	if c.Session != "" {
		if session = t.liveSession(sp, c.Session); session == nil {
			return nil, t.noSession(sp, c.Session).Err
		}
		for _, item := range items {
			if failure := withdrawn(session, item); failure != nil {
				return nil, failure
			}
		}
		// What a session may have is bounded because all of it ends together.
		if session.used()+len(items) > leasehold.MaxClaimsPerSession {
			return nil, refuse(leasehold.Limited,
				"session %q has %d leases, waiters and records, and %d more were asked "+
					"for: %d are as many as it can have",
				c.Session, session.used(), len(items), leasehold.MaxClaimsPerSession).Err
		}
	}
	if failure := sp.mayTakeNames(items); failure != nil {
		return nil, failure
	}
	for _, item := range items {
		t.settle(sp, item.Resource)
	}
	// Claims are made only when all resources are settled: what is agreed on the capacity of
	// one goes when its last sharer does.
	claims = slices.Grow(t.asked[:0], len(items))[:len(items)]
	t.asked = claims
	for i, item := range items {
		if claims[i], failure = t.claim(sp, c, item, session); failure != nil {
			return nil, failure
		}
	}
	return claims, sp.mayAskTogether(claims)
}

// unusedID refuses an id that is in use, or was lately.
func (t *turn) unusedID(sp *space, item Item) *leasehold.Error {
	if claim := t.touch(sp, item.ID); claim != nil {
		return otherID(claim).Err
	}
	if _, ended := sp.claims.Ended(item.ID); ended { // maybe just now
		return t.noClaim(sp, item.ID).Err
	}
	return nil
}

// withdrawn refuses an id that its own session took back before the acquire arrived: nobody
// waits for that answer any longer, and a lease that nobody knows of would be held until its
// session ends.
func withdrawn(session *Session, item Item) *leasehold.Error {
	if !session.marks.has(item.ID) {
		return nil
	}
	return lostClaim(item.ID, item.Resource, leasehold.Withdrawn).Err
}

func otherID(claim *Claim) Answer {
	return refuse(leasehold.Refused, "lease id %q belongs to %s on %s: choose another id", claim.ID, claim.Holder,
		claim.Resource)
}

// claim makes the claim on one of the resources, as far as its definition allows.
func (t *turn) claim(sp *space, c *Acquire, item Item, session *Session) (*Claim, *leasehold.Error) {
	d := sp.definition(item.Resource)
	ttl, failure := t.allowedTTL(sp, c, item.Resource, session)
	if failure == nil {
		failure = t.agree(sp, item, d)
	}
	if failure == nil {
		failure = t.maySelect(sp, c, item)
	}
	if failure != nil {
		return nil, failure
	}
	// The stricter of the two limits applies: a definition protects those who wait from holders
	// that ask for too much.
	limit := c.HoldLimit
	if d.HoldLimit != 0 && (limit == 0 || limit > d.HoldLimit) {
		limit = d.HoldLimit
	}
	claim := &Claim{
		ID: item.ID, Resource: item.Resource, Holder: c.Holder, Session: c.Session, TTL: ttl, Slots: uint32(item.Slots),
		Since: t.now, SinceWall: t.wall,
	}
	terms := Terms{Reason: c.Reason, Labels: c.Labels, Party: c.Party, Grace: c.Grace, HoldLimit: limit,
		Expected: d.Expected, Select: item.Select, Task: c.Task, Reservation: c.Reservation}
	if item.Select != nil {
		terms.ask, _ = CompileAsk(item.Slots, item.Select, c.Labels)
	}
	terms.Foreign, terms.MayExpire = c.Foreign, c.MayExpire
	if claim.Native = t.door == nativeDoor || t.door == respWire; !claim.Native {
		terms.Door = t.door
	}
	claim.setTerms(terms)
	return claim, nil
}

// allowedTTL returns the TTL that a lease gets under a definition. A TTL that the caller named
// is refused if it is too long, rather than shortened: the caller would renew too late. One
// that it left to the server is shortened.
func (s *State) allowedTTL(
	sp *space, c *Acquire, path string, session *Session,
) (time.Duration, *leasehold.Error) {
	d := sp.definition(path)
	ttl := s.pickTTL(sp, c, path, d)
	asked := ttl
	if session != nil {
		asked = session.TTL
	}
	switch {
	case d.LargestTTL == 0 || asked != 0 && asked <= d.LargestTTL:
		return ttl, nil
	case session == nil && c.Pick != TTLAsSaid:
		return d.LargestTTL, nil
	case asked == 0:
		return 0, refuse(leasehold.Refused, "a lease on %s lasts at most %s: ask for a ttl of that or less", path,
			left(Time(d.LargestTTL))).Err
	}
	return 0, refuse(leasehold.Refused, "a lease on %s lasts at most %s, not %s: ask for less", path,
		left(Time(d.LargestTTL)), left(Time(asked))).Err
}

// agree refuses a request that contradicts the number of slots of a resource. Without a
// definition the first who shares a resource says how many there are, and everybody after must
// say the same: else two holders would count slots differently.
func (s *State) agree(sp *space, item Item, d leasehold.Definition) *leasehold.Error {
	if item.Slots == 0 {
		return nil
	}
	r, _ := sp.resources.Get(item.Resource)
	capacity := sp.capacity(item.Resource, r, d)
	switch {
	case capacity == 0 && item.Capacity == 0 && item.Slots > 1:
		return refuse(leasehold.Refused, "nobody said yet how many slots %s has: say its capacity, or define it",
			item.Resource).Err
	case capacity == 0:
		capacity = item.KnownCapacity()
	case item.Capacity != 0 && item.Capacity != capacity:
		return s.disagree(item, capacity)
	}
	if item.Slots > capacity {
		return s.tooManySlots(item, capacity)
	}
	return nil
}

func (s *State) disagree(item Item, capacity int) *leasehold.Error {
	return refuse(leasehold.Refused, "%s has %s, and this request says that it has %d: leave the capacity out",
		item.Resource, slotCount(capacity), item.Capacity).Err
}

func (s *State) tooManySlots(item Item, capacity int) *leasehold.Error {
	return refuse(leasehold.Refused, "%s has %s, and you asked for %d: ask for fewer", item.Resource,
		slotCount(capacity), item.Slots).Err
}

// admit grants all claims of a request, or queues all of them, or refuses. Every refusal comes
// before the first change.
func (t *turn) admit(sp *space, c *Acquire, items []Item, claims []*Claim) Answer {
	blocked, failure := t.admissible(sp, c, items, claims)
	if failure != nil {
		return Answer{Err: failure}
	}
	t.grantOrQueue(sp, c, items, claims, blocked.at)
	return t.askedAnswer(sp, claims)
}

// askedAnswer shows what a request has got: its leases, or its place in the queue.
func (l *look) askedAnswer(sp *space, claims []*Claim) Answer {
	if claims[0].Waiting() {
		return l.waiterAnswer(sp, claims[0])
	}
	return l.leasesAnswer(sp, claims)
}

// admissible says why claims can be neither granted nor wait, and what they would have to wait for.
func (t *turn) admissible(
	sp *space, c *Acquire, items []Item, claims []*Claim,
) (blocked obstacle, failure *leasehold.Error) {
	blocked = t.blocked(sp, c, items, claims)
	isBlocked := blocked.at != nil
	if isBlocked && blocked.forever {
		return blocked, refuse(leasehold.Refused, "%s: this request %s", blocked.at.Path, blocked.units).Err
	}
	// Those who do not wait are told who is in their way, and not that some cap is reached,
	// which they can do nothing about.
	if isBlocked && c.Wait == 0 {
		return blocked, t.blockedBy(sp, blocked).Err
	}
	if failure := t.roomForClaims(sp, len(claims), isBlocked); failure != nil {
		return blocked, failure
	}
	shared := slices.IndexFunc(items, func(item Item) bool { return item.Slots != 0 })
	if shared >= 0 && t.unsettled && !isBlocked {
		// Nobody could say which is the smallest token that is still alive.
		return blocked, tooManyOver(items[shared].Resource)
	}
	if isBlocked {
		return blocked, t.mayWait(sp, c, claims)
	}
	return blocked, nil
}

// grantOrQueue grants all claims of a request or, if they are blocked, queues them. From here on nothing is refused:
// everything below happens, or the whole request would be half done.
func (t *turn) grantOrQueue(sp *space, c *Acquire, items []Item, claims []*Claim, blocked *Resource) {
	t.mirrorClaims(sp, claims)
	for i, claim := range claims {
		t.bind(sp, claim)
		sp.setClaimOwner(claim.ID, t.permit.OwnerOf(takeVerb(items[i].Slots), sp.name, claim.Resource, claim.Holder))
		t.settleCapacity(sp, items[i])
	}
	if c.Reservation != "" {
		t.reservations.Claimed(t.in(sp), c.Reservation, claims[0].ID)
	}
	if blocked != nil {
		until := Time(0)
		if c.Wait != command.Endless {
			until = t.now.Add(c.Wait)
		}
		t.enqueue(sp, claims, until, c.Priority)
		t.showClaims(sp, claims)
		if c.Reservation != "" {
			// Units are kept for it where it can begin first, and no longer those of the plan.
			t.wakeQueue(sp, c.Resource)
		}
		t.work.take(t.forecastCost(sp, blocked))
		return
	}
	for i, claim := range claims {
		taken := Resource{Path: claim.Resource}
		if r, ok := sp.resources.Get(claim.Resource); ok {
			taken = *r
		}
		claims[i] = t.grant(sp, taken, claim)
	}
	t.showClaims(sp, claims)
	for _, claim := range claims {
		t.lookAgain(sp, claim)
	}
}

// blocked returns the first obstacle to granting all that is asked for now.
func (t *turn) blocked(sp *space, c *Acquire, items []Item, claims []*Claim) obstacle {
	pools := poolsAmong(sp, claims)
	for i, item := range items {
		r, ok := sp.resources.Get(item.Resource)
		if sp.isPart(item.Resource, uint32(item.Slots)) {
			if !ok {
				r = &Resource{Path: item.Resource}
			}
			if blocked := t.openUnits(sp, r, claims[i], pools, c.Priority); blocked.at != nil {
				return blocked
			}
			continue
		}
		if !ok {
			// Nobody knows it, and mostly it is free: only an obstacle has to be kept.
			if unknown := (Resource{Path: item.Resource}); !t.open(sp, &unknown, item, c.Priority) {
				return obstacle{at: &Resource{Path: item.Resource}}
			}
		} else if !t.open(sp, r, item, c.Priority) {
			return obstacle{at: r}
		}
		if other := t.newcomerOverlaps(sp, claims[i], c.Priority); other != nil {
			return obstacle{at: other, overlaps: item.Resource}
		}
	}
	return obstacle{}
}

// mayWait refuses a wait for which the queues have no room, or that would close a cycle of
// parties waiting for each other and so never end.
func (l *look) mayWait(sp *space, c *Acquire, claims []*Claim) *leasehold.Error {
	for _, claim := range claims {
		if r, ok := sp.resources.Get(claim.Resource); ok && r.Waiting >= leasehold.MaxQueue {
			return refuse(leasehold.Limited, "%s has %d waiters already, which is as many as it can have",
				claim.Resource, r.Waiting).Err
		}
	}
	return l.deadlock(sp, claims, c.Priority)
}

// acquireAgain answers an acquire whose id is in use: the same request once more gets what
// there is by now. What remains of the lease is counted at this stamp and is not extended: an
// acquire that is retried is no renewal.
func (t *turn) acquireAgain(sp *space, c *Acquire) Answer {
	items := c.Items()
	claims := make([]*Claim, len(items))
	for _, item := range items {
		again := t.touch(sp, item.ID)
		if again == nil {
			return t.noClaim(sp, item.ID)
		}
		if !again.asked(item.Resource, c.Task) || again.Holder != c.Holder {
			return otherID(again)
		}
	}
	for i, item := range items {
		again, ok := sp.claims.Get(item.ID) // the others may have changed it
		if !ok {
			return t.noClaim(sp, item.ID)
		}
		if claims[i] = again; again.Waiting() != claims[0].Waiting() {
			return otherID(again) // they were not asked for together
		}
	}
	claim := claims[0]
	switch {
	case !claim.Waiting():
		return t.leasesAnswer(sp, claims)
	case c.Wait > 0:
		return t.waiterAnswer(sp, t.stillWanted(sp, claim))
	}
	r, _ := sp.resources.Get(claim.Resource)
	t.work.take(t.forecastCost(sp, r))
	if other, _ := t.excludedBy(sp, claim); other != nil {
		return t.heldOverlapping(sp, other, claim.Resource, t.position(sp, claim))
	}
	return t.held(sp, r, t.position(sp, claim))
}

// open reports whether a settled resource can be granted to somebody who does not wait yet.
// Those who wait go first, even if the newcomer would fit beside them, unless they have a lower
// priority: else a stream of small requests could keep a large one waiting forever.
func (l *look) open(sp *space, r *Resource, item Item, priority int) bool {
	if l.quarantined() || priority == EarlyPriority {
		return false
	}
	if r.Waiting > 0 {
		if waiter := first(sp, r.Path); waiter.Wait.Priority >= priority {
			return false
		}
	}
	return l.fits(sp, r, uint32(item.Slots), item.KnownCapacity())
}

// grant gives the resource to a claim, which must have left the queue. It is the only place
// where a claim gets its first token, whichever way it came here; so what holds for one grant
// holds for all.
func (t *turn) grant(sp *space, taken Resource, claim *Claim) *Claim {
	if claim.Wait != nil {
		t.learnWait(&taken, claim)
	}
	t.work.take(grantCost)
	waited := claim.Wait != nil
	since, granted := claim.Since, claim
	if waited {
		granted = new(*claim) // the queue has it; what was asked for just now is nobody's yet
	}
	granted.Token, granted.Wait = sp.nextToken(), nil
	granted.Long = t.longFor(sp, &taken, granted)
	// Both the TTL and the hold limit count from the grant: time in the queue is not time held.
	granted.Since, granted.SinceWall = t.now, t.wall
	granted.Expires = 0
	if granted.TTL != 0 {
		granted.Expires = t.now.Add(granted.TTL)
	}
	t.endsWith(sp, granted)
	if waited {
		terms := granted.terms()
		terms.Waited = time.Duration(t.now - since)
		granted.setTerms(terms)
	}
	t.warn(sp, &taken, granted)
	t.occupy(sp, &taken, granted)
	t.setResource(sp, &taken)

	granted.Revision = t.revise(sp)
	t.put(sp, granted)
	event := t.event(sp, granted, leasehold.Acquired)
	event.Reason, event.Until = granted.terms().Reason, t.moment(t.deadlineOf(sp, granted))
	if t.borrowed(granted.ID) {
		event.By = leasehold.ByBackfill
	}
	t.emit(sp, event)
	if granted.Slots == 0 && granted.Linked() == nil {
		t.holderChanged(sp, granted.Resource)
	}
	return t.announceReservations(sp, granted)
}
