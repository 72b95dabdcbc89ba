package main

import (
	"fmt"
	"strings"
	"time"

	v1 "github.com/leasehold/leasehold/api/v1"
)

func (a *app) describe(r v1.Resource) string {
	s := &sheet{}
	state := r.State
	if a.colour() {
		state = paintState(state)
	}
	s.line("Resource", "%s", printable(r.Resource))
	s.line("Namespace", "%s", printable(r.Namespace))
	s.line("State", "%s", state)
	if r.Capacity > 1 {
		s.line("Slots", "%d of %d taken", r.Used, r.Capacity)
	}
	for _, l := range r.Holders {
		a.describeLease(s, l)
	}
	if more := r.Holding - len(r.Holders); more > 0 {
		s.line("", "and %s", plural(more, "more holder", "more holders"))
	}
	describeUnits(s, r)
	if r.Unacknowledged != nil {
		s.line("Rests", "until somebody acknowledges the end of %s's lease (token %d)", printable(r.Unacknowledged.Holder), r.Unacknowledged.Token)
	}
	if r.AvailableAt != nil {
		why := "after a rest"
		if r.Last == nil {
			why = "after the quarantine of a restore" // nothing rests that was never held
		}
		s.line("Available", "%s, %s", a.until(r.AvailableAt.Time), why)
	}
	a.describeQueue(s, r)
	describeUsual(s, r.Usual)
	if r.Last != nil {
		a.describeEnd(s, *r.Last)
	}
	return s.String()
}

func (a *app) describeLease(s *sheet, l v1.Lease) {
	s.line("Holder", "%s", printable(l.Holder))
	s.line("Reason", "%s", printable(l.Reason))
	s.line("Labels", "%s", printable(labelList(l.Labels)))
	s.line("Since", "%s", a.when(l.Acquired))
	s.line("Expires", "%s", a.expires(l))
	if l.TTL != nil {
		s.line("TTL", "%s", l.TTL)
	}
	s.line("Token", "%d", l.Token)
	if l.Slots > 0 {
		s.line("Takes", "%s", takesSlots(l))
	}
	s.line("Lease id", "%s", printable(l.ID))
	s.line("Session", "%s", printable(l.Session))
}

// takesSlots says how much of a resource a lease has.
func takesSlots(l v1.Lease) string {
	text := plural(l.Slots, "slot", "slots")
	if len(l.Units) > 0 {
		text += ": " + printable(strings.Join(l.Units, ", "))
	}
	return text
}

// describeUnits shows which slots with names are free, and who had them.
func describeUnits(s *sheet, r v1.Resource) {
	var free []string
	for _, u := range r.Units {
		if u.Lease == "" && !u.Rests {
			free = append(free, printable(u.Name))
		}
	}
	switch {
	case len(r.Units) > 0 && len(free) == 0:
		s.line("Free", "none of %d", len(r.Units))
	case len(free) > 0:
		s.line("Free", "%s", strings.Join(free, ", "))
	}
}

func (a *app) expires(l v1.Lease) string {
	switch {
	case l.Expires == nil:
		return "never: it ends by release or break"
	case a.output == formatWide:
		return absolute(l.Expires.Time)
	case l.State == "breaking":
		return "in " + left(l) + ", and can't be renewed"
	}
	return "in " + left(l)
}

// until shows a moment that is to come.
func (a *app) until(t time.Time) string {
	if a.output == formatWide {
		return absolute(t)
	}
	return "in " + short(t.Sub(a.now()))
}

func (a *app) describeQueue(s *sheet, r v1.Resource) {
	if r.Waiting == 0 {
		s.line("Waiting", "nobody")
		return
	}
	s.line("Waiting", "%d", r.Waiting)
	widest := 0
	for _, w := range r.Queue {
		widest = max(widest, len([]rune(printable(w.Holder))))
	}
	for _, w := range r.Queue {
		s.line("", "%2d  %s  %s", w.Position, pad(printable(w.Holder), widest), a.waits(w))
	}
	if more := r.Waiting - len(r.Queue); more > 0 {
		s.line("", "and %d more", more)
	}
}

func (a *app) waits(w v1.Waiter) string {
	text := "since " + a.when(&w.Since)
	if w.Slots > 0 {
		text = "for " + plural(w.Slots, "slot", "slots") + ", " + text
	}
	if w.Priority != 0 {
		text = fmt.Sprintf("priority %d, %s", w.Priority, text)
	}
	if w.Forecast != 0 {
		text += fmt.Sprintf(", usually its turn in about %s", w.Forecast)
	}
	if w.Until != nil {
		text += ", gives up " + a.until(w.Until.Time)
	}
	if w.Reason != "" {
		text += " (" + printable(w.Reason) + ")"
	}
	return text
}

// describeUsual says what was learned of the last leases and waits.
func describeUsual(s *sheet, u *v1.Usual) {
	if u == nil {
		return
	}
	if u.Holds > 0 {
		s.line("Usual hold", "%s, seldom more than %s; %d of the last %d ended uncleanly", u.HoldP50, u.HoldP95, u.Unclean, u.Holds)
	}
	if u.Waits > 0 {
		s.line("Usual wait", "%s, seldom more than %s, with %d waiting", u.WaitP50, u.WaitP95, u.Queue)
	}
}

func (a *app) describeEnd(s *sheet, e v1.Ending) {
	text := fmt.Sprintf("%s (token %d), %s %s", printable(e.Holder), e.Token, e.How, a.when(&e.At))
	if e.By != "" {
		text += " by " + printable(e.By)
	}
	if e.Reason != "" {
		text += ": " + printable(e.Reason)
	}
	s.line("Last lease", "%s", text)
}

// aged counts down what remains, never below nothing.
func aged(resources []v1.Resource, by time.Duration) []v1.Resource {
	older := make([]v1.Resource, len(resources))
	for i, r := range resources {
		older[i] = agedOne(r, by)
	}
	return older
}

func agedOne(r v1.Resource, by time.Duration) v1.Resource {
	holders := append([]v1.Lease{}, r.Holders...)
	for n, l := range holders {
		if l.RemainingMS != nil {
			remaining := max(0, *l.RemainingMS-by.Milliseconds())
			holders[n].RemainingMS = &remaining
		}
	}
	r.Holders = holders
	return r
}

// formerHolder is who lost the resource; after a release nobody needs to know.
func formerHolder(r v1.Resource) string {
	if r.Last == nil || r.State == "available" {
		return ""
	}
	return "(" + r.Last.Holder + ")"
}
