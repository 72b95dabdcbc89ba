package lease

import (
	"context"
	"fmt"
	"strings"

	"github.com/leasehold/leasehold"
	"github.com/leasehold/leasehold/internal/cli"

	v1 "github.com/leasehold/leasehold/api/v1"
)

// Losers are those who lose something by a break: a lease, or a place in the queue.
type Losers struct {
	Resource v1.Resource // as it was shown
	Leases   []v1.Lease
	Waiters  []v1.Waiter
}

// confirmBreak shows what would end and asks. Without a terminal it refuses: a script has to
// say --yes.
func confirmBreak(ctx context.Context, a *cli.App, losers Losers, f BreakFlags) error {
	if !a.Terminal(a.Stdin) {
		return cli.Hint(cli.Usage("this ends somebody else's lease, and there is no terminal to ask on: give --yes if "+
			"you are sure"), "it would end:\n%s", strings.TrimRight(shortList(losers), "\n"))
	}
	// These lines are the question itself, and not talk that --quiet could leave out.
	fmt.Fprint(a.Stderr, WhatBreaks(a, losers, f))
	return a.Confirm(ctx, `Type "yes" to break `+them(losers.count(), "it", "them")+`: `, "yes")
}

func (l *Losers) count() int { return len(l.Leases) + len(l.Waiters) }

func them(n int, one, many string) string {
	if n == 1 {
		return one
	}
	return many
}

// WhatBreaks describes what a break would end. One lease is described at length; of several each
// has a line.
func WhatBreaks(a *cli.App, losers Losers, f BreakFlags) string {
	var b strings.Builder
	line := func(name, format string, args ...any) {
		fmt.Fprintf(&b, "  %-10s %s\n", name, cli.Printable(fmt.Sprintf(format, args...)))
	}
	b.WriteString("This will end " + losers.what() + ":\n")
	line("resource", "%s", losers.Resource.Resource)
	if len(losers.Leases) == 1 && len(losers.Waiters) == 0 {
		describeLease(a, line, losers.Leases[0])
	} else {
		b.WriteString(shortList(losers))
	}
	if len(losers.Waiters) == 0 {
		line("waiting", "%s", nextInLine(losers.Resource))
	}
	line("ends", "%s", f.ends(losers))
	return b.String()
}

func (l *Losers) what() string {
	var parts []string
	switch n := len(l.Leases); {
	case n == 1:
		parts = append(parts, "a lease")
	case n > 1:
		parts = append(parts, fmt.Sprintf("%d leases", n))
	}
	switch n := len(l.Waiters); {
	case n == 1:
		parts = append(parts, "a wait in the queue")
	case n > 1:
		parts = append(parts, fmt.Sprintf("%d waits in the queue", n))
	}
	return strings.Join(parts, " and ")
}

func describeLease(a *cli.App, line func(name, format string, args ...any), l v1.Lease) {
	line("holder", "%s", cli.Because(l.Holder, l.Reason))
	if len(l.Units) > 0 {
		line("units", "%s", strings.Join(l.Units, ", "))
	}
	if l.Acquired != nil {
		line("since", "%s", a.Ago(l.Acquired.Time))
	}
	line("remaining", "%s", cli.Left(l))
	line("token", "%d", l.Token)
	line("id", "%s", l.ID)
}

// shortList has a line for everybody who loses something.
func shortList(losers Losers) string {
	var b strings.Builder
	for _, l := range losers.Leases {
		fmt.Fprintf(&b, "  the lease of %s\n", cli.Printable(Loses(l)))
	}
	for _, w := range losers.Waiters {
		fmt.Fprintf(&b, "  %s\n", cli.Printable(fmt.Sprintf("the wait of %s, place %d, id %s",
			cli.Because(w.Holder, w.Reason), w.Position, w.ID)))
	}
	return b.String()
}

// Loses returns a lease in a line: whose it is, and how to tell it from others.
func Loses(l v1.Lease) string {
	text := cli.Because(l.Holder, l.Reason)
	if len(l.Units) > 0 {
		text += ", " + them(len(l.Units), "unit ", "units ") + strings.Join(l.Units, " ")
	}
	return fmt.Sprintf("%s, token %d, id %s", text, l.Token, l.ID)
}

func nextInLine(r v1.Resource) string {
	if len(r.Queue) == 0 {
		return fmt.Sprint(r.Waiting)
	}
	return fmt.Sprintf("%d, next is %s", r.Waiting, cli.Because(r.Queue[0].Holder, r.Queue[0].Reason))
}

func (f *BreakFlags) ends(losers Losers) string {
	endless := true
	for _, l := range losers.Leases {
		endless = endless && l.RemainingMS == nil
	}
	switch {
	case f.Now, f.period.Given && f.period.Value == 0, len(losers.Leases) == 0:
		return "now"
	case f.period.Given:
		return "after " + cli.Short(f.period.Value) + ", or sooner if it has less left"
	case endless:
		return "now, since it has no end of its own"
	}
	return "after the time it has left; renewals no longer count"
}

func printBroken(a *cli.App, ended []v1.Lease) error {
	if a.Output == cli.FormatName {
		return a.PrintLine(ended[0].Resource) // they are all on one
	}
	if err := a.PrintLeases(ended); err != nil {
		return err
	}
	for _, l := range ended {
		a.Say("%s", BrokenText(l))
	}
	return nil
}

// BrokenText says what a break came to.
func BrokenText(l v1.Lease) string {
	what := l.Resource
	if len(l.Units) > 0 {
		what += " (" + strings.Join(l.Units, ", ") + ")"
	}
	switch {
	case l.Token == 0:
		return fmt.Sprintf("broken: %s no longer waits for %s", l.Holder, what)
	case l.State == leasehold.Broken.String():
		return fmt.Sprintf("broken: %s has lost %s", l.Holder, what)
	}
	return fmt.Sprintf("breaking: %s loses %s in %s at the latest", l.Holder, what, cli.Left(l))
}
