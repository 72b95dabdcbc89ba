package kernel

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/tidwall/btree"

	"github.com/leasehold/leasehold"
	"github.com/leasehold/leasehold/internal/core/reservation"
)

// The calendar. Cluster time stops while nobody leads, and a reservation must not begin later for that, so it is judged
// by the wall clock that the leader writes into each entry. The state keeps the largest that it saw while there are
// reservations: the calendar never goes back, whatever a clock does. TTLs, hold limits and breaks are on cluster time.

// A date is when the calendar does something to a reservation.
type date struct {
	at    reservation.Moment
	space string
	id    string
}

// newDates returns an empty calendar. Things of one moment have a total order, so that all nodes do them alike.
func newDates() *btree.BTreeG[date] {
	return btree.NewBTreeGOptions(func(a, b date) bool {
		return cmp.Or(cmp.Compare(a.at, b.at), cmp.Compare(a.space, b.space), cmp.Compare(a.id, b.id)) < 0
	}, noLocks)
}

// setReservation stores a reservation, with the date on which something happens to it next.
func (t *turn) setReservation(sp *space, r *reservation.Reservation) {
	t.dropReservation(sp, r.ID)
	sp.reservations.Set(r)
	t.dates.Set(date{r.Next(), sp.name, r.ID})
	sp.tasks.Place(Namespace{t.State, sp}, r.Resource)
}

// dropReservation forgets a reservation, if there is one with the id.
func (t *turn) dropReservation(sp *space, id string) {
	if before := sp.reservations.Get(id); before != nil {
		t.dates.Delete(date{before.Next(), sp.name, id})
		sp.reservations.Delete(id)
		sp.tasks.Place(Namespace{t.State, sp}, before.Resource)
	}
}

// turnPage notes what the wall clock of the leader says.
func (t *turn) turnPage() {
	if wall := reservation.Moment(t.wall); wall > t.date || t.dates.Len() == 0 {
		t.date = wall
	}
}

// keepDates does what the calendar makes due. Each command does so first, so that none is decided by a reservation that
// should have begun. What is too much for the entry is left to the next.
func (t *turn) keepDates() {
	for !t.work.spent() {
		first, ok := t.dates.Min()
		if !ok || first.at > t.date {
			return
		}
		t.work.take(LookCost)
		sp := t.space(first.space)
		t.keepDate(sp, sp.reservations.Get(first.id))
	}
}

// keepDate does to a reservation what is due.
func (t *turn) keepDate(sp *space, r *reservation.Reservation) {
	switch {
	case r.Over != 0:
		t.dropReservation(sp, r.ID)
	case !r.Begun && !r.Told && r.From > t.date:
		told := *r
		told.Told = true
		t.replanUnits(sp, &told)
		t.setReservation(sp, &told)
		t.tellAhead(sp, &told, t.inTheWay(sp, &told))
	case !r.Begun:
		t.begin(sp, r)
	case r.Until <= t.date:
		t.freeReservation(sp, r, "its time was over")
	default:
		t.freeReservation(sp, r, fmt.Sprintf("nobody claimed it within %s",
			left(Time(leasehold.ClaimWithin))))
	}
}

// begin keeps from now on what was reserved, and brings its claim to the head of the queue if it waits already.
func (t *turn) begin(sp *space, r *reservation.Reservation) {
	begun := *r
	begun.Told, begun.Begun = true, true
	// Not from when it should have begun: nobody could claim it while nobody led.
	begun.ClaimBy = max(r.From, t.date).Add(leasehold.ClaimWithin)
	t.replanUnits(sp, &begun)
	t.setReservation(sp, &begun)
	t.emit(sp, reservationEvent(r, leasehold.ReservationBegun))
	if begun.Until <= t.date {
		return // it is over before it could begin
	}
	if claim, ok := sp.claims.Get(r.Lease); ok && claim.early() {
		t.comesFirst(sp, claim)
	}
	switch sp.definition(r.Resource).OnReservation {
	case leasehold.EndAtStart:
		t.tellAhead(sp, &begun, t.inTheWay(sp, &begun))
	case leasehold.WarnAtStart:
		t.askFor(sp, &begun, t.inTheWay(sp, &begun))
	case leasehold.WaitAtStart:
	}
	t.wakeQueue(sp, r.Resource)
}

