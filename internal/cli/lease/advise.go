package lease

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/leasehold/leasehold"
	"github.com/leasehold/leasehold/internal/cli"

	v1 "github.com/leasehold/leasehold/api/v1"
	"github.com/leasehold/leasehold/api/v1/kinds"
)

// Advise returns the command advise.
func Advise(a *cli.App) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "advise NAME",
		Short: "Suggest a TTL for a resource, and say why",
		Long: `Advise suggests the TTL that suits a resource, by what the server learned of its
last leases: for how long holders paused between renewals, and how often one went
away. It shows the reckoning, so that you can disagree.

A short TTL costs renewals and is lost to an ordinary pause; a long one keeps
everybody waiting for a holder that is gone. Until eight leases have ended there is
nothing to go by, and the advice is the default.

An acquire with --ttl auto uses it. Leases that say of which kind they are, by the label
kind or by running a command with leasehold run, are learned by kind: a table shows what
each kind needs, and the TTL that it gets if it is renewed (TTL) and if not (UNATTENDED).`,
		Example: `  leasehold advise prod/deploy
  leasehold advise prod/deploy -o json | jq -r .ttl
  leasehold acquire prod/deploy --ttl auto`,
		Args:              cli.Takes(1, 1),
		ValidArgsFunction: a.Completes(1, cli.ResourceNames),
	}
	cmd.RunE = a.Talk(func(ctx context.Context, c *cli.Conn, args []string) error {
		advice, err := c.Advice(ctx, args[0])
		if err != nil {
			return err
		}
		learned, err := kinds.Get(ctx, c.Caller, args[0], kinds.Query{})
		if err != nil && !errors.Is(err, leasehold.ErrNotFound) { // as an older server answers
			return err
		}
		switch a.Output {
		case cli.FormatJSON:
			return a.PrintJSON(struct {
				v1.Advice
				Kinds []kinds.Kind `json:"kinds,omitempty"`
			}{advice, learned.Items})
		case cli.FormatName:
			return a.PrintLine(advice.TTL.String())
		}
		if _, err = fmt.Fprint(a.Stdout, advise(advice)); err != nil || len(learned.Items) == 0 {
			return cli.Written(err)
		}
		return printKinds(a, learned.Items)
	})
	a.ClientFlags(cmd)
	a.OutputFlag(cmd, cli.FormatJSON, cli.FormatName)
	return cmd
}

func advise(advice v1.Advice) string {
	s := &cli.Details{}
	s.Line("Resource", "%s", cli.Printable(advice.Resource))
	s.Line("Namespace", "%s", cli.Printable(advice.Namespace))
	s.Line("TTL", "%s", advice.TTL)
	if advice.Learned {
		s.Line("Least", "%s", advice.Least)
		s.Line("Cheapest", "%s", advice.Cheapest)
		s.Line("Most", "%s", advice.Most)
	}
	s.Line("Renewals", "%d in a TTL, every %s", advice.Renewals, cli.Short(time.Duration(advice.Interval)))
	s.Line("Take-over", "after %s on average, %s at worst", cli.Short(time.Duration(advice.TakeOver)),
		cli.Short(time.Duration(advice.TTL+advice.Grace)))
	for i, reason := range advice.Reasons {
		name := ""
		if i == 0 {
			name = "Why"
		}
		s.Line(name, "%s", cli.Printable(reason))
	}
	return s.String()
}

// printKinds prints a row for each kind.
func printKinds(a *cli.App, list []kinds.Kind) error {
	if err := a.PrintLine(""); err != nil {
		return err
	}
	var rows [][]string
	for _, k := range list {
		row := []string{k.Name, "", "", "", k.TTL.String(), k.Unattended.String()}
		if u := k.Usual; u != nil {
			row[1], row[2], row[3] = fmt.Sprint(u.Holds), u.HoldP50.String(), u.HoldP95.String()
		}
		rows = append(rows, row)
	}
	return a.PrintTable([]cli.Column{{Name: "KIND", Flexible: true}, {Name: "LEASES"}, {Name: "HALF"},
		{Name: "19 OF 20"}, {Name: "TTL"}, {Name: "UNATTENDED"}}, rows)
}
