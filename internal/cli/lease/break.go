package lease

import (
	"context"
	"slices"

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

// whom says which leases on a resource a break means.
type whom struct {
	ids    []string
	holder string
	all    bool
}

// Break returns the command break.
func Break(a *cli.App) *cobra.Command {
	var f BreakFlags
	var w whom
	cmd := &cobra.Command{
		Use:   "break NAME",
		Short: "End somebody else's lease, with a reason",
		Long: `Break ends the lease on a resource, no matter who holds it. It first shows who loses
what, and asks on a terminal; elsewhere it does nothing without --yes.

Where several share a resource, say whose lease you mean: --id for one lease (repeat
it for more), --holder for every lease of one holder, --all for every lease that is
shown. --id also takes somebody out of the queue: "leasehold queue NAME" shows the ids.

By default the holder keeps the time it has left, but can no longer renew. With
--period it has that long to finish, if that is less; with --now it has nothing. A
break only ever shortens: a second one can't give time back.

The holder learns of it when it next renews. What it does until then can't be
undone, only refused: the next grant has a larger token, and what the lease
protects should turn away the smaller one.

Only what was shown ends. A lease that is over, or that somebody else has, by the time
you say yes is left alone, and so is a waiter that holds a lease by then; the command
ends with code 76.`,
		Example: `  leasehold break prod/deploy --reason "ci-881 hangs"
  leasehold break prod/deploy --period 30s --reason "maintenance at noon"
  leasehold break gpu/pool --holder ann --now --reason "her host is gone"
  leasehold break gpu/pool --all --period 10m --reason maintenance --yes -o json`,
		Args:              cli.Takes(1, 1),
		ValidArgsFunction: a.Completes(1, cli.ResourceNames),
	}
	cmd.RunE = a.Talk(func(ctx context.Context, c *cli.Conn, args []string) error {
		if err := f.Check(cmd); err != nil {
			return err
		}
		if err := w.check(cmd); err != nil {
			return err
		}
		return breakLease(ctx, a, c, args[0], w, f)
	})
	cmd.Flags().StringArrayVar(&w.ids, "id", nil, "break the lease, or the waiter, with this id (can be repeated)")
	cmd.Flags().StringVar(&w.holder, "holder", "", "break every lease of this holder")
	cmd.Flags().BoolVar(&w.all, "all", false, "break every lease on the resource")
	cmd.Flags().Var(&f.period, "period", "how long the holder may still have it (default: what it has left)")
	cmd.Flags().BoolVar(&f.Now, "now", false, "end it at once")
	cmd.Flags().StringVar(&f.Reason, "reason", "", "why, for the holder and for the history (required)")
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

func (w *whom) check(cmd *cobra.Command) error {
	given := 0
	for _, name := range []string{"id", "holder", "all"} {
		if cmd.Flags().Changed(name) {
			given++
		}
	}
	if given > 1 {
		return cli.SeeHelp(cmd, cli.Usage("break takes one of --id, --holder and --all"))
	}
	if slices.Contains(w.ids, "") || cmd.Flags().Changed("holder") && w.holder == "" {
		return cli.SeeHelp(cmd, cli.Usage("--id and --holder can't be empty"))
	}
	return nil
}

// breakLease looks the leases up first, so that the break names them and hits no later ones.
func breakLease(ctx context.Context, a *cli.App, c *cli.Conn, name string, w whom, f BreakFlags) error {
	queue := 1
	if len(w.ids) > 0 {
		queue = v1.MaxLimit // any of them may be meant
	}
	resource, err := c.Resource(ctx, name, queue)
	if err != nil {
		return err
	}
	losers, err := w.choose(c, resource)
	if err != nil {
		return err
	}
	return breakLosers(ctx, a, c, losers, f)
}

// choose finds what a break means among what a resource was shown with.
func (w *whom) choose(c *cli.Conn, r v1.Resource) (Losers, error) {
	losers := Losers{Resource: r}
	switch {
	case len(w.ids) > 0:
		return w.named(c, r)
	case len(r.Holders) == 0:
		return losers, cli.Hint(cli.Failure(leasehold.NotFound, "%s is %s: there is nothing to break", r.Resource,
			r.State), "see who had it: %s", c.Again("describe", r.Resource))
	case w.holder != "":
		others := func(l v1.Lease) bool { return l.Holder != w.holder }
		losers.Leases = slices.DeleteFunc(slices.Clone(r.Holders), others)
		if len(losers.Leases) == 0 {
			return losers, cli.Hint(cli.Failure(leasehold.NotFound, "%s has no lease on %s", w.holder, r.Resource),
				"see who has one: %s", c.Again("describe", r.Resource))
		}
	case len(r.Holders) > 1 && !w.all:
		return losers, cli.Hint(cli.Usage("%s has %d holders: say which lease to break with --id or --holder, or "+
			"--all for every one of them", r.Resource, max(r.Holding, len(r.Holders))),
			"%sfor example: %s", shortList(Losers{Resource: r, Leases: r.Holders}),
			c.Again("break", r.Resource, "--id", r.Holders[0].ID, "--reason", "…"))
	case r.Holding > len(r.Holders):
		return losers, cli.Usage("%s has %d holders, and only %d can be shown at once: break them by --id or --holder",
			r.Resource, r.Holding, len(r.Holders))
	default:
		losers.Leases = r.Holders
	}
	return losers, nil
}

// named finds the leases and waiters with the given ids. One that is unknown ends it: nothing is
// broken because half of a command was right.
func (w *whom) named(c *cli.Conn, r v1.Resource) (Losers, error) {
	losers := Losers{Resource: r}
	for _, id := range slices.Compact(slices.Sorted(slices.Values(w.ids))) {
		lease := slices.IndexFunc(r.Holders, func(l v1.Lease) bool { return l.ID == id })
		waiter := slices.IndexFunc(r.Queue, func(q v1.Waiter) bool { return q.ID == id })
		switch {
		case lease >= 0:
			losers.Leases = append(losers.Leases, r.Holders[lease])
		case waiter >= 0:
			losers.Waiters = append(losers.Waiters, r.Queue[waiter])
		default:
			return losers, cli.Hint(cli.Failure(leasehold.NotFound, "nobody holds %s, or waits for it, with id %s",
				r.Resource, id), "see who does: %s", c.Again("describe", r.Resource))
		}
	}
	return losers, nil
}

// BreakShown ends every lease that a resource was shown with.
func BreakShown(ctx context.Context, a *cli.App, c *cli.Conn, resource v1.Resource, f BreakFlags) error {
	return breakLosers(ctx, a, c, Losers{Resource: resource, Leases: resource.Holders}, f)
}

func breakLosers(ctx context.Context, a *cli.App, c *cli.Conn, losers Losers, f BreakFlags) error {
	if !f.Yes {
		if err := confirmBreak(ctx, a, losers, f); err != nil {
			return err
		}
	}
	requests := map[string]v1.BreakRequest{}
	var ids []string
	for _, r := range f.Requests(c.Operator(), losers) {
		ids, requests[r.ID] = append(ids, r.ID), r
	}
	end := func(id string) (v1.Lease, error) { return c.Break(ctx, requests[id]) }
	return cli.Each(ids, end, func(ended []v1.Lease) error { return printBroken(a, ended) })
}

// Requests returns the requests of a break, one for each lease. They name the ids and tokens that
// were shown, so that nobody else is hit, however long the person thought about it.
func (f *BreakFlags) Requests(by string, losers Losers) (requests []v1.BreakRequest) {
	request := v1.BreakRequest{By: by, Reason: f.Reason}
	if f.Now || f.period.Given {
		period := v1.Duration(f.period.Value)
		request.Period = &period
	}
	for _, l := range losers.Leases {
		request.ID, request.Token = l.ID, l.Token
		requests = append(requests, request)
	}
	for _, w := range losers.Waiters {
		request.ID, request.Token, request.Waiting = w.ID, 0, true
		requests = append(requests, request)
	}
	return requests
}
