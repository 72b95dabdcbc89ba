package kernel

import (
	"fmt"
	"time"

	"github.com/leasehold/leasehold"
	"github.com/leasehold/leasehold/internal/core/access"
	"github.com/leasehold/leasehold/internal/core/record"
)

// A record may be the face of a claim: some protocols know leases only as records. The claim knows the path of its
// record, and the record the id of its claim. They are made in one command and end in one: endFace is where the record
// follows the claim, and giveUp where the claim follows the record. A link costs nothing where there is none.

// A Face is the record by which a claim shows. It is never changed in place.
type Face struct {
	Path string
	Stay bool // the record outlives the claim, unlinked
	Made bool // it shows a claim that was made without it: on a mirrored resource, or on one that it stands for
}

// face returns the record by which a claim shows; nil if it has none.
func (c *Claim) face() *Face {
	if c == nil || c.Terms == nil {
		return nil
	}
	return c.Terms.Face
}

func (c *Claim) setFace(f *Face) {
	t := c.terms()
	t.Face = f
	c.setTerms(t)
}

// dropFace makes a claim that nobody has seen yet one without a record.
func (c *Claim) dropFace() {
	if c.face() != nil {
		c.setFace(nil)
	}
}

// faceOf returns the claim that a record is the face of; nil if there is none. The record may be nil.
func (sp *space) faceOf(r *leasehold.Record) *Claim {
	if sp == nil || r == nil || r.Lease == "" {
		return nil
	}
	c, _ := sp.claims.Get(r.Lease)
	return c
}

// loose reports whether a record stays when its session ends, since it follows its claim.
func (sp *space) loose(r *leasehold.Record) bool {
	f := sp.faceOf(r).face()
	return f != nil && f.Stay
}

// endFace lets the record of a claim that has just ended follow it.
func (t *turn) endFace(sp *space, c *Claim, how leasehold.How) {
	f := c.face()
	if f == nil {
		return
	}
	r, ok := sp.records.Get(f.Path)
	if !ok || r.Lease != c.ID {
		return // the claim ended through its record
	}
	t.work.take(RecordCost)
	if !f.Stay {
		t.dropRecord(sp, r, how)
		return
	}
	free := t.records.Unlink(&sp.records, r, t.reviseRecord(sp, r))
	t.emit(sp, &leasehold.Event{
		Kind: leasehold.RecordPut, How: how, Resource: r.Path, Record: free, Previous: r,
		Owner: sp.recordOwner(r.Path),
	})
}

// giveUp ends the claim that a record was the face of, which is deleted or the face of nothing by now.
func (t *turn) giveUp(sp *space, id string) {
	claim, ok := sp.claims.Get(id)
	switch {
	case !ok:
	case claim.face() != nil && claim.face().Made:
		t.breakThroughFace(sp, claim)
	default:
		t.giveBack(sp, claim, false)
	}
}

// breakThroughFace breaks a claim whose record was made for it, and deleted by somebody: whoever did that never had
// the lease.
func (t *turn) breakThroughFace(sp *space, claim *Claim) {
	c := &Break{Namespace: sp.name, ID: claim.ID, By: t.author(""), Reason: "its record was deleted"}
	if t.door != "" {
		c.Reason += " through the " + t.door + " door"
	}
	if claim.Waiting() {
		t.breakWaiter(sp, claim, c)
		return
	}
	t.breakOne(sp, claim, c)
}

// author returns who does something, as it says or as it was proven.
func (t *turn) author(said string) string {
	if said == "" && t.asker != nil {
		return t.asker.Principal
	}
	return said
}

// mayGiveUp refuses to delete records, or to make one the face of nothing, if the asker may not end their claims or
// if they are too many.
func (l *look) mayGiveUp(sp *space, doomed []*leasehold.Record) *leasehold.Error {
	linked := 0
	for _, r := range doomed {
		claim := sp.faceOf(r)
		if claim == nil {
			continue
		}
		if linked++; linked > leasehold.MaxUnlinked {
			return tooManyLinked()
		}
		if failure := l.mayEnd(sp, claim); failure != nil {
			return failure
		}
	}
	return nil
}

