package records

import (
	"fmt"
	"time"

	"github.com/leasehold/leasehold"
	"github.com/leasehold/leasehold/internal/core/internal/kernel"
	"github.com/leasehold/leasehold/internal/core/record"
)

// A record may stand for a claim: some protocols know leases only as records. The claim knows the path of its record,
// and the record the id of its claim. They are made in one command and end in one: ClaimEnded is where the record
// follows the claim, and giveUp where the claim follows the record. A link costs nothing where there is none.

// claimOf returns the claim that a record stands for; nil if there is none. The record may be nil.
func claimOf(n kernel.Namespace, r *leasehold.Record) *kernel.Claim {
	if r == nil || r.Lease == "" {
		return nil
	}
	return n.Claim(r.Lease)
}

// loose reports whether a record stays when its session ends, since it follows its claim.
func loose(n kernel.Namespace, r *leasehold.Record) bool {
	f := claimOf(n, r).Linked()
	return f != nil && f.Stay
}

// ClaimEnded lets the record of a claim that has just ended follow it.
func (s *records) ClaimEnded(k kernel.Turn, c *kernel.Claim, how leasehold.How) {
	f := c.Linked()
	if f == nil {
		return
	}
	r, ok := s.table.Get(f.Path)
	if !ok || r.Lease != c.ID {
		return // the claim ended through its record
	}
	k.Take(kernel.RecordCost)
	if !f.Stay {
		s.dropRecord(k, r, how)
		return
	}
	free := s.store.Unlink(&s.table, r, k.ReviseRecord(r))
	k.Emit(&leasehold.Event{
		Kind: leasehold.RecordPut, How: how, Resource: r.Path, Record: free, Previous: r,
		Owner: k.RecordOwner(r.Path),
	})
}

// giveUp ends the claim that a record stood for, which is deleted or stands for nothing by now.
func giveUp(k kernel.Turn, id string) {
	claim := k.Claim(id)
	switch {
	case claim == nil:
	case claim.Linked() != nil && claim.Linked().Made:
		breakThroughRecord(k, claim)
	default:
		k.GiveBack(claim)
	}
}

// breakThroughRecord breaks a claim whose record was made for it, and deleted by somebody: whoever did that never had
// the lease.
func breakThroughRecord(k kernel.Turn, claim *kernel.Claim) {
	c := &kernel.Break{Namespace: k.Name(), ID: claim.ID, By: k.Author(""), Reason: "its record was deleted"}
	if door := k.Door(); door != "" {
		c.Reason += " through the " + door + " door"
	}
	k.Break(claim, c)
}

// mayGiveUp refuses to delete records, or to let one stand for nothing, if the asker may not end their claims or
// if they are too many.
func mayGiveUp(k kernel.Turn, doomed []*leasehold.Record) *leasehold.Error {
	linked := 0
	for _, r := range doomed {
		claim := claimOf(k.Namespace, r)
		if claim == nil {
			continue
		}
		if linked++; linked > leasehold.MaxUnlinked {
			return tooManyLinked()
		}
		if failure := k.MayEnd(claim); failure != nil {
			return failure
		}
	}
	return nil
}

func tooManyLinked() *leasehold.Error {
	return refuse(leasehold.Limited, "more than %d of these records stand for leases or waiters, which end with them: "+
		"delete them in parts", leasehold.MaxUnlinked)
}

// shownClaim names the claim that a record stands for, as the asker may know it.
func shownClaim(k kernel.Turn, claim *kernel.Claim) string {
	if !k.Sees(claim) {
		return "a lease"
	}
	return fmt.Sprintf("lease %q on %s", claim.ID, claim.Resource)
}

// A putting is a put that was worked out before anything is changed.
type putting struct {
	write       record.Write
	from        writing
	before      bool
	showsHolder bool // the record shows the resource's holder from now on

	link    *kernel.Link
	ttl     time.Duration    // of a claim that is renewed
	asks    *kernel.Acquire  // for a claim that is new
	claim   *kernel.Claim    // that one
	blocked *kernel.Resource // what is in its way
	own     string           // or the id of the claim that the record stands for already
	keeps   string           // or of the one that it goes on standing for, whatever that is
	takes   string           // or of the one that it is taken from
	gives   string           // the id of the claim that it is given up with
}

// planPut works out what a put does, or says why it cannot be done. old is what it replaces, after it was settled; nil
// if that is nothing. It changes nothing but what time has changed already. todo is what the command does besides.
func (s *records) planPut(
	k kernel.Turn, todo *plan, old *leasehold.Record, p putting, keepLink bool,
) (putting, *leasehold.Error) {
	claim := claimOf(k.Namespace, old)
	if p.link != nil && !p.link.Claims() {
		p.showsHolder, p.link = s.mayShowHolder(k, p.write.Path), nil
	}
	switch {
	case p.link != nil:
		return s.planLink(k, todo, old, p)
	case claim == nil:
		return p, nil
	case claim.ShownAsHolder() && p.write.Session != "":
		return p, refuse(leasehold.Refused, "%s stands for %s: it can be bound to a session once that has ended",
			old.Path, shownClaim(k, claim))
	case claim.ShownAsHolder():
		return p, nil // see keepHolder
	case keepLink:
		p.keeps = claim.ID
		p.write.Session, p.write.Lease, p.write.Loose = old.Session, old.Lease, claim.Linked().Stay
		return p, nil
	case s.Mirrored(claim.Resource) != "":
		return p, refuse(leasehold.Refused, "%s stands for %s, and its place in the queue: delete it to give that "+
			"up, or keep its link", old.Path, shownClaim(k, claim))
	}
	p.gives = claim.ID
	return p, k.MayEnd(claim)
}

