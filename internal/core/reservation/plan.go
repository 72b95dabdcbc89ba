package reservation

import (
	"cmp"
	"slices"
	"time"
)

// Peak returns the most slots of a resource that are reserved at one moment of a span, whether somebody reserved all of
// them, and one of those who did; and how many reservations it looked at.
func (t *Table) Peak(resource string, from, until Moment) (slots int, all bool, one *Reservation, looked int) {
	type change struct {
		at Moment
		by int
	}
	var changes []change
	t.Overlapping(resource, from, until, func(r *Reservation) bool {
		looked++
		if one == nil || r.Slots == 0 {
			one = r
		}
		all = all || r.Slots == 0
		changes = append(changes, change{max(r.From, from), int(r.Slots)}, change{r.Until, -int(r.Slots)})
		return true
	})
	// What ends at a moment makes room for what begins then.
	slices.SortFunc(changes, func(a, b change) int { return cmp.Or(cmp.Compare(a.at, b.at), cmp.Compare(a.by, b.by)) })
	now := 0
	for _, c := range changes {
		now += c.by
		slots = max(slots, now)
	}
	return slots, all, one, looked
}

// How far ahead free times are looked for, and how many moments are tried.
const (
	searchAhead = 60 * 24 * time.Hour
	maxTried    = 64
)

// Free returns the next moments, at most most, from which a span of a length is free. Nothing becomes free but when a
// reservation ends, so only those moments are tried.
func (t *Table) Free(
	resource string, from Moment, length time.Duration, most int, fits func(from, until Moment) bool,
) (free []Moment) {
	var ends []Moment
	t.Overlapping(resource, from, from.Add(searchAhead), func(r *Reservation) bool {
		ends = append(ends, r.Until)
		return true
	})
	slices.Sort(ends)
	ends = slices.Compact(ends)
	for i, at := range ends {
		if i == maxTried || len(free) == most {
			break
		}
		if fits(at, at.Add(length)) {
			free = append(free, at)
		}
	}
	return free
}
