package reserve

import (
	"context"
	"errors"
	"io"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/leasehold/leasehold"
	v1 "github.com/leasehold/leasehold/api/v1"
	"github.com/leasehold/leasehold/api/v1/reservations"
	"github.com/leasehold/leasehold/internal/calendar"
	"github.com/leasehold/leasehold/internal/cli"
	"github.com/leasehold/leasehold/internal/id"
)

const formatICal = "ical"

// List returns the command reservations.
func List(a *cli.App) *cobra.Command {
	q := reservations.Query{Limit: v1.MaxLimit}
	var from, until string
	var rules bool
	cmd := &cobra.Command{
		Use:   "reservations [NAME|PREFIX/]",
		Short: "Show what is reserved, when and for whom",
		Long: `Reservations shows what is reserved from now on: of one resource, of all whose names begin with
a prefix, or of all. Those that recur are shown one by one, as far as they are planned, which
is two weeks ahead; --recurring shows the rules instead.

With -o ical it prints a calendar, which calendar programs read. They can also subscribe to
/v1/calendar of the server.`,
		Example: `  leasehold reservations staging
  leasehold reservations gpu --until "tomorrow 00:00" -o json
  leasehold reservations -o ical`,
		Args:              cli.Takes(0, 1),
		ValidArgsFunction: a.Asks(1, cli.DefinableNames),
	}
	cmd.RunE = a.Talk(func(ctx context.Context, c *cli.Conn, args []string) (err error) {
		for _, name := range args {
			if q.Resource = name; strings.HasSuffix(name, "/") {
				q.Prefix, q.Resource = name, ""
			}
		}
		if from != "" {
			if q.From, err = calendar.ParseMoment(from, a.Now()); err != nil {
				return cli.SeeHelp(cmd, cli.Usage("--from: %v", err))
			}
		}
		if until != "" {
			if q.Until, err = calendar.ParseMoment(until, a.Now()); err != nil {
				return cli.SeeHelp(cmd, cli.Usage("--until: %v", err))
			}
		}
		switch {
		case a.Output == formatICal:
			return printCalendar(ctx, a, c, q)
		case rules:
			return listRules(ctx, a, c, q)
		}
		return list(ctx, a, c, q)
	})
	set := cmd.Flags()
	set.StringVar(&q.Holder, "of", "", "only those of this holder")
	set.StringVar(&from, "from", "", "those that end after this moment, such as \"2026-11-20 14:00\" (default now)")
	set.StringVar(&until, "until", "", "those that begin before this moment (default: all)")
	set.BoolVar(&rules, "recurring", false, "the rules of those that recur")
	a.ClientFlags(cmd)
	a.OutputFlag(cmd, cli.FormatJSON, cli.FormatName, formatICal)
	cmd.AddCommand(cancel(a), show(a))
	return cmd
}

func list(ctx context.Context, a *cli.App, c *cli.Conn, q reservations.Query) error {
	found := []reservations.Reservation{}
	for r, err := range reservations.All(ctx, c.Caller, q) {
		if err != nil {
			return err
		}
		found = append(found, r)
	}
	return printAll(a, found, func(r reservations.Reservation) string { return span(r, a.Now().Location()) })
}

func listRules(ctx context.Context, a *cli.App, c *cli.Conn, q reservations.Query) error {
	all, err := reservations.Series(ctx, c.Caller)
	if err != nil {
		return err
	}
	found := []reservations.Reservation{}
	for _, r := range all {
		if (q.Resource == "" || r.Resource == q.Resource) && strings.HasPrefix(r.Resource, q.Prefix) &&
			(q.Holder == "" || r.Holder == q.Holder) {
			found = append(found, r)
		}
	}
	return printAll(a, found, func(r reservations.Reservation) string { return ruleText(r.Rule) })
}

func printAll(a *cli.App, found []reservations.Reservation, when func(reservations.Reservation) string) error {
	switch {
	case a.Output == cli.FormatJSON:
		return a.PrintJSON(found)
	case a.Output == cli.FormatName:
		for _, r := range found {
			if err := a.PrintLine(r.ID); err != nil {
				return err
			}
		}
		return nil
	case len(found) == 0:
		a.Say("nothing is reserved")
		return nil
	}
	var rows [][]string
	for _, r := range found {
		slots := "all"
		if r.Slots > 0 {
			slots = strconv.Itoa(r.Slots)
		}
		rows = append(rows, []string{r.Resource, when(r), r.Holder, r.State, slots, strings.Join(r.Units, ","), r.ID,
			r.Reason})
	}
	return a.PrintTable([]cli.Column{{Name: "RESOURCE"}, {Name: "WHEN"}, {Name: "HOLDER"}, {Name: "STATE"},
		{Name: "SLOTS"}, {Name: "UNITS"}, {Name: "ID"}, {Name: "REASON", Flexible: true}}, rows)
}