// planLink is planPut for a put with a link.
func (s *records) planLink(
	k kernel.Turn, todo *plan, old *leasehold.Record, p putting,
) (putting, *leasehold.Error) {
	l, claim := p.link, claimOf(k.Namespace, old)
	p.asks = l.Acquire(k.Name(), p.write.Session)
	p.write.Lease, p.write.Loose = l.ID, l.Stay
	if claim != nil && claim.ID == l.ID {
		return s.planAgain(k, todo, claim, p)
	}
	if failure := s.mayBegin(k, todo, l, &p.write); failure != nil {
		return p, failure
	}
	items := p.asks.Items()
	claims, failure := k.Prepare(p.asks, items)
	if failure != nil {
		return p, failure
	}
	p.claim = claims[0] // the list is used again for the next
	p.claim.SetLinked(&kernel.LinkedRecord{Path: p.write.Path, Stay: l.Stay})
	if failure := k.RoomIn(p.write.Session, 2); failure != nil {
		return p, failure
	}
	if claim != nil && l.Take {
		p.takes = claim.ID
		return p, s.mayTakeFrom(k, claim, l)
	}
	if p.blocked, failure = k.Admissible(p.asks, items, claims); failure != nil {
		return p, failure
	}
	switch {
	case claim != nil:
		return p, refuse(leasehold.Refused, "%s stands for %s: it can stand for another once that has ended",
			old.Path, shownClaim(k, claim))
	case old != nil && l.Mirror != "" && !l.Stands():
		return p, refuse(leasehold.Refused, "%s is there already, at revision %d, and would be out of the order of "+
			"the queue: delete it first", old.Path, old.Mod)
	}
	return p, nil
}

// planAgain is planLink for a record that stands for the very claim.
func (s *records) planAgain(
	k kernel.Turn, todo *plan, claim *kernel.Claim, p putting,
) (putting, *leasehold.Error) {
	l, f := p.link, claim.Linked()
	if f.Made || claim.Resource != l.Resource || claim.Holder != l.Holder || claim.Session != p.asks.Session {
		return p, kernel.OtherID(claim)
	}
	if l.Mirror != "" {
		if failure := s.mayMirror(k, todo, l); failure != nil {
			return p, failure
		}
	}
	p.own, p.write.Loose, p.ttl = claim.ID, f.Stay, claim.TTL
	if l.TTL == 0 || claim.TTL == 0 {
		return p, nil
	}
	var failure *leasehold.Error
	p.ttl, failure = k.AllowedTTL(p.asks, l.Resource)
	return p, failure
}

// mayTakeFrom refuses to take a lease from its holder.
func (s *records) mayTakeFrom(k kernel.Turn, claim *kernel.Claim, link *kernel.Link) *leasehold.Error {
	switch {
	case claim.Linked().Made && s.ShowsHolder(claim.Resource):
		return refuse(leasehold.Refused, "%s stands for %s, which came through another door: wait for its end, or "+
			"break it", claim.Linked().Path, shownClaim(k, claim))
	case claim.Waiting() || claim.Resource != link.Resource || claim.Linked().Made:
		return refuse(leasehold.Refused, "%s stands for %s, which cannot be taken as one on %s: it is another, or "+
			"waits", claim.Linked().Path, shownClaim(k, claim), link.Resource)
	}
	return k.MayTake(claim, link)
}

// doPut does what was worked out. It cannot fail.
func (s *records) doPut(k kernel.Turn, p putting) (*leasehold.Record, kernel.Answer) {
	var claim *kernel.Claim
	if p.showsHolder {
		s.setMirror(k, p.write.Path, p.write.Path)
	}
	switch {
	case p.own != "":
		claim = confirm(k, p)
	case p.takes != "":
		claim = k.HandOver(k.Claim(p.takes), p.claim, p.from.by, p.from.reason)
	case p.asks != nil:
		s.beginMirror(k, p.link)
		claims := append(s.store.hand.claims[:0], p.claim)
		s.store.hand.claims = claims
		k.GrantOrQueue(p.asks, p.asks.Items(), claims, p.blocked)
		if p.blocked != nil {
			k.WakeQueue(p.link.Resource) // it may have become free by what else the command does
		}
		claim = k.Claim(p.link.ID)
	case p.keeps == "" && p.gives == "":
		s.keepHolder(k, &p)
	}
	if claim != nil && !claim.Waiting() {
		p.from.token, p.write.Holder = max(p.from.token, claim.Token), claim.Holder
	}
	r := s.setRecord(k, p.write, p.from)
	if p.gives != "" {
		giveUp(k, p.gives)
	}
	return r, k.ClaimAnswer(claim)
}

// confirm renews the claim that a record stands for, if it has a TTL of its own.
func confirm(k kernel.Turn, p putting) *kernel.Claim {
	claim := k.Claim(p.own)
	switch {
	case claim == nil:
		return nil
	case claim.Waiting():
		return k.StillWanted(claim)
	case claim.TTL == 0:
		return claim
	}
	return k.Prolong(claim, p.ttl)
}

// recordsOfEndedClaims counts the records of a range that are over because their claims are, and not their sessions.
func (s *records) recordsOfEndedClaims(
	n kernel.Namespace, q record.Query, w *kernel.Budget,
) (over int, all bool) {
	all = true
	s.claimEnds.Ascend(ending{}, func(l ending) bool {
		if l.at > n.Now() {
			return false
		}
		r, ok := s.table.Get(n.Claim(l.id).Linked().Path)
		if ok && r.Path >= q.From && (q.To == "" || r.Path < q.To) && (!s.table.Binds(r) || !sessionOver(n, r)) {
			over++
		}
		all = w.Take(kernel.LookCost)
		return all
	})
	return over, all
}