// freeReservation ends a reservation that nobody uses any longer.
func (t *turn) freeReservation(sp *space, r *reservation.Reservation, why string) {
	event := reservationEvent(r, leasehold.ReservationFreed)
	event.Reason = why
	t.endReservation(sp, r, why, event)
	t.endSeries(sp, r.Series)
}

// endReservation ends a reservation, and the wait of its claim, which had its place from it. A lease stays.
func (t *turn) endReservation(sp *space, r *reservation.Reservation, why string, event *leasehold.Event) {
	over := *r
	over.Over, over.Why, over.Lease = t.date, why, ""
	t.setReservation(sp, &over)
	t.emit(sp, event)
	if claim, ok := sp.claims.Get(r.Lease); ok && claim.Waiting() {
		t.leave(sp, claim, leasehold.WaitOver)
	}
	if r.Begun {
		t.wakeQueue(sp, r.Resource)
	}
}

// replanUnits chooses the units of a reservation anew: since they were planned some may have gone, and others may be
// free that were not.
func (l *look) replanUnits(sp *space, r *reservation.Reservation) {
	if !sp.isPart(r.Resource, r.Slots) {
		return
	}
	l.work.take(l.poolCost(sp, r.Resource))
	l.planUnits(sp, r, l.plannedUnits(sp, r, r.From, r.Until))
}

// startOf returns the cluster time at which a reservation begins, if the wall clock goes on as it does.
func (s *State) startOf(r *reservation.Reservation) Time {
	return s.now + Time(max(0, r.From-s.date))
}

// maxInTheWay is how many leases are told, or ended, for one reservation.
const maxInTheWay = 1024

// inTheWay returns the leases without which a reservation could begin, the newest first. What ends by then anyway is
// not in the way, nor is a lease of another reservation, since the plan has room for that.
func (l *look) inTheWay(sp *space, r *reservation.Reservation) (list []*Claim) {
	res, ok := sp.resources.Get(r.Resource)
	if !ok || !res.Held() {
		return nil
	}
	start := l.startOf(r)
	stays := func(c *Claim) bool {
		at, how := c.end()
		return c.terms().Reservation == "" && (at == 0 || how == leasehold.ByTTL || at > start)
	}
	if sp.isPart(r.Resource, r.Slots) && res.Claim == "" {
		return l.onUnits(sp, r, stays)
	}
	need := math.MaxInt
	if r.Slots != 0 && res.Claim == "" {
		need = l.missing(sp, r, res)
	}
	sp.holders(res, func(c *Claim) bool {
		l.work.take(LookCost)
		if stays(c) {
			list = append(list, c)
		} else if c.terms().Reservation == "" && need != math.MaxInt {
			need -= int(c.Slots)
		}
		return true
	})
	slices.Reverse(list)
	for i, c := range list {
		if need <= 0 || i == maxInTheWay {
			return list[:i]
		}
		need -= int(c.Slots)
	}
	return list
}

// missing returns how many slots too few will be free when a reservation begins, if nobody leaves.
func (l *look) missing(sp *space, r *reservation.Reservation, res *Resource) int {
	used, looked := res.more().shares().used+int(r.Slots), 0
	// Those that begin before it, or at the same time, take theirs first.
	sp.reservations.Overlapping(r.Resource, r.From, r.From+1, func(other *reservation.Reservation) bool {
		looked++
		claim, ok := sp.claims.Get(other.Lease)
		if before := cmp.Or(cmp.Compare(other.From, r.From), cmp.Compare(other.ID, r.ID)) < 0; before &&
			(!ok || claim.Waiting()) {
			used += int(other.Slots)
		}
		return true
	})
	l.work.take(looked / PerUnit)
	return used - sp.capacity(r.Resource, res, sp.definition(r.Resource))
}

