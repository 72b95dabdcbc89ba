package lease

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/leasehold/leasehold"
	"github.com/leasehold/leasehold/internal/cli"

	v1 "github.com/leasehold/leasehold/api/v1"
)

// Acknowledge returns the command acknowledge.
func Acknowledge(a *cli.App) *cobra.Command {
	var reason string
	cmd := &cobra.Command{
		Use:     "acknowledge NAME",
		Aliases: []string{"ack"},
		Short:   "Confirm that an unclean end was checked, so that others can acquire",
		Long: `Acknowledge ends the rest of a resource after a lease that ended uncleanly: because
its time ran out, its session was not renewed, or somebody broke it. A resource that
is defined with --unclean acknowledge waits for this; after a grace it is only a way
not to wait any longer.

It also clears the alarms that tell of what happened on the resource (leasehold alarms):
unclean ends, flapping holders, late renewals.

It acknowledges the end that the server shows when the command looks. If another
lease has ended uncleanly by then, that still has to be acknowledged.`,
		Example: `  leasehold acknowledge db/migrate --reason "the tables are whole"
  leasehold ack db/migrate -o json | jq -r .holder
  leasehold describe db/migrate                       # whose lease, and how it ended`,
		Args:              cli.Takes(1, 1),
		ValidArgsFunction: a.Completes(1, cli.ResourceNames),
	}
	cmd.RunE = a.Talk(func(ctx context.Context, c *cli.Conn, args []string) error {
		return acknowledge(ctx, a, c, args[0], reason)
	})
	cmd.Flags().StringVar(&reason, "reason", "", "what you found, for the history")
	a.SettingFlag(cmd, "holder", "")
	a.ClientFlags(cmd)
	a.OutputFlag(cmd, cli.FormatJSON, cli.FormatName)
	return cmd
}

func acknowledge(ctx context.Context, a *cli.App, c *cli.Conn, name, reason string) error {
	resource, err := c.Resource(ctx, name, 1)
	if err != nil {
		return err
	}
	end := resource.Unacknowledged
	if end == nil && resource.AvailableAt != nil {
		end = resource.Last
	}
	if end == nil {
		if end, err = alarmedEnd(ctx, c, name); err != nil {
			return err
		}
	}
	if end == nil {
		return cli.Hint(cli.Failure(leasehold.NotFound, "%s is %s: there is nothing to acknowledge", name,
			resource.State), "see its state: %s", c.Again("describe", name))
	}
	if err := c.Acknowledge(ctx, v1.AcknowledgeRequest{Resource: name, Token: end.Token, By: c.Operator(),
		Reason: reason}); err != nil {
		return err
	}
	switch a.Output {
	case cli.FormatJSON:
		return a.PrintJSON(end)
	case cli.FormatName:
		return a.PrintLine(name)
	}
	a.Say("acknowledged: the end of %s's lease on %s (token %d, %s)", end.Holder, name, end.Token, end.How)
	return nil
}

// alarmedEnd returns the newest of what alarms tell of on a resource; nil if there is none.
func alarmedEnd(ctx context.Context, c *cli.Conn, name string) (newest *v1.Ending, err error) {
	for alarm, err := range c.Alarms(ctx, v1.AlarmQuery{Prefix: name, Limit: v1.MaxLimit}) {
		if err != nil {
			return nil, err
		}
		past := leasehold.AlarmKindOf(alarm.Kind).Past()
		if past && alarm.Resource == name && (newest == nil || alarm.Token > newest.Token) && alarm.Token != 0 {
			newest = &v1.Ending{ID: alarm.ID, Holder: alarm.Holder, Token: alarm.Token, How: alarm.Kind}
		}
	}
	return newest, nil
}
