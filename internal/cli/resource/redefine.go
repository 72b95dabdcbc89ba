package resource

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	v1 "github.com/leasehold/leasehold/api/v1"
	"github.com/leasehold/leasehold/internal/cli"
)

// none is how people write a field's default.
const none = "none"

// orNone is a flag that takes a duration, or none.
type orNone struct{ cli.Span }

func (o *orNone) Type() string { return "duration|none" }

func (o *orNone) Set(text string) error {
	if text == none {
		o.Span = cli.SpanOf(0)
		return nil
	}
	return o.Span.Set(text)
}

func (o *orNone) optional() v1.Optional[v1.Duration] {
	return v1.Optional[v1.Duration]{Value: v1.Duration(o.Value), Given: o.Given}
}

// slotCount is a flag that takes a number of slots, or none.
type slotCount struct{ v1.Optional[int] }

func (n *slotCount) Type() string { return "number|none" }

func (n *slotCount) String() string {
	if n.Value == 0 {
		return ""
	}
	return strconv.Itoa(n.Value)
}

func (n *slotCount) Set(text string) error {
	count, err := strconv.Atoi(text)
	switch {
	case text == none:
		count = 0
	case err != nil || count < 1:
		return errors.New("write a number, 1 or more, or none")
	}
	n.Optional = v1.To(count)
	return nil
}

// unitNames is a flag that takes names with commas, or none. Given again, it takes more of them.
type unitNames struct{ v1.Optional[[]string] }

func (u *unitNames) Type() string   { return "names|none" }
func (u *unitNames) String() string { return strings.Join(u.Value, ",") }

func (u *unitNames) Set(text string) error {
	if text == "" {
		return errors.New("write names with commas, such as 0,1,2, or none")
	}
	if u.Given = true; text == none {
		u.Value = nil
		return nil
	}
	for name := range strings.SplitSeq(text, ",") {
		u.Value = append(u.Value, strings.TrimSpace(name))
	}
	return nil
}

// unitLimits is a flag that takes a limit of units, or none. Given again, it takes one more.
type unitLimits struct{ v1.Optional[[]string] }

func (l *unitLimits) Type() string   { return "limit|none" }
func (l *unitLimits) String() string { return strings.Join(l.Value, ", ") }

// Set adds a limit. What is wrong with it the server says, in the words of every other door.
func (l *unitLimits) Set(text string) error {
	if l.Given = true; text == none {
		l.Value = nil
	} else {
		l.Value = append(l.Value, text) // the server knows which there are
	}
	return nil
}

// uncleanRule is a flag that takes what follows an unclean end.
type uncleanRule struct{ v1.Optional[string] }

func (u *uncleanRule) Type() string   { return "allow|warn|acknowledge" }
func (u *uncleanRule) String() string { return u.Value }

func (u *uncleanRule) Set(text string) error {
	u.Optional = v1.To(text) // the server knows which there are
	return nil
}

// onOff is a flag that takes on or off.
type onOff struct{ v1.Optional[bool] }

func (o *onOff) Type() string { return "on|off" }

func (o *onOff) String() string {
	if o.Value {
		return "on"
	}
	return ""
}

func (o *onOff) Set(text string) error {
	if text != "on" && text != "off" {
		return errors.New("write on or off")
	}
	o.Optional = v1.To(text == "on")
	return nil
}

// startRule is a flag that takes what happens when a reservation begins.
type startRule struct{ v1.Optional[string] }

func (s *startRule) Type() string   { return "wait|warn|end" }
func (s *startRule) String() string { return s.Value }

func (s *startRule) Set(text string) error {
	s.Optional = v1.To(text) // the server knows which there are
	return nil
}

// withAll returns a change with the fields of a definition that it leaves out.
func withAll(change v1.DefinitionChange, d v1.Definition) v1.DefinitionChange {
	if !change.Capacity.Given && !change.Units.Given {
		if len(d.Units) > 0 {
			change.Units = v1.To(d.Units)
		} else if d.Capacity > 0 {
			change.Capacity = v1.To(d.Capacity)
		}
	}
	keep(&change.DefaultTTL, d.DefaultTTL)
	keep(&change.LargestTTL, d.LargestTTL)
	keep(&change.HoldLimit, d.HoldLimit)
	keep(&change.Grace, d.Grace)
	keep(&change.Expected, d.Expected)
	if !change.Unclean.Given && d.Unclean != "allow" {
		change.Unclean = v1.To(d.Unclean)
	}
	return change
}

