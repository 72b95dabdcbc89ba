package lease

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/leasehold/leasehold"
	"github.com/leasehold/leasehold/internal/cli"

	v1 "github.com/leasehold/leasehold/api/v1"
)

// BreakFlags say how to break a lease.
type BreakFlags struct {
	period   cli.Span
	Now, Yes bool
	Reason   string
}

// Break returns the command break.
func Break(a *cli.App) *cobra.Command {
	var f BreakFlags
	cmd := &cobra.Command{
		Use:   "break NAME",
		Short: "End somebody else's lease, with a reason",
		Long: `Break ends the lease on a resource, no matter who holds it. It first shows what it
will end, and asks on a terminal; elsewhere it does nothing without --yes.

By default the holder keeps the time it has left, but can no longer renew. With
--period it has that long to finish, if that is less; with --now it has nothing. A
break only ever shortens: a second one can't give time back.

The holder learns of it when it next renews. What it does until then can't be
undone, only refused: the next grant has a larger token, and what the lease
protects should turn away the smaller one.

What ends is the lease that was shown. If somebody else has the resource by the
time you say yes, nothing happens, and the command ends with code 76.`,
		Example: `  leasehold break prod/deploy --reason "ci-881 hangs"
  leasehold break prod/deploy --period 30s --reason "maintenance at noon"
  leasehold break prod/deploy --now --yes --reason "host is gone" -o json`,
		Args:              cli.Takes(1, 1),
		ValidArgsFunction: a.Completes(1, cli.ResourceNames),
	}
	cmd.RunE = a.Talk(func(ctx context.Context, c *cli.Conn, args []string) error {
		if err := f.Check(cmd); err != nil {
			return err
		}
		return breakLease(ctx, a, c, args[0], f)
	})
	cmd.Flags().Var(&f.period, "period", "how long the holder may still have it (default: what it has left)")
	cmd.Flags().BoolVar(&f.Now, "now", false, "end it at once")
	cmd.Flags().StringVar(&f.Reason, "reason", "", "why, for the holder and for the history (needed)")
	cmd.Flags().BoolVar(&f.Yes, "yes", false, "do not ask")
	a.ClientFlags(cmd)
	a.OutputFlag(cmd, cli.FormatWide, cli.FormatJSON, cli.FormatName)
	return cmd
}

func (f *BreakFlags) Check(cmd *cobra.Command) error {
	if f.Now && f.period.Given {
		return cli.SeeHelp(cmd, cli.Usage("break takes --now or --period, not both"))
	}
	return cli.Needs(cmd, "reason", "the holder who loses the lease will want to know why")
}

// breakLease looks the lease up first, so that the break names its token and hits no later
// one.
func breakLease(ctx context.Context, a *cli.App, c *cli.Conn, name string, f BreakFlags) error {
	resource, err := c.Resource(ctx, name, 1)
	if err != nil {
		return err
	}
	if len(resource.Holders) == 0 {
		return cli.Hint(cli.Failure(leasehold.NotFound, "%s is %s: there is nothing to break", name, resource.State),
			"see who had it: %s", c.Again("describe", name))
	}
	return BreakShown(ctx, a, c, resource, f)
}

// BreakShown ends the lease that a resource was shown with.
func BreakShown(ctx context.Context, a *cli.App, c *cli.Conn, resource v1.Resource, f BreakFlags) error {
	if !f.Yes {
		if err := confirmBreak(ctx, a, resource, f); err != nil {
			return err
		}
	}
	lease, err := c.Break(ctx, f.Request(c.Operator(), resource))
	if err != nil {
		return err
	}
	return printBroken(a, lease)
}

// Request returns the request for a break. It names the token that was shown, so that a lease
// granted after it is not hit, however long the person thought about it.
func (f *BreakFlags) Request(by string, resource v1.Resource) v1.BreakRequest {
	request := v1.BreakRequest{Resource: resource.Resource, By: by, Reason: f.Reason}
	for _, h := range resource.Holders {
		request.Token = max(request.Token, h.Token)
	}
	if f.Now || f.period.Given {
		period := v1.Duration(f.period.Value)
		request.Period = &period
	}
	return request
}

// confirmBreak shows what would end and asks. Without a terminal it refuses: a script has to
// say --yes.
func confirmBreak(ctx context.Context, a *cli.App, resource v1.Resource, f BreakFlags) error {
	if !a.Terminal(a.Stdin) {
		return cli.Hint(cli.Usage("this ends somebody else's lease, and there is no terminal to ask on: give --yes if "+
			"you are sure"),
			"it would end the lease of %s on %s, with token %d",
			resource.Holders[0].Holder, resource.Resource, resource.Holders[0].Token)
	}
	// These lines are the question itself, and not talk that --quiet could leave out.
	fmt.Fprint(a.Stderr, WhatBreaks(a, resource, f))
	answer, err := a.Ask(ctx, `Type "yes" to break it: `)
	if err != nil {
		return err
	}
	if answer != "yes" {
		return cli.Usage("the answer was not yes: nothing was done")
	}
	return nil
}

// WhatBreaks describes the lease that a break would end.
func WhatBreaks(a *cli.App, resource v1.Resource, f BreakFlags) string {
	var b strings.Builder
	line := func(name, format string, args ...any) {
		fmt.Fprintf(&b, "  %-10s %s\n", name, cli.Printable(fmt.Sprintf(format, args...)))
	}
	b.WriteString("This will end a lease:\n")
	line("resource", "%s", resource.Resource)
	for _, h := range resource.Holders {
		line("holder", "%s", cli.Because(h.Holder, h.Reason))
		if h.Acquired != nil {
			line("since", "%s", a.Ago(h.Acquired.Time))
		}
		line("remaining", "%s", cli.Left(h))
		line("token", "%d", h.Token)
	}
	line("waiting", "%s", nextInLine(resource))
	line("ends", "%s", f.ends(resource.Holders[0]))
	return b.String()
}

func nextInLine(r v1.Resource) string {
	if len(r.Queue) == 0 {
		return fmt.Sprint(r.Waiting)
	}
	return fmt.Sprintf("%d, next is %s", r.Waiting, cli.Because(r.Queue[0].Holder, r.Queue[0].Reason))
}

func (f *BreakFlags) ends(lease v1.Lease) string {
	switch {
	case f.Now, f.period.Given && f.period.Value == 0:
		return "now"
	case f.period.Given:
		return "after " + cli.Short(f.period.Value) + ", or sooner if it has less left"
	case lease.RemainingMS == nil:
		return "now, since it has no end of its own"
	}
	return "after the time it has left; renewals no longer count"
}

func printBroken(a *cli.App, lease v1.Lease) error {
	if err := a.PrintByResource(lease); err != nil || a.Output == cli.FormatName {
		return err
	}
	if lease.State == leasehold.Broken.String() {
		a.Say("broken: %s has lost %s", lease.Holder, lease.Resource)
		return nil
	}
	a.Say("breaking: %s loses %s in %s at the latest", lease.Holder, lease.Resource, cli.Left(lease))
	return nil
}
