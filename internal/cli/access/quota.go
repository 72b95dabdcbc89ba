package access

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	v1 "github.com/leasehold/leasehold/api/v1"
	"github.com/leasehold/leasehold/internal/cli"
)

func quota(a *cli.App) *cobra.Command {
	return group(a, "quota", "Limit how much a principal or a namespace may have",
		`Quota limits what a principal, or everything in a namespace, may have at a time. Renewals and
releases have a budget of their own, so that a flood of requests costs nobody a lease.`,
		`  leasehold access quota set --principal ci --leases 1000 --requests 200
  leasehold access quota set --of-namespace billing --leases 5000
  leasehold access quota list`,
		setQuota(a), deleteQuota(a), listQuotas(a))
}

// amounts are the flags of a quota.
func amounts(q *v1.AccessQuota) []struct {
	name string
	at   *int64
	help string
} {
	return []struct {
		name string
		at   *int64
		help string
	}{
		{"leases", &q.Leases, "leases at a time"},
		{"sessions", &q.Sessions, "sessions at a time"},
		{"waiters", &q.Waiters, "waiters at a time"},
		{"records", &q.Records, "records at a time"},
		{"bytes", &q.Bytes, "bytes of all values of records"},
		{"watches", &q.Watches, "open watches, at each server"},
		{"requests", &q.Requests, "requests a second, at each server"},
		{"renewals", &q.Renewals, "renewals and releases a second, at each server"},
	}
}

func setQuota(a *cli.App) *cobra.Command {
	var q v1.AccessQuota
	cmd := &cobra.Command{
		Use:   "set [KEY]",
		Short: "Set the quota of a principal or a namespace",
		Long: `Set replaces the quota of a principal, or of a namespace. What is not given is not limited.
The principal * stands for each that has no quota of its own. Nothing ends by it: where there
is more than allowed, nothing new is admitted until there is less. KEY and limits can be given
as leasehold access quota list shows them.`,
		Example: `  leasehold access quota set --principal ci --leases 1000 --requests 200
  leasehold access quota set --principal '*' --leases 10000 --sessions 1000
  leasehold access quota set namespace/billing --leases 5000 -o json`,
		Args: cli.Takes(0, 1),
	}
	intent := intends(a, cmd)
	whose(cmd, &q)
	for _, amount := range amounts(&q) {
		cmd.Flags().Int64Var(amount.at, amount.name, 0, amount.help+" (default: no limit)")
	}
	return talks(a, cmd, func(ctx context.Context, c *cli.Conn, args []string) error {
		if err := named(cmd, &q, args); err != nil {
			return err
		}
		if limits(q) == "" {
			return cli.SeeHelp(cmd, cli.Usage("set needs a limit, such as --leases 1000; to have none: %s",
				c.Again("access", "quota", "delete", q.Key())))
		}
		made, err := c.PutQuota(ctx, q, intent(c))
		if err != nil {
			return err
		}
		if a.Output == cli.FormatJSON {
			return a.PrintJSON(made)
		}
		a.Say("%s may have %s", made.Key(), limits(made))
		return nil
	})
}

// limits returns what a quota allows, for people.
func limits(q v1.AccessQuota) string {
	var words []string
	for _, amount := range amounts(&q) {
		if *amount.at != 0 {
			words = append(words, fmt.Sprintf("%s %d", amount.name, *amount.at))
		}
	}
	return strings.Join(words, ", ")
}

// limitFlags returns what a quota allows as the flags that set it.
func limitFlags(q v1.AccessQuota) string {
	var words []string
	for _, amount := range amounts(&q) {
		if *amount.at != 0 {
			words = append(words, fmt.Sprintf("--%s %d", amount.name, *amount.at))
		}
	}
	return strings.Join(words, " ")
}

// used returns how much there is of what a quota limits, as far as that is counted.
func used(q v1.AccessQuota) string {
	if q.Used == nil {
		return ""
	}
	var words []string
	for _, kind := range []struct {
		name    string
		most, n int64
	}{
		{"leases", q.Leases, q.Used.Leases}, {"sessions", q.Sessions, q.Used.Sessions},
		{"waiters", q.Waiters, q.Used.Waiters}, {"records", q.Records, q.Used.Records},
		{"bytes", q.Bytes, q.Used.Bytes},
	} {
		if kind.most != 0 {
			words = append(words, fmt.Sprintf("%s %d", kind.name, kind.n))
		}
	}
	return strings.Join(words, ", ")
}

// whose adds the flags that say whose quota it is.
func whose(cmd *cobra.Command, q *v1.AccessQuota) {
	cmd.Flags().StringVar(&q.Principal, "principal", "", "whose quota it is")
	cmd.Flags().StringVar(&q.Namespace, "of-namespace", "", "namespace whose quota it is")
}

// named notes whose quota it is, by a key or by flags.
func named(cmd *cobra.Command, q *v1.AccessQuota, args []string) error {
	given := len(args)
	for _, name := range []string{q.Principal, q.Namespace} {
		if name != "" {
			given++
		}
	}
	switch {
	case given == 0:
		return cli.SeeHelp(cmd, cli.Usage("%s needs a KEY, --principal or --of-namespace: say whose quota it is",
			cmd.Name()))
	case given > 1:
		return cli.SeeHelp(cmd, cli.Usage("%s takes a KEY or --principal or --of-namespace, not several of them",
			cmd.Name()))
	case len(args) == 0:
		return nil
	}
	kind, name, _ := strings.Cut(args[0], "/")
	switch {
	case name != "" && kind == "principal":
		q.Principal = name
	case name != "" && kind == "namespace":
		q.Namespace = name
	default:
		return cli.SeeHelp(cmd, cli.Usage("%q names no quota: write principal/NAME or namespace/NAME", args[0]))
	}
	return nil
}

func deleteQuota(a *cli.App) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "delete [KEY]",
		Short: "Delete a quota",
		Long: `Delete removes the quota of principal/NAME or namespace/NAME, as leasehold access quota
list shows it, or as the flags say: what it limited is not limited any more.`,
		Example: `  leasehold access quota delete principal/ci
  leasehold access quota delete --of-namespace billing --reason "moved"
  leasehold access quota delete 'principal/*'`,
	}
	var q v1.AccessQuota
	whose(cmd, &q)
	cmd = deleter(a, "quota", cmd, func(c *cli.Conn, ctx context.Context, key string, i v1.Intent) error {
		return c.DeleteQuota(ctx, key, i)
	})
	remove := cmd.RunE
	cmd.Args = cli.Takes(0, 1)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if err := named(cmd, &q, args); err != nil {
			return err
		}
		return remove(cmd, []string{q.Key()})
	}
	return cmd
}

func listQuotas(a *cli.App) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "list",
		Short: "List the quotas",
		Long: `List shows how much principals and namespaces may have, and have. What is not shown is not
limited, but for the limits of the whole cluster (leasehold cluster limits). KEY and LIMITS can
be pasted behind leasehold access quota set. Those who wait count as leases too.`,
		Example: `  leasehold access quota list
  leasehold access quota list -o wide
  leasehold access quota list -o json | jq '.[0].leases'`,
	}
	columns := []cli.Column{{Name: "KEY"}, {Name: "LIMITS", Flexible: true}, {Name: "USED", Flexible: true}}
	return lister(a, cmd, func(c *cli.Conn, ctx context.Context, q v1.AccessQuery) (v1.List[v1.AccessQuota], error) {
		return c.Quotas(ctx, q)
	}, columns, func(q v1.AccessQuota) []string { return []string{q.Key(), limitFlags(q), used(q)} })
}
