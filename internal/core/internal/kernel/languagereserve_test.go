package kernel_test

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/leasehold/leasehold"
	"github.com/leasehold/leasehold/internal/core"
	"github.com/leasehold/leasehold/internal/core/reservation"
)

// Moments of the calendar are written as the time after the beginning of the story, as if the wall clock went right.

func (p *phrase) moment(name string) reservation.Moment {
	if d := p.duration(name); d != 0 {
		return reservation.Moment(wallOf(d))
	}
	return 0
}

func (p *phrase) moments(name string) (list []reservation.Moment) {
	for _, text := range p.list(name) {
		d, err := time.ParseDuration(text)
		if err != nil {
			p.wrong("%s= takes durations: %v", name, err)
		}
		list = append(list, reservation.Moment(wallOf(d)))
	}
	return list
}

func (p *phrase) reserve() core.Command {
	c := &core.Reserve{
		Resource: p.word("resource"), Holder: p.word("holder"), Reason: p.option("reason", ""), Select: p.selection(),
		From: p.moment("from"), Length: p.duration("length"), Starts: p.moments("starts"), To: p.moment("to"),
		Namespace: p.namespace(), Request: p.request(),
	}
	c.ID = p.option("id", c.Holder)
	c.Slots, _ = p.slots(p.option("slots", "0"))
	if days := p.number("days"); days != 0 {
		c.Rule = &leasehold.Rule{Zone: p.option("zone", "UTC"), Days: leasehold.Weekdays(days), At: p.duration("at"), Length: c.Length}
		if until := p.moment("until"); until != 0 {
			c.Rule.Until = until.Time()
		}
	}
	return c
}

func (p *phrase) extend() core.Command {
	return &core.Reserve{ID: p.word("id"), Starts: p.moments("starts"), After: p.moment("after"), To: p.moment("to"), Namespace: p.namespace()}
}

func sinceStart(m reservation.Moment) string {
	if m == 0 {
		return ""
	}
	return m.Time().Sub(epoch).String()
}

func writeReserve(c *core.Reserve) string {
	var starts []string
	for _, at := range c.Starts {
		starts = append(starts, sinceStart(at))
	}
	list := option("starts", strings.Join(starts, ","))
	if c.Extends() {
		return sentence("extend", quote(c.ID), list, option("after", sinceStart(c.After)), option("to", sinceStart(c.To)), common(c.Namespace, c.Request))
	}
	rule := ""
	if c.Rule != nil {
		rule = sentence("", option("days", strconv.Itoa(int(c.Rule.Days))), option("zone", c.Rule.Zone), option("at", c.Rule.At))
	}
	return sentence("reserve", quote(c.Resource), quote(c.Holder), option("id", c.ID), writeSlots(c.Slots, 0), writeSelect(c.Select),
		option("reason", c.Reason), option("from", sinceStart(c.From)), option("length", c.Length), list, option("to", sinceStart(c.To)), rule, common(c.Namespace, c.Request))
}

// reservations tells what is planned.
func (t *teller) reservations(view core.View, p *phrase) {
	q := core.ReservationQuery{Prefix: p.option("prefix", ""), Since: p.moment("since"), Until: p.moment("until"), Most: max(1, int(p.number("most")))}
	if p.number("most") == 0 {
		q.Most = 100
	}
	for {
		list, next := view.Reservations(p.namespace(), q)
		for _, r := range list {
			t.say("%s", tellReservation(&r))
		}
		if next == "" {
			break
		}
		q.After = next
	}
	for _, s := range view.Series(p.namespace(), nil) {
		t.say("%s recurs on %s for %s, planned to %s", s.ID, s.Resource, s.Holder, clock(s.Expanded))
	}
}

func tellReservation(r *leasehold.Reservation) string {
	text := fmt.Sprintf("%s reserves %s for %s from %s to %s, %v", r.ID, r.Resource, r.Holder, clock(r.From), clock(r.Until), r.State)
	if r.Slots != 0 {
		text += fmt.Sprintf(", %d slots", r.Slots)
	}
	if len(r.Units) > 0 {
		text += ", units " + strings.Join(r.Units, " ")
	}
	if !r.ClaimBy.IsZero() {
		text += ", to be claimed by " + clock(r.ClaimBy)
	}
	return text + when("lease", r.Lease)
}
