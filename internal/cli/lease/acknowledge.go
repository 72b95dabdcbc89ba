package lease

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/leasehold/leasehold"
	"github.com/leasehold/leasehold/internal/cli"

	v1 "github.com/leasehold/leasehold/api/v1"
)

// An acknowledgeCmd is one call of acknowledge.
type acknowledgeCmd struct {
	app     *cli.App
	session string
	kind    string
	reason  string
}

// An acknowledged is what acknowledge prints as JSON: the end of the lease after which the resource
// rested, if it did, and the alarms about anything else.
type acknowledged struct {
	Resource string `json:"resource,omitempty"`
	*v1.Ending
	Alarms []v1.Alarm `json:"alarms"`
}

// Acknowledge returns the command acknowledge, which is also alarms acknowledge.
func Acknowledge(a *cli.App) *cobra.Command {
	o := &acknowledgeCmd{app: a}
	cmd := &cobra.Command{
		Use:     "acknowledge [NAME]",
		Aliases: []string{"ack"},
		Short:   "Confirm that an unclean end or an alarm was checked",
		Long: `Acknowledge clears the alarms about a resource (leasehold alarms), of every kind. An alarm
about a lease or a queue stays cleared until that ends and it happens anew. With
--session it clears the alarms about a session, with --kind only those of a kind.

It also ends the rest of a resource after a lease that ended uncleanly: because its time
ran out, its session was not renewed, or somebody broke it. A resource that is defined
with --unclean acknowledge waits for this; after a grace it is only a way not to wait
any longer. With --kind the resource goes on resting.

It acknowledges what the server shows when the command looks. If it happens again
meanwhile, that still has to be acknowledged.`,
		Example: `  leasehold acknowledge db/migrate --reason "the tables are whole"
  leasehold ack db/migrate -o json | jq -r .holder
  leasehold describe db/migrate                  # whose lease, and how it ended`,
		Args:              cli.Takes(0, 1),
		ValidArgsFunction: a.Completes(1, cli.ResourceNames),
	}
	cmd.RunE = a.Talk(func(ctx context.Context, c *cli.Conn, args []string) error {
		switch {
		case len(args) == 1 && o.session != "":
			return cli.SeeHelp(cmd, cli.Usage("acknowledge takes NAME or --session, not both"))
		case len(args) == 1:
			return o.ofResource(ctx, c, args[0])
		case o.session != "":
			return o.ofSession(ctx, c)
		}
		return cli.SeeHelp(cmd, cli.Usage("missing NAME or --session"))
	})
	cmd.Flags().StringVar(&o.session, "session", "", "clear the alarms about the session with this `ID`")
	cmd.Flags().StringVar(&o.kind, "kind", "", "clear only alarms of this kind")
	cmd.Flags().StringVar(&o.reason, "reason", "", "what you found, for the history")
	cli.CompleteFlag(cmd, "kind", cli.AlarmKinds())
	a.SettingFlag(cmd, "holder", "")
	a.ClientFlags(cmd)
	a.OutputFlag(cmd, cli.FormatJSON, cli.FormatName)
	return cmd
}

func (o *acknowledgeCmd) ofResource(ctx context.Context, c *cli.Conn, name string) error {
	resource, err := c.Resource(ctx, name, 1)
	if err != nil {
		return err
	}
	alarms, err := o.active(ctx, c, v1.AlarmQuery{Prefix: name, Kind: o.kind},
		func(a v1.Alarm) bool { return a.Resource == name })
	if err != nil {
		return err
	}
	done := acknowledged{Resource: name, Alarms: []v1.Alarm{}}
	if o.kind == "" {
		if done.Ending, err = o.rest(ctx, c, resource); err != nil {
			return err
		}
	}
	switch {
	case len(alarms) == 0 && o.kind != "":
		return cli.Hint(cli.Failure(leasehold.NotFound, "there is no active alarm of kind %s about %s", o.kind, name),
			"see which there are: %s", c.Again("alarms", name))
	case len(alarms) == 0 && done.Ending == nil:
		return cli.Hint(cli.Failure(leasehold.NotFound, "%s is %s: there is nothing to acknowledge", name,
			resource.State), "see its state: %s", c.Again("describe", name))
	}
	return o.clear(ctx, c, done, alarms)
}

func (o *acknowledgeCmd) ofSession(ctx context.Context, c *cli.Conn) error {
	// What is about a lease of the session is acknowledged by the name of its resource.
	alarms, err := o.active(ctx, c, v1.AlarmQuery{Kind: o.kind},
		func(a v1.Alarm) bool { return a.Session == o.session && a.ID == "" })
	if err != nil {
		return err
	}
	if len(alarms) == 0 {
		return cli.Hint(cli.Failure(leasehold.NotFound, "there is no active alarm about session %s",
			cli.Printable(o.session)), "see all alarms: %s", c.Again("alarms", "-o", "wide"))
	}
	return o.clear(ctx, c, acknowledged{Alarms: []v1.Alarm{}}, alarms)
}

// active returns the active alarms that are meant, the newest first.
func (o *acknowledgeCmd) active(ctx context.Context, c *cli.Conn, q v1.AlarmQuery, meant func(v1.Alarm) bool,
) (list []v1.Alarm, err error) {
	q.Limit = v1.MaxLimit
	for alarm, err := range c.Alarms(ctx, q) {
		if err != nil {
			return nil, err
		}
		if meant(alarm) {
			list = append(list, alarm)
		}
	}
	return list, nil
}

// rest ends the rest of a resource and returns the end that it followed; nil if it did not rest.
func (o *acknowledgeCmd) rest(ctx context.Context, c *cli.Conn, r v1.Resource) (*v1.Ending, error) {
	end := r.Unacknowledged
	if end == nil && r.AvailableAt != nil {
		end = r.Last
	}
	if end == nil {
		return nil, nil
	}
	err := c.Acknowledge(ctx, v1.AcknowledgeRequest{Resource: r.Resource, Token: end.Token, By: c.Operator(),
		Reason: o.reason})
	if err != nil {
		return nil, err
	}
	o.app.Say("acknowledged: the end of %s's lease on %s (token %d, %s)", end.Holder, r.Resource, end.Token, end.How)
	return end, nil
}

// clear acknowledges alarms, as they were listed, and prints what was done.
func (o *acknowledgeCmd) clear(ctx context.Context, c *cli.Conn, done acknowledged, alarms []v1.Alarm) error {
	for _, alarm := range alarms {
		if done.covers(alarm) {
			continue
		}
		err := c.AcknowledgeAlarm(ctx, v1.AcknowledgeAlarmRequest{Kind: alarm.Kind, Resource: alarm.Resource,
			ID: alarm.ID, Session: alarm.Session, Occurrence: alarm.Occurrence, By: c.Operator(), Reason: o.reason})
		if err != nil {
			return err
		}
		done.Alarms = append(done.Alarms, alarm)
		o.app.Say("cleared: %s: %s", alarm.Kind, alarm.Text)
	}
	switch o.app.Output {
	case cli.FormatJSON:
		return o.app.PrintJSON(done)
	case cli.FormatName:
		return o.app.PrintLine(done.Resource + o.session)
	}
	return nil
}

// covers reports whether the server clears an alarm when the end of the lease is acknowledged, since it
// tells of that lease or of one before it.
func (d *acknowledged) covers(alarm v1.Alarm) bool {
	return d.Ending != nil && leasehold.AlarmKindOf(alarm.Kind).Past() && alarm.Token != 0 && alarm.Token <= d.Token
}