// span writes when a reservation is, by the clocks here.
func span(r reservations.Reservation, zone *time.Location) string {
	if r.From == nil || r.Until == nil {
		return ""
	}
	from, until := r.From.In(zone), r.Until.In(zone)
	layout := "15:04"
	if from.Format(time.DateOnly) != until.Format(time.DateOnly) {
		layout = "Mon 2006-01-02 15:04"
	}
	return from.Format("Mon 2006-01-02 15:04") + " to " + until.Format(layout)
}

func ruleText(rule *reservations.Rule) string {
	if rule == nil {
		return ""
	}
	days := rule.Every
	if days == "day" {
		days = "every day"
	}
	text := days + " at " + rule.At + " " + rule.Zone + " for " + rule.Length.String()
	if rule.Until != nil {
		text += " until " + rule.Until.Format(time.RFC3339)
	}
	return text
}

// spoken says when a reservation is, in a sentence.
func spoken(r reservations.Reservation, zone *time.Location) string {
	if r.Rule != nil {
		return "on " + ruleText(r.Rule) + "; next " + span(r, zone)
	}
	return "on " + span(r, zone)
}

func printCalendar(ctx context.Context, a *cli.App, c *cli.Conn, q reservations.Query) error {
	response, err := reservations.Calendar(ctx, c.Caller, q)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	_, err = io.Copy(a.Stdout, response.Body)
	return err
}

// show returns the command reservations show.
func show(a *cli.App) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "show ID",
		Short: "Show one reservation",
		Long: `Show prints one reservation: when it is, how far it has come, and which units are planned for
it. Of a recurring one it prints the rule and the next occurrence. What was over less than ten
minutes ago is shown, too, with the reason.`,
		Example: `  leasehold reservations show demo
  leasehold reservations show daily
  leasehold reservations show demo -o json`,
		Args: cli.Takes(1, 1), ValidArgsFunction: a.Asks(1, ids),
	}
	cmd.RunE = a.Talk(func(ctx context.Context, c *cli.Conn, args []string) error {
		r, err := reservations.Get(ctx, c.Caller, args[0])
		switch {
		case err != nil:
			return explain(c, err)
		case a.Output == cli.FormatJSON:
			return a.PrintJSON(r)
		case r.Why != "":
			a.Say("it is over: %s", r.Why)
		}
		return printAll(a, []reservations.Reservation{r}, func(r reservations.Reservation) string {
			return strings.TrimPrefix(spoken(r, a.Now().Location()), "on ")
		})
	})
	a.ClientFlags(cmd)
	a.OutputFlag(cmd, cli.FormatJSON)
	return cmd
}

// cancel returns the command reservations cancel.
func cancel(a *cli.App) *cobra.Command {
	var reason string
	cmd := &cobra.Command{
		Use:   "cancel ID [ID]…",
		Short: "Take reservations back",
		Long: `Cancel takes reservations back. The id of a recurring one ends it with all that has not begun;
the id of one of its occurrences leaves out that one alone. A lease that claimed it stays until
it is released.

Your own reservations you may cancel; those of others who may break leases on the resource.`,
		Example: `  leasehold reservations cancel demo
  leasehold reservations cancel daily --reason holiday
  leasehold reservations cancel demo daily -o json`,
		Args: cli.Takes(1, -1), ValidArgsFunction: a.Asks(-1, ids),
	}
	cmd.RunE = a.Talk(func(ctx context.Context, c *cli.Conn, args []string) error {
		done := []cancelled{}
		for _, one := range args {
			err := reservations.Cancel(ctx, c.Caller, one, c.Operator(), reason, v1.WithKey(id.New()))
			if err != nil {
				return explain(c, err)
			}
			done = append(done, cancelled{one})
			a.Say("cancelled %s", one)
		}
		if a.Output == cli.FormatJSON {
			return a.PrintJSON(done)
		}
		return nil
	})
	cmd.Flags().StringVar(&reason, "reason", "", "why, for the history")
	a.SettingFlag(cmd, "holder", "")
	a.ClientFlags(cmd)
	a.OutputFlag(cmd, cli.FormatJSON)
	return cmd
}

// explain says where to look for an id that is not known.
func explain(c *cli.Conn, err error) error {
	if errors.Is(err, leasehold.ErrNotFound) {
		return cli.Hint(err, "see what is reserved: %s", c.Again("reservations"))
	}
	return err
}

// A cancelled reservation, as JSON shows it.
type cancelled struct {
	ID string `json:"cancelled"`
}

// ids offers the ids of reservations, with what they are about.
func ids(ctx context.Context, c *cli.Conn, typed string) (list []cobra.Completion) {
	page, err := reservations.Page(ctx, c.Caller, reservations.Query{Limit: v1.MaxLimit})
	if err != nil {
		return nil
	}
	for _, r := range page.Items {
		if strings.HasPrefix(r.ID, typed) {
			list = append(list, cobra.CompletionWithDesc(r.ID, r.Resource+" of "+r.Holder))
		}
	}
	return list
}
