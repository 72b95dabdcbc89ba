package kernel

import (
	"fmt"
	"strings"

	"github.com/leasehold/leasehold"
	"github.com/leasehold/leasehold/internal/core/access"
)

// breakLease ends leases on behalf of an operator: at once, or after the period that the
// operator grants their holders. A break that was announced cannot be put off, neither by a
// renewal nor by another break.
func (t *turn) breakLease(c *Break) Answer {
	sp := t.space(c.Namespace)
	claims, refusal := t.toBreak(sp, c)
	if len(claims) == 0 {
		return refusal
	}
	switch may, missing := t.allowedOf(access.Break, sp, claims); {
	case missing != nil:
		return Answer{Err: missing}
	case len(may) < len(claims):
		return nothingToBreak(c)
	}
	if claims[0].Waiting() {
		return t.breakWaiter(sp, claims[0], c)
	}
	// The newest goes last: it is what the resource remembers, by which a retry is known.
	var newest Answer
	var others []leasehold.Lease
	for i, claim := range claims {
		if newest = t.breakOne(sp, claim, c); i < len(claims)-1 {
			others = append(others, *newest.Lease)
		}
	}
	newest.Also = others
	return newest
}

// breakOne breaks one lease and shows what becomes of it. With Remains, a lease keeps what it
// has left; one that would never end by itself is broken at once, since "what remains" would be
// forever.
func (t *turn) breakOne(sp *space, claim *Claim, c *Break) Answer {
	at := t.now.Add(c.Period)
	if end := t.deadlineOf(sp, claim); c.Remains && end != 0 {
		at = end
	}
	// A break only ever shortens: what it promised first, it keeps.
	if terms := claim.terms(); terms.BreakAt == 0 || at < terms.BreakAt {
		claim = t.setBreak(sp, claim, c, at)
	}
	if at > t.now {
		return t.leaseAnswer(sp, claim)
	}
	t.finish(sp, claim, end{how: leasehold.ByBreak, at: t.now})
	return t.broken(sp, claim)
}

// breakWaiter takes a waiter out of the queue: it has nothing that could last for
// another while.
func (t *turn) breakWaiter(sp *space, claim *Claim, c *Break) Answer {
	gone := *claim
	terms := claim.terms()
	terms.BreakBy, terms.BreakReason = c.By, c.Reason
	gone.setTerms(terms)
	t.finish(sp, &gone, end{how: leasehold.ByBreak, at: t.now})
	ended, _ := sp.claims.Ended(claim.ID)
	return t.brokenBefore(sp, ended)
}

// setBreak writes down when a break takes effect. Only a break in the future is an event and an
// intervention here: one that takes effect at once is reported by the end of the lease.
func (t *turn) setBreak(sp *space, claim *Claim, c *Break, at Time) *Claim {
	breaking := *claim
	terms := claim.terms()
	terms.BreakAt, terms.BreakBy, terms.BreakReason = at, c.By, c.Reason
	breaking.setTerms(terms)
	breaking.Revision = t.revise(sp)
	t.put(sp, &breaking)
	t.endsBy(sp, &breaking, at)
	if at > t.now {
		t.intervene(sp, &breaking)
		event := t.event(sp, &breaking, leasehold.BreakSet)
		event.By, event.Reason, event.Until = c.By, c.Reason, t.moment(at)
		t.emit(sp, event)
	}
	return &breaking
}

// endsBy records on a shared resource that one of its leases ends sooner than was known.
// settleSharers does not look at the leases before the soonest end it knows of, so an earlier
// end that was not recorded would be missed.
func (t *turn) endsBy(sp *space, c *Claim, at Time) {
	if c.Slots == 0 {
		return
	}
	r, _ := sp.resources.Get(c.Resource)
	sooner, more, shares := *r, r.more(), *r.More.Shares
	shares.hasten(at)
	more.Shares = &shares
	sooner.More = &more
	sp.resources.Set(r.Path, &sooner)
}

// breakAgain answers a break of an id that is gone: an earlier try may have ended it.
func (s *State) breakAgain(sp *space, id string) Answer {
	if sp != nil {
		if ended, ok := sp.claims.Ended(id); ok && ended.How == leasehold.ByBreak {
			return s.brokenBefore(sp, ended)
		}
	}
	return s.noClaim(sp, id)
}

// breaksAsOfNow answers a break of several leases that was answered before: what became of each
// of them by now. One that its holder gave back before its break is left out.
func (t *turn) breaksAsOfNow(sp *space, a Answer) Answer {
	var leases []leasehold.Lease
	for _, l := range append([]leasehold.Lease{*a.Lease}, a.Also...) {
		now := Answer{Lease: &l}
		if l.State != leasehold.Broken {
			now = t.breakAsOfNow(sp, l.ID)
		}
		if now.Lease != nil {
			leases = append(leases, *now.Lease)
		}
	}
	if len(leases) == 0 {
		return t.noClaim(sp, a.Lease.ID)
	}
	return Answer{Lease: &leases[0], Also: leases[1:]}
}

