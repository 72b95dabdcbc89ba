package kernel

import (
	"errors"
	"fmt"

	"github.com/leasehold/leasehold"
	"github.com/leasehold/leasehold/internal/core/reservation"
)

// A Calendar is what a snapshot keeps of the calendar, if anything is reserved.
type Calendar struct{ Date reservation.Moment }

// calendarPiece comes after the totals. A state in which nothing is reserved is written as if there were no calendar.
func (s *State) calendarPiece(yield func(Piece) bool) bool {
	return s.dates.Len() == 0 || yield(Piece{Value: &Calendar{s.date}})
}

// restoreCalendar takes over what the calendar said. It comes once, and before what counts on it.
func (t *turn) restoreCalendar(c *Calendar) error {
	if t.date != 0 || c.Date <= 0 {
		return errors.New("snapshot has a calendar that cannot be, or in the wrong place")
	}
	t.date = c.Date
	return nil
}

// reservationPieces writes series, then reservations.
func (sp *space) reservationPieces(yield func(Piece) bool) (more bool) {
	more = true
	sp.reservations.EachSeries("", func(v *reservation.Series) bool {
		more = yield(Piece{sp.name, v})
		return more
	})
	if more {
		sp.reservations.Scan(func(v *reservation.Reservation) bool {
			more = yield(Piece{sp.name, v})
			return more
		})
	}
	return more
}

// restorePlanned takes over a reservation or a series.
func (t *turn) restorePlanned(sp *space, value any) error {
	switch v := value.(type) {
	case *leasehold.Task:
		return sp.tasks.Restore(t.in(sp), v)
	case *reservation.Reservation:
		return t.restoreReservation(sp, v)
	case *reservation.Series:
		return t.restoreSeries(sp, v)
	}
	known, err := t.alarms.Restore(t.in(sp), value)
	if !known {
		return fmt.Errorf("snapshot has a %T, which is unknown here", value)
	}
	return err
}

// restoreReservation takes a piece over that Pieces made. The calendar came before it.
func (t *turn) restoreReservation(sp *space, r *reservation.Reservation) error {
	switch {
	case t.date == 0:
		return fmt.Errorf("snapshot has reservation %q without a calendar", r.ID)
	case sp.reservations.Get(r.ID) != nil:
		return fmt.Errorf("snapshot has reservation %q twice", r.ID)
	case r.From <= 0 || r.Until <= r.From || r.Until-r.From > reservation.Moment(leasehold.MaxReservation):
		return fmt.Errorf("snapshot has reservation %q from %d to %d", r.ID, r.From, r.Until)
	}
	if r.Select != nil {
		if _, err := compileAsk(int(r.Slots), r.Select, nil); err != nil {
			return fmt.Errorf("snapshot has reservation %q that selects what cannot be read: %w", r.ID, err)
		}
	}
	t.setReservation(sp, r)
	return nil
}

// restoreSeries takes over a series, whose occurrences come by themselves.
func (s *State) restoreSeries(sp *space, v *reservation.Series) error {
	if sp.reservations.SeriesOf(v.ID) != nil {
		return fmt.Errorf("snapshot has the recurring reservation %q twice", v.ID)
	}
	sp.reservations.SetSeries(v)
	return nil
}

// reservations checks that the calendar has each reservation once, and that claims and reservations agree.
func (c *checker) reservations(s *State) {
	counted := 0
	s.spaces.Scan(func(_ string, sp *space) bool {
		counted += sp.reservations.Len()
		sp.reservations.Scan(func(r *reservation.Reservation) bool {
			c.reservation(s, sp, r)
			return true
		})
		return true
	})
	c.that(counted == s.dates.Len(), "%d reservations are known, the calendar has %d", counted, s.dates.Len())
}

// reservation checks one: the calendar has it, its claim knows of it, stands where it should, and is no lease before
// the start.
func (c *checker) reservation(s *State, sp *space, r *reservation.Reservation) {
	_, dated := s.dates.Get(date{r.Next(), sp.name, r.ID})
	c.that(dated, "%s: reservation %q is not in the calendar", sp.name, r.ID)
	if r.Lease != "" {
		claim, ok := sp.claims.Get(r.Lease)
		c.that(ok && claim.terms().Reservation == r.ID && claim.Resource == r.Resource && claim.Slots == r.Slots,
			"%s: reservation %q is claimed by %q, which does not know", sp.name, r.ID, r.Lease)
		c.that(!ok || !claim.Waiting() || claim.early() != r.Begun,
			"%s: the claim of reservation %q has the wrong place in the queue", sp.name, r.ID)
		c.that(!ok || r.Begun || claim.Waiting(), "%s: reservation %q is used before it began", sp.name, r.ID)
	}
}
