package translate

import (
	"time"

	"github.com/leasehold/leasehold"
	v1 "github.com/leasehold/leasehold/api/v1"
	"github.com/leasehold/leasehold/api/v1/reservations"
	"github.com/leasehold/leasehold/internal/calendar"
	"github.com/leasehold/leasehold/internal/core"
	"github.com/leasehold/leasehold/internal/core/reservation"
	"github.com/leasehold/leasehold/internal/door"
)

// Reserve plans a reservation under an id. The occurrences of one that recurs are counted from now on.
func (c Command) Reserve(r *reservations.Request, id string, now time.Time) (*core.Reserve, error) {
	command := &core.Reserve{Namespace: c.Namespace, ID: id, Resource: r.Resource, Holder: r.Holder, Reason: r.Reason,
		Length: time.Duration(r.Length), Select: Selection(r.Where, r.Spread, r.Units), Request: c.Once}
	if r.Slots != v1.AllSlots {
		command.Slots = int(r.Slots)
	}
	if r.Holder == "" {
		return nil, door.Invalid(`holder is missing: say whom it is for, for example "holder": "ann"`)
	}
	from, badFrom := moment("from", r.From.Time)
	_, badUntil := moment("until", r.Until.Time)
	if err := door.First(Path("resource", r.Resource), Text("holder", r.Holder), Text("id", r.ID),
		Text("reason", r.Reason), badFrom, badUntil); err != nil {
		return nil, err
	}
	switch {
	case r.Every != "":
		if err := c.recur(command, r, now); err != nil {
			return nil, err
		}
	case r.At != "" || r.Zone != "" || !r.Until.IsZero():
		return nil, door.Invalid("at, zone and until are for a reservation that recurs: say every, or from and length")
	default:
		command.From = from
	}
	return command, nil
}

// recur makes a command one for a reservation that recurs.
func (c Command) recur(command *core.Reserve, r *reservations.Request, now time.Time) error {
	days, badDays := calendar.ParseDays(r.Every)
	at, badClock := calendar.ParseClock(r.At)
	_, badZone := calendar.Zone(r.Zone)
	for field, err := range map[string]error{"every": badDays, "at": badClock, "zone": badZone} {
		if err != nil {
			return door.Invalid("%s: %v", field, err)
		}
	}
	command.Rule = &leasehold.Rule{Zone: r.Zone, Days: days, At: at, Length: command.Length, Until: r.Until.Time}
	if r.From.After(now) {
		now = r.From.Time
	}
	to := now.Add(calendar.Ahead)
	starts, err := calendar.Starts(command.Rule, now, to, leasehold.MaxStarts)
	if err != nil {
		return err
	}
	if len(starts) == 0 {
		return door.Invalid("until is %s: nothing begins before that", r.Until.Format(time.RFC3339))
	}
	command.To = reservation.Moment(to.UnixNano())
	for _, start := range starts {
		command.Starts = append(command.Starts, reservation.Moment(start.UnixNano()))
	}
	return nil
}

// moment reads a moment of the calendar; 0 if there is none.
func moment(field string, t time.Time) (reservation.Moment, error) {
	switch {
	case t.IsZero():
		return 0, nil
	case t.Year() < 1971 || t.Year() > 2200:
		return 0, door.Invalid("%s is out of range: the years 1971 to 2200 are allowed", field)
	}
	return reservation.Moment(t.UnixNano()), nil
}

// Selection is what a request selects of a pool; nil if it selects nothing.
func Selection(where string, spread bool, units []string) *leasehold.Select {
	if where == "" && !spread && len(units) == 0 {
		return nil
	}
	return &leasehold.Select{Where: where, Spread: spread, Units: units}
}
