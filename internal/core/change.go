package core

import (
	"slices"

	"github.com/leasehold/leasehold"
	"github.com/leasehold/leasehold/internal/core/pool"
)

// change hands a lease to another holder, or gives it another id, without a moment in which the
// resource is free. A new holder gets a new token; a new id alone keeps the token, because the
// holder, and so what it may write, is the same.
func (s *State) change(c *Change) Answer {
	sp := s.space(c.Namespace)
	claim := s.touch(sp, c.ID)
	if claim == nil {
		return s.changeAgain(sp, c)
	}
	if claim.waiting() {
		return refuse(leasehold.Refused, "lease %q still waits for %s: it can be changed once it is held", c.ID,
			claim.Resource)
	}
	if c.About != nil {
		return s.describe(sp, claim, c.About)
	}
	newHolder := c.Holder != "" && c.Holder != claim.Holder
	newID := c.NewID != "" && c.NewID != claim.ID
	if !newHolder && !newID {
		return s.leaseAnswer(sp, claim) // an earlier try did it
	}
	if failure := s.staysWithHolder(sp, claim); failure != nil {
		return Answer{Err: failure}
	}
	if newHolder {
		if failure := s.mayGive(sp, claim, c); failure != nil {
			return Answer{Err: failure}
		}
	}
	if newID && s.used(sp, c.NewID) {
		return refuse(leasehold.Refused, "lease id %q is used already: choose another", c.NewID)
	}

	changed := *claim
	var over *leasehold.Hold
	if newHolder {
		over = new(s.hold(sp, claim, s.now))
		t := claim.terms()
		t.Waited, t.ChangedWall = 0, s.wall
		t.Note, t.NotedWall = "", 0 // that was the old holder's progress
		changed.setTerms(t)
		// The old holder's token must not open what the new holder's does.
		changed.Holder, changed.Token = c.Holder, sp.nextToken()
	}
	if newID {
		// A timer finds its claim by id, so the renamed claim needs another one.
		changed.ID, changed.timer = c.NewID, nil
		t := changed.terms()
		t.Foreign = c.Foreign
		changed.setTerms(t)
		s.rename(sp, claim, &changed)
	}
	changed.dropFace()
	s.replace(sp, claim, &changed)
	s.renamed(sp, claim, &changed)
	changed.Revision = s.revise(sp)
	s.put(sp, &changed)
	// The command does not say on whose behalf it comes, so the session is told as if somebody
	// else had changed its lease: it must look before it extends the hold.
	s.intervene(sp, claim)
	event := s.event(sp, &changed, leasehold.Changed)
	event.Hold, event.Until = over, s.moment(s.deadlineOf(sp, &changed))
	s.emit(sp, event)
	s.changeFace(sp, claim)
	return s.changedAnswer(sp, &changed)
}

// describe notes what a holder says about itself after the grant. It is the same holder with the
// same rights, so neither the token nor the count of interventions changes.
func (s *State) describe(sp *space, claim *Claim, about *About) Answer {
	t := claim.terms()
	if claim.Holder == about.Holder && t.Reason == about.Reason && slices.Equal(t.Labels, about.Labels) {
		return s.leaseAnswer(sp, claim) // an earlier try did it
	}
	t.Reason, t.Labels = about.Reason, about.Labels
	described := *claim
	described.Holder = about.Holder
	described.setTerms(t)
	s.replace(sp, claim, &described)
	s.renamed(sp, claim, &described)
	described.Revision = s.revise(sp)
	s.put(sp, &described)
	event := s.event(sp, &described, leasehold.Changed)
	event.Reason, event.Until = about.Reason, s.moment(s.deadlineOf(sp, &described))
	s.emit(sp, event)
	if described.standing() && described.Holder != claim.Holder {
		s.showByRecord(sp, &described)
	}
	return s.changedAnswer(sp, &described)
}

// changedAnswer shows a lease that counts for another holder or group now.
func (s *State) changedAnswer(sp *space, c *Claim) Answer {
	s.lookAgain(sp, c)
	return s.leaseAnswer(sp, c)
}

// changeAgain answers a change of an id that is gone: an earlier try of the same
// change may have replaced it.
func (s *State) changeAgain(sp *space, c *Change) Answer {
	if sp != nil && c.NewID != "" {
		if ended, ok := sp.ended.Get(c.ID); ok && ended.How == leasehold.IDChanged && ended.Next == c.NewID {
			if claim := s.touch(sp, c.NewID); claim != nil {
				return s.leaseAnswer(sp, claim)
			}
			return s.noClaim(sp, c.NewID)
		}
	}
	return s.noClaim(sp, c.ID)
}

// used reports whether an id names something, or did lately.
func (s *State) used(sp *space, id string) bool {
	_, live := sp.claims.Get(id)
	_, ended := sp.ended.Get(id)
	return live || ended
}

// rename moves a lease from one id to another, in every table that knows it by its id. The old
// id is remembered with the new one, so that a retry of the change finds what it did, and a
// late renewal under the old id learns that it was renamed.
func (s *State) rename(sp *space, from, to *Claim) {
	owner := s.unput(sp, from)
	sp.setClaimOwner(to.ID, owner)
	if r := sp.reservations.Get(to.terms().Reservation); r != nil && r.Lease == from.ID {
		s.claimedBy(sp, r, to.ID)
	}
	s.due.Set(from.timer, 0)
	s.unbind(sp, from)
	s.bind(sp, to)
	s.tombstone(sp, &EndedClaim{ID: from.ID, How: leasehold.IDChanged, At: s.now, Resource: from.Resource,
		Holder: from.Holder, Token: from.Token, Next: to.ID, Owner: owner})
}

// replace puts one lease in the place of another on the resource: in the order of tokens, since
// a new holder has a larger one, and on the units, so that they stay with the lease.
func (s *State) replace(sp *space, from, to *Claim) {
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
	s.changeUnits(sp, from, func(u *pool.Unit) {
		if from.Token != to.Token {
			u.Give(to.ID, to.Holder) // it is used on somebody else's account from now on
		}
		u.Lease, u.Holder = to.ID, to.Holder
	})
	s.setResource(sp, &other)
}