func tooManyLinked() *leasehold.Error {
	return refuse(leasehold.Limited, "more than %d of these records stand for leases or waiters, which end with them: "+
		"delete them in parts", leasehold.MaxUnlinked).Err
}

// mayEnd refuses to end a claim through its record to those who could not end it by its id.
func (l *look) mayEnd(sp *space, claim *Claim) *leasehold.Error {
	if l.permit == nil {
		return nil
	}
	verb := access.Release
	if f := claim.face(); f != nil && f.Made {
		verb = access.Break
	}
	if l.permit.May(verb, sp.name, claim.Resource, sp.claimOwner(claim.ID)) {
		return nil
	}
	if !l.sees(sp, claim.ID, claim.Resource) {
		return deny("%s may not end the lease that %s stands for: that needs the verb %s; ask an admin",
			l.permit.Asker.Principal, claim.face().Path, verb)
	}
	return l.deny(verb, sp.name, claim.Resource)
}

// shownClaim names the claim that a record stands for, as the asker may know it.
func (l *look) shownClaim(sp *space, claim *Claim) string {
	if !l.sees(sp, claim.ID, claim.Resource) {
		return "a lease"
	}
	return fmt.Sprintf("lease %q on %s", claim.ID, claim.Resource)
}

// A putting is a put that was worked out before anything is changed.
type putting struct {
	write  record.Write
	from   writing
	before bool
	stands bool // the record shows the resource's holder from now on

	link    *Link
	ttl     time.Duration // of a claim that is renewed
	asks    *Acquire      // for a claim that is new
	claim   *Claim        // that one
	blocked *Resource     // what is in its way
	own     string        // or the id of the claim that the record is the face of already
	keeps   string        // or of the one that it stays the face of, whatever that is
	takes   string        // or of the one that it is taken from
	gives   string        // the id of the claim that it is given up with
}

// planPut works out what a put does, or says why it cannot be done. old is what it replaces, after it was settled; nil
// if that is nothing. It changes nothing but what time has changed already.
func (t *turn) planPut(sp *space, old *leasehold.Record, p putting, keepLink bool) (putting, *leasehold.Error) {
	claim := sp.faceOf(old)
	if p.link != nil && !p.link.Claims() {
		p.stands, p.link = t.mayStand(sp, p.write.Path), nil
	}
	switch {
	case p.link != nil:
		return t.planLink(sp, old, p)
	case claim == nil:
		return p, nil
	case claim.standing() && p.write.Session != "":
		return p, refuse(leasehold.Refused, "%s stands for %s: it can be bound to a session once that has ended",
			old.Path, t.shownClaim(sp, claim)).Err
	case claim.standing():
		return p, nil // see keepHolder
	case keepLink:
		p.keeps = claim.ID
		p.write.Session, p.write.Lease, p.write.Loose = old.Session, old.Lease, claim.face().Stay
		return p, nil
	case sp.mirrors.Len() > 0 && sp.mirrored(claim.Resource) != "":
		return p, refuse(leasehold.Refused, "%s stands for %s, and its place in the queue: delete it to give that "+
			"up, or keep its link", old.Path, t.shownClaim(sp, claim)).Err
	}
	p.gives = claim.ID
	return p, t.mayEnd(sp, claim)
}

