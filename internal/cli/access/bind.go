package access

import (
	"context"

	"github.com/spf13/cobra"

	v1 "github.com/leasehold/leasehold/api/v1"
	"github.com/leasehold/leasehold/internal/cli"
)

func bind(a *cli.App) *cobra.Command {
	var b v1.AccessBinding
	var everywhere bool
	cmd := &cobra.Command{
		Use:   "bind ROLE",
		Short: "Give a role to a principal or a group",
		Long: `Bind lets a principal, or everybody in a group, do what a role says: to what is below a
prefix of paths, in the namespace of --namespace or in all of them. The prefix a/ covers what
is below a, and a covers a itself too; without one, everything in the namespace.

With --holders, leases can be taken only in names below that prefix, so that nobody holds in
the name of another team. Binding again replaces what the binding of that name said.`,
		Example: `  leasehold access bind member --group team-a --prefix a/ --holders team-a
  leasehold access bind viewer --to ann -N billing
  leasehold access bind admin --group platform --all-namespaces`,
		Args: cli.Takes(1, 1),
	}
	intent := intends(a, cmd)
	cmd.Flags().StringVar(&b.Principal, "to", "", "principal to give it to")
	cmd.Flags().StringVar(&b.Group, "group", "", "group to give it to")
	cmd.Flags().StringVar(&b.Prefix, "prefix", "", "paths that it is for (default: all)")
	cmd.Flags().StringVar(&b.Holders, "holders", "", "names of holders that may be given (default: any)")
	cmd.Flags().BoolVar(&everywhere, "all-namespaces", false, "in all namespaces, and for the cluster itself")
	cmd.Flags().StringVar(&b.Name, "name", "", "name of the binding (default: made of the rest)")
	a.SettingFlag(cmd, "namespace", "N")
	return talks(a, cmd, func(ctx context.Context, c *cli.Conn, args []string) error {
		if (b.Principal == "") == (b.Group == "") {
			return cli.SeeHelp(cmd, cli.Usage("bind needs --to PRINCIPAL or --group GROUP: say who gets the role"))
		}
		if everywhere && cmd.Flags().Changed("namespace") {
			return cli.SeeHelp(cmd, cli.Usage("bind takes --namespace or --all-namespaces, not both"))
		}
		b.Role, b.Namespace = args[0], c.Client.Namespace
		if everywhere {
			b.Namespace = "*"
		}
		made, err := c.PutBinding(ctx, b, intent(c))
		if err != nil {
			return err
		}
		if a.Output == cli.FormatJSON {
			return a.PrintJSON(made)
		}
		a.Say("%s is %s of %s (binding %s)", who(b.Principal, b.Group), b.Role, where(b.Namespace, b.Prefix), made.Name)
		if b.Role == "admin" && (!everywhere || b.Prefix != "") {
			a.Say("to change the cluster, or who may do what, takes a binding with --all-namespaces and no --prefix")
		}
		return nil
	})
}

func unbind(a *cli.App) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "unbind NAME",
		Short: "Take back what a binding gave",
		Long: `Unbind removes a binding by its name, as leasehold access bindings shows it. It takes
effect at once, everywhere. Leases that were acquired by it go on until their TTL ends, unless
the role says that they end at once.`,
		Example: `  leasehold access bindings
  leasehold access unbind member:group=team-a@default/a/
  leasehold access unbind viewer:ann@billing --reason "left the team"`,
	}
	return deleter(a, "binding", cmd, func(c *cli.Conn, ctx context.Context, name string, i v1.Intent) error {
		return c.DeleteBinding(ctx, name, i)
	})
}

func bindings(a *cli.App) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "bindings",
		Short: "List who has which role where",
		Long: `Bindings shows who has which role where, and in which names they may hold leases. The
name of a binding is what leasehold access unbind takes.`,
		Example: `  leasehold access bindings
  leasehold access bindings -o wide
  leasehold access bindings -o json | jq -r '.[].name'`,
	}
	columns := []cli.Column{{Name: "NAME"}, {Name: "ROLE"}, {Name: "WHO", Flexible: true},
		{Name: "WHERE", Flexible: true}, {Name: "HOLDERS", Flexible: true}}
	return lister(a, cmd, func(c *cli.Conn, ctx context.Context, q v1.AccessQuery) (v1.List[v1.AccessBinding], error) {
		return c.Bindings(ctx, q)
	}, columns, func(b v1.AccessBinding) []string {
		return []string{b.Name, b.Role, who(b.Principal, b.Group), where(b.Namespace, b.Prefix), b.Holders}
	})
}
