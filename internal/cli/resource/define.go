package resource

import (
	"context"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/leasehold/leasehold/internal/cli"

	v1 "github.com/leasehold/leasehold/api/v1"
)

type defineFlags struct {
	capacity               int
	units                  []string
	defaultTTL, largestTTL cli.Span
	holdLimit, grace       cli.Span
	expected               cli.Span
	unclean, reason        string
}

// Define returns the command define.
func Define(a *cli.App) *cobra.Command {
	var f defineFlags
	cmd := &cobra.Command{
		Use:   "define NAME",
		Short: "Set slots, times and rules of a resource, or of all under a prefix",
		Long: `Define sets the rules of a resource; or, if NAME ends with a slash, for all whose
name begins with it ("/" alone: all of the namespace). It replaces what was defined
for the same name. Of the definitions that fit a resource the longest applies, as a
whole.

Slots follow at once, also those of a resource that is held: with more of them the
next in the queue get theirs, with fewer nobody loses what it has. The rest is for
leases that are asked for from then on.

What has no definition has one slot, or as many as the first who shares it says.`,
		Example: `  leasehold define gpu/pool --units gpu0,gpu1,gpu2,gpu3 --hold-limit 12h
  leasehold define license/ --capacity 5 --largest-ttl 10m
  leasehold define db/migrate --unclean acknowledge --expected 30m`,
		Args:              cli.Takes(1, 1),
		ValidArgsFunction: a.Asks(1, cli.DefinableNames),
	}
	cmd.RunE = a.Talk(func(ctx context.Context, c *cli.Conn, args []string) error {
		definition, err := c.Define(ctx, args[0], f.request(c))
		if err != nil {
			return err
		}
		return printDefinitions(a, []v1.Definition{definition})
	})
	flags := cmd.Flags()
	flags.IntVar(&f.capacity, "capacity", 0, "how many slots there are (default: as the first lease that shares it "+
		"says)")
	flags.StringSliceVar(&f.units, "units", nil, "names of the slots, such as gpu0,gpu1; a lease says which it got")
	flags.Var(&f.defaultTTL, "default-ttl", "TTL of a lease that was asked for without one (default 30s)")
	flags.Var(&f.largestTTL, "largest-ttl", "longest TTL that can be asked for (default 30d)")
	flags.Var(&f.holdLimit, "hold-limit", "longest that a lease is held, however often it is renewed (default: no "+
		"limit)")
	flags.Var(&f.grace, "grace", "how long it rests after a lease that ended without a release (default 0s)")
	flags.Var(&f.expected, "expected", "longest that a lease should be held; longer raises an alarm (default: as "+
		"learned)")
	flags.StringVar(&f.unclean, "unclean", "", "what follows an end without a release: allow (nothing), "+
		"warn (the next holder is told) or acknowledge (others wait until somebody confirms it) (default allow)")
	cli.CompleteFlag(cmd, "unclean", []string{"allow", "warn", "acknowledge"})
	flags.StringVar(&f.reason, "reason", "", "why, for the history")
	a.SettingFlag(cmd, "holder", "")
	a.ClientFlags(cmd)
	a.OutputFlag(cmd, cli.FormatJSON, cli.FormatName)
	return cmd
}

func (f *defineFlags) request(c *cli.Conn) v1.DefinitionRequest {
	return v1.DefinitionRequest{
		Capacity: f.capacity, Units: f.units, DefaultTTL: v1.Duration(f.defaultTTL.Value),
		LargestTTL: v1.Duration(f.largestTTL.Value),
		HoldLimit:  v1.Duration(f.holdLimit.Value), Grace: v1.Duration(f.grace.Value),
		Expected: v1.Duration(f.expected.Value),
		Unclean:  f.unclean, By: c.Operator(), Reason: f.reason,
	}
}

