// Package reserve has the commands about reservations: resources, and units of pools, that are kept for somebody from
// one moment to another.
//
// They plan, show and cancel. A reservation is claimed with --reservation of run, acquire and pool run: it needs no
// second way to hold a resource.
package reserve

import (
	"context"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	v1 "github.com/leasehold/leasehold/api/v1"
	"github.com/leasehold/leasehold/api/v1/reservations"
	"github.com/leasehold/leasehold/internal/calendar"
	"github.com/leasehold/leasehold/internal/cli"
	"github.com/leasehold/leasehold/internal/id"
)

// flags are those of both commands that reserve.
type flags struct {
	reservations.Request
	pool      bool // it is for units
	at, until string
	length    cli.Span
	wanted    cli.Wanted
}

// Reserve returns the command reserve.
func Reserve(a *cli.App) *cobra.Command {
	var f flags
	cmd := &cobra.Command{
		Use:   "reserve NAME --for DURATION",
		Short: "Have a resource kept for you at a later time",
		Long: `Reserve keeps a resource for you from one moment to another, once or on days of the week.
If somebody reserved it already the command ends with code 75, and says who did and the next
three times at which it is free.

A reservation is no lease yet. From its start on you claim it, with --reservation of
leasehold run, acquire or pool run: nobody else gets the resource then, and your claim stands
before all who wait. A claim may come earlier, and waits. What nobody claims within 15 minutes
is freed. Until the start anybody may have the resource; 15 minutes before, those who hold it
are asked to leave, and what happens if they do not is defined: see --on-reservation of
leasehold define.

--at is 14:00 (the next one), tomorrow 14:00, 2026-11-20 14:00 or 2026-11-20T14:00:00+01:00;
without it the reservation begins now. With --every day, weekdays, weekends or mon,wed it comes
again at that time, by the clocks of --zone: at 14:00 also after they change.

Of a resource that has several slots one is reserved, unless --slots says how many or all.`,
		Example: `  leasehold reserve staging --at 14:00 --for 4h --reason "demo for Ann"
  leasehold reserve lab/bench --at 09:00 --for 1h --every weekdays --zone UTC
  leasehold reserve lab/scope --at "tomorrow 08:30" --for 2h --id scope-run`,
		Args:              cli.Takes(1, 1),
		ValidArgsFunction: a.Asks(1, cli.DefinableNames),
	}
	cmd.RunE = a.Talk(func(ctx context.Context, c *cli.Conn, args []string) error {
		slots, _, err := f.wanted.Of(ctx, c, args[0])
		if err != nil {
			return err
		}
		f.Slots = v1.Slots(slots)
		return f.reserve(ctx, a, c, cmd, args[0])
	})
	cmd.Flags().VarP(&f.wanted.Slots, "slots", "n", "how many slots to reserve, or all (default: 1 if several are "+
		"defined, else all)")
	f.add(a, cmd)
	return cmd
}

// Pool returns the command pool reserve.
func Pool(a *cli.App) *cobra.Command {
	f := flags{pool: true}
	count := 0
	cmd := &cobra.Command{
		Use:   "reserve POOL --for DURATION [-n N]",
		Short: "Have units of a pool kept for you at a later time",
		Long: `Reserve keeps units of a pool for you from one moment to another, once or on days of the
week: all or none, on one host unless --spread is given. Which units they are is planned now
and may change until the start.

From the start on claim them with leasehold pool run --reservation. Everything else is as with
leasehold reserve: times, conflicts, what becomes of those who hold the units. See leasehold
help reserve.`,
		Example: `  leasehold pool reserve gpu -n 1 --for 4h --at 14:00 --reason demo
  leasehold pool reserve gpu --where model=H100 --for 8h --at 22:00 --every day
  leasehold pool reserve gpu --unit GPU-5f1c --for 1h --at "tomorrow 06:00"`,
		Args:              cli.Takes(1, 1),
		ValidArgsFunction: a.Asks(1, cli.DefinableNames),
	}
	cmd.RunE = a.Talk(func(ctx context.Context, c *cli.Conn, args []string) error {
		switch n := max(1, len(f.Units)); {
		case cmd.Flags().Changed("units") && count < 1:
			return cli.SeeHelp(cmd, cli.Usage("-n is %d: reserve 1 unit or more", count))
		case count > 0 && len(f.Units) > 0 && count != n:
			return cli.SeeHelp(cmd, cli.Usage("-n is %d and --unit names %d: leave -n out", count, n))
		default:
			f.Slots = v1.Slots(max(n, count))
		}
		return f.reserve(ctx, a, c, cmd, args[0])
	})
	set := cmd.Flags()
	set.IntVarP(&count, "units", "n", 0, "how many units to reserve (default 1, or as many as --unit names)")
	set.StringVar(&f.Where, "where", "", "only units that meet conditions, such as model=H100,memory>=40")
	set.BoolVar(&f.Spread, "spread", false, "the units may be on several hosts")
	set.StringArrayVar(&f.Units, "unit", nil, "this unit; may be given again")
	f.add(a, cmd)
	return cmd
}

