package main

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/leasehold/leasehold"
	v1 "github.com/leasehold/leasehold/api/v1"
)

type breakFlags struct {
	period   span
	now, yes bool
	reason   string
}

func (a *app) breakCommand() *cobra.Command {
	var f breakFlags
	cmd := &cobra.Command{
		Use:   "break NAME",
		Short: "End somebody else's lease, with a reason",
		Long: `Break ends the lease that is on a resource, whoever holds it. It first shows what it
will end, and asks on a terminal; elsewhere it does nothing without --yes.

By default the holder keeps what it has left, but can't renew it any more. With
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
		Args:              takes(1, 1),
		ValidArgsFunction: a.completes(1, resourceNames),
	}
	cmd.RunE = a.talks(func(ctx context.Context, c *conn, args []string) error {
		if err := f.check(cmd); err != nil {
			return err
		}
		return a.breakLease(ctx, c, args[0], f)
	})
	cmd.Flags().Var(&f.period, "period", "how long the holder may still have it (default: what it has left)")
	cmd.Flags().BoolVar(&f.now, "now", false, "end it at once")
	cmd.Flags().StringVar(&f.reason, "reason", "", "why, for the holder and for the history (needed)")
	cmd.Flags().BoolVar(&f.yes, "yes", false, "do not ask")
	a.clientFlags(cmd)
	a.outputFlag(cmd, formatWide, formatJSON, formatName)
	return cmd
}

func (f *breakFlags) check(cmd *cobra.Command) error {
	if f.now && f.period.given {
		return seeHelp(cmd, usage("break takes --now or --period, not both"))
	}
	return needs(cmd, "reason", "whoever loses the lease will want to know why")
}

func (a *app) breakLease(ctx context.Context, c *conn, name string, f breakFlags) error {
	resource, err := c.Resource(ctx, name, 1)
	if err != nil {
		return err
	}
	if len(resource.Holders) == 0 {
		return hint(failure(leasehold.NotFound, "%s is %s: there is nothing to break", name, resource.State), "see who had it: %s", c.again("describe", name))
	}
	return a.breakShown(ctx, c, resource, f)
}

// breakShown ends the lease that a resource was shown with.
func (a *app) breakShown(ctx context.Context, c *conn, resource v1.Resource, f breakFlags) error {
	if !f.yes {
		if err := a.confirmBreak(ctx, resource, f); err != nil {
			return err
		}
	}
	lease, err := c.Break(ctx, f.request(c.operator(), resource))
	if err != nil {
		return err
	}
	return a.printBroken(lease)
}

// request names the token that was shown, so that a lease which came after it is
// safe, however long the person thought about it.
func (f *breakFlags) request(by string, resource v1.Resource) v1.BreakRequest {
	request := v1.BreakRequest{Resource: resource.Resource, By: by, Reason: f.reason}
	for _, h := range resource.Holders {
		request.Token = max(request.Token, h.Token)
	}
	if f.now || f.period.given {
		period := v1.Duration(f.period.value)
		request.Period = &period
	}
	return request
}

func (a *app) confirmBreak(ctx context.Context, resource v1.Resource, f breakFlags) error {
	if !a.terminal(a.stdin) {
		return hint(usage("this ends the lease of somebody else, and there is no terminal to ask on: give --yes if you are sure"),
			"it would end the lease of %s on %s, with token %d", resource.Holders[0].Holder, resource.Resource, resource.Holders[0].Token)
	}
	// These lines are the question itself, and not talk that --quiet could leave out.
	fmt.Fprint(a.stderr, a.whatBreaks(resource, f))
	answer, err := a.ask(ctx, `Type "yes" to break it: `)
	if err != nil {
		return err
	}
	if answer != "yes" {
		return usage("the answer was not yes: nothing was done")
	}
	return nil
}

func (a *app) whatBreaks(resource v1.Resource, f breakFlags) string {
	var b strings.Builder
	line := func(name, format string, args ...any) {
		fmt.Fprintf(&b, "  %-10s %s\n", name, printable(fmt.Sprintf(format, args...)))
	}
	b.WriteString("This will end a lease:\n")
	line("resource", "%s", resource.Resource)
	for _, h := range resource.Holders {
		line("holder", "%s", because(h.Holder, h.Reason))
		if h.Acquired != nil {
			line("since", "%s", a.ago(h.Acquired.Time))
		}
		line("remaining", "%s", left(h))
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
	return fmt.Sprintf("%d, next is %s", r.Waiting, because(r.Queue[0].Holder, r.Queue[0].Reason))
}

func (f *breakFlags) ends(lease v1.Lease) string {
	switch {
	case f.now, f.period.given && f.period.value == 0:
		return "now"
	case f.period.given:
		return "after " + short(f.period.value) + ", or sooner if it has less left"
	case lease.RemainingMS == nil:
		return "now, since it has no end of its own"
	}
	return "after what it has left; no renewal counts any more"
}

func (a *app) printBroken(lease v1.Lease) error {
	if err := a.printByResource(lease); err != nil || a.output == formatName {
		return err
	}
	if lease.State == leasehold.Broken.String() {
		a.say("broken: %s has lost %s", lease.Holder, lease.Resource)
		return nil
	}
	a.say("breaking: %s loses %s in %s at the latest", lease.Holder, lease.Resource, left(lease))
	return nil
}
