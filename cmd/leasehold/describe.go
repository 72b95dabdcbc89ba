package main

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	v1 "github.com/leasehold/leasehold/api/v1"
)

func (a *app) describeCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "describe NAME",
		Short: "Show everything about one resource: holder, queue, last end",
		Long: `Describe shows everything there is to see of one resource: who holds it, why, since
when and for how much longer; the token that is shown to what it protects; who
waits, in order, and when their turn usually comes; for how long it is usually held
and waited for; and how its last lease ended.

Of a resource that nobody has used there is only to say that it is available: any
name can be acquired.`,
		Example: `  leasehold describe prod/deploy
  leasehold describe prod/deploy -o wide                    # dates instead of "3m ago"
  leasehold describe prod/deploy -o json | jq '.queue[].holder'`,
		Args:              takes(1, 1),
		ValidArgsFunction: a.completes(1, resourceNames),
	}
	cmd.RunE = a.talks(func(ctx context.Context, c *conn, args []string) error {
		resource, err := c.Resource(ctx, args[0], v1.MaxLimit)
		if err != nil {
			return err
		}
		switch a.output {
		case formatJSON:
			return a.printJSON(resource)
		case formatName:
			return a.printLine(resource.Resource)
		}
		_, err = fmt.Fprint(a.stdout, a.describe(resource))
		return written(err)
	})
	a.clientFlags(cmd)
	a.outputFlag(cmd, formatWide, formatJSON, formatName)
	return cmd
}

// A sheet is a list of names and values, one under the other.
type sheet struct{ strings.Builder }

func (s *sheet) line(name, format string, args ...any) {
	value := fmt.Sprintf(format, args...)
	if value == "" {
		return
	}
	if name != "" {
		name += ":"
	}
	fmt.Fprintf(s, "%-11s %s\n", name, value)
}

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
