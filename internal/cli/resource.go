package cli

import (
	"fmt"
	"maps"
	"strings"
	"time"

	v1 "github.com/leasehold/leasehold/api/v1"
)

// Describe writes all about one resource. The command describe and top show the same text.
func (a *App) Describe(r v1.Resource, runs Runs) string {
	s := &Details{}
	state := r.State
	if a.Colour() {
		state = PaintState(state)
	}
	s.Line("Resource", "%s", Printable(r.Resource))
	s.Line("Namespace", "%s", Printable(r.Namespace))
	s.Line("State", "%s", state)
	if r.Capacity > 1 {
		s.Line("Slots", "%d of %d taken", r.Used, r.Capacity)
	}
	for _, l := range r.Holders {
		a.describeLease(s, l)
	}
	if more := r.Holding - len(r.Holders); more > 0 {
		s.Line("", "and %s", Plural(more, "more holder", "more holders"))
	}
	for _, l := range r.Overlapping {
		s.Line("Overlaps", "%s, held by %s", Printable(l.Resource), Printable(l.Holder))
	}
	describeUnits(s, r)
	if r.Unacknowledged != nil {
		s.Line("Rests", "until somebody acknowledges the end of %s's lease (token %d)",
			Printable(r.Unacknowledged.Holder), r.Unacknowledged.Token)
	}
	if r.AvailableAt != nil {
		why := "after a rest"
		if r.Last == nil {
			why = "after the quarantine of a restore" // nothing rests that was never held
		}
		s.Line("Available", "%s, %s", a.Until(r.AvailableAt.Time), why)
	}
	a.describeQueue(s, r)
	describeUsual(s, r.Usual)
	if r.Last != nil {
		a.describeEnd(s, *r.Last)
	}
	a.describeRuns(s, r, runs)
	return s.String()
}

func (a *App) describeLease(s *Details, l v1.Lease) {
	s.Line("Holder", "%s", Printable(l.Holder))
	s.Line("Reason", "%s", Printable(l.Reason))
	s.Line("Labels", "%s", Printable(LabelList(ownLabels(l))))
	if l.Note != "" {
		s.Line("Note", "%s (%s)", Printable(l.Note), a.When(l.Noted))
	}
	s.Line("Since", "%s", a.When(l.Acquired))
	s.Line("Expires", "%s", a.expires(l))
	if l.TTL != nil {
		s.Line("TTL", "%s", l.TTL)
	}
	s.Line("Token", "%d", l.Token)
	if l.Slots > 0 || len(l.Units) > 0 {
		s.Line("Takes", "%s", takesSlots(l))
	}
	s.Line("Lease id", "%s", Printable(l.ID))
	s.Line("Client id", "%s", Printable(l.Foreign))
	s.Line("Session", "%s", Printable(l.Session))
	s.Line("Door", "%s", l.Door)
}

// ownLabels returns the labels of a lease without those in which a door keeps what other lines
// show: the id that a foreign client gave it, and that client's own description.
func ownLabels(l v1.Lease) map[string]string {
	own := maps.Clone(l.Labels)
	maps.DeleteFunc(own, func(key, value string) bool {
		return key == "terraform/lockinfo" || key == "terraform/id" && value == l.Foreign
	})
	return own
}

// takesSlots says how much of a resource a lease has.
func takesSlots(l v1.Lease) string {
	text := "all slots"
	if l.Slots > 0 {
		text = Plural(l.Slots, "slot", "slots")
	}
	if len(l.Units) > 0 {
		text += ": " + Printable(strings.Join(l.Units, ", "))
	}
	return text
}

// describeUnits shows which slots with names are free, and who had them.
func describeUnits(s *Details, r v1.Resource) {
	var free []string
	for _, u := range r.Units {
		if u.Lease == "" && !u.Rests {
			free = append(free, Printable(u.Name))
		}
	}
	switch {
	case len(r.Units) > 0 && len(free) == 0:
		s.Line("Free", "none of %d", len(r.Units))
	case len(free) > 0:
		s.Line("Free", "%s", strings.Join(free, ", "))
	}
}

// expires says when a lease ends, and whether a renewal can still change that.
func (a *App) expires(l v1.Lease) string {
	switch {
	case l.Expires == nil:
		return "never: it ends by release or break"
	case a.Output == FormatWide:
		return Absolute(l.Expires.Time)
	}
	return Outlook(l, nil).When()
}

// Until shows a moment that is to come.
func (a *App) Until(t time.Time) string {
	if a.Output == FormatWide {
		return Absolute(t)
	}
	return "in " + Short(t.Sub(a.Now()))
}

func (a *App) describeQueue(s *Details, r v1.Resource) {
	if r.Waiting == 0 {
		s.Line("Waiting", "nobody")
		return
	}
	s.Line("Waiting", "%d", r.Waiting)
	widest := 0
	for _, w := range r.Queue {
		widest = max(widest, len([]rune(Printable(w.Holder))))
	}
	for _, w := range r.Queue {
		s.Line("", "%2d  %s  %s", w.Position, Pad(Printable(w.Holder), widest), a.waits(w))
	}
	if more := r.Waiting - len(r.Queue); more > 0 {
		s.Line("", "and %d more", more)
	}
}

func (a *App) waits(w v1.Waiter) string {
	text := "since " + a.When(&w.Since)
	if w.Slots > 0 {
		text = "for " + Plural(w.Slots, "slot", "slots") + ", " + text
	}
	if w.Priority != 0 {
		text = fmt.Sprintf("priority %d, %s", w.Priority, text)
	}
	if w.Forecast != 0 {
		text += ", usually its turn in about " + About(time.Duration(w.Forecast), time.Duration(w.ForecastError))
	}
	if w.Until != nil {
		text += ", gives up " + a.Until(w.Until.Time)
	}
	if w.Reason != "" {
		text += " (" + Printable(w.Reason) + ")"
	}
	return text
}

// describeUsual says what was learned of the last leases and waits.
func describeUsual(s *Details, u *v1.Usual) {
	if u == nil {
		return
	}
	if u.Holds > 0 {
		s.Line("Usual hold", "%s, seldom more than %s; %d of the last %d ended uncleanly", u.HoldP50, u.HoldP95,
			u.Unclean, u.Holds)
	}
	if u.Waits > 0 {
		s.Line("Usual wait", "%s, seldom more than %s, with %d waiting", u.WaitP50, u.WaitP95, u.Queue)
	}
}

func (a *App) describeEnd(s *Details, e v1.Ending) {
	text := fmt.Sprintf("%s (token %d), %s %s", Printable(e.Holder), e.Token, e.How, a.When(&e.At))
	if e.By != "" {
		text += " by " + Printable(e.By)
	}
	if e.Reason != "" {
		text += ": " + Printable(e.Reason)
	}
	s.Line("Last lease", "%s", text)
}

// Aged counts down what remains, never below nothing.
func Aged(resources []v1.Resource, by time.Duration) []v1.Resource {
	older := make([]v1.Resource, len(resources))
	for i, r := range resources {
		older[i] = AgedOne(r, by)
	}
	return older
}

// AgedOne counts down what remains of one resource's leases.
func AgedOne(r v1.Resource, by time.Duration) v1.Resource {
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

// FormerHolder is who lost the resource; after a release nobody needs to know.
func FormerHolder(r v1.Resource) string {
	if r.Last == nil || r.State == "available" {
		return ""
	}
	return "(" + r.Last.Holder + ")"
}
