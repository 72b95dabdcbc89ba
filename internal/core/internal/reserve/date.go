package reserve

import (
	"cmp"
	"math"
	"slices"
	"time"

	"github.com/leasehold/leasehold"
	"github.com/leasehold/leasehold/internal/core/internal/kernel"
	"github.com/leasehold/leasehold/internal/core/reservation"
	"github.com/leasehold/leasehold/internal/core/timeline"
)

// What happens to reservations on the dates of the calendar.

// Next returns when the calendar has something to do.
func (s *reservations) Next() reservation.Moment {
	first, _ := s.dates.Min()
	return first.at
}

// KeepDates does what the calendar makes due. What is too much for the entry is left to the next.
func (s *reservations) KeepDates(k kernel.Turn) {
	for !k.Spent() {
		first, ok := s.dates.Min()
		if !ok || first.at > k.Date() {
			return
		}
		k.Take(kernel.LookCost)
		in := k.In(first.namespace)
		s.keepDate(in, s.Get(in.Namespace, first.id))
	}
}

// keepDate does to a reservation what is due.
func (s *reservations) keepDate(k kernel.Turn, r *reservation.Reservation) {
	switch {
	case r.Over != 0:
		s.drop(k, r)
	case !r.Begun && !r.Told && r.From > k.Date():
		told := *r
		told.Told = true
		s.replanUnits(k, &told)
		s.set(k, &told)
		tellAhead(k, &told, s.inTheWay(k, &told))
	case !r.Begun:
		s.begin(k, r)
	case r.Until <= k.Date():
		s.free(k, r, "its time was over")
	default:
		s.free(k, r, "nobody claimed it within "+timeline.Text(leasehold.ClaimWithin))
	}
}

// begin keeps from now on what was reserved, and brings its claim to the head of the queue if it waits already.
func (s *reservations) begin(k kernel.Turn, r *reservation.Reservation) {
	begun := *r
	begun.Told, begun.Begun = true, true
	// Not from when it should have begun: nobody could claim it while nobody led.
	begun.ClaimBy = max(r.From, k.Date()).Add(leasehold.ClaimWithin)
	s.replanUnits(k, &begun)
	s.set(k, &begun)
	k.Emit(eventOf(r, leasehold.ReservationBegun))
	if begun.Until <= k.Date() {
		return // it is over before it could begin
	}
	if claim := k.Claim(r.Lease); claim != nil && claim.Early() {
		k.ComeFirst(claim)
	}
	switch k.Definition(r.Resource).OnReservation {
	case leasehold.EndAtStart:
		tellAhead(k, &begun, s.inTheWay(k, &begun))
	case leasehold.WarnAtStart:
		askFor(k, &begun, s.inTheWay(k, &begun))
	case leasehold.WaitAtStart:
	}
	k.WakeQueue(r.Resource)
}

// free ends a reservation that nobody uses any longer.
func (s *reservations) free(k kernel.Turn, r *reservation.Reservation, why string) {
	event := eventOf(r, leasehold.ReservationFreed)
	event.Reason = why
	s.end(k, r, why, event)
	s.endSeries(k, r.Series)
}

// end ends a reservation, and the wait of its claim, which had its place from it. A lease stays.
func (s *reservations) end(k kernel.Turn, r *reservation.Reservation, why string, event *leasehold.Event) {
	over := *r
	over.Over, over.Why, over.Lease = k.Date(), why, ""
	s.set(k, &over)
	k.Emit(event)
	if claim := k.Claim(r.Lease); claim != nil && claim.Waiting() {
		k.Leave(claim, leasehold.WaitOver)
	}
	if r.Begun {
		k.WakeQueue(r.Resource)
	}
}

// replanUnits chooses the units of a reservation anew: since they were planned some may have gone, and others may be
// free that were not.
func (s *reservations) replanUnits(k kernel.Turn, r *reservation.Reservation) {
	if !k.InUnits(r.Resource, r.Slots) {
		return
	}
	k.Take(k.PoolCost(r.Resource))
	planUnits(k.Namespace, r, s.plannedUnits(k, r, r.From, r.Until))
}

// startOf returns the cluster time at which a reservation begins, if the wall clock goes on as it does.
func startOf(n kernel.Namespace, r *reservation.Reservation) kernel.Time {
	return n.Now() + kernel.Time(max(0, r.From-n.Date()))
}

// maxInTheWay is how many leases are told, or ended, for one reservation.
const maxInTheWay = 1024

