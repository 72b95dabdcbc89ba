package resource

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/leasehold/leasehold"
	"github.com/leasehold/leasehold/internal/cli"

	v1 "github.com/leasehold/leasehold/api/v1"
)

type defineFlags struct {
	capacity               slotCount
	units                  unitNames
	defaultTTL, largestTTL orNone
	holdLimit, grace       orNone
	expected               orNone
	unclean                uncleanRule
	onReservation          startRule
	limits                 unitLimits
	idle, idleRelease      orNone
	backfill               onOff
	reason                 string
	replace, yes           bool
}

// Define returns the command define.
func Define(a *cli.App) *cobra.Command {
	var f defineFlags
	cmd := &cobra.Command{
		Use:   "define NAME",
		Short: "Set slots, times and rules of a resource, or of all under a prefix",
		Long: `Define sets the rules of a resource; or, if NAME ends with a slash, of all whose
name begins with it ("/" alone: all of the namespace). It changes what you name and
keeps the rest; none sets a flag back to its default. Of the definitions that fit a
resource the longest applies, as a whole.

Slots follow at once, also those of a resource that is held: with more of them the
next in the queue get theirs, with fewer nobody loses what they have. --units takes
all units, those that are there already included. To leave some out, or to leave
fewer slots than are taken or waited for, give --replace: it shows what that does to
holders and waiters and asks on a terminal; elsewhere it does nothing without --yes.
Times and rules are for leases that are asked for from then on.

A resource without a definition has one slot, or as many as the first who shares it
says.`,
		Example: `  leasehold define gpu/pool --units 0,1,2,3 --hold-limit 12h
  leasehold define gpu/pool --units 0,1,2,3,4   # one more card; the limit stays
  leasehold define gpu/pool --hold-limit none   # no limit; the units stay
  leasehold define gpu/pool --units 0,1 --replace --yes # fewer cards
  leasehold define license/ --capacity 5 --largest-ttl 10m
  leasehold define gpu --limit holder=2 --limit label:team=8
  leasehold define db/migrate --unclean acknowledge --expected 30m`,
		Args:              cli.Takes(1, 1),
		ValidArgsFunction: a.Asks(1, cli.DefinableNames),
	}
	cmd.RunE = a.Talk(func(ctx context.Context, c *cli.Conn, args []string) error {
		change := f.change(c)
		if reflect.DeepEqual(change, v1.DefinitionChange{By: change.By, Reason: change.Reason}) {
			return cli.SeeHelp(cmd, cli.Usage("nothing to define: say what to set, such as --units or --hold-limit"))
		}
		return define(ctx, a, c, args[0], change, f)
	})
	flags := cmd.Flags()
	flags.Var(&f.capacity, "capacity", "how many slots there are (default none: as the first lease that shares it "+
		"says)")
	flags.Var(&f.units, "units", "names of the slots, such as 0,1,2 or gpu0,gpu1; a lease says which it got (default "+
		"none)")
	flags.Var(&f.defaultTTL, "default-ttl", "TTL of a lease that was asked for without one (default 30s)")
	flags.Var(&f.largestTTL, "largest-ttl", "longest TTL that can be asked for (default 30d)")
	flags.Var(&f.holdLimit, "hold-limit", "total time that a lease may be held, renewals included (default none)")
	flags.Var(&f.grace, "grace", "pause before the next grant after a lease that ended without a release (default "+
		"none)")
	flags.Var(&f.expected, "expected", "how long a lease should be held at most; longer raises an alarm (default: as "+
		"learned)")
	poolFlags(cmd, &f)
	f.addRules(cmd)
	flags.BoolVar(&f.replace, "replace", false, "also if that drops units, or leaves fewer slots than are taken or "+
		"waited for")
	flags.BoolVar(&f.yes, "yes", false, "with --replace: do not ask")
	flags.StringVar(&f.reason, "reason", "", "why, for the history")
	a.SettingFlag(cmd, "holder", "")
	a.ClientFlags(cmd)
	a.OutputFlag(cmd, cli.FormatJSON, cli.FormatName)
	return cmd
}

// poolFlags adds what a definition says about a pool with hosts.
func poolFlags(cmd *cobra.Command, f *defineFlags) {
	flags := cmd.Flags()
	flags.Var(&f.limits, "limit", "units of a pool that somebody may have at most: holder=2, label:team=8 or "+
		"prefix:ci/=4; may be given again, and then all of them apply (default none)")
	flags.Var(&f.idle, "idle", "of a pool, how long a lease may have units that are reported as not used before its "+
		"holder is asked about it (default none)")
	flags.Var(&f.idleRelease, "idle-release", "how much longer until such a lease is broken (default none: it is not)")
	flags.Var(&f.backfill, "backfill", "of a pool, whether units that are kept for somebody are lent to commands "+
		"that usually end before that one can begin (default off)")
	cli.CompleteFlag(cmd, "backfill", []string{"on", "off"})
}

