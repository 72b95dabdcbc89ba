package reserve

import (
	"cmp"
	"fmt"

	"github.com/leasehold/leasehold"
	"github.com/leasehold/leasehold/internal/btree"
	"github.com/leasehold/leasehold/internal/core/access"
	"github.com/leasehold/leasehold/internal/core/internal/kernel"
	"github.com/leasehold/leasehold/internal/core/reservation"
)

// reservations are those of all namespaces.
type reservations struct {
	// What is in every snapshot.

	of btree.Map[string, *reservation.Table] // by namespace, of those that have any reservation or series

	// What follows from that.

	dates *btree.Tree[date] // when something happens to reservations
}

// A date is when the calendar does something to a reservation.
type date struct {
	at        reservation.Moment
	namespace string
	id        string
}

// New returns those of a state in which nothing is reserved. Dates of one moment have a total order, so that all nodes
// come to them alike.
func New() kernel.Reservations {
	return &reservations{dates: btree.New(func(a, b date) bool {
		return cmp.Or(cmp.Compare(a.at, b.at), cmp.Compare(a.namespace, b.namespace), cmp.Compare(a.id, b.id)) < 0
	})}
}

func (s *reservations) Copy() kernel.Reservations {
	f := &reservations{dates: s.dates.Copy()}
	s.of.Scan(func(namespace string, t *reservation.Table) bool {
		f.of.Set(namespace, new(t.Copy()))
		return true
	})
	return f
}

// nothing is the table of each namespace that has none. It is only read.
var nothing = reservation.NewTable()

// table returns that of a namespace, to read it.
func (s *reservations) table(n kernel.Namespace) *reservation.Table { return s.named(n.Name()) }

func (s *reservations) named(namespace string) *reservation.Table {
	if t, ok := s.of.Get(namespace); ok {
		return t
	}
	return &nothing
}

// open returns that of a namespace, to put something into it, and close forgets it once nothing is left.
func (s *reservations) open(namespace string) *reservation.Table {
	t, ok := s.of.Get(namespace)
	if !ok {
		t = new(reservation.NewTable())
		s.of.Set(namespace, t)
	}
	return t
}

func (s *reservations) close(namespace string) {
	if t := s.named(namespace); t.Len() == 0 && t.Recurring() == 0 {
		s.of.Delete(namespace)
	}
}

func (s *reservations) Get(n kernel.Namespace, id string) *reservation.Reservation {
	return s.table(n).Get(id)
}

// set stores a reservation, with the date on which something happens to it next.
func (s *reservations) set(k kernel.Turn, r *reservation.Reservation) {
	t := s.open(k.Name())
	if before := t.Get(r.ID); before != nil {
		s.dates.Delete(date{before.Next(), k.Name(), r.ID})
	} else {
		k.CountReservations(1)
	}
	t.Set(r)
	s.dates.Set(date{r.Next(), k.Name(), r.ID})
	k.KeptChanged(r.Resource)
}

// drop forgets a reservation.
func (s *reservations) drop(k kernel.Turn, r *reservation.Reservation) {
	s.dates.Delete(date{r.Next(), k.Name(), r.ID})
	s.table(k.Namespace).Delete(r.ID)
	s.close(k.Name())
	k.CountReservations(-1)
	k.KeptChanged(r.Resource)
}

// dropSeries forgets a series, whose reservations stay.
func (s *reservations) dropSeries(k kernel.Turn, id string) {
	s.table(k.Namespace).DeleteSeries(id)
	s.close(k.Name())
}

func (s *reservations) Owner(n kernel.Namespace, id string) (path string, owner *access.Owner, known bool) {
	if r := s.Get(n, id); r != nil {
		return r.Resource, r.Owner, true
	}
	if series := s.table(n).SeriesOf(id); series != nil {
		return series.Resource, series.Owner, true
	}
	return "", nil, false
}

func (s *reservations) Count(namespace string) (reservations, series int) {
	t := s.named(namespace)
	return t.Len(), t.Recurring()
}

// Pieces are the series of a namespace, then its reservations.
func (s *reservations) Pieces(namespace string, yield func(piece any) bool) (more bool) {
	more, t := true, s.named(namespace)
	t.EachSeries("", func(v *reservation.Series) bool {
		more = yield(v)
		return more
	})
	if more {
		t.Scan(func(v *reservation.Reservation) bool {
			more = yield(v)
			return more
		})
	}
	return more
}

func (s *reservations) Restore(k kernel.Turn, piece any) (known bool, err error) {
	switch v := piece.(type) {
	case *reservation.Reservation:
		return true, s.restore(k, v)
	case *reservation.Series: // its occurrences come by themselves
		if s.table(k.Namespace).SeriesOf(v.ID) != nil {
			return true, fmt.Errorf("snapshot has the recurring reservation %q twice", v.ID)
		}
		s.open(k.Name()).SetSeries(v)
		return true, nil
	}
	return false, nil
}

// restore takes over a reservation. The calendar came before it.
func (s *reservations) restore(k kernel.Turn, r *reservation.Reservation) error {
	switch {
	case k.Date() == 0:
		return fmt.Errorf("snapshot has reservation %q without a calendar", r.ID)
	case s.Get(k.Namespace, r.ID) != nil:
		return fmt.Errorf("snapshot has reservation %q twice", r.ID)
	case r.From <= 0 || r.Until <= r.From || r.Until-r.From > reservation.Moment(leasehold.MaxReservation):
		return fmt.Errorf("snapshot has reservation %q from %d to %d", r.ID, r.From, r.Until)
	}
	if r.Select != nil {
		if _, err := kernel.CompileAsk(int(r.Slots), r.Select, nil); err != nil {
			return fmt.Errorf("snapshot has reservation %q that selects what cannot be read: %w", r.ID, err)
		}
	}
	s.set(k, r)
	return nil
}
