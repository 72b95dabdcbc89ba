package kernel

import (
	"slices"

	"github.com/leasehold/leasehold"
)

// change hands a lease to another holder, or gives it another id, without a moment in which the
// resource is free. A new holder gets a new token; a new id alone keeps the token, because the
// holder, and so what it may write, is the same.
func (t *turn) change(c *Change) Answer {
	sp := t.space(c.Namespace)
	claim := t.touch(sp, c.ID)
	if claim == nil {
		return t.changeAgain(sp, c)
	}
	if claim.Waiting() {
		return refuse(leasehold.Refused, "lease %q still waits for %s: it can be changed once it is held", c.ID,
			claim.Resource)
	}
	if c.About != nil {
		return t.describe(sp, claim, c.About)
	}
	newHolder := c.Holder != "" && c.Holder != claim.Holder
	newID := c.NewID != "" && c.NewID != claim.ID
	if !newHolder && !newID {
		return t.leaseAnswer(sp, claim) // an earlier try did it
	}
	if failure := t.staysWithHolder(sp, claim); failure != nil {
		return Answer{Err: failure}
	}
	if newHolder {
		if failure := t.mayGive(sp, claim, c); failure != nil {
			return Answer{Err: failure}
		}
	}
	if newID && t.used(sp, c.NewID) {
		return refuse(leasehold.Refused, "lease id %q is used already: choose another", c.NewID)
	}

	changed := *claim
	var over *leasehold.Hold
	if newHolder {
		over = new(t.hold(sp, claim, t.now))
		terms := claim.terms()
		terms.Waited, terms.ChangedWall = 0, t.wall
		terms.Note, terms.NotedWall = "", 0 // that was the old holder's progress
		changed.setTerms(terms)
		// The old holder's token must not open what the new holder's does.
		changed.Holder, changed.Token = c.Holder, sp.nextToken()
	}
	if newID {
		// A timer finds its claim by id, so the renamed claim needs another one.
		changed.ID, changed.timer = c.NewID, nil
		terms := changed.terms()
		terms.Foreign = c.Foreign
		changed.setTerms(terms)
		t.rename(sp, claim, &changed)
	}
	changed.SetLinked(nil)
	t.replace(sp, claim, &changed)
	t.renamed(sp, claim, &changed)
	changed.Revision = t.revise(sp)
	t.put(sp, &changed)
	// The command does not say on whose behalf it comes, so the session is told as if somebody
	// else had changed its lease: it must look before it extends the hold.
	t.intervene(sp, claim)
	event := t.event(sp, &changed, leasehold.Changed)
	event.Hold, event.Until = over, t.moment(t.deadlineOf(sp, &changed))
	t.emit(sp, event)
	t.changeLinked(sp, claim)
	return t.changedAnswer(sp, &changed)
}

// describe notes what a holder says about itself after the grant. It is the same holder with the
// same rights, so neither the token nor the count of interventions changes.
func (t *turn) describe(sp *space, claim *Claim, about *About) Answer {
	terms := claim.terms()
	if claim.Holder == about.Holder && terms.Reason == about.Reason && slices.Equal(terms.Labels, about.Labels) {
		return t.leaseAnswer(sp, claim) // an earlier try did it
	}
	terms.Reason, terms.Labels = about.Reason, about.Labels
	described := *claim
	described.Holder = about.Holder
	described.setTerms(terms)
	t.replace(sp, claim, &described)
	t.renamed(sp, claim, &described)
	described.Revision = t.revise(sp)
	t.put(sp, &described)
	event := t.event(sp, &described, leasehold.Changed)
	event.Reason, event.Until = about.Reason, t.moment(t.deadlineOf(sp, &described))
	t.emit(sp, event)
	if described.ShownAsHolder() && described.Holder != claim.Holder {
		t.showByRecord(sp, &described)
	}
	return t.changedAnswer(sp, &described)
}

// changedAnswer shows a lease that counts for another holder or group now.
func (t *turn) changedAnswer(sp *space, c *Claim) Answer {
	t.lookAgain(sp, c)
	return t.leaseAnswer(sp, c)
}

// changeAgain answers a change of an id that is gone: an earlier try of the same
// change may have replaced it.
func (t *turn) changeAgain(sp *space, c *Change) Answer {
	if sp != nil && c.NewID != "" {
		if ended, ok := sp.claims.Ended(c.ID); ok && ended.How == leasehold.IDChanged && ended.Next == c.NewID {
			if claim := t.touch(sp, c.NewID); claim != nil {
				return t.leaseAnswer(sp, claim)
			}
			return t.noClaim(sp, c.NewID)
		}
	}
	return t.noClaim(sp, c.ID)
}

// used reports whether an id names something, or did lately.
func (s *State) used(sp *space, id string) bool {
	_, live := sp.claims.Get(id)
	_, ended := sp.claims.Ended(id)
	return live || ended
}

// rename moves a lease from one id to another, in every table that knows it by its id. The old
// id is remembered with the new one, so that a retry of the change finds what it did, and a
// late renewal under the old id learns that it was renamed.
func (t *turn) rename(sp *space, from, to *Claim) {
	owner := t.endClaim(sp, &EndedClaim{ID: from.ID, How: leasehold.IDChanged, At: t.now, Resource: from.Resource,
		Holder: from.Holder, Token: from.Token, Next: to.ID})
	sp.setClaimOwner(to.ID, owner)
	if r := t.reservationOf(sp, to); r != nil && r.Lease == from.ID {
		t.reservations.Claimed(t.in(sp), r.ID, to.ID)
	}
	t.due.Set(from.timer, 0)
	t.unbind(sp, from)
	t.bind(sp, to)
}

// replace puts one lease in the place of another on the resource: in the order of tokens, since
// a new holder has a larger one, and on the units, so that they stay with the lease.
func (t *turn) replace(sp *space, from, to *Claim) {
	r, _ := sp.resources.Get(from.Resource)
	other := *r
	if from.Slots == 0 {
		other.Claim = to.ID
	} else {
		sp.sharers.Delete(sharer{from.Resource, from.Token, from.ID})
		sp.sharers.Set(sharer{to.Resource, to.Token, to.ID})
	}
	if more := r.more(); more.Shares != nil && len(more.Shares.Units) > 0 {
		shares := *more.Shares
		shares.Units = slices.Clone(shares.Units)
		for i := range shares.Units {
			if shares.Units[i].lease == from.ID {
				shares.Units[i].lease, shares.Units[i].Holder = to.ID, to.Holder
			}
		}
		more.Shares = &shares
		other.setMore(more)
	}
	if sp.isPool(from.Resource) {
		sp.pools.Renamed(t.in(sp), from, to)
	}
	t.setResource(sp, &other)
}
