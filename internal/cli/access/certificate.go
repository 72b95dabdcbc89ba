package access

import (
	"cmp"
	"context"

	"github.com/spf13/cobra"

	v1 "github.com/leasehold/leasehold/api/v1"
	"github.com/leasehold/leasehold/internal/cli"
)

func certificate(a *cli.App) *cobra.Command {
	return group(a, "certificate", "Say whom client certificates prove",
		`Certificate manages rules that make principals of client certificates, which the authority of
the server's --tls-client-ca has signed.`,
		`  leasehold access certificate set agents --san 'dns:*.agents.example' \
      --group agents
  leasehold access certificate list
  leasehold access certificate delete agents`,
		setCertificate(a), deleteCertificate(a), listCertificates(a))
}

func setCertificate(a *cli.App) *cobra.Command {
	var r v1.AccessCertificate
	cmd := &cobra.Command{
		Use:   "set NAME",
		Short: "Say whom certificates with a name prove",
		Long: `Set says that client certificates with a certain name prove a principal: dns:NAME, uri:NAME
or email:NAME, where * stands for any text. Without --principal it is cert: and the name in
the certificate, so that each has its own.`,
		Example: `  leasehold access certificate set agents --san 'dns:*.agents.example' \
      --group agents
  leasehold access certificate set backup --san uri:spiffe://acme/backup \
      --principal cert:backup
  leasehold access certificate set ann --san email:ann@example.com -o json`,
		Args: cli.Takes(1, 1),
	}
	intent := intends(a, cmd)
	cmd.Flags().StringVar(&r.SAN, "san", "", "dns:NAME, uri:NAME or email:NAME (required)")
	cmd.Flags().StringVar(&r.Principal, "principal", "", "whom it proves (default: cert: and the name)")
	cmd.Flags().StringArrayVar(&r.Groups, "group", nil, "group that the principal is in (repeatable)")
	return talks(a, cmd, func(ctx context.Context, c *cli.Conn, args []string) error {
		if err := cli.Needs(cmd, "san", "say which certificates are meant"); err != nil {
			return err
		}
		r.Name = args[0]
		made, err := c.PutCertificate(ctx, r, intent(c))
		if err != nil {
			return err
		}
		if a.Output == cli.FormatJSON {
			return a.PrintJSON(made)
		}
		a.Say("certificates with %s prove %s", made.SAN, cmp.Or(made.Principal, "cert: and that name"))
		return nil
	})
}

func deleteCertificate(a *cli.App) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "delete NAME",
		Short: "Delete a rule for certificates",
		Long: `Delete removes a rule: certificates that only it matched prove nobody from then on, on all
servers. The certificates themselves stay valid.`,
		Example: `  leasehold access certificate delete agents
  leasehold access certificate delete agents --reason "they use tokens now"
  leasehold access certificate delete agents --quiet`,
	}
	return deleter(a, "certificate", cmd, func(c *cli.Conn, ctx context.Context, name string, i v1.Intent) error {
		return c.DeleteCertificate(ctx, name, i)
	})
}

func listCertificates(a *cli.App) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "list",
		Short: "List the rules for certificates",
		Long: `List shows whom client certificates prove: which names in them are meant, the principal, and the
groups that it is in. Where the principal is cert:*, each name is a principal of its own.`,
		Example: `  leasehold access certificate list
  leasehold access certificate list -o wide
  leasehold access certificate list -o json | jq -r '.[].san'`,
	}
	columns := []cli.Column{{Name: "NAME"}, {Name: "SAN", Flexible: true}, {Name: "PRINCIPAL", Flexible: true},
		{Name: "GROUPS", Flexible: true}}
	return lister(a, cmd,
		func(c *cli.Conn, ctx context.Context, q v1.AccessQuery) (v1.List[v1.AccessCertificate], error) {
			return c.Certificates(ctx, q)
		}, columns, func(r v1.AccessCertificate) []string {
			return []string{r.Name, r.SAN, cmp.Or(r.Principal, "cert:*"), list(r.Groups)}
		})
}
