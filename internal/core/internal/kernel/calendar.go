package kernel

import (
	"errors"
	"time"

	"github.com/leasehold/leasehold/internal/core/reservation"
)

// The calendar. Cluster time stops while nobody leads, and a reservation must not begin later for that, so it is judged
// by the wall clock that the leader writes into each entry. The state keeps the largest that it saw while there are
// reservations: the calendar never goes back, whatever a clock does. TTLs, hold limits and breaks are on cluster time.

// turnPage notes what the wall clock of the leader says.
func (t *turn) turnPage() {
	if wall := reservation.Moment(t.wall); wall > t.date || t.totals.reservations == 0 {
		t.date = wall
	}
}

// minLook is the least time between two ticks that look at the calendar: the wall clock may go a little slower than
// cluster time does.
const minLook = Time(time.Millisecond)

// dueDate returns the cluster time at which the calendar has something to do, if the wall clock goes on as it does;
// false if it never has.
func (s *State) dueDate() (Time, bool) {
	if s.totals.reservations == 0 {
		return 0, false
	}
	next := s.reservations.Next()
	if next <= s.date {
		return s.now, true
	}
	return s.now + max(minLook, Time(next)-Time(s.wall)), true
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

// Date returns what the calendar says.
func (v *view) Date() reservation.Moment { return v.s.date }

// A Calendar is what a snapshot keeps of the calendar, if anything is reserved.
type Calendar struct{ Date reservation.Moment }

// calendarPiece comes after the totals. A state in which nothing is reserved is written as if there were no calendar.
func (s *State) calendarPiece(yield func(Piece) bool) bool {
	return s.totals.reservations == 0 || yield(Piece{Value: &Calendar{s.date}})
}

// restoreCalendar takes over what the calendar said. It comes once, and before what counts on it.
func (t *turn) restoreCalendar(c *Calendar) error {
	if t.date != 0 || c.Date <= 0 {
		return errors.New("snapshot has a calendar that cannot be, or in the wrong place")
	}
	t.date = c.Date
	return nil
}
