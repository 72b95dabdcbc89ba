package sim

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/leasehold/leasehold"
	"github.com/leasehold/leasehold/internal/core"
	"github.com/leasehold/leasehold/internal/core/reservation"
)

// Reservations: what is kept for somebody from a moment of the calendar on. The witness reads the calendar as leaders
// write it into the log.

// The places of claims in a queue.
const (
	firstOfAll = leasehold.MaxPriority + 1
	lastOfAll  = -leasehold.MaxPriority - 1
)

const claimWithin = 15 * time.Minute

// A booking is what is known of one, or of a series.
type booking struct {
	id          string
	at          spot
	holder      string
	slots       int
	from, until time.Duration // on the calendar
	length      time.Duration
	claimBy     time.Duration
	series      string
	planned     time.Duration // of a series: up to where
	begun, over bool
	ended       time.Duration // when it was over
	lease       string        // by which it is claimed
	unused      bool          // its lease ended for good
}

// reservable is what is reserved: two rooms, and some slots of a desk.
var reservable = []string{"room0", "room1", "desk"}

const desks = 3

// reserve is people who reserve, and who change their minds.
func (w *World) reserve() {
	if w.quiet {
		return
	}
	w.after(w.between(time.Second, 6*time.Second), w.reserve)
	c, space := newClient(w, 95), w.space()
	now := w.truth.witness.subjects.date
	if now == 0 {
		return
	}
	c.insist(&core.Define{Namespace: space, Definition: leasehold.Definition{Path: "desk", Capacity: desks}}, 2)
	switch n := w.random.IntN(10); {
	case n < 2:
		w.cancelOne(c)
	case n < 4:
		w.extendOne(c)
	default:
		w.reserveOne(c, space, now)
	}
}

func (w *World) reserveOne(c *client, space string, now time.Duration) {
	r := &core.Reserve{Namespace: space, ID: fmt.Sprint("res ", w.now), Holder: c.name,
		Resource: reservable[w.random.IntN(len(reservable))], Length: leasehold.MinReservation + w.upTo(20*time.Second)}
	if r.Resource == "desk" {
		r.Slots = 1 + w.random.IntN(2)
	}
	from := now + w.upTo(30*time.Second)
	if r.From = reservation.Moment(from); w.chance(25) {
		r.From = 0
	}
	if w.chance(25) {
		r.From, r.Starts, r.To = 0, []reservation.Moment{reservation.Moment(from)}, reservation.Moment(from+r.Length)
		r.Rule = &leasehold.Rule{Zone: "UTC", Days: leasehold.AllDays, Length: r.Length}
	}
	if w.chance(30) {
		r.Request = core.Request{Key: "key of " + r.ID}
	}
	c.insist(r, 3)
	if w.chance(30) {
		w.after(w.upTo(20*time.Second), func() { c.insist(r, 1) }) // an earlier try that comes late
	}
	if w.chance(20) {
		cancel := &core.CancelReservation{Namespace: space, ID: r.ID, By: c.name}
		w.after(w.upTo(10*time.Second), func() { c.insist(cancel, 3) })
	}
}

// some returns one of the reservations that are not over, or of the series; nil if there is none.
func (w *World) some(m map[spot]*booking) *booking {
	var open []*booking
	for _, id := range sortedSpots(m) {
		if r := m[id]; !r.over {
			open = append(open, r)
		}
	}
	if len(open) == 0 {
		return nil
	}
	return open[w.random.IntN(len(open))]
}

func (w *World) cancelOne(c *client) {
	if r := w.some(w.truth.witness.subjects.reservations); r != nil {
		c.insist(&core.CancelReservation{Namespace: r.at.space, ID: cmp.Or(r.series, r.id), By: c.name}, 3)
	}
}

