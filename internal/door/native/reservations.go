package native

import (
	"fmt"
	"time"

	"github.com/leasehold/leasehold"
	"github.com/leasehold/leasehold/api/v1/reservations"
	"github.com/leasehold/leasehold/internal/calendar"
	"github.com/leasehold/leasehold/internal/core"
	"github.com/leasehold/leasehold/internal/door/native/encode"
	"github.com/leasehold/leasehold/internal/door/native/translate"
)

// reserve plans a reservation, and shows it. A claim of one needs no operation of its own: it is an acquire that names
// it.
func (c *call) reserve(r *reservations.Request) error {
	id := r.ID
	if id == "" {
		id = c.madeID("reservation")
	}
	command, err := c.asked("").Reserve(r, id, time.Now())
	if err != nil {
		return err
	}
	if _, err := c.do(command); err != nil {
		return err
	}
	return c.sendReservation(id)
}

func (c *call) cancelReservation() (*core.CancelReservation, error) {
	command := &core.CancelReservation{Namespace: c.namespace, ID: c.path("id"), By: c.query.Get("by"),
		Reason: c.query.Get("reason"), Request: c.once}
	return command, firstError(checkName("id", command.ID), checkText("by", command.By),
		checkText("reason", command.Reason))
}

func (c *call) reservation() error {
	id := c.path("id")
	if err := checkName("id", id); err != nil {
		return err
	}
	return c.sendReservation(id)
}

// sendReservation shows a reservation or a series, that with its next occurrence.
func (c *call) sendReservation(id string) error {
	var shown leasehold.Reservation
	var series *leasehold.Series
	var known bool
	err := c.look(func(v core.View) { shown, series, known = translate.FindReservation(v, c.namespace, id) })
	switch {
	case err != nil:
		return err
	case !known:
		return &leasehold.Error{Code: leasehold.NotFound, Message: fmt.Sprintf("reservation %s is unknown: it never "+
			"was, or it was over long ago", brief(id))}
	}
	c.send(func(b *encode.Buffer) { b.Reservation(&shown, series) })
	return nil
}

func (c *call) reservations() error {
	q, badQuery := translate.ReservationQuery(c.query)
	part, badPart := c.part()
	if err := firstError(badQuery, badPart); err != nil {
		return err
	}
	q.After, q.Most = part.after, part.limit
	var list []leasehold.Reservation
	var next string
	if err := c.look(func(v core.View) { list, next = v.Reservations(c.namespace, q) }); err != nil {
		return err
	}
	return sendPage(c, list, cursor(next), func(b *encode.Buffer, r *leasehold.Reservation) { b.Reservation(r, nil) })
}

// series lists the rules of recurring reservations, which are few.
func (c *call) series() error {
	part, err := c.part()
	if err != nil {
		return err
	}
	var all []leasehold.Series
	if err := c.look(func(v core.View) { all = v.Series(c.namespace, nil) }); err != nil {
		return err
	}
	page := pageOf(all, part, func(s leasehold.Series) string { return s.ID })
	return sendPage(c, page.Items, page.Next, func(b *encode.Buffer, s *leasehold.Series) {
		shown := translate.Recurring(s)
		b.Reservation(&shown, s)
	})
}

// maxEntries is how many reservations one calendar has.
const maxEntries = 10000

var calendarType = []string{"text/calendar; charset=utf-8"}

// calendar shows reservations as an iCalendar file.
func (c *call) calendar() error {
	q, err := translate.ReservationQuery(c.query)
	if err != nil {
		return err
	}
	var all []leasehold.Reservation
	for more := true; more; more = q.After != "" {
		q.Most = maxEntries + 1 - len(all)
		err := c.look(func(v core.View) {
			var list []leasehold.Reservation
			list, q.After = v.Reservations(c.namespace, q)
			all = append(all, list...)
		})
		if err != nil {
			return err
		}
		if len(all) > maxEntries {
			return &leasehold.Error{Code: leasehold.Limited, Message: fmt.Sprintf("a calendar has at most %d "+
				"reservations: name a resource, a prefix, a holder or an earlier until", maxEntries)}
		}
	}
	h := c.stream()
	h.within(writeTime)
	write(h.w, calendarType, 200, calendar.Append(nil, all, time.Now()))
	return nil
}
