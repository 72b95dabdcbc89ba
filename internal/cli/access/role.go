package access

import (
	"context"
	"strings"

	"github.com/spf13/cobra"

	v1 "github.com/leasehold/leasehold/api/v1"
	"github.com/leasehold/leasehold/internal/cli"
)

func role(a *cli.App) *cobra.Command {
	return group(a, "role", "Set, delete and list roles",
		`Role manages sets of verbs. The roles viewer, member, operator and admin are always there and
cannot be changed; make others where they do not fit.`,
		`  leasehold access role list
  leasehold access role set deployer read list acquire renew:own release:own
  leasehold access role delete deployer`,
		setRole(a), deleteRole(a), listRoles(a))
}

func setRole(a *cli.App) *cobra.Command {
	var end bool
	cmd := &cobra.Command{
		Use:   "set NAME VERB...",
		Short: "Set what a role may do",
		Long: `Set makes a role, or replaces what it may do. A verb is one of:

  ` + strings.Join(v1.Verbs[:10], ", ") + `,
  ` + strings.Join(v1.Verbs[10:], ", ") + `

With :own behind it, a verb is for what the principal itself, or its group, holds. That is
possible for:

  ` + strings.Join(v1.OwnVerbs, ", ") + `

With --end-on-revoke the leases of those who lose the role end at once; else they last until
their TTL ends, and cannot be renewed.`,
		Example: `  leasehold access role set deployer read list acquire renew:own release:own
  leasehold access role set breaker read list break --reason "on call"
  leasehold access role set contractor read acquire renew:own --end-on-revoke`,
		Args: cli.Takes(2, -1),
		ValidArgsFunction: func(_ *cobra.Command, args []string, _ string) ([]cobra.Completion,
			cobra.ShellCompDirective) {
			if len(args) == 0 {
				return nil, cobra.ShellCompDirectiveNoFileComp
			}
			return v1.Verbs, cobra.ShellCompDirectiveNoFileComp
		},
	}
	intent := intends(a, cmd)
	cmd.Flags().BoolVar(&end, "end-on-revoke", false, "end the leases of those who lose the role")
	return talks(a, cmd, func(ctx context.Context, c *cli.Conn, args []string) error {
		r := v1.AccessRole{Name: args[0]}
		for _, word := range args[1:] {
			r.Verbs = append(r.Verbs, strings.Split(word, ",")...) // as list prints them
		}
		if end {
			r.OnRevoke = "end"
		}
		made, err := c.PutRole(ctx, r, intent(c))
		if err != nil {
			return err
		}
		if a.Output == cli.FormatJSON {
			return a.PrintJSON(made)
		}
		a.Say("role %s may %s", made.Name, strings.Join(made.Verbs, ", "))
		return nil
	})
}

func deleteRole(a *cli.App) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "delete NAME",
		Short: "Delete a role that no binding gives",
		Long: `Delete removes a role. One that a binding still gives is refused: take it back first, with
leasehold access unbind. The roles that are always there stay.`,
		Example: `  leasehold access role delete deployer
  leasehold access role delete deployer --reason "replaced by member"
  leasehold access role delete deployer --quiet`,
	}
	return deleter(a, "role", cmd, func(c *cli.Conn, ctx context.Context, name string, i v1.Intent) error {
		return c.DeleteRole(ctx, name, i)
	})
}

func listRoles(a *cli.App) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "list",
		Short: "List the roles and what they may do",
		Long: `List shows the roles, those that are always there included. A verb with :own is for what
is one's own only; ON REVOKE says what becomes of the leases of those who lose the role.`,
		Example: `  leasehold access role list
  leasehold access role list -o wide
  leasehold access role list -o json |
      jq -r '.[] | select(.name == "member").verbs[]'`,
	}
	columns := []cli.Column{{Name: "NAME"}, {Name: "ON REVOKE"}, {Name: "VERBS", Flexible: true}}
	return lister(a, cmd, func(c *cli.Conn, ctx context.Context, q v1.AccessQuery) (v1.List[v1.AccessRole], error) {
		return c.Roles(ctx, q)
	}, columns, func(r v1.AccessRole) []string {
		end := "keep"
		if r.OnRevoke != "" {
			end = r.OnRevoke
		}
		return []string{r.Name, end, list(r.Verbs)}
	})
}
