package server

import (
	"context"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/leasehold/leasehold"
	"github.com/leasehold/leasehold/internal/cli"

	v1 "github.com/leasehold/leasehold/api/v1"
)

// Alarms returns the command alarms, with one below it that clears them.
func Alarms(a *cli.App, acknowledge *cobra.Command) *cobra.Command {
	var kind string
	var check bool
	cmd := &cobra.Command{
		Use:   "alarms [PREFIX]",
		Short: "Show active alarms",
		Long: `Alarms shows the active alarms, the newest first:

  held-long     a lease is held for longer than was expected (leasehold help
                define), or than is usual on its resource
  long-queue    more wait for a resource than usual
  unclean-end   a lease ended without its holder giving it back
  flapping      holders of a resource went away three times within five minutes
  late-renewal  a renewal came with less than a tenth of the TTL left
  quarantine    the cluster was restored from a backup and grants nothing yet, in any
                namespace (leasehold help cluster end-quarantine)
  token-ending  a token ends within 7 days, shown to admins (leasehold help access
                token)

The first two last until the lease ends or the queue is short again, the last two until
the quarantine or the token is over, the others for an hour after it happened last. There
is one alarm for each thing; COUNT says how often it happened.

Once you have checked one, clear it by the name of its resource, with leasehold
acknowledge NAME, or, if it has none, with leasehold acknowledge --session ID. It stays
cleared until it happens anew. The last two are cleared only by the end of their cause.

With --check the command ends with code 1 if any alarm is active, for monitoring.`,
		Example: `  leasehold alarms
  leasehold alarms prod/ --kind held-long
  leasehold alarms acknowledge db/migrate --reason "a large month"
  leasehold alarms --check -q || page-somebody`,
		Args:              cli.Takes(0, 1),
		ValidArgsFunction: a.Completes(1, cli.ResourceNames),
	}
	cmd.RunE = a.Talk(func(ctx context.Context, c *cli.Conn, args []string) error {
		q := v1.AlarmQuery{Kind: kind, Limit: v1.MaxLimit}
		if len(args) == 1 {
			q.Prefix = args[0]
		}
		return alarms(ctx, a, c, q, check)
	})
	cmd.Flags().StringVar(&kind, "kind", "", "only alarms of this kind")
	cmd.Flags().BoolVar(&check, "check", false, "end with code 1 if any alarm is active")
	cli.CompleteFlag(cmd, "kind", cli.AlarmKinds())
	a.ClientFlags(cmd)
	a.OutputFlag(cmd, cli.FormatWide, cli.FormatJSON, cli.FormatName)
	cmd.AddCommand(acknowledge)
	return cmd
}

func alarms(ctx context.Context, a *cli.App, c *cli.Conn, q v1.AlarmQuery, check bool) error {
	list := []v1.Alarm{}
	for alarm, err := range c.Alarms(ctx, q) {
		if err != nil {
			return err
		}
		list = append(list, alarm)
	}
	if err := printAlarms(a, c, q, list); err != nil {
		return err
	}
	if check && len(list) > 0 {
		return next(c, list, cli.Alarmed(cli.Plural(len(list), "alarm is active", "alarms are active")))
	}
	return nil
}

// next adds to an error how to clear the newest alarm.
func next(c *cli.Conn, list []v1.Alarm, err error) error {
	words := []string{"acknowledge", list[0].Resource}
	switch {
	case list[0].Kind == leasehold.InQuarantine.String():
		return cli.Hint(err, "the quarantine: %s", c.Again("help", "cluster", "end-quarantine"))
	case list[0].Kind == leasehold.TokenEnding.String():
		return cli.Hint(err, "make a new token, then revoke the old one: %s", c.Again("help", "access", "token"))
	case list[0].Resource == "":
		words = []string{"acknowledge", "--session", list[0].Session}
	}
	return cli.Hint(err, "once you have checked it, clear it: %s", c.Again(words...))
}

// asked says which alarms were asked for, as part of a sentence: there may be others.
func asked(q v1.AlarmQuery) (words string) {
	if q.Kind != "" {
		words += " of kind " + q.Kind
	}
	if q.Prefix != "" {
		words += " under " + cli.Printable(q.Prefix)
	}
	return words
}

func printAlarms(a *cli.App, c *cli.Conn, q v1.AlarmQuery, list []v1.Alarm) error {
	switch {
	case a.Output == cli.FormatJSON:
		return a.PrintJSON(list)
	case a.Output == cli.FormatName:
		for _, alarm := range list {
			if err := a.PrintLine(alarm.Resource); err != nil {
				return err
			}
		}
		return nil
	case len(list) == 0:
		a.Say("no active alarms%s in namespace %s", asked(q), c.Client.Namespace)
		return nil
	}
	columns := []cli.Column{{Name: "KIND"}, {Name: "RESOURCE"}, {Name: "SINCE"}, {Name: "COUNT", Right: true},
		{Name: "WHAT", Flexible: true}}
	if a.Output == cli.FormatWide {
		columns = append(columns, cli.Column{Name: "LAST"}, cli.Column{Name: "HOLDER"}, cli.Column{Name: "ID"},
			cli.Column{Name: "SESSION"})
	}
	var rows [][]string
	for _, alarm := range list {
		row := []string{alarm.Kind, alarm.Resource, a.When(&alarm.Since), strconv.Itoa(alarm.Count), alarm.Text}
		if a.Output == cli.FormatWide {
			row = append(row, a.When(&alarm.Last), alarm.Holder, alarm.ID, alarm.Session)
		}
		rows = append(rows, row)
	}
	return a.PrintTable(columns, rows)
}
