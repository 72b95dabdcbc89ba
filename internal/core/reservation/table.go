package reservation

import (
	"cmp"
	"math"
	"time"

	"github.com/leasehold/leasehold"
	"github.com/leasehold/leasehold/internal/btree"
	"github.com/leasehold/leasehold/internal/core/access"
)

// A Moment is one of the calendar, in Unix nanoseconds.
type Moment int64

// Add returns the moment that is later by d.
func (m Moment) Add(d time.Duration) Moment { return m + Moment(d) }

// Time returns the moment as people read it; zero for 0.
func (m Moment) Time() time.Time {
	if m == 0 {
		return time.Time{}
	}
	return time.Unix(0, int64(m)).UTC()
}

// Text writes the moment in a message.
func (m Moment) Text() string { return m.Time().Format(time.RFC3339) }

// A Reservation is a promise of slots of a resource. It is never changed in place.
type Reservation struct {
	ID, Resource, Holder, Reason string

	Slots       uint32 // 0: all
	Select      *leasehold.Select
	From, Until Moment
	Series      string // that it is one of; empty: it does not recur
	Owner       *access.Owner

	Units   []string // of a pool: those that are planned for it
	Told    bool     // those in its way know
	Begun   bool
	ClaimBy Moment // it is freed then, unless somebody claims it; 0 before it has begun
	Lease   string // the id of its claim; empty: nobody claimed it
	Over    Moment // when it was used, freed or cancelled; 0: it was not
	Why     string // it is over
}

// remembered is how long the id of a reservation that is over cannot be used again.
const remembered = 10 * time.Minute

// Next returns when the calendar does something to a reservation.
func (r *Reservation) Next() Moment {
	switch {
	case r.Over != 0:
		return r.Over.Add(remembered)
	case !r.Begun && !r.Told:
		return r.From.Add(-leasehold.ReservationNotice)
	case !r.Begun:
		return r.From
	case r.Lease == "":
		return min(r.ClaimBy, r.Until)
	}
	return r.Until
}

// Open reports whether slots are kept until it is claimed.
func (r *Reservation) Open() bool { return r.Begun && r.Lease == "" && r.Over == 0 }

// A Series is a reservation that recurs. It is never changed in place.
type Series struct {
	ID, Resource, Holder, Reason string

	Slots    uint32
	Select   *leasehold.Select
	Rule     leasehold.Rule
	Expanded Moment // up to where its occurrences are planned
	Owner    *access.Owner
}

// Ends returns when no occurrence begins any more; 0: never.
func (s *Series) Ends() Moment {
	if s.Rule.Until.IsZero() {
		return 0
	}
	return Moment(s.Rule.Until.UnixNano())
}

// A Table is the reservations of a namespace. Values in it are never changed in place, so that Copy costs nothing
// however many there are.
type Table struct {
	all    btree.Map[string, *Reservation]
	series btree.Map[string, *Series]
	plan   *btree.Tree[entry] // those that are not over, by resource and by each day that they touch
	open   *btree.Tree[entry] // those that keep slots for a claim
	counts btree.Map[string, int]
	kept   btree.Map[string, Kept] // by resource, of those in open
	units  btree.Map[string, int]  // by resource: how many are planned, those of each reservation counted
}

// Kept is how much of a resource is kept for claims together.
type Kept struct {
	Slots int
	Whole int // how many keep all of it
}

// An entry is one day of a reservation.
type entry struct {
	resource string
	day      int64
	from     Moment
	id       string
	of       *Reservation
}

func newEntries() *btree.Tree[entry] {
	return btree.New(func(a, b entry) bool {
		return cmp.Or(cmp.Compare(a.resource, b.resource), cmp.Compare(a.day, b.day), cmp.Compare(a.from, b.from),
			cmp.Compare(a.id, b.id)) < 0
	})
}

// NewTable returns an empty table.
func NewTable() Table { return Table{plan: newEntries(), open: newEntries()} }

