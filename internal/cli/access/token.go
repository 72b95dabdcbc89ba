package access

import (
	"context"
	"crypto/rand"
	"errors"
	"io/fs"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	v1 "github.com/leasehold/leasehold/api/v1"
	"github.com/leasehold/leasehold/internal/cli"
)

func token(a *cli.App) *cobra.Command {
	return group(a, "token", "Create, list and revoke tokens",
		`Token manages the tokens by which people and programs prove who they are. A token has a
principal, and may have groups. Only a hash of its secret is kept: the secret is shown once.`,
		`  leasehold access token create ci --group team-a > ci.token
  leasehold access token list
  leasehold access token revoke t-5f1c09ab77d2 --reason "left the team"`,
		createToken(a), listTokens(a), revokeToken(a))
}

// A life is how long a token is good for.
type life struct{ cli.Span }

func (l *life) Type() string { return "duration|none" }

func (l *life) String() string {
	if l.Given && l.Value == 0 {
		return "none"
	}
	return l.Span.String()
}

func (l *life) Set(text string) error {
	if text == "none" {
		l.Span = cli.SpanOf(0)
		return nil
	}
	if err := l.Span.Set(text); err != nil || l.Value == 0 {
		return errors.New("write a duration such as 12h or 90d, or none")
	}
	return nil
}

func createToken(a *cli.App) *cobra.Command {
	var r v1.TokenRequest
	var file string
	ttl := life{cli.SpanOf(90 * 24 * time.Hour)}
	cmd := &cobra.Command{
		Use:   "create PRINCIPAL",
		Short: "Create a token, and print its secret once",
		Long: `Create makes a token for a principal and prints its secret to standard output, once.
The secret is made on this machine, and only its hash is sent. What the principal may do,
bindings say: see leasehold access bind.

With --secret-file the secret is written to a new file that only you can read. A token ends
after 90 days unless --ttl says otherwise.`,
		Example: `  leasehold access token create ann --group team-a
  leasehold access token create ci --ttl 365d --secret-file ci.token
  leasehold access token create prometheus --ttl none -o json | jq -r .secret`,
		Args: cli.Takes(1, 1),
	}
	intent := intends(a, cmd)
	cmd.Flags().StringArrayVar(&r.Groups, "group", nil, "group that the principal is in (repeatable)")
	cmd.Flags().StringVar(&r.Description, "description", "", "what it is for")
	cmd.Flags().Var(&ttl, "ttl", "how long it is good for, or none")
	cmd.Flags().StringVar(&r.ID, "id", "", "name of the token in lists (default: made)")
	cmd.Flags().StringVar(&file, "secret-file", "", "write the secret to this new file instead")
	return talks(a, cmd, func(ctx context.Context, c *cli.Conn, args []string) error {
		i := intent(c)
		r.Principal, r.TTL, r.By, r.Reason = args[0], v1.Duration(ttl.Value), i.By, i.Reason
		if r.ID == "" {
			r.ID = "t-" + strings.ToLower(rand.Text()[:12])
		}
		return makeToken(ctx, a, c, r, file)
	})
}

func makeToken(ctx context.Context, a *cli.App, c *cli.Conn, r v1.TokenRequest, file string) error {
	secret := ""
	secret, r.Hash = v1.NewSecret()
	if file != "" {
		// Before the token exists: a secret that cannot be kept is of no use.
		switch err := keepSecret(file, secret); {
		case errors.Is(err, fs.ErrExist):
			return cli.Usage("%s exists, and may have the only copy of a secret: name another file, or remove it first",
				file)
		case err != nil:
			return cli.Usage("the secret cannot be written, and no token was created: %v", err)
		}
	}
	made, err := c.CreateToken(ctx, r)
	if err != nil {
		if file != "" {
			_ = os.Remove(file)
		}
		return err
	}
	ends := "never ends"
	if made.Token.Expires != nil {
		ends = "ends at " + cli.Absolute(made.Token.Expires.Time)
	}
	a.Say("created token %s for %s, which %s; its secret is not shown again", made.Token.ID, made.Token.Principal, ends)
	if file == "" {
		made.Secret = secret
	}
	switch {
	case a.Output == cli.FormatJSON:
		return a.PrintJSON(made)
	case file == "":
		return a.PrintLine(secret)
	}
	return nil
}

// keepSecret writes a secret to a file that is new and that nobody else can read.
func keepSecret(path, secret string) error {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	_, err = f.WriteString(secret + "\n")
	return errors.Join(err, f.Close())
}

func listTokens(a *cli.App) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "list",
		Short: "List the tokens, without their secrets",
		Long: `List shows all tokens: whose they are, when they end and about when each was used last.
Secrets are not kept and cannot be shown.`,
		Example: `  leasehold access token list
  leasehold access token list -o wide
  leasehold access token list -o json | jq -r '.[] | select(.used == null).id'`,
	}
	columns := []cli.Column{{Name: "ID"}, {Name: "PRINCIPAL", Flexible: true}, {Name: "GROUPS", Flexible: true},
		{Name: "ENDS"}, {Name: "USED"}, {Name: "DESCRIPTION", Flexible: true}}
	return lister(a, cmd, func(c *cli.Conn, ctx context.Context, q v1.AccessQuery) (v1.List[v1.AccessToken], error) {
		return c.AccessTokens(ctx, q)
	}, columns, func(t v1.AccessToken) []string {
		return []string{t.ID, t.Principal, list(t.Groups), ends(a, t.Expires), a.When(t.Used), t.Description}
	})
}

// ends returns when a token ends, for people.
func ends(a *cli.App, t *v1.Time) string {
	switch {
	case t == nil:
		return "never"
	case a.Output == cli.FormatWide:
		return cli.Absolute(t.Time)
	case !t.After(a.Now()):
		return "ended"
	}
	return "in " + cli.Short(t.Sub(a.Now()))
}

func revokeToken(a *cli.App) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "revoke ID",
		Short: "Revoke a token at once, everywhere",
		Long: `Revoke removes a token: requests with it are refused, and open watches end within a second.
Leases that were acquired with it go on until their TTL ends, unless a role says that they
end at once (on_revoke: end).`,
		Example: `  leasehold access token revoke t-5f1c09ab77d2
  leasehold access token revoke t-5f1c09ab77d2 --reason "left the team"
  leasehold access token revoke t-5f1c09ab77d2 -o json`,
	}
	return deleter(a, "token", cmd, func(c *cli.Conn, ctx context.Context, id string, i v1.Intent) error {
		return c.RevokeToken(ctx, id, i)
	})
}
