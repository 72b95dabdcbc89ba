package kernel

import (
	"time"

	"github.com/leasehold/leasehold"
	"github.com/leasehold/leasehold/internal/btree"
	"github.com/leasehold/leasehold/internal/core/access"
	"github.com/leasehold/leasehold/internal/core/reservation"
)

// Reservations are those of all namespaces: see package reserve. A reservation is no lease, and gives nobody a right:
// it is claimed by an acquire, whose grant is like any other. As long as nothing is reserved, no plain command asks.
type Reservations interface {
	// Reserve plans a reservation or a series, and Extend more occurrences of a series.
	Reserve(t Turn, c *Reserve) Answer
	Extend(t Turn, c *Reserve) Answer
	Cancel(t Turn, c *CancelReservation) Answer
	// Again answers a request to reserve that was granted before and comes again.
	Again(n Namespace, c *Reserve) Answer

	// KeepDates does what the calendar makes due, as far as there is work left for it, and Next is when there will be
	// something to do; 0: never. What ends, and what is granted then, the kernel is asked for.
	KeepDates(t Turn)
	Next() reservation.Moment

	// Get returns a reservation by its id, and Find also that of a series that is first to be claimed; nil if there is
	// none.
	Get(n Namespace, id string) *reservation.Reservation
	Find(n Namespace, id string) *reservation.Reservation
	// Owner returns the resource and the owner of a reservation or a series.
	Owner(n Namespace, id string) (path string, owner *access.Owner, known bool)

	// Ask returns an acquire that claims a reservation as one for what is reserved, at the place in the queue that it
	// has, and Claimed notes the lease or waiter that claims it.
	Ask(t Turn, c *Acquire) (*Acquire, *leasehold.Error)
	Claimed(t Turn, id, lease string)
	// Ended says what becomes of a reservation when its claim ends.
	Ended(t Turn, c *Claim, how leasehold.How)
	// Announce tells a new holder of the reservations that those in their way were told of before it came. It returns
	// the lease, which may have to end by then.
	Announce(t Turn, c *Claim) *Claim

	// Kept returns how many slots of a resource are kept for reservations that have begun and that nobody claimed, and
	// whether all of them are; KeptUnits inserts the units. The one that is being claimed is left out. Keeper returns
	// one of them all; nil if there is none.
	Kept(n Namespace, path, claiming string) (slots int, all bool)
	KeptUnits(n Namespace, path, claiming string, names *btree.Set[string])
	Keeper(n Namespace, path string) *reservation.Reservation
	// Upcoming returns the next of a resource but the holder's own; nil if none begins soon.
	Upcoming(n Namespace, path, own string) *leasehold.Upcoming

	List(l Look, q *ReservationQuery) (list []leasehold.Reservation, next string)
	Show(n Namespace, id string) (shown leasehold.Reservation, owner *access.Owner, ok bool)
	Series(l Look, show func(path string, owner *access.Owner) bool) []leasehold.Series

	// Count is how many reservations and series a namespace has, those that are over and still remembered among them.
	Count(namespace string) (reservations, series int)
	Pieces(namespace string, yield func(piece any) bool) bool
	Restore(t Turn, piece any) (known bool, err error)
	Copy() Reservations
	Check(n Namespace, that func(ok bool, format string, args ...any))
	CheckAll(counted int, that func(ok bool, format string, args ...any))
}

func (t *turn) reserve(c *Reserve) Answer {
	if c.Extends() {
		sp := t.space(c.Namespace)
		if sp == nil {
			return Answer{}
		}
		return t.reservations.Extend(t.in(sp), c)
	}
	sp, failure := t.makeSpace(c.Namespace)
	if failure != nil {
		return Answer{Err: failure}
	}
	return t.reservations.Reserve(t.in(sp), c)
}

func (t *turn) cancelReservation(c *CancelReservation) Answer {
	sp := t.space(c.Namespace)
	if sp == nil {
		return NoReservation(c.ID)
	}
	return t.reservations.Cancel(t.in(sp), c)
}

// NoReservation answers a request about a reservation that is not there.
func NoReservation(id string) Answer {
	return refuse(leasehold.NotFound, "reservation %q is unknown: it never was, or it was over long ago", id)
}

// keepDates does what the calendar makes due. Each command does so first, so that none is decided by a reservation that
// should have begun. What is too much for the entry is left to the next.
func (t *turn) keepDates() {
	if t.totals.reservations > 0 {
		t.reservations.KeepDates(t.in(nil))
	}
}

// allowReserve judges a reservation as the acquire that it stands for. A series is extended by servers alone.
func (l *look) allowReserve(c *Reserve) *leasehold.Error {
	if c.Extends() {
		return l.allowCluster()
	}
	v := takeVerb(c.Slots)
	if !l.permit.MayHold(v, c.Namespace, c.Resource, c.Holder, nil) {
		return l.denyHolder(v, c.Namespace, c.Resource, c.Holder)
	}
	if _, owner, known := l.reservationOwner(c.Namespace, c.ID); known && !l.permit.Owns(owner) {
		return refuse(leasehold.Refused, "reservation id %q is used already: choose another", c.ID).Err
	}
	return nil
}

