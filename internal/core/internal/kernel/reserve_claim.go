package kernel

import (
	"time"

	"github.com/tidwall/btree"

	"github.com/leasehold/leasehold"
	"github.com/leasehold/leasehold/internal/core/reservation"
)

// How reservations are claimed. From its start on, a reservation keeps its slots until it is claimed; the claim
// stands before everybody else in the queue. One that comes before the start waits behind everybody until then.

// The places of claims of reservations in a queue, beyond the priorities that can be asked for.
const (
	reservedPriority = leasehold.MaxPriority + 1
	earlyPriority    = -leasehold.MaxPriority - 1
)

// early reports whether a waiter claims a reservation that has not begun.
func (c *Claim) early() bool { return c.Wait != nil && c.Wait.Priority == earlyPriority }

// claimReservation returns an acquire that claims a reservation as one for what is reserved, at the place in the queue
// that it has.
func (t *turn) claimReservation(sp *space, c *Acquire) (*Acquire, *leasehold.Error) {
	r := t.unclaimed(sp, c)
	if r == nil || !t.mayClaim(r) {
		return nil, noReservation(c.Reservation).Err
	}
	claim, claimed := sp.claims.Get(r.Lease)
	switch {
	case r.Over != 0:
		return nil, reservationOver(r)
	case r.Resource != c.Resource:
		return nil, refuse(leasehold.Refused, "reservation %s is for %s, not for %s", r.ID, r.Resource, c.Resource).Err
	case claimed:
		return nil, refuse(leasehold.Held, "reservation %s is claimed by %s already, with lease %s", r.ID, claim.Holder,
			claim.ID).Err
	case sp.mirrored(r.Resource) != "":
		return nil, refuse(leasehold.Refused, "%s shows its waiters in the order in which they came: nobody goes "+
			"before others", r.Resource).Err
	case !r.Begun && c.Wait == 0:
		return nil, refuse(leasehold.Held, "reservation %s begins at %s: wait for it, or come then", r.ID,
			shownMoment(r.From)).Err
	}
	asked := *c
	asked.Reservation, asked.Slots, asked.Select = r.ID, int(r.Slots), r.Select
	if asked.Priority = reservedPriority; !r.Begun {
		asked.Priority = earlyPriority
	}
	return &asked, nil
}

// unclaimed returns the reservation that an acquire names, after an earlier claim of it that is over has ended.
func (t *turn) unclaimed(sp *space, c *Acquire) *reservation.Reservation {
	t.settle(sp, c.Resource)
	if r := t.findReservation(sp, c.Reservation); r != nil && r.Lease != "" {
		t.touch(sp, r.Lease)
	}
	return t.findReservation(sp, c.Reservation)
}

// findReservation returns the reservation with an id or, of a series, the one that is first to be claimed; nil if there
// is none.
func (s *State) findReservation(sp *space, id string) *reservation.Reservation {
	if r := sp.reservations.Get(id); r != nil {
		return r
	}
	var found *reservation.Reservation
	if sp.reservations.SeriesOf(id) != nil {
		sp.reservations.Occurrences(id, func(r *reservation.Reservation) bool {
			if r.Over == 0 && r.Lease == "" {
				found = r
			}
			return found == nil
		})
	}
	return found
}

// claimedBy notes the id of the claim of a reservation.
func (t *turn) claimedBy(sp *space, r *reservation.Reservation, lease string) {
	claimed := *r
	claimed.Lease = lease
	t.setReservation(sp, &claimed)
}

// reservedSlots returns how many slots of a resource are kept for reservations that have begun and that nobody claimed,
// and whether all of them are. The one that is being claimed right now is left out.
func (l *look) reservedSlots(sp *space, path string) (slots int, all bool) {
	kept := sp.reservations.Kept(path)
	if l.plants(KeepNothing) {
		return 0, false
	}
	if r := sp.reservations.Get(l.claiming); r != nil && r.Open() && r.Resource == path {
		if kept.Slots -= int(r.Slots); r.Slots == 0 {
			kept.Whole--
		}
	}
	return kept.Slots, kept.Whole > 0
}

// addReservedUnits adds the units of a pool that are kept for reservations to those that rest.
func (l *look) addReservedUnits(sp *space, path string, resting *btree.Set[string]) {
	sp.reservations.Keeping(path, func(r *reservation.Reservation) bool {
		if r.ID != l.claiming {
			insertAll(resting, r.Units)
		}
		return true
	})
}

// keeper returns a reservation for which a resource is kept; nil if there is none.
func (sp *space) keeper(path string) (found *reservation.Reservation) {
	sp.reservations.Keeping(path, func(r *reservation.Reservation) bool {
		found = r
		return false
	})
	return found
}

// comesFirst brings the claim of a reservation that begins to the head of the queue.
func (t *turn) comesFirst(sp *space, claim *Claim) {
	first, wait := *claim, *claim.Wait
	wait.Priority = reservedPriority
	first.Wait = &wait
	first.Revision = t.revise(sp)
	t.dequeue(sp, claim)
	t.put(sp, &first)
	t.emit(sp, t.event(sp, &first, leasehold.Moved))
}

// endsWith bounds a lease that claims a reservation: it is over when that is.
func (s *State) endsWith(sp *space, c *Claim) {
	t := c.terms()
	r := sp.reservations.Get(t.Reservation)
	if t.Reservation == "" || r == nil {
		return
	}
	if rest := max(1, time.Duration(r.Until-s.date)); t.HoldLimit == 0 || rest < t.HoldLimit {
		t.HoldLimit = rest
		c.setTerms(t)
	}
}

// unclaim says what becomes of a reservation when its claim ends. A wait that was given up leaves it as it was. A lease
// that ended uncleanly may be that of a process that died, and comes back.
func (t *turn) unclaim(sp *space, c *Claim, how leasehold.How) {
	r := sp.reservations.Get(c.terms().Reservation)
	if r == nil || r.Lease != c.ID {
		return
	}
	died := how == leasehold.ByTTL || how == leasehold.SessionExpired || how == leasehold.Abandoned
	if !c.Waiting() && !died || r.Until <= t.date {
		t.freeReservation(sp, r, "its lease ended ("+how.String()+")")
		return
	}
	open := *r
	open.Lease = ""
	if !c.Waiting() {
		open.ClaimBy = t.date.Add(leasehold.ClaimWithin)
	}
	t.setReservation(sp, &open)
}

// upcoming returns the next reservation of a resource that somebody has, other than its own; nil if none begins within
// a day.
func (l *look) upcoming(sp *space, c *Claim) *leasehold.Upcoming {
	if sp.reservations.Of(c.Resource) == 0 || l.permit != nil && !l.mayShow(sp, c.Resource) {
		return nil
	}
	next := sp.reservations.Next(c.Resource, l.date, l.date.Add(24*time.Hour), c.terms().Reservation)
	if next == nil {
		return nil
	}
	return &leasehold.Upcoming{ID: next.ID, Holder: next.Holder, Reason: next.Reason, From: next.From.Time(),
		Until: next.Until.Time()}
}