// extendOne plans what comes next of a series, as each server does.
func (w *World) extendOne(c *client) {
	r := w.some(w.truth.witness.subjects.series)
	if r == nil {
		return
	}
	from := max(r.planned, w.truth.witness.subjects.date) + w.upTo(20*time.Second)
	more := &core.Reserve{Namespace: r.at.space, ID: r.id, After: reservation.Moment(r.planned),
		Starts: []reservation.Moment{reservation.Moment(from)}, To: reservation.Moment(from + r.length)}
	c.insist(more, 2)
	newClient(c.world, 95).insist(more, 1)
}

// claiming is a grip on what is reserved.
type claiming struct{ id string }

// byReservation lets a grip claim a reservation, or ask for what others reserve.
func (g *grip) byReservation() {
	w := g.client.world
	g.at.name = reservable[w.random.IntN(len(reservable))]
	if g.at.name == "desk" {
		g.slots = 1 + w.random.IntN(desks)
	}
	r := w.some(w.truth.witness.subjects.reservations)
	if r == nil || w.chance(50) {
		return
	}
	g.at, g.slots, g.priority = r.at, r.slots, 0
	g.subject = &claiming{r.id}
	if r.series != "" && w.chance(50) {
		g.subject = &claiming{r.series}
	}
}

func (x *claiming) asks(a *core.Acquire) { a.Reservation, a.Slots = x.id, 0 }
func (x *claiming) begun()               {}
func (x *claiming) end() bool            { return false }

// turnsPage takes what the leader's calendar says. It goes back only while nothing is reserved.
func (t *witness) turnsPage(wall int64) {
	s := &t.subjects
	if now := time.Duration(wall); now > s.date || len(s.reservations) == 0 {
		s.date = now
	}
	for id, r := range s.reservations {
		if r.over && r.ended+memory <= s.date {
			delete(s.reservations, id)
		}
	}
}

// claimed returns an acquire as it is when it claims a reservation: with the slots of that, and its place.
func (t *witness) claimed(a *core.Acquire, e *leasehold.Event) *core.Acquire {
	if a.Reservation == "" {
		return a
	}
	r := t.subjects.reservations[spot{a.Namespace, t.openReservation(a)}]
	if r == nil || r.at.name != a.Resource || r.over || r.lease != "" {
		t.world.violated("%s claims %s, which it cannot: %+v", a.ID, a.Reservation, r)
		return a
	}
	claim := *a
	claim.Slots, claim.Priority, claim.Reservation = r.slots, firstOfAll, r.id
	if !r.begun {
		claim.Priority = lastOfAll
	}
	r.lease = e.ID
	return &claim
}

// openReservation returns the id of the reservation that an acquire claims: of a series, the first that nobody claimed.
func (t *witness) openReservation(a *core.Acquire) string {
	id := spot{a.Namespace, a.Reservation}
	if t.subjects.reservations[id] != nil {
		return a.Reservation
	}
	var first *booking
	for _, r := range t.subjects.reservations {
		if r.at.space == a.Namespace && r.series == a.Reservation && !r.over && r.lease == "" &&
			(first == nil || r.from < first.from) {
			first = r
		}
	}
	if first == nil {
		return ""
	}
	return first.id
}

// claimOf returns the reservation that somebody claims; nil: none.
func (t *witness) claimOf(p *promise) *booking {
	if p.waiting.claims == "" {
		return nil
	}
	return t.subjects.reservations[spot{p.at.space, p.waiting.claims}]
}

// early reports whether somebody claims what has not begun.
func (t *witness) early(p *promise) bool { return p.priority == lastOfAll }

// claimHard bounds a lease by the end of what it claims.
func (t *witness) claimHard(p *promise) {
	if r := t.claimOf(p); r != nil {
		end := t.now + core.Time(max(1, r.until-t.subjects.date))
		if p.hard == 0 || end < p.hard {
			p.hard = end
		}
	}
}