// allowCancel lets those cancel a reservation whose it is, and those who may break leases on the resource.
func (l *look) allowCancel(c *CancelReservation) *leasehold.Error {
	path, owner, known := l.reservationOwner(c.Namespace, c.ID)
	switch {
	case !known || l.permit.Owns(owner) || l.permit.May(access.Break, c.Namespace, path, owner):
		return nil
	case l.permit.May(access.Read, c.Namespace, path, owner):
		return l.deny(access.Break, c.Namespace, path)
	}
	return NoReservation(c.ID).Err
}

// claimVerb returns the right that claiming a reservation takes. A reservation that does not exist is refused later, by
// whoever looks it up.
func (s *State) claimVerb(c *Acquire) access.Verb {
	if sp := s.space(c.Namespace); sp != nil {
		if r := s.reservations.Find(Namespace{s, sp}, c.Reservation); r != nil {
			return takeVerb(int(r.Slots))
		}
	}
	return access.Acquire
}

func (s *State) reservationOwner(namespace, id string) (path string, owner *access.Owner, known bool) {
	if sp := s.space(namespace); sp != nil {
		return s.reservations.Owner(Namespace{s, sp}, id)
	}
	return "", nil, false
}

// mayShow reports whether the asker may know who has a resource, and who reserved it.
func (l *look) mayShow(sp *space, path string) bool {
	return l.permit == nil || l.permit.May(access.Read, sp.name, path, nil)
}

// The places that claims of reservations take in a queue, beyond the priorities that can be asked for: first, once the
// reservation has begun, and last until then.
const (
	ReservedPriority = leasehold.MaxPriority + 1
	EarlyPriority    = -leasehold.MaxPriority - 1
)

// Early reports whether a waiter claims a reservation that has not begun.
func (c *Claim) Early() bool { return c.Wait != nil && c.Wait.Priority == EarlyPriority }

// Reservation is the id of the one that a lease or waiter claims; empty: none.
func (c *Claim) Reservation() string {
	if c.Terms == nil {
		return ""
	}
	return c.Terms.Reservation
}

// reservationOf returns the reservation that a lease or waiter claims; nil if it claims none.
func (s *State) reservationOf(sp *space, c *Claim) *reservation.Reservation {
	if c.Reservation() == "" {
		return nil
	}
	return s.reservations.Get(Namespace{s, sp}, c.Reservation())
}

// endsWith bounds a lease that claims a reservation: it is over when that is.
func (s *State) endsWith(sp *space, c *Claim) {
	r := s.reservationOf(sp, c)
	if r == nil {
		return
	}
	t := c.terms()
	if rest := max(1, time.Duration(r.Until-s.date)); t.HoldLimit == 0 || rest < t.HoldLimit {
		t.HoldLimit = rest
		c.setTerms(t)
	}
}

// unclaim tells the reservation that a claim was on that it ended.
func (t *turn) unclaim(sp *space, c *Claim, how leasehold.How) {
	if c.Reservation() != "" {
		t.reservations.Ended(t.in(sp), c, how)
	}
}

// announceReservations tells a new holder of the reservations that begin soon.
func (t *turn) announceReservations(sp *space, c *Claim) *Claim {
	if t.totals.reservations == 0 {
		return c
	}
	return t.reservations.Announce(t.in(sp), c)
}

// reservedSlots returns how much of a resource is kept for reservations: see Reservations.
func (l *look) reservedSlots(sp *space, path string) (slots int, all bool) {
	if l.totals.reservations == 0 {
		return 0, false
	}
	return l.reservations.Kept(Namespace{l.State, sp}, path, l.claiming)
}

// addReservedUnits adds the units of a pool that are kept for reservations to those that rest.
func (l *look) addReservedUnits(sp *space, path string, resting *btree.Set[string]) {
	if l.totals.reservations > 0 {
		l.reservations.KeptUnits(Namespace{l.State, sp}, path, l.claiming, resting)
	}
}

// keeper returns a reservation for which a resource is kept; nil if there is none.
func (s *State) keeper(sp *space, path string) *reservation.Reservation {
	if s.totals.reservations == 0 {
		return nil
	}
	return s.reservations.Keeper(Namespace{s, sp}, path)
}

// ReservedText is what those in the way of a reservation read.
func ReservedText(r *reservation.Reservation) string {
	return "reserved by " + r.Holder + because(r.Reason) + " from " + r.From.Text() + " to " + r.Until.Text()
}

// upcoming returns the next reservation that will be in the way of a lease, which its own is not; nil if none begins
// within a day.
func (l *look) upcoming(sp *space, c *Claim) *leasehold.Upcoming {
	if l.totals.reservations == 0 || !l.mayShow(sp, c.Resource) {
		return nil
	}
	return l.reservations.Upcoming(Namespace{l.State, sp}, c.Resource, c.Reservation())
}