// Undefine returns the command undefine.
func Undefine(a *cli.App) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "undefine NAME",
		Short: "Remove a definition",
		Long: `Undefine takes away what was defined for a resource or a prefix. A shorter prefix
that fits applies from then on, or nothing in particular. Leases that are held stay
as they are.`,
		Example: `  leasehold undefine gpu/pool
  leasehold undefine license/
  leasehold definitions --for license/editor          # what applies after that`,
		Args:              cli.Takes(1, 1),
		ValidArgsFunction: a.Asks(1, cli.DefinedNames),
	}
	cmd.RunE = a.Talk(func(ctx context.Context, c *cli.Conn, args []string) error {
		if err := c.Undefine(ctx, args[0]); err != nil {
			return err
		}
		switch a.Output {
		case cli.FormatJSON:
			return a.PrintJSON(v1.Nothing{})
		case cli.FormatName:
			return a.PrintLine(args[0])
		}
		a.Say("undefined: %s", args[0])
		return nil
	})
	a.ClientFlags(cmd)
	a.OutputFlag(cmd, cli.FormatJSON, cli.FormatName)
	return cmd
}

// Definitions returns the command definitions.
func Definitions(a *cli.App) *cobra.Command {
	var applies bool
	cmd := &cobra.Command{
		Use:   "definitions [PREFIX]",
		Short: "Show what is defined",
		Long: `Definitions shows what was defined for names that begin with PREFIX, or all of it.
With --for it shows what applies to one resource instead, wherever that was set.`,
		Example: `  leasehold definitions
  leasehold definitions gpu/ -o json
  leasehold definitions --for gpu/pool`,
		Args:              cli.Takes(0, 1),
		ValidArgsFunction: a.Asks(1, cli.DefinableNames),
	}
	cmd.RunE = a.Talk(func(ctx context.Context, c *cli.Conn, args []string) error {
		name := ""
		if len(args) == 1 {
			name = args[0]
		}
		if applies {
			definition, err := c.Definition(ctx, name)
			if err != nil {
				return err
			}
			return printDefinitions(a, []v1.Definition{definition})
		}
		return definitions(ctx, a, c, name)
	})
	cmd.Flags().BoolVar(&applies, "for", false, "what applies to the resource of this name")
	a.ClientFlags(cmd)
	a.OutputFlag(cmd, cli.FormatJSON, cli.FormatName)
	return cmd
}

func definitions(ctx context.Context, a *cli.App, c *cli.Conn, prefix string) error {
	all := []v1.Definition{}
	for q := (v1.DefinitionQuery{Prefix: prefix, Limit: v1.MaxLimit}); ; {
		page, err := c.Definitions(ctx, q)
		if err != nil {
			return err
		}
		all = append(all, page.Items...)
		if q.After = page.Next; q.After == "" {
			break
		}
	}
	if a.Output == cli.FormatJSON {
		return a.PrintJSON(all)
	}
	if len(all) == 0 {
		a.Say("nothing is defined here; see how to: leasehold help define")
		return nil
	}
	return printDefinitions(a, all)
}

func printDefinitions(a *cli.App, list []v1.Definition) error {
	switch a.Output {
	case cli.FormatJSON:
		return cli.PrintMany(a, list)
	case cli.FormatName:
		for _, d := range list {
			if err := a.PrintLine(d.Path); err != nil {
				return err
			}
		}
		return nil
	}
	columns := []cli.Column{{Name: "NAME"}, {Name: "SLOTS", Flexible: true}, {Name: "TTL"}, {Name: "LARGEST TTL"},
		{Name: "HOLD LIMIT"}, {Name: "GRACE"}, {Name: "EXPECTED"}, {Name: "UNCLEAN"}}
	rows := make([][]string, 0, len(list))
	for _, d := range list {
		rows = append(rows, []string{d.Path, slotsOf(d), durationOrNone(d.DefaultTTL), durationOrNone(d.LargestTTL),
			durationOrNone(d.HoldLimit), durationOrNone(d.Grace), durationOrNone(d.Expected), d.Unclean})
	}
	return a.PrintTable(columns, rows)
}

func slotsOf(d v1.Definition) string {
	switch {
	case len(d.Units) > 0:
		return strings.Join(d.Units, ",")
	case d.Capacity > 0:
		return strconv.Itoa(d.Capacity)
	}
	return ""
}

func durationOrNone(d *v1.Duration) string {
	if d == nil {
		return ""
	}
	return d.String()
}