// Copy returns a table that stays as it is while the original goes on.
func (t *Table) Copy() Table {
	return Table{*t.all.Copy(), *t.series.Copy(), t.plan.Copy(), t.open.Copy(), *t.counts.Copy(), *t.kept.Copy(),
		*t.units.Copy()}
}

// Len returns how many reservations there are, those that are over and still remembered among them.
func (t *Table) Len() int { return t.all.Len() }

// Recurring returns how many series there are.
func (t *Table) Recurring() int { return t.series.Len() }

// Of returns how many reservations of a resource are not over.
func (t *Table) Of(resource string) int {
	n, _ := t.counts.Get(resource)
	return n
}

// Get returns a reservation by its id; nil if there is none.
func (t *Table) Get(id string) *Reservation {
	if t.all.Len() == 0 {
		return nil
	}
	r, _ := t.all.Get(id)
	return r
}

// Set puts a reservation in the place of the one that has its id.
func (t *Table) Set(r *Reservation) {
	t.Delete(r.ID)
	t.all.Set(r.ID, r)
	if r.Over != 0 {
		return
	}
	n, _ := t.counts.Get(r.Resource)
	t.counts.Set(r.Resource, n+1)
	t.plans(r, len(r.Units))
	r.days(func(e entry) { t.plan.Set(e) })
	if r.Open() {
		t.open.Set(r.entry())
		t.keep(r, 1)
	}
}

// Delete takes the reservation with an id away.
func (t *Table) Delete(id string) {
	r, ok := t.all.Delete(id)
	if !ok || r.Over != 0 {
		return
	}
	if n, _ := t.counts.Get(r.Resource); n > 1 {
		t.counts.Set(r.Resource, n-1)
	} else {
		t.counts.Delete(r.Resource)
	}
	t.plans(r, -len(r.Units))
	r.days(func(e entry) { t.plan.Delete(e) })
	if _, open := t.open.Delete(r.entry()); open {
		t.keep(r, -1)
	}
}

// plans counts units that are planned, or are no longer.
func (t *Table) plans(r *Reservation, n int) {
	if n = t.Units(r.Resource) + n; n > 0 {
		t.units.Set(r.Resource, n)
	} else {
		t.units.Delete(r.Resource)
	}
}

// Units returns how many units of a pool are planned for its reservations that are not over: one that is planned for
// two of them counts twice.
func (t *Table) Units(resource string) int {
	n, _ := t.units.Get(resource)
	return n
}

// keep counts one that keeps something for its claim, or does so no longer.
func (t *Table) keep(r *Reservation, n int) {
	kept := t.Kept(r.Resource)
	if kept.Slots += n * int(r.Slots); r.Slots == 0 {
		kept.Whole += n
	}
	if kept == (Kept{}) {
		t.kept.Delete(r.Resource)
	} else {
		t.kept.Set(r.Resource, kept)
	}
}

// Kept returns how much of a resource is kept by all that Keeping finds.
func (t *Table) Kept(resource string) (kept Kept) {
	if t.kept.Len() > 0 {
		kept, _ = t.kept.Get(resource)
	}
	return kept
}

// Before reports whether a reservation comes before another by resource, start and id.
func (r *Reservation) Before(other *Reservation) bool {
	return cmp.Or(cmp.Compare(r.Resource, other.Resource), cmp.Compare(r.From, other.From),
		cmp.Compare(r.ID, other.ID)) < 0
}

func (r *Reservation) entry() entry {
	return entry{resource: r.Resource, from: r.From, id: r.ID, of: r}
}

const dayLength = Moment(24 * time.Hour)

// day returns the day of a moment, in UTC. Any division of time would do.
func day(m Moment) int64 { return int64(m / dayLength) }

// days calls yield with an entry for each day that a reservation touches.
func (r *Reservation) days(yield func(entry)) {
	e := r.entry()
	for e.day = day(r.From); e.day <= day(r.Until-1); e.day++ {
		yield(e)
	}
}