// kept returns how many slots of a place are kept for reservations that nobody claimed, and whether all are.
func (t *witness) kept(at spot) (slots int, all bool) {
	for _, r := range t.subjects.reservations {
		if r.at == at && r.begun && !r.over && r.lease == "" {
			slots += r.slots
			all = all || r.slots == 0
		}
	}
	return slots, all
}

// reserved follows what happens to a reservation.
func (t *witness) reserved(c core.Command, e *leasehold.Event) {
	id := spot{e.Namespace, e.ID}
	r, date := t.subjects.reservations[id], t.subjects.date
	switch {
	case e.Kind == leasehold.Reserved:
		t.planned(c.(*core.Reserve), e)
	case r == nil && e.Kind == leasehold.ReservationCancelled: // it was left out, or it is a series without any
	case r == nil || r.over:
		t.world.violated("%v of %s, which is not there or over", e.Kind, e.ID)
	case e.Kind == leasehold.ReservationBegun:
		if r.begun || date < r.from {
			t.world.violated("%s begins %v early, or twice", e.ID, r.from-date)
		}
		r.begun, r.claimBy = true, max(r.from, date)+claimWithin
		t.world.count("reservations begun")
	case e.Kind == leasehold.ReservationFreed:
		if date < r.until && !r.unused && (r.lease != "" || date < r.claimBy) {
			t.world.violated("%s is freed %v early: %s", e.ID, r.until-date, e.Reason)
		}
		r.over, r.ended, r.lease = true, date, ""
	default:
		cancel, ok := c.(*core.CancelReservation)
		if !ok || cancel.ID != r.id && cancel.ID != r.series {
			t.world.violated("%s is cancelled, and nobody did so", e.ID)
		}
		r.over, r.ended, r.lease = true, date, ""
		t.world.count("reservations cancelled")
	}
}

// planned adds a reservation, for which there must be room.
func (t *witness) planned(c *core.Reserve, e *leasehold.Event) {
	until := time.Duration(e.Until.UnixNano())
	r := &booking{id: e.ID, at: spot{e.Namespace, e.Resource}, holder: c.Holder, slots: c.Slots, length: c.Length,
		until: until, from: until - c.Length}
	of := spot{c.Namespace, c.ID}
	switch series := t.subjects.series[of]; {
	case c.Extends() && (series == nil || series.planned != time.Duration(c.After)):
		t.world.violated("%s is planned as one of %s, which is not there or planned further: %+v", e.ID, c.ID, series)
		return
	case c.Extends():
		r.holder, r.slots, r.length, r.from = series.holder, series.slots, series.length, until-series.length
	}
	if c.Extends() || c.Rule != nil {
		r.series = c.ID
	}
	if t.subjects.reservations[spot{e.Namespace, e.ID}] != nil {
		t.world.violated("%s is reserved twice", e.ID)
	}
	t.subjects.reservations[spot{e.Namespace, e.ID}] = r
	t.roomFor(r)
	t.world.count("reservations made")
}

// roomFor checks that no more is reserved than there is.
func (t *witness) roomFor(r *booking) {
	moments := []time.Duration{r.from}
	var others []*booking
	for _, o := range t.subjects.reservations {
		if o.at == r.at && !o.over && o.from < r.until && r.from < o.until {
			others, moments = append(others, o), append(moments, max(o.from, r.from))
		}
	}
	for _, at := range moments {
		slots, all := 0, 0
		for _, o := range others {
			if o.from <= at && at < o.until {
				if slots += o.slots; o.slots == 0 {
					all++
				}
			}
		}
		if all > 1 || all == 1 && slots > 0 || slots > desks {
			t.world.violated("%s is reserved by %s, and there is no room", r.at.name, r.id)
		}
	}
}

// moved lets the claim of a reservation that has begun go before all others.
func (t *witness) moved(e *leasehold.Event) {
	p := t.claims[spot{e.Namespace, e.ID}]
	if p == nil || t.claimOf(p) == nil {
		return
	}
	at := t.place(p.at)
	at.queue = slices.DeleteFunc(at.queue, func(o *promise) bool { return o == p })
	p.priority = firstOfAll
	at.line(p)
}

