package main

import (
	"context"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/leasehold/leasehold"
	v1 "github.com/leasehold/leasehold/api/v1"
)

func (a *app) alarmsCommand() *cobra.Command {
	var kind string
	var check bool
	cmd := &cobra.Command{
		Use:   "alarms [PREFIX]",
		Short: "Show what somebody should look at",
		Long: `Alarms shows what somebody should look at, the newest first:

  held-long     a lease is held for longer than was expected (leasehold help
                define), or than is usual on its resource
  long-queue    more wait for a resource than usual
  unclean-end   a lease ended without its holder giving it back
  flapping      holders of a resource went away three times within five minutes
  late-renewal  a renewal came with less than a tenth of the TTL left

The first two stand until the lease ends or the queue is short again, the others for
an hour after it happened last. There is one alarm for each thing; COUNT says how
often it happened.

With --check the command ends with code 1 if any alarm stands, for monitoring.`,
		Example: `  leasehold alarms
  leasehold alarms prod/ --kind held-long
  leasehold alarms --check -q || page-somebody`,
		Args:              takes(0, 1),
		ValidArgsFunction: a.completes(1, resourceNames),
	}
	cmd.RunE = a.talks(func(ctx context.Context, c *conn, args []string) error {
		q := v1.AlarmQuery{Kind: kind, Limit: v1.MaxLimit}
		if len(args) == 1 {
			q.Prefix = args[0]
		}
		return a.alarms(ctx, c, q, check)
	})
	cmd.Flags().StringVar(&kind, "kind", "", "only alarms of this kind")
	cmd.Flags().BoolVar(&check, "check", false, "end with code 1 if any alarm stands")
	completeFlag(cmd, "kind", alarmKinds())
	a.clientFlags(cmd)
	a.outputFlag(cmd, formatWide, formatJSON, formatName)
	return cmd
}

func alarmKinds() (names []string) {
	for _, kind := range leasehold.AlarmKinds {
		names = append(names, kind.String())
	}
	return names
}

func (a *app) alarms(ctx context.Context, c *conn, q v1.AlarmQuery, check bool) error {
	list := []v1.Alarm{}
	for alarm, err := range c.Alarms(ctx, q) {
		if err != nil {
			return err
		}
		list = append(list, alarm)
	}
	if err := a.printAlarms(c, list); err != nil {
		return err
	}
	if check && len(list) > 0 {
		return alarmed(plural(len(list), "alarm stands", "alarms stand") + ": look at them, and clear what causes them")
	}
	return nil
}

func (a *app) printAlarms(c *conn, list []v1.Alarm) error {
	switch {
	case a.output == formatJSON:
		return a.printJSON(list)
	case a.output == formatName:
		for _, alarm := range list {
			if err := a.printLine(alarm.Resource); err != nil {
				return err
			}
		}
		return nil
	case len(list) == 0:
		a.say("no alarm stands in namespace %s", c.client.Namespace)
		return nil
	}
	columns := []column{{name: "KIND"}, {name: "RESOURCE"}, {name: "SINCE"}, {name: "COUNT", right: true}, {name: "WHAT", flexible: true}}
	if a.output == formatWide {
		columns = append(columns, column{name: "LAST"}, column{name: "HOLDER"}, column{name: "ID"}, column{name: "SESSION"})
	}
	var rows [][]string
	for _, alarm := range list {
		row := []string{alarm.Kind, alarm.Resource, a.when(&alarm.Since), strconv.Itoa(alarm.Count), alarm.Text}
		if a.output == formatWide {
			row = append(row, a.when(&alarm.Last), alarm.Holder, alarm.ID, alarm.Session)
		}
		rows = append(rows, row)
	}
	return a.printTable(columns, rows)
}