// planLink is planPut for a put with a link.
func (t *turn) planLink(sp *space, old *leasehold.Record, p putting) (putting, *leasehold.Error) {
	l, claim := p.link, sp.faceOf(old)
	p.asks = l.Acquire(sp.name, p.write.Session)
	p.write.Lease, p.write.Loose = l.ID, l.Stay
	if claim != nil && claim.ID == l.ID {
		return t.planAgain(sp, claim, p)
	}
	if failure := t.mayBegin(sp, l, &p.write); failure != nil {
		return p, failure
	}
	items := p.asks.Items()
	claims, failure := t.prepare(sp, p.asks, items)
	if failure != nil {
		return p, failure
	}
	p.claim = claims[0] // the list is used again for the next
	p.claim.setFace(&Face{Path: p.write.Path, Stay: l.Stay})
	if failure := sp.roomIn(p.write.Session, 2); failure != nil {
		return p, failure
	}
	if claim != nil && l.Take {
		p.takes = claim.ID
		return p, t.mayTakeFrom(sp, claim, l)
	}
	blocked, failure := t.admissible(sp, p.asks, items, claims)
	if p.blocked = blocked.at; failure != nil {
		return p, failure
	}
	switch {
	case claim != nil:
		return p, refuse(leasehold.Refused, "%s stands for %s: it can stand for another once that has ended",
			old.Path, t.shownClaim(sp, claim)).Err
	case old != nil && l.Mirror != "" && !l.Stands():
		return p, refuse(leasehold.Refused, "%s is there already, at revision %d, and would be out of the order of "+
			"the queue: delete it first", old.Path, old.Mod).Err
	}
	return p, nil
}

// planAgain is planLink for a record that is the face of the very claim.
func (t *turn) planAgain(sp *space, claim *Claim, p putting) (putting, *leasehold.Error) {
	l, f := p.link, claim.face()
	if f.Made || claim.Resource != l.Resource || claim.Holder != l.Holder || claim.Session != p.asks.Session {
		return p, otherID(claim).Err
	}
	if l.Mirror != "" {
		if failure := t.mayMirror(sp, l); failure != nil {
			return p, failure
		}
	}
	p.own, p.write.Loose, p.ttl = claim.ID, f.Stay, claim.TTL
	if l.TTL == 0 || claim.TTL == 0 {
		return p, nil
	}
	var failure *leasehold.Error
	p.ttl, failure = t.allowedTTL(sp, p.asks, l.Resource, nil)
	return p, failure
}

// roomIn refuses more than a session has room for. One that is not there has room.
func (sp *space) roomIn(id string, more int) *leasehold.Error {
	session, ok := sp.sessions.Get(id)
	if !ok || session.used()+more <= leasehold.MaxClaimsPerSession {
		return nil
	}
	return refuse(leasehold.Limited, "session %q has %d leases, waiters and records, and %d more were asked for: %d "+
		"are as many as it can have", id, session.used(), more, leasehold.MaxClaimsPerSession).Err
}

// mayTakeFrom refuses to take a lease from its holder.
func (l *look) mayTakeFrom(sp *space, claim *Claim, link *Link) *leasehold.Error {
	switch {
	case claim.face().Made && sp.stands(claim.Resource):
		return refuse(leasehold.Refused, "%s stands for %s, which came through another door: wait for its end, or "+
			"break it", claim.face().Path, l.shownClaim(sp, claim)).Err
	case claim.Waiting() || claim.Resource != link.Resource || claim.face().Made:
		return refuse(leasehold.Refused, "%s stands for %s, which cannot be taken as one on %s: it is another, or "+
			"waits", claim.face().Path, l.shownClaim(sp, claim), link.Resource).Err
	case l.quarantined():
		return l.notGiven(&Change{ID: claim.ID, Holder: link.Holder}).Err
	case l.permit != nil &&
		!l.permit.MayHold(access.Change, sp.name, link.Resource, link.Holder, sp.claimOwner(claim.ID)):
		return l.deny(access.Change, sp.name, link.Resource)
	case l.gains(sp, claim):
		return l.withinOwn(tally{leases: 1})
	}
	return nil
}

// gains reports whether a lease that is taken was not the asker's before.
func (l *look) gains(sp *space, claim *Claim) bool {
	return l.permit != nil && !l.permit.Owns(sp.claimOwner(claim.ID))
}