// unclaimed says what the end of a claim means for what it claimed.
func (t *witness) unclaimed(p *promise, e *leasehold.Event) {
	r := t.claimOf(p)
	if r == nil || r.lease != p.id || r.over {
		return
	}
	died := e.How == leasehold.ByTTL || e.How == leasehold.SessionExpired || e.How == leasehold.Abandoned
	r.lease = ""
	switch {
	case r.until <= t.subjects.date || e.Kind == leasehold.Ended && !died:
		r.unused = true
	case e.Kind == leasehold.Ended:
		r.claimBy = t.subjects.date + claimWithin
	}
}

// reservedAfter checks that what is answered is so: what was reserved is there, and what was cancelled is not.
func (t *witness) reservedAfter(c core.Command, answer core.Answer) {
	if answer.Err != nil {
		return
	}
	switch c := c.(type) {
	case *core.Reserve:
		if c.Rule != nil || c.Extends() {
			t.plannedSeries(c)
		} else if r := t.subjects.reservations[spot{c.Namespace, c.ID}]; r == nil || r.over {
			t.world.violated("%s is answered as made, and is not there: %+v", c.ID, r)
		}
	case *core.CancelReservation:
		id := spot{c.Namespace, c.ID}
		if series := t.subjects.series[id]; series != nil {
			series.over = true
		}
		if r := t.subjects.reservations[id]; r != nil && !r.over {
			t.world.violated("%s is answered as cancelled, and is there", c.ID)
		}
	}
}

// plannedSeries follows how far a series is planned. One that was cancelled must not be answered as made.
func (t *witness) plannedSeries(c *core.Reserve) {
	id := spot{c.Namespace, c.ID}
	series := t.subjects.series[id]
	switch {
	case c.Extends():
		if series != nil && !series.over && series.planned == time.Duration(c.After) {
			series.planned = time.Duration(c.To)
		}
	case series == nil || series.over && !t.remembers(c):
		t.subjects.series[id] = &booking{id: c.ID, at: spot{c.Namespace, c.Resource}, holder: c.Holder, slots: c.Slots,
			length: c.Length, planned: time.Duration(c.To)}
	case series.over:
		t.world.violated("%s is answered as made, and was cancelled", c.ID)
	}
}

// remembers reports whether an occurrence of a series is known that is over.
func (t *witness) remembers(c *core.Reserve) bool {
	for _, r := range t.subjects.reservations {
		if r.at.space == c.Namespace && r.series == c.ID && r.over {
			return true
		}
	}
	return false
}

// datesKept checks that each reservation has begun when its time came, and ended when it was over.
func (t *witness) datesKept() {
	for _, id := range sortedSpots(t.subjects.reservations) {
		r, date := t.subjects.reservations[id], t.subjects.date
		switch {
		case r.over:
		case !r.begun && r.from <= date:
			t.world.violated("%s should have begun at %v, and it is %v", id.name, r.from, date)
		case r.until <= date, r.unused, r.lease == "" && r.begun && r.claimBy <= date:
			t.world.violated("%s is over, and was not freed: %+v at %v", id.name, *r, date)
		}
	}
}

// reservationsOf compares what is reserved in a state with what was reserved.
func (t *witness) reservationsOf(s *server) {
	view := s.node.State().View(0)
	for _, id := range sortedSpots(t.subjects.reservations) {
		r := t.subjects.reservations[id]
		is, _, ok := view.Reservation(id.space, id.name)
		if !ok || (is.State == leasehold.Over) != r.over || is.Slots != r.slots || is.Resource != r.at.name ||
			is.From.UnixNano() != int64(r.from) || is.Until.UnixNano() != int64(r.until) || is.Lease != r.lease {
			t.world.violated("server %d has reservation %+v, and should have %+v", s.id, is, *r)
		}
	}
}
