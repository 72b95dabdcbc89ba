package access

import (
	"context"
	"os"
	"strings"

	"github.com/spf13/cobra"

	v1 "github.com/leasehold/leasehold/api/v1"
	"github.com/leasehold/leasehold/internal/cli"
)

func issuer(a *cli.App) *cobra.Command {
	return group(a, "issuer", "Trust the JWTs of GitHub, GitLab, Kubernetes, Entra…",
		`Issuer manages whose JWTs prove who asks, so that CI needs no stored secret. The principal of
a JWT is NAME:SUBJECT, where NAME is that of the issuer; its claims put it into groups.`,
		`  leasehold access issuer set github \
      --url https://token.actions.githubusercontent.com --audience leases \
      --claim repository=acme/web:ci-web
  leasehold access issuer list
  leasehold access issuer delete github`,
		setIssuer(a), deleteIssuer(a), listIssuers(a))
}

func setIssuer(a *cli.App) *cobra.Command {
	var r v1.AccessIssuer
	var keys string
	var claims []string
	cmd := &cobra.Command{
		Use:   "set NAME",
		Short: "Trust the JWTs of an issuer",
		Long: `Set trusts JWTs of an issuer that are meant for an audience. Their keys are discovered at
the URL, or are in a file of JWKS that --keys-file names, for sites without a way out.

A --claim CLAIM=VALUE:GROUP puts those whose claim has a value into a group; * in the value
stands for any text.`,
		Example: `  leasehold access issuer set github \
      --url https://token.actions.githubusercontent.com --audience leases \
      --claim repository=acme/web:ci-web
  leasehold access issuer set gitlab --url https://gitlab.example \
      --audience leases --claim 'project_path=acme/*:ci'
  leasehold access issuer set cluster --url https://kubernetes.default.svc \
      --audience leases --keys-file jwks.json`,
		Args: cli.Takes(1, 1),
	}
	intent := intends(a, cmd)
	cmd.Flags().StringVar(&r.URL, "url", "", "the issuer, as in the claim iss (required)")
	cmd.Flags().StringArrayVar(&r.Audiences, "audience", nil,
		"audience that its tokens for us have (required, repeatable)")
	cmd.Flags().StringArrayVar(&claims, "claim", nil, "CLAIM=VALUE:GROUP, who is in which group (repeatable)")
	cmd.Flags().StringVar(&r.Principal, "principal-claim", "", "claim that names the principal (default: sub)")
	cmd.Flags().StringVar(&keys, "keys-file", "", "file of JWKS (default: discovered at the URL)")
	return talks(a, cmd, func(ctx context.Context, c *cli.Conn, args []string) error {
		if err := cli.Needs(cmd, "url", "give the address that the claim iss has"); err != nil {
			return err
		}
		if len(r.Audiences) == 0 {
			return cli.SeeHelp(cmd, cli.Usage("set needs --audience: a JWT that was made for another must not count"))
		}
		r.Name = args[0]
		if err := readClaims(&r, claims); err != nil {
			return cli.SeeHelp(cmd, err)
		}
		if keys != "" {
			text, err := os.ReadFile(keys)
			if err != nil {
				return cli.Usage("%v", err)
			}
			r.Keys = string(text)
		}
		made, err := c.PutIssuer(ctx, r, intent(c))
		if err != nil {
			return err
		}
		if a.Output == cli.FormatJSON {
			return a.PrintJSON(made)
		}
		a.Say("JWTs of %s for %s prove principals %s:SUBJECT", made.URL, list(made.Audiences), made.Name)
		return nil
	})
}

// readClaims reads the rules for groups. The group is behind the last colon: values may have some.
func readClaims(r *v1.AccessIssuer, claims []string) error {
	for _, text := range claims {
		claim, rest, ok := strings.Cut(text, "=")
		i := strings.LastIndexByte(rest, ':')
		if !ok || i < 1 || claim == "" || i == len(rest)-1 {
			return cli.Usage("--claim is %q: write CLAIM=VALUE:GROUP, such as repository=acme/web:ci-web", text)
		}
		r.Groups = append(r.Groups, v1.ClaimRule{Claim: claim, Value: rest[:i], Group: rest[i+1:]})
	}
	return nil
}

func deleteIssuer(a *cli.App) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "delete NAME",
		Short: "Trust an issuer no longer",
		Long: `Delete removes an issuer: its JWTs prove nothing from then on, on all servers. Leases that
were acquired with them go on until their TTL ends.`,
		Example: `  leasehold access issuer delete github
  leasehold access issuer delete gitlab --reason "we moved"
  leasehold access issuer delete gitlab --quiet`,
	}
	return deleter(a, "issuer", cmd, func(c *cli.Conn, ctx context.Context, name string, i v1.Intent) error {
		return c.DeleteIssuer(ctx, name, i)
	})
}

func listIssuers(a *cli.App) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "list",
		Short: "List the issuers",
		Long: `List shows the issuers whose JWTs are trusted, for which audiences, and which claims put
somebody into which group, as CLAIM=VALUE:GROUP.`,
		Example: `  leasehold access issuer list
  leasehold access issuer list -o wide
  leasehold access issuer list -o json | jq -r '.[].url'`,
	}
	columns := []cli.Column{{Name: "NAME"}, {Name: "URL", Flexible: true}, {Name: "AUDIENCES", Flexible: true},
		{Name: "GROUPS", Flexible: true}}
	return lister(a, cmd, func(c *cli.Conn, ctx context.Context, q v1.AccessQuery) (v1.List[v1.AccessIssuer], error) {
		return c.Issuers(ctx, q)
	}, columns, func(i v1.AccessIssuer) []string {
		var groups []string
		for _, r := range i.Groups {
			groups = append(groups, r.Claim+"="+r.Value+":"+r.Group)
		}
		return []string{i.Name, i.URL, list(i.Audiences), strings.Join(groups, " ")}
	})
}
