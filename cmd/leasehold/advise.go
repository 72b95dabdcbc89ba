package main

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	v1 "github.com/leasehold/leasehold/api/v1"
)

func (a *app) adviseCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "advise NAME",
		Short: "Suggest a TTL for a resource, and say why",
		Long: `Advise suggests the TTL that suits a resource, by what the server learned of its
last leases: for how long holders paused between renewals, and how often one went
away. It shows the reckoning, so that you can disagree.

A short TTL costs renewals and is lost to an ordinary pause; a long one keeps
everybody waiting for a holder that is gone. Until eight leases have ended there is
nothing to go by, and the advice is the default.

An acquire with --ttl auto uses it.`,
		Example: `  leasehold advise prod/deploy
  leasehold advise prod/deploy -o json | jq -r .ttl
  leasehold acquire prod/deploy --ttl auto`,
		Args:              takes(1, 1),
		ValidArgsFunction: a.completes(1, resourceNames),
	}
	cmd.RunE = a.talks(func(ctx context.Context, c *conn, args []string) error {
		advice, err := c.Advice(ctx, args[0])
		if err != nil {
			return err
		}
		switch a.output {
		case formatJSON:
			return a.printJSON(advice)
		case formatName:
			return a.printLine(advice.TTL.String())
		}
		_, err = fmt.Fprint(a.stdout, advise(advice))
		return written(err)
	})
	a.clientFlags(cmd)
	a.outputFlag(cmd, formatJSON, formatName)
	return cmd
}

func advise(advice v1.Advice) string {
	s := &sheet{}
	s.line("Resource", "%s", printable(advice.Resource))
	s.line("Namespace", "%s", printable(advice.Namespace))
	s.line("TTL", "%s", advice.TTL)
	if advice.Learned {
		s.line("Least", "%s", advice.Least)
		s.line("Cheapest", "%s", advice.Cheapest)
		s.line("Most", "%s", advice.Most)
	}
	s.line("Renewals", "%d in a TTL, every %s", advice.Renewals, short(time.Duration(advice.Interval)))
	s.line("Take-over", "after %s on average, %s at worst", short(time.Duration(advice.TakeOver)), short(time.Duration(advice.TTL+advice.Grace)))
	for i, reason := range advice.Reasons {
		name := ""
		if i == 0 {
			name = "Why"
		}
		s.line(name, "%s", printable(reason))
	}
	return s.String()
}
