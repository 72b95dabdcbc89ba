package resource

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"github.com/leasehold/leasehold/internal/cli"

	v1 "github.com/leasehold/leasehold/api/v1"
)

// Session returns the command session, with those below it.
func Session(a *cli.App) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "session",
		Short: "List, show and close sessions",
		Long: `A session is a promise of liveness: the leases, waiters and records that are bound to
it end with it, and one renewal renews all. The Go client and "leasehold run" open one
for themselves.`,
		Example: `  leasehold session list
  leasehold session show s-42
  leasehold session close s-42 --yes`,
		Args: cobra.ArbitraryArgs,
		RunE: a.Group,
	}
	cmd.AddCommand(sessionList(a), sessionShow(a), sessionClose(a))
	return cmd
}

func sessionList(a *cli.App) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "list [PREFIX]",
		Short: "List sessions, with how much is bound to each",
		Long: `List shows the open sessions of the namespace whose id begins with PREFIX, or all of
them: their TTL, how soon each expires unless it is renewed, and how many leases, waiters
and records are bound to it.`,
		Example: `  leasehold session list
  leasehold session list ci-
  leasehold session list ci- -o json`,
		Args: cli.Takes(0, 1),
	}
	cmd.RunE = a.Talk(func(ctx context.Context, c *cli.Conn, args []string) error {
		query := v1.SessionQuery{Limit: v1.MaxLimit}
		if len(args) == 1 {
			query.Prefix = args[0]
		}
		list := []v1.Session{}
		for s, err := range c.Sessions(ctx, query) {
			if err != nil {
				return err
			}
			list = append(list, s)
		}
		return printSessions(a, c, list)
	})
	a.ClientFlags(cmd)
	a.OutputFlag(cmd, cli.FormatWide, cli.FormatJSON, cli.FormatName)
	return cmd
}

func printSessions(a *cli.App, c *cli.Conn, list []v1.Session) error {
	switch {
	case a.Output == cli.FormatJSON:
		return a.PrintJSON(list)
	case a.Output == cli.FormatName:
		for _, s := range list {
			if err := a.PrintLine(s.ID); err != nil {
				return err
			}
		}
		return nil
	case len(list) == 0:
		a.Say("no sessions in namespace %s", c.Client.Namespace)
		return nil
	}
	columns := []cli.Column{{Name: "SESSION"}, {Name: "TTL"}, {Name: "REMAINING"}, {Name: "BOUND"}, {Name: "OPENED"},
		{Name: "LABELS", Flexible: true}}
	var rows [][]string
	for _, s := range list {
		rows = append(rows, []string{s.ID, s.TTL.String(), remainingOf(s), strconv.Itoa(s.Claims),
			a.When(&s.Opened), cli.LabelList(s.Labels)})
	}
	return a.PrintTable(columns, rows)
}

func remainingOf(s v1.Session) string {
	return cli.Short(time.Duration(s.RemainingMS) * time.Millisecond)
}

func sessionShow(a *cli.App) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "show ID",
		Short: "Show a session and the leases that are bound to it",
		Long: `Show prints one session: when it was opened, its labels and its TTL, how soon it
expires unless it is renewed, and each lease that is bound to it with its holder and token.`,
		Example: `  leasehold session show s-42
  leasehold session show s-42 -o wide     # dates instead of "3m ago"
  leasehold session show s-42 -o json`,
		Args: cli.Takes(1, 1),
	}
	cmd.RunE = a.Talk(func(ctx context.Context, c *cli.Conn, args []string) error {
		s, err := c.Session(ctx, args[0])
		if err != nil {
			return explainSession(c, err)
		}
		switch a.Output {
		case cli.FormatJSON:
			return a.PrintJSON(s)
		case cli.FormatName:
			return a.PrintLine(s.ID)
		}
		text, err := describeSession(ctx, a, c, s)
		if err != nil {
			return err
		}
		_, err = fmt.Fprint(a.Stdout, text)
		return cli.Written(err)
	})
	a.ClientFlags(cmd)
	a.OutputFlag(cmd, cli.FormatWide, cli.FormatJSON, cli.FormatName)
	return cmd
}

// describeSession returns what is known of a session. Its leases are compared again, because a * in
// an id would be a pattern.
func describeSession(ctx context.Context, a *cli.App, c *cli.Conn, s v1.Session) (string, error) {
	leases, err := c.Everything(ctx, v1.ResourceQuery{Filter: v1.ResourceFilter{Session: s.ID}})
	if err != nil {
		return "", err
	}
	d := &cli.Details{}
	d.Line("Session", "%s", cli.Printable(s.ID))
	d.Line("Namespace", "%s", cli.Printable(s.Namespace))
	d.Line("Labels", "%s", cli.Printable(cli.LabelList(s.Labels)))
	d.Line("Opened", "%s", a.When(&s.Opened))
	d.Line("Expires", "in %s unless renewed", remainingOf(s))
	d.Line("TTL", "%s", s.TTL)
	d.Line("Bound", "%s", cli.Plural(s.Claims, "lease, waiter or record", "leases, waiters and records"))
	for _, r := range leases {
		for _, l := range r.Holders {
			if l.Session == s.ID {
				d.Line("Lease", "%s held by %s, token %d", cli.Printable(r.Resource), cli.Printable(l.Holder),
					l.Token)
			}
		}
	}
	return d.String(), nil
}

func sessionClose(a *cli.App) *cobra.Command {
	var yes bool
	cmd := &cobra.Command{
		Use:   "close ID",
		Short: "End a session and release everything that is bound to it",
		Long: `Close ends a session. Its leases are released, its waiters leave their queues, and its
records are deleted, all at the same moment. The holder learns of it with its next
renewal; until then it may go on, so prefer asking it to stop.`,
		Example: `  leasehold session close s-42
  leasehold session close s-42 --yes
  leasehold session close s-42 --yes -o json`,
		Args: cli.Takes(1, 1),
	}
	cmd.RunE = a.Talk(func(ctx context.Context, c *cli.Conn, args []string) error {
		if !yes {
			if err := confirmClose(ctx, a, c, args[0]); err != nil {
				return err
			}
		}
		if err := c.CloseSession(ctx, args[0]); err != nil {
			return explainSession(c, err)
		}
		if a.Output == cli.FormatJSON {
			return a.PrintJSON(map[string]string{"closed": args[0]})
		}
		a.Say("closed %s", cli.Printable(args[0]))
		return nil
	})
	cmd.Flags().BoolVarP(&yes, "yes", "y", false, "do not ask")
	a.ClientFlags(cmd)
	a.OutputFlag(cmd, cli.FormatJSON)
	return cmd
}

func confirmClose(ctx context.Context, a *cli.App, c *cli.Conn, id string) error {
	s, err := c.Session(ctx, id)
	if err != nil {
		return explainSession(c, err)
	}
	bound := cli.Plural(s.Claims, "lease, waiter or record", "leases, waiters and records")
	if !a.Terminal(a.Stdin) {
		return cli.Hint(cli.Usage("this ends %s, and there is no terminal to ask on: give --yes if you are sure",
			bound), "see which: %s", c.Again("session", "show", id))
	}
	text, err := describeSession(ctx, a, c, s)
	if err != nil {
		return err
	}
	fmt.Fprint(a.Stderr, text)
	return a.Confirm(ctx, `Type "yes" to close it: `, "yes")
}

func explainSession(c *cli.Conn, err error) error {
	return cli.Hint(err, "see what there is: %s", c.Again("session", "list"))
}