// doPut does what was worked out. It cannot fail.
func (t *turn) doPut(sp *space, p putting) (*leasehold.Record, Answer) {
	var claim *Claim
	if p.stands {
		sp.mirrors.Set(p.write.Path, p.write.Path)
	}
	switch {
	case p.own != "":
		claim = t.confirm(sp, p)
	case p.takes != "":
		claim = t.takeFrom(sp, p)
	case p.asks != nil:
		t.beginMirror(sp, p.link)
		t.room.claims = append(t.room.claims[:0], p.claim)
		t.grantOrQueue(sp, p.asks, p.asks.Items(), t.room.claims, p.blocked)
		if p.blocked != nil {
			t.wakeQueue(sp, p.link.Resource) // it may have become free by what else the command does
		}
		claim, _ = sp.claims.Get(p.link.ID)
	case p.keeps == "" && p.gives == "":
		t.keepHolder(sp, &p)
	}
	if claim != nil && !claim.Waiting() {
		p.from.token, p.write.Holder = max(p.from.token, claim.Token), claim.Holder
	}
	r := t.setRecord(sp, p.write, p.from)
	if p.gives != "" {
		t.giveUp(sp, p.gives)
	}
	return r, t.claimAnswer(sp, claim)
}

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

// confirm renews the claim that a record is the face of, if it has a TTL of its own.
func (t *turn) confirm(sp *space, p putting) *Claim {
	claim, ok := sp.claims.Get(p.own)
	switch {
	case !ok:
		return nil
	case claim.Waiting():
		return t.stillWanted(sp, claim)
	case claim.TTL == 0:
		return claim
	}
	longer := *claim
	longer.Gap = max(longer.Gap, t.gap(claim.TTL, claim.Expires))
	longer.TTL, longer.Expires = p.ttl, t.now.Add(p.ttl)
	t.put(sp, &longer)
	t.lateLease(sp, claim, &longer)
	return &longer
}

// takeFrom hands a lease to the holder that takes it, with a new token and under another id. A break that was announced
// stays announced.
func (t *turn) takeFrom(sp *space, p putting) *Claim {
	claim, _ := sp.claims.Get(p.takes)
	over := new(t.hold(sp, claim, t.now))
	taken := *p.claim
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
	event.By, event.Reason = t.author(p.from.by), p.from.reason
	t.emit(sp, event)
	return &taken
}

// moveClaimEnd counts the claims that have records, and keeps the list of those whose records end with them at a moment
// of their own, by that moment: see recordsOfEndedClaims. What the claim was, or what it is, may be nil.
func (sp *space) moveClaimEnd(before, after *Claim) {
	if before.face() == nil && after.face() == nil {
		return
	}
	if before.face() != nil {
		sp.shown--
	}
	if after.face() != nil {
		sp.shown++
	}
	was, is := before.fades(), after.fades()
	if was == is {
		return
	}
	if was.at != 0 {
		sp.claimEnds.Delete(was)
	}
	if is.at != 0 {
		sp.claimEnds.Set(is)
	}
}

func (c *Claim) fades() sessionEnd {
	if f := c.face(); f == nil || f.Stay {
		return sessionEnd{}
	}
	at, _ := c.End()
	if at == 0 {
		return sessionEnd{}
	}
	return sessionEnd{at, c.ID}
}

// recordsOfEndedClaims counts the records of a range that are over because their claims are, and not their sessions.
func (s *State) recordsOfEndedClaims(sp *space, q RecordQuery, w *work) (over int, all bool) {
	all = true
	sp.claimEnds.Ascend(sessionEnd{}, func(l sessionEnd) bool {
		if l.at > s.now {
			return false
		}
		claim, _ := sp.claims.Get(l.session)
		r, ok := sp.records.Get(claim.face().Path)
		if ok && r.Path >= q.From && (q.To == "" || r.Path < q.To) && (!sp.records.Binds(r) || !s.sessionOver(sp, r)) {
			over++
		}
		all = w.take(LookCost)
		return all
	})
	return over, all
}