// onUnits returns the leases on the units that are planned for a reservation.
func (l *look) onUnits(sp *space, r *reservation.Reservation, stays func(*Claim) bool) (list []*Claim) {
	for _, name := range r.Units {
		u := sp.pools.Get(r.Resource, name)
		if u == nil || u.Lease == "" {
			continue
		}
		l.work.take(LookCost)
		if c, ok := sp.claims.Get(u.Lease); ok && stays(c) && !slices.Contains(list, c) {
			list = append(list, c)
		}
	}
	return list
}

// tellAhead tells those in the way of a reservation, and sets the break by which their leases end if the definition
// says that they do.
func (t *turn) tellAhead(sp *space, r *reservation.Reservation, list []*Claim) {
	if !r.Begun {
		t.askFor(sp, r, list)
	}
	if sp.definition(r.Resource).OnReservation != leasehold.EndAtStart {
		return
	}
	how := &Break{By: r.Holder, Reason: reservedText(r), Period: time.Duration(t.startOf(r) - t.now)}
	for _, c := range list {
		if still, ok := sp.claims.Get(c.ID); ok { // another's end may have taken it
			t.work.take(EndCost)
			t.breakOne(sp, still, how)
		}
	}
}

// askFor sends those in the way of a reservation a message.
func (t *turn) askFor(sp *space, r *reservation.Reservation, list []*Claim) {
	for _, c := range list {
		event := t.event(sp, c, leasehold.Asked)
		event.By, event.Reason = r.Holder, reservedText(r)
		t.emit(sp, event)
	}
}

// reservedText is what those in the way of a reservation read.
func reservedText(r *reservation.Reservation) string {
	return fmt.Sprintf("reserved by %s%s from %s to %s", r.Holder, because(r.Reason), shownMoment(r.From),
		shownMoment(r.Until))
}

// announceReservations tells a new holder of the reservations that those in their way were told of before it came, of
// as many as there is time for: the others it learns of when they begin.
func (t *turn) announceReservations(sp *space, c *Claim) *Claim {
	if sp.reservations.Of(c.Resource) == 0 {
		return c
	}
	var told []*reservation.Reservation
	sp.reservations.Overlapping(c.Resource, t.date, t.date.Add(leasehold.ReservationNotice),
		func(r *reservation.Reservation) bool {
			// One that is late ends it when it begins, and not here: a grant gives something.
			if r.Told && !r.Begun && r.From > t.date && r.ID != c.terms().Reservation {
				told = append(told, r)
			}
			return true
		})
	for _, r := range told {
		if t.work.spent() {
			break
		}
		if slices.ContainsFunc(t.inTheWay(sp, r), func(o *Claim) bool { return o.ID == c.ID }) {
			t.tellAhead(sp, r, []*Claim{c})
			c, _ = sp.claims.Get(c.ID)
		}
	}
	return c
}

// minLook is the least time between two ticks that look at the calendar: the wall clock may go a little slower than
// cluster time does.
const minLook = Time(time.Millisecond)

// dueDate returns the cluster time at which the calendar has something to do, if the wall clock goes on as it does;
// false if it never has.
func (s *State) dueDate() (Time, bool) {
	if s.dates == nil || s.dates.Len() == 0 {
		return 0, false
	}
	first, _ := s.dates.Min()
	if first.at <= s.date {
		return s.now, true
	}
	return s.now + max(minLook, Time(first.at)-Time(s.wall)), true
}

// moment is the calendar time of a cluster time, for people to read.
func (s *State) moment(t Time) time.Time {
	if t == 0 {
		return time.Time{}
	}
	return time.Unix(0, s.wall+int64(t-s.now)).UTC()
}

// calendar is the time of a stamp's wall clock.
func calendar(wall int64) time.Time { return time.Unix(0, wall).UTC() }