// Overlapping calls yield with the reservations of a resource that are not over and share time with a span, by day and
// then by when they begin, until it returns false. It looks at what the days of the span have.
func (t *Table) Overlapping(resource string, from, until Moment, yield func(*Reservation) bool) {
	first, last := day(from), day(until-1)
	t.plan.Ascend(entry{resource: resource, day: first}, func(e entry) bool {
		if e.resource != resource || e.day > last {
			return false
		}
		r := e.of
		if r.Until <= from || r.From >= until || e.day != max(first, day(r.From)) {
			return true // it is beside the span, or was met on a day before
		}
		return yield(r)
	})
}

// Next returns the reservation of a resource that begins first after a moment and before another, and is not over; nil
// if there is none. The one with the id except is left out.
func (t *Table) Next(resource string, after, before Moment, except string) (next *Reservation) {
	for at := after + 1; next == nil && at < before; at = Moment(day(at)+1) * dayLength {
		t.plan.Ascend(entry{resource: resource, day: day(at), from: at}, func(e entry) bool {
			if e.resource != resource || e.day != day(at) || e.from >= before {
				return false
			}
			if e.id != except {
				next = e.of
			}
			return next == nil
		})
	}
	return next
}

// Keeping calls yield with the reservations of a resource that have begun and that nobody claimed.
func (t *Table) Keeping(resource string, yield func(*Reservation) bool) {
	if t.open.Len() == 0 {
		return
	}
	t.open.Ascend(entry{resource: resource}, func(e entry) bool { return e.resource == resource && yield(e.of) })
}

// Scan calls yield with all reservations by id.
func (t *Table) Scan(yield func(*Reservation) bool) {
	t.all.Scan(func(_ string, r *Reservation) bool { return yield(r) })
}

// ByDay calls yield with the reservations of a namespace that are not over, by resource and then by when they begin,
// from a resource on, as far as they share time with a span. Each resource is looked at first: ByDay ends if look or
// yield returns false.
func (t *Table) ByDay(from string, since, until Moment, look func(string) bool, yield func(*Reservation) bool) {
	for at := (entry{resource: from}); ; {
		resource, there := "", false
		t.plan.Ascend(at, func(e entry) bool {
			resource, there = e.resource, true
			return false
		})
		if !there || !look(resource) || !t.daysOf(resource, since, until, yield) {
			return
		}
		at = entry{resource: resource, day: math.MaxInt64}
	}
}

// daysOf is ByDay for one resource. It reports whether more is wanted.
func (t *Table) daysOf(resource string, since, until Moment, yield func(*Reservation) bool) (more bool) {
	more = true
	t.plan.Ascend(entry{resource: resource, day: day(since)}, func(e entry) bool {
		r := e.of
		if e.resource != resource || e.day > day(until-1) {
			return false
		}
		if r.Until <= since || r.From >= until || e.day != max(day(since), day(r.From)) {
			return true
		}
		more = yield(r)
		return more
	})
	return more
}

// SeriesOf returns a series by its id; nil if there is none.
func (t *Table) SeriesOf(id string) *Series {
	s, _ := t.series.Get(id)
	return s
}

// SetSeries puts a series in the place of the one that has its id.
func (t *Table) SetSeries(s *Series) { t.series.Set(s.ID, s) }

// DeleteSeries takes a series away. Its occurrences stay.
func (t *Table) DeleteSeries(id string) { t.series.Delete(id) }

// EachSeries calls yield with the series from an id on, until it returns false.
func (t *Table) EachSeries(from string, yield func(*Series) bool) {
	t.series.Ascend(from, func(_ string, s *Series) bool { return yield(s) })
}

// Mark separates the id of a series from the moment of an occurrence, in the id of that. It is in no other id.
const Mark = "@"

// Occurrence returns the id of the occurrence of a series that begins at a moment. Ids sort as the moments do.
func Occurrence(series string, at Moment) string {
	return series + Mark + at.Time().Format("20060102T150405Z")
}

// Occurrences calls yield with those of a series in their order, those that are over and still remembered among them.
func (t *Table) Occurrences(series string, yield func(*Reservation) bool) {
	t.all.Ascend(series+Mark, func(_ string, r *Reservation) bool { return r.Series == series && yield(r) })
}