// addRules adds the flags that take one of a few words.
func (f *defineFlags) addRules(cmd *cobra.Command) {
	cmd.Flags().Var(&f.unclean, "unclean", "what follows an end without a release: allow (nothing), "+
		"warn (the next holder is told) or acknowledge (others wait until somebody confirms it) (default allow)")
	cli.CompleteFlag(cmd, "unclean", []string{"allow", "warn", "acknowledge"})
	cmd.Flags().Var(&f.onReservation, "on-reservation", "what happens to those who hold it when a reservation "+
		"begins: wait (nothing, the reservation comes next), warn (they are asked once more) or end (their leases are "+
		"broken, as they were told 15m before) (default wait)")
	cli.CompleteFlag(cmd, "on-reservation", []string{"wait", "warn", "end"})
}

func (f *defineFlags) change(c *cli.Conn) v1.DefinitionChange {
	return v1.DefinitionChange{
		Capacity: f.capacity.Optional, Units: f.units.Optional, DefaultTTL: f.defaultTTL.optional(),
		LargestTTL: f.largestTTL.optional(), HoldLimit: f.holdLimit.optional(), Grace: f.grace.optional(),
		Expected: f.expected.optional(), Unclean: f.unclean.Optional, Limits: f.limits.Optional,
		Idle: f.idle.optional(), IdleRelease: f.idleRelease.optional(), Backfill: f.backfill.Optional,
		OnReservation: f.onReservation.Optional,
		By:            c.Operator(), Reason: f.reason,
	}
}

// define lets the server merge. What it would take away is shown first, and the change then names
// the revision that was shown, so that nothing else is taken away.
func define(
	ctx context.Context, a *cli.App, c *cli.Conn, name string, change v1.DefinitionChange, f defineFlags,
) error {
	before, err := c.Definition(ctx, name)
	if err != nil && !errors.Is(err, leasehold.ErrNotFound) {
		return err
	}
	loss, err := lossOf(ctx, c, name, before, change)
	if err != nil {
		return err
	}
	if f.replace && loss.some() {
		if change.Replace = true; before.Path == name {
			change.IfRevision = before.Revision
		}
		if err := confirmLoss(ctx, a, loss, f.yes); err != nil {
			return err
		}
	}
	after, err := c.ChangeDefinition(ctx, name, change, v1.WithKey(rand.Text()))
	if err != nil {
		return err
	}
	if err := printDefinitions(a, []v1.Definition{after}); err != nil {
		return err
	}
	if change.Replace {
		a.Say("%s", strings.TrimSuffix(loss.text(), "\n"))
	}
	return nil
}

// Undefine returns the command undefine.
func Undefine(a *cli.App) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "undefine NAME",
		Short: "Remove a definition",
		Long: `Undefine removes the definition of a resource or a prefix. From then on that of a
shorter prefix applies, if there is one. Leases that are held stay as they are.`,
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
		a.Say("nothing is defined here; see: leasehold help define")
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
	pools := slices.ContainsFunc(list, func(d v1.Definition) bool {
		return len(d.Limits) > 0 || d.Idle != nil || d.IdleRelease != nil || d.Backfill
	})
	if pools {
		columns = append(columns, cli.Column{Name: "IDLE"}, cli.Column{Name: "IDLE RELEASE"},
			cli.Column{Name: "BACKFILL"}, cli.Column{Name: "LIMITS", Flexible: true})
	}
	reserves := slices.ContainsFunc(list, func(d v1.Definition) bool { return d.OnReservation != "" })
	if reserves {
		columns = append(columns, cli.Column{Name: "ON RESERVATION"})
	}
	rows := make([][]string, 0, len(list))
	for _, d := range list {
		rows = append(rows, []string{d.Path, slotsOf(d), durationOrNone(d.DefaultTTL), durationOrNone(d.LargestTTL),
			durationOrNone(d.HoldLimit), durationOrNone(d.Grace), durationOrNone(d.Expected), d.Unclean})
		if pools {
			rows[len(rows)-1] = append(rows[len(rows)-1], durationOrNone(d.Idle), durationOrNone(d.IdleRelease),
				(&onOff{v1.To(d.Backfill)}).String(), strings.Join(d.Limits, ", "))
		}
		if reserves {
			rows[len(rows)-1] = append(rows[len(rows)-1], cmp.Or(d.OnReservation, "wait"))
		}
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
