package main

import (
	"context"
	"errors"

	"github.com/spf13/cobra"

	"github.com/leasehold/leasehold"
	v1 "github.com/leasehold/leasehold/api/v1"
)

func (a *app) watchCommand() *cobra.Command {
	var f watchFlags
	cmd := &cobra.Command{
		Use:   "watch [PREFIX]",
		Short: "Show what happens, as it happens",
		Long: `Watch shows each grant, change, break and end, and who begins and stops to wait, of
the resources whose name begins with PREFIX, or of all, until you stop it with
ctrl-C. Renewals are not shown: they change nothing.

With --exact it shows the one resource that is called so, and not those whose name
begins with it. Records are shown as well: put and deleted. With -o json their
values can be, in base64: --values adds the one that was put, --previous the one
that was there before.

Every event has a position, such as 42.0. With --since the watch begins behind that
position and misses nothing that came after it. If the server restarts, or the
connection breaks, the watch goes on where it was by itself.

With -o json each event is an object on a line of its own.`,
		Example: `  leasehold watch prod/ --since 42
  leasehold watch config/limits --exact --values --previous -o json
  leasehold watch -o json | jq -r 'select(.kind == "ended" and .how == "expired") | .resource'`,
		Args:              takes(0, 1),
		ValidArgsFunction: a.completes(1, resourceNames),
	}
	cmd.RunE = a.talks(func(ctx context.Context, c *conn, args []string) error {
		if len(args) == 1 {
			f.name = args[0]
		}
		return a.watch(ctx, c, f)
	})
	cmd.Flags().BoolVar(&f.exact, "exact", false, "only the resource that is called so")
	cmd.Flags().BoolVar(&f.values, "values", false, "with the values of records that are put (-o json)")
	cmd.Flags().BoolVar(&f.previous, "previous", false, "with the values that they had before (-o json)")
	cmd.Flags().StringVar(&f.since, "since", "", "position to begin behind, such as 42 or 42.1 (default: now)")
	a.clientFlags(cmd)
	a.outputFlag(cmd, formatWide, formatJSON, formatName)
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
			return usage("--since: %v", err)
		}
	}
	switch {
	case f.exact && f.name == "":
		return usage("--exact needs the name of a resource")
	case (f.values || f.previous) && output != formatJSON:
		return usage("values do not fit on a line: ask for them with -o json")
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

func (a *app) watch(ctx context.Context, c *conn, f watchFlags) error {
	if err := f.check(a.output); err != nil {
		return err
	}
	query := f.query()
	query.Started = a.sayWatching(c)
	show := a.eventPrinter()
	for event, err := range c.Watch(ctx, query) {
		if err != nil {
			return c.explainGone(err, f)
		}
		if err := show(event); err != nil {
			return err
		}
	}
	return nil
}

// sayWatching tells when the watch begins, and when it goes on after a break.
func (a *app) sayWatching(c *conn) func(v1.Hello) {
	again := false
	return func(h v1.Hello) {
		if again {
			a.say("connected again: going on after %s", h.Position)
			return
		}
		again = true
		a.say("watching namespace %s after %s; ctrl-C ends it", h.Namespace, h.Position)
	}
}

// eventPrinter returns what writes one event in the format that was asked for.
func (a *app) eventPrinter() func(v1.Event) error {
	switch a.output {
	case formatJSON:
		return func(e v1.Event) error { return a.printCompact(e) }
	case formatName:
		return func(e v1.Event) error { return a.printLine(e.Position().String()) }
	}
	s := newStream(a, eventHead(), []int{len(a.clock(a.now())), len("acquired"), 24, 16, 0})
	return func(e v1.Event) error { return s.write(a.eventCells(e)) }
}

// explainGone says where a watch can begin that came too late.
func (c *conn) explainGone(err error, f watchFlags) error {
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
	return hint(failure(leasehold.NotFound, "what happened after %s is not known any more", gone.Since),
		"begin with the oldest that is: %s\nor see how things stand: %s", c.again(append(words, "--since", gone.Oldest.String())...), c.again("list"))
}