func keep(field *v1.Optional[v1.Duration], set *v1.Duration) {
	if !field.Given && set != nil {
		*field = v1.To(*set)
	}
}

// A loss is what a change takes away from a resource, or from all under a prefix.
type loss struct {
	name    string
	units   []string // that are no longer there
	had     int      // slots; 0: nobody knows
	has     int
	used    int
	holders []string // and what each keeps
	leave   []string // who waits for more than there is
	waiting int
}

// some reports whether there is anything to lose: the server refuses just that.
func (l loss) some() bool {
	fewer := l.has > 0 && l.has < l.had
	return len(l.units) > 0 || fewer && (l.used > l.has || l.waiting > 0 || strings.HasSuffix(l.name, "/"))
}

// lossOf looks up what a change would take away.
func lossOf(
	ctx context.Context, c *cli.Conn, name string, before v1.Definition, change v1.DefinitionChange,
) (l loss, err error) {
	l = loss{name: name, had: max(before.Capacity, len(before.Units))}
	after := change
	if before.Path == name {
		after = withAll(change, before)
	}
	l.has = max(after.Capacity.Value, len(after.Units.Value))
	for _, unit := range before.Units {
		if !slices.Contains(after.Units.Value, unit) {
			l.units = append(l.units, unit)
		}
	}
	if strings.HasSuffix(name, "/") {
		return l, nil
	}
	resource, err := c.Resource(ctx, name, v1.MaxLimit)
	if err != nil {
		return l, err
	}
	l.look(resource)
	return l, nil
}

// look notes who has or wants what.
func (l *loss) look(r v1.Resource) {
	l.used, l.waiting, l.had = r.Used, r.Waiting, max(l.had, r.Capacity)
	for _, h := range r.Holders {
		if kept := intersection(h.Units, l.units); len(kept) > 0 {
			l.keeps(h.Holder, len(kept), plural(len(kept), "unit", "units")+" "+strings.Join(kept, ", "))
		} else if l.has > 0 && l.used > l.has && h.Slots > 0 {
			l.keeps(h.Holder, h.Slots, cli.Plural(h.Slots, "slot", "slots"))
		}
	}
	for _, w := range r.Queue {
		if l.has > 0 && w.Slots > l.has {
			l.leave = append(l.leave, fmt.Sprintf("%s waits for %d slots and leaves the queue", w.Holder, w.Slots))
		}
	}
}

func (l *loss) keeps(holder string, n int, what string) {
	l.holders = append(l.holders, fmt.Sprintf("%s keeps %s until %s released", holder, what,
		plural(n, "it is", "they are")))
}

func plural(n int, one, many string) string {
	if n == 1 {
		return one
	}
	return many
}

func intersection(a, b []string) (both []string) {
	for _, s := range a {
		if slices.Contains(b, s) {
			both = append(both, s)
		}
	}
	return both
}

// text says what is lost, a line for each thing.
func (l loss) text() string {
	var b strings.Builder
	line := func(format string, args ...any) { b.WriteString(cli.Printable(fmt.Sprintf(format, args...)) + "\n") }
	if len(l.units) > 0 {
		line("%s of %s dropped: %s", cli.Plural(len(l.units), "unit", "units"), l.name, strings.Join(l.units, ", "))
	}
	if l.has > 0 && l.has < l.had {
		line("%s has %s, not %d; %d taken, %d waiting", l.name, cli.Plural(l.has, "slot", "slots"), l.had, l.used,
			l.waiting)
	}
	for _, who := range append(slices.Clone(l.holders), l.leave...) {
		line("%s", who)
	}
	return b.String()
}

// confirmLoss shows what would be lost and asks. Without a terminal it refuses: a script has to say
// --yes.
func confirmLoss(ctx context.Context, a *cli.App, l loss, yes bool) error {
	switch {
	case yes:
		return nil
	case !a.Terminal(a.Stdin):
		return cli.Hint(cli.Usage("this takes slots away from %s, and there is no terminal to ask on: give --yes if "+
			"you are sure", l.name), "what it would do:\n%s", strings.TrimSuffix(l.text(), "\n"))
	}
	// These lines are the question itself, and not talk that --quiet could leave out.
	fmt.Fprintf(a.Stderr, "This will take slots away from %s:\n%s", cli.Printable(l.name), indented(l.text()))
	return a.Confirm(ctx, `Type "yes" to do it: `, "yes")
}

func indented(text string) string {
	return "  " + strings.ReplaceAll(strings.TrimSuffix(text, "\n"), "\n", "\n  ") + "\n"
}