// inTheWay returns the leases without which a reservation could begin, the newest first. What ends by then anyway is
// not in the way, nor is a lease of another reservation, since the plan has room for that.
func (s *reservations) inTheWay(k kernel.Turn, r *reservation.Reservation) (list []*kernel.Claim) {
	res := k.Resource(r.Resource)
	if res == nil || !res.Held() {
		return nil
	}
	start := startOf(k.Namespace, r)
	stays := func(c *kernel.Claim) bool {
		at, how := c.End()
		return c.Reservation() == "" && (at == 0 || how == leasehold.ByTTL || at > start)
	}
	if k.InUnits(r.Resource, r.Slots) && res.Claim == "" {
		return onUnits(k, r, stays)
	}
	need := math.MaxInt
	if r.Slots != 0 && res.Claim == "" {
		need = s.missing(k, r, res)
	}
	k.Holders(res, func(c *kernel.Claim) bool {
		k.Take(kernel.LookCost)
		if stays(c) {
			list = append(list, c)
		} else if c.Reservation() == "" && need != math.MaxInt {
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
func (s *reservations) missing(k kernel.Turn, r *reservation.Reservation, res *kernel.Resource) int {
	used, looked := res.Used()+int(r.Slots), 0
	// Those that begin before it, or at the same time, take theirs first.
	s.table(k.Namespace).Overlapping(r.Resource, r.From, r.From+1, func(other *reservation.Reservation) bool {
		looked++
		claim := k.Claim(other.Lease)
		if before := cmp.Or(cmp.Compare(other.From, r.From), cmp.Compare(other.ID, r.ID)) < 0; before &&
			(claim == nil || claim.Waiting()) {
			used += int(other.Slots)
		}
		return true
	})
	k.Take(looked / kernel.PerUnit)
	return used - k.Capacity(r.Resource, res)
}

// onUnits returns the leases on the units that are planned for a reservation.
func onUnits(k kernel.Turn, r *reservation.Reservation, stays func(*kernel.Claim) bool) (list []*kernel.Claim) {
	for _, name := range r.Units {
		u := k.Unit(r.Resource, name)
		if u == nil || u.Lease == "" {
			continue
		}
		k.Take(kernel.LookCost)
		if c := k.Claim(u.Lease); c != nil && stays(c) && !slices.Contains(list, c) {
			list = append(list, c)
		}
	}
	return list
}

// tellAhead tells those in the way of a reservation, and sets the break by which their leases end if the definition
// says that they do.
func tellAhead(k kernel.Turn, r *reservation.Reservation, list []*kernel.Claim) {
	if !r.Begun {
		askFor(k, r, list)
	}
	if k.Definition(r.Resource).OnReservation != leasehold.EndAtStart {
		return
	}
	how := &kernel.Break{By: r.Holder, Reason: kernel.ReservedText(r),
		Period: time.Duration(startOf(k.Namespace, r) - k.Now())}
	for _, c := range list {
		if still := k.Claim(c.ID); still != nil { // another's end may have taken it
			k.Take(kernel.EndCost)
			k.Break(still, how)
		}
	}
}

// askFor sends those in the way of a reservation a message.
func askFor(k kernel.Turn, r *reservation.Reservation, list []*kernel.Claim) {
	for _, c := range list {
		event := k.Event(c, leasehold.Asked)
		event.By, event.Reason = r.Holder, kernel.ReservedText(r)
		k.Emit(event)
	}
}

// Announce tells a new holder of the reservations that those in their way were told of before it came, of as many as
// there is time for: the others it learns of when they begin.
func (s *reservations) Announce(k kernel.Turn, c *kernel.Claim) *kernel.Claim {
	if s.table(k.Namespace).Of(c.Resource) == 0 {
		return c
	}
	var told []*reservation.Reservation
	s.table(k.Namespace).Overlapping(c.Resource, k.Date(), k.Date().Add(leasehold.ReservationNotice),
		func(r *reservation.Reservation) bool {
			// One that is late ends it when it begins, and not here: a grant gives something.
			if r.Told && !r.Begun && r.From > k.Date() && r.ID != c.Reservation() {
				told = append(told, r)
			}
			return true
		})
	for _, r := range told {
		if k.Spent() {
			break
		}
		if slices.ContainsFunc(s.inTheWay(k, r), func(o *kernel.Claim) bool { return o.ID == c.ID }) {
			tellAhead(k, r, []*kernel.Claim{c})
			c = k.Claim(c.ID)
		}
	}
	return c
}
