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
		Use:   "set",
		Short: "Set the quota of a principal or a namespace",
		Long: `Set replaces the quota of a principal, or of a namespace. What is not given is not limited.
The principal * stands for each that has no quota of its own. Nothing ends by it: where there
is more than allowed, nothing new is admitted until there is less.`,
		Example: `  leasehold access quota set --principal ci --leases 1000 --requests 200
  leasehold access quota set --principal '*' --leases 10000 --sessions 1000
  leasehold access quota set --of-namespace billing --leases 5000 -o json`,
		Args: cli.Takes(0, 0),
	}
	intent := intends(a, cmd)
	cmd.Flags().StringVar(&q.Principal, "principal", "", "whose quota it is")
	cmd.Flags().StringVar(&q.Namespace, "of-namespace", "", "namespace whose quota it is")
	for _, amount := range amounts(&q) {
		cmd.Flags().Int64Var(amount.at, amount.name, 0, amount.help+" (default: no limit)")
	}
	return talks(a, cmd, func(ctx context.Context, c *cli.Conn, _ []string) error {
		if (q.Principal == "") == (q.Namespace == "") {
			return cli.SeeHelp(cmd, cli.Usage("set needs --principal or --of-namespace: say whose quota it is"))
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

func deleteQuota(a *cli.App) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "delete KEY",
		Short: "Delete a quota",
		Long: `Delete removes the quota of principal/NAME or namespace/NAME, as leasehold access quota
list shows it: what it limited is not limited any more.`,
		Example: `  leasehold access quota delete principal/ci
  leasehold access quota delete namespace/billing --reason "moved"
  leasehold access quota delete 'principal/*'`,
	}
	return deleter(a, "quota", cmd, func(c *cli.Conn, ctx context.Context, key string, i v1.Intent) error {
		return c.DeleteQuota(ctx, key, i)
	})
}

func listQuotas(a *cli.App) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "list",
		Short: "List the quotas",
		Long: `List shows how much principals and namespaces may have. What is not shown is not limited, but
for the limits of the whole cluster (leasehold cluster limits).`,
		Example: `  leasehold access quota list
  leasehold access quota list -o wide
  leasehold access quota list -o json | jq '.[0].leases'`,
	}
	columns := []cli.Column{{Name: "KEY"}, {Name: "LIMITS", Flexible: true}}
	return lister(a, cmd, func(c *cli.Conn, ctx context.Context, q v1.AccessQuery) (v1.List[v1.AccessQuota], error) {
		return c.Quotas(ctx, q)
	}, columns, func(q v1.AccessQuota) []string { return []string{q.Key(), limits(q)} })
}
