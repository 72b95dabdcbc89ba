package resource

import (
	"context"
	"errors"

	"github.com/spf13/cobra"

	"github.com/leasehold/leasehold"
	"github.com/leasehold/leasehold/internal/cli"

	v1 "github.com/leasehold/leasehold/api/v1"
)

// Watch returns the command watch.
func Watch(a *cli.App) *cobra.Command {
	var f watchFlags
	cmd := &cobra.Command{
		Use:   "watch [PREFIX]",
		Short: "Show what happens, as it happens",
		Long: `Watch shows each grant, change, break and end, and who starts or stops waiting, of
the resources whose name begins with PREFIX, or of all, until you stop it with
ctrl-C. Renewals are not shown: they change nothing.

With --exact it shows the one resource of exactly that name, and not those whose name
begins with it. Records are shown as well: put and deleted. With -o json their
values can be, in base64: --values adds the one that was put, --previous the one
that was there before.

Every event has a position, such as 42.0. With --since the watch begins behind that
position and misses nothing that came after it. If the server restarts, or the
connection breaks, the watch goes on where it was by itself.

With -o json each event is an object on a line of its own.`,
		Example: `  leasehold watch prod/ --since 42
  leasehold watch config/limits --exact --values --previous -o json
  leasehold watch -o json |
      jq -r 'select(.kind == "ended" and .how == "expired") | .resource'`,
		Args:              cli.Takes(0, 1),
		ValidArgsFunction: a.Completes(1, cli.ResourceNames),
	}
	cmd.RunE = a.Talk(func(ctx context.Context, c *cli.Conn, args []string) error {
		if len(args) == 1 {
			f.name = args[0]
		}
		return watch(ctx, a, c, f)
	})
	cmd.Flags().BoolVar(&f.exact, "exact", false, "only the resource of exactly that name")
	cmd.Flags().BoolVar(&f.values, "values", false, "with the values of records that are put (-o json)")
	cmd.Flags().BoolVar(&f.previous, "previous", false, "with the values that they had before (-o json)")
	cmd.Flags().StringVar(&f.since, "since", "", "position to begin behind, such as 42 or 42.1 (default: now)")
	a.ClientFlags(cmd)
	a.OutputFlag(cmd, cli.FormatWide, cli.FormatJSON, cli.FormatName)
	return cmd
}

type watchFlags struct {
	name                    string // a prefix, or with exact a path; empty: all
	since                   string
	exact, values, previous bool
}

func (f watchFlags) check(output string) error {
	if f.since != "" {
		if _, err := v1.ParsePosition(f.since); err != nil {
			return cli.Usage("--since: %v", err)
		}
	}
	switch {
	case f.exact && f.name == "":
		return cli.Usage("--exact needs the name of a resource")
	case (f.values || f.previous) && output != cli.FormatJSON:
		return cli.Usage("values do not fit on a line: ask for them with -o json")
	}
	return nil
}

func (f watchFlags) query() v1.WatchQuery {
	q := v1.WatchQuery{Prefix: f.name, Since: f.since, Values: f.values, Previous: f.previous}
	if f.exact {
		q.Prefix, q.Resource = "", f.name
	}
	return q
}

func watch(ctx context.Context, a *cli.App, c *cli.Conn, f watchFlags) error {
	if err := f.check(a.Output); err != nil {
		return err
	}
	query := f.query()
	query.Started = sayWatching(a, c)
	show := eventPrinter(a)
	for event, err := range c.Watch(ctx, query) {
		if err != nil {
			return explainGone(c, err, f)
		}
		if err := show(event); err != nil {
			return err
		}
	}
	return nil
}

// sayWatching says when the watch begins, and when it continues after a lost connection.
func sayWatching(a *cli.App, c *cli.Conn) func(v1.Hello) {
	again := false
	return func(h v1.Hello) {
		if again {
			a.Say("connected again: going on after %s", h.Position)
			return
		}
		again = true
		if c.Store { // its events have no positions
			a.Say("watching namespace %s; ctrl-C ends it", h.Namespace)
			return
		}
		a.Say("watching namespace %s after %s; ctrl-C ends it", h.Namespace, h.Position)
	}
}

// eventPrinter returns the function that prints one event in the requested format.
func eventPrinter(a *cli.App) func(v1.Event) error {
	switch a.Output {
	case cli.FormatJSON:
		return func(e v1.Event) error { return a.PrintCompact(e) }
	case cli.FormatName:
		return func(e v1.Event) error { return a.PrintLine(e.Position().String()) }
	}
	s := cli.NewStream(a, cli.EventHead(), []int{len(a.Clock(a.Now())), len("acquired"), 24, 16, 0})
	return func(e v1.Event) error { return s.Write(a.EventCells(e)) }
}

// explainGone says from where to watch, if the events that were asked for are no longer known.
func explainGone(c *cli.Conn, err error, f watchFlags) error {
	var gone *v1.Gone
	if !errors.As(err, &gone) {
		return err
	}
	words := []string{"watch"}
	if f.name != "" {
		words = append(words, f.name)
	}
	if f.exact {
		words = append(words, "--exact")
	}
	return cli.Hint(cli.Failure(leasehold.NotFound, "what happened after %s is no longer known", gone.Since),
		"begin with the oldest that is: %s\nor see how things stand: %s", c.Again(append(words, "--since",
			gone.Oldest.String())...), c.Again("list"))
}