func (t *turn) breakAsOfNow(sp *space, id string) Answer {
	if claim := t.touch(sp, id); claim != nil {
		return t.leaseAnswer(sp, claim)
	}
	return t.breakAgain(sp, id)
}

// maxBreak is how many leases on one resource one command breaks: its answer shows all of them,
// and may be remembered.
const maxBreak = 64

// toBreak finds the leases that a break means, the oldest first, or what to answer
// instead.
func (t *turn) toBreak(sp *space, c *Break) ([]*Claim, Answer) {
	if c.ID != "" {
		return t.namedByID(sp, c)
	}
	var r *Resource
	if sp != nil {
		r = t.settle(sp, c.Resource)
	}
	switch {
	case r == nil:
		return nil, nothingToBreak(c)
	// What is over and not collected yet would count as a holder, and end as broken.
	case t.unsettled:
		return nil, Answer{Err: tooManyOver(c.Resource)}
	}
	meant, newest := t.heldWith(sp, r, c.Token)
	if !t.seesAll(sp, r) {
		meant, _ = t.allowedOf(access.Break, sp, meant)
		newest = nil
	}
	last := r.more().Last
	switch {
	case len(meant) > maxBreak:
		return nil, refuse(leasehold.Limited, "%s has more than %d holders: break them one by one, by their ids",
			c.Resource, maxBreak)
	case len(meant) > 1 && !c.All:
		return nil, refuse(leasehold.Refused, "%s has %d holders: name the lease by its id (%s), or say \"all\" to "+
			"break every one of them", c.Resource, len(meant), namesOf(meant))
	case len(meant) > 0:
		return meant, Answer{}
	// The break that the caller retries has already happened.
	case last != nil && last.Token == c.Token && last.How == leasehold.ByBreak:
		if ended, ok := sp.claims.Ended(last.ID); ok && t.sees(sp, last.ID, c.Resource) {
			return nil, t.brokenBefore(sp, ended)
		}
	}
	if newest != nil {
		return nil, refuse(leasehold.Lost, "%s is not held with token %d any more: %s holds it with token %d; look "+
			"again before you break that", c.Resource, c.Token, newest.Holder, newest.Token)
	}
	return nil, nothingToBreak(c)
}

func nothingToBreak(c *Break) Answer {
	return refuse(leasehold.NotFound, "%s is not held: there is nothing to break", c.Resource)
}

// namedByID is toBreak for a break that names an id. What it became since the operator looked is
// left alone.
func (t *turn) namedByID(sp *space, c *Break) ([]*Claim, Answer) {
	claim := t.touch(sp, c.ID)
	switch {
	case claim == nil:
		return nil, t.breakAgain(sp, c.ID)
	case c.Token != 0 && c.Token != claim.Token:
		return nil, refuse(leasehold.Lost, "lease %s no longer has token %d: %s has it with token %d; look again "+
			"before you break that", c.ID, c.Token, t.nameOf(sp, claim), claim.Token)
	case c.Waiting && !claim.Waiting():
		return nil, refuse(leasehold.Lost, "%s no longer waits: %s now holds %s, with token %d; look again before "+
			"you break that", c.ID, t.nameOf(sp, claim), claim.Resource, claim.Token)
	}
	return []*Claim{claim}, Answer{}
}

// maxNames is how many bytes of ids a refusal lists: ids can be long.
const maxNames = 1024

// namesOf lists the ids of leases, with their holders.
func namesOf(claims []*Claim) string {
	var b strings.Builder
	for i, c := range claims {
		if i > 0 && b.Len() > maxNames {
			fmt.Fprintf(&b, ", and %d more", len(claims)-i)
			break
		}
		if i > 0 {
			b.WriteString(", ")
		}
		fmt.Fprintf(&b, "%s of %s", c.ID, c.Holder)
	}
	return b.String()
}

// heldWith returns what an operator means who saw that a resource was held, with a
// token: the exclusive lease of that token; or, of those who share it, all that were
// there then. newest is the lease that holds it now.
func (s *State) heldWith(sp *space, r *Resource, token leasehold.Token) (meant []*Claim, newest *Claim) {
	sp.holders(r, func(c *Claim) bool {
		if c.Token == token || c.Slots != 0 && c.Token < token {
			meant = append(meant, c)
		}
		return len(meant) <= maxBreak && c.Token <= token // those with larger tokens come later
	})
	return meant, sp.junior(r)
}