// add adds the flags that say when, and for whom.
func (f *flags) add(a *cli.App, cmd *cobra.Command) {
	set := cmd.Flags()
	set.StringVar(&f.at, "at", "", "when it begins, such as 14:00 or \"tomorrow 14:00\" (default now)")
	set.Var(&f.length, "for", "how long it lasts, from 1m to 30d")
	f.addRule(set)
	set.StringVar(&f.Reason, "reason", "", "why, shown to those who hold the resource or want it then")
	set.StringVar(&f.ID, "id", "", "id of the reservation; asking again with the same is safe (default: one is made)")
	a.SettingFlag(cmd, "holder", "")
	a.ClientFlags(cmd)
	a.OutputFlag(cmd, cli.FormatJSON, cli.FormatName)
	cli.CompleteFlag(cmd, "every", []string{"day", "weekdays", "weekends"})
}

func (f *flags) addRule(set *pflag.FlagSet) {
	set.StringVar(&f.Every, "every", "", "again on these days: "+calendar.DaysAllowed)
	set.StringVar(&f.Zone, "zone", "", "whose clocks --at means, such as Europe/Berlin or UTC (default: this "+
		"machine's)")
	set.StringVar(&f.until, "until", "", "with --every, it begins before this moment for the last time (default: it "+
		"never ends)")
}

// reserve asks for the reservation, and says how to claim it. The id is made here if nobody said one, so that a request
// that is sent twice is one.
func (f *flags) reserve(ctx context.Context, a *cli.App, c *cli.Conn, cmd *cobra.Command, name string) error {
	f.Resource, f.Holder, f.Length = name, c.Operator(), v1.Duration(f.length.Value)
	if !f.length.Given {
		return cli.SeeHelp(cmd, cli.Usage("--for is missing: say how long, such as --for 4h"))
	}
	if err := f.when(a.Now()); err != nil {
		return cli.SeeHelp(cmd, err)
	}
	if f.ID == "" {
		f.ID = id.New()
	}
	r, err := reservations.Reserve(ctx, c.Caller, f.Request, v1.WithKey(id.New()))
	if err != nil {
		return err
	}
	switch a.Output {
	case cli.FormatJSON:
		return a.PrintJSON(r)
	case cli.FormatName:
		return a.PrintLine(r.ID)
	}
	a.Say("reserved %s for %s %s", r.Resource, r.Holder, spoken(r, a.Now().Location()))
	a.Say("claim it from then on: %s", c.Again(f.claim(r)...)+" -- COMMAND")
	return a.PrintLine(r.ID)
}

// claim returns the command by which a reservation is claimed.
func (f *flags) claim(r reservations.Reservation) []string {
	if f.pool {
		return []string{"pool", "run", r.Resource, "--reservation", r.ID}
	}
	return []string{"run", r.Resource, "--reservation", r.ID}
}

// when reads the times: the next one by the clocks of a zone.
func (f *flags) when(now time.Time) error {
	zone, err := f.location(now)
	if err != nil {
		return cli.Usage("--zone: %v", err)
	}
	f.From, f.At = v1.Time{}, ""
	clock, badClock := calendar.ParseClock(strings.TrimSpace(f.at))
	switch {
	case f.Every != "" && f.at == "":
		return cli.Usage("--every says on which days, and not when: add --at 14:00")
	case f.Every != "" && badClock == nil:
		f.At = calendar.ClockText(clock)
	case f.at != "":
		at, err := calendar.ParseMoment(f.at, now.In(zone))
		if err != nil {
			return cli.Usage("--at: %v", err)
		}
		if f.From.Time = at; f.Every != "" {
			f.At = at.In(zone).Format(time.TimeOnly)
		}
	}
	if f.Every == "" {
		f.Zone = ""
		if f.until != "" {
			return cli.Usage("--until is the end of a reservation that recurs: leave it out, or add --every")
		}
		return nil
	}
	if _, err := calendar.ParseDays(f.Every); err != nil {
		return cli.Usage("--every: %v", err)
	}
	if f.until != "" {
		if f.Until.Time, err = calendar.ParseMoment(f.until, now.In(zone)); err != nil {
			return cli.Usage("--until: %v", err)
		}
	}
	return nil
}

// location returns the zone whose clocks are meant. A reservation that recurs needs its name, since a server has to
// know when its clocks change.
func (f *flags) location(now time.Time) (*time.Location, error) {
	if f.Zone == "" && f.Every == "" {
		return now.Location(), nil
	}
	if f.Zone == "" {
		name, err := localZone(now)
		if err != nil {
			return nil, err
		}
		f.Zone = name
	}
	return calendar.Zone(f.Zone)
}
