package login

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net/url"
	"os"
	"strings"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/leasehold/leasehold"
	v1 "github.com/leasehold/leasehold/api/v1"
	"github.com/leasehold/leasehold/internal/cli"
	"github.com/leasehold/leasehold/internal/config"
	"github.com/leasehold/leasehold/internal/profile"
)

// Login returns the command login.
func Login(a *cli.App) *cobra.Command {
	var device profile.Device
	cmd := &cobra.Command{
		Use:   "login",
		Short: "Prove who you are, and remember it for later commands",
		Long: `Login asks for your token, without showing it, or reads it from standard input; the server
says whom it proves. With --issuer you confirm in a browser instead, on any machine, and the
token of that issuer is renewed as needed. It needs a client id that the issuer knows, and
leasehold access issuer set must have its address and audience.

What proves who you are is kept in your configuration directory, in a file that only you can
read, for the current context or else for the server. It is sent to that server alone.
LEASEHOLD_TOKEN, LEASEHOLD_TOKEN_FILE and --token-file are stronger.`,
		Example: `  leasehold login
  leasehold login --server https://leases.example < ann.token
  leasehold login --context prod --issuer https://id.example --client-id cli`,
		Args: cli.Takes(0, 0),
	}
	cmd.Flags().StringVar(&device.Issuer, "issuer", "", "log in at this OpenID provider, by its device flow")
	cmd.Flags().StringVar(&device.ClientID, "client-id", "", "client id of leasehold at the issuer")
	cmd.Flags().StringArrayVar(&device.Scopes, "scope", nil,
		"scope to ask the issuer for (default: openid, offline_access)")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		if (device.Issuer == "") != (device.ClientID == "") {
			return cli.SeeHelp(cmd, cli.Usage("--issuer and --client-id go together"))
		}
		client, err := a.ClientSettings(cmd)
		if err != nil {
			return err
		}
		credential, err := obtain(cmd.Context(), a, device)
		if err != nil {
			return err
		}
		return logIn(cmd.Context(), a, client, cmd, credential)
	}
	a.ServerFlags(cmd)
	a.OutputFlag(cmd, cli.FormatJSON)
	return cmd
}

// obtain gets what proves who the person is.
func obtain(ctx context.Context, a *cli.App, device profile.Device) (profile.Credential, error) {
	if device.Issuer == "" {
		token, err := askToken(a)
		return profile.Credential{Token: token}, err
	}
	credential, err := device.Begin(ctx, a.Now, func(p profile.Prompt) {
		fmt.Fprintf(a.Stderr, "Open %s and enter the code %s\n", cli.Printable(p.URL), cli.Printable(p.Code))
		if p.Complete != "" {
			fmt.Fprintf(a.Stderr, "or open %s\n", cli.Printable(p.Complete))
		}
	})
	var away *url.Error
	switch {
	case err == nil || ctx.Err() != nil:
	case errors.As(err, &away):
		err = cli.Failure(leasehold.Unavailable, "the issuer cannot be reached: %v", away)
	default:
		err = cli.Failure(leasehold.Denied, "%v", err)
	}
	return credential, err
}

// askToken reads a token: from a person without echo, else from standard input.
func askToken(a *cli.App) (string, error) {
	line := ""
	if a.Terminal(a.Stdin) {
		fmt.Fprint(a.Stderr, "Token: ")
		text, err := term.ReadPassword(int(os.Stdin.Fd()))
		fmt.Fprintln(a.Stderr)
		if err != nil {
			return "", cli.Usage("the token cannot be read: %v", err)
		}
		line = string(text)
	} else {
		text, err := bufio.NewReader(io.LimitReader(a.Stdin, 64<<10)).ReadString('\n')
		if err != nil && !errors.Is(err, io.EOF) {
			return "", cli.Usage("the token cannot be read: %v", err)
		}
		line = text
	}
	if line = strings.TrimSpace(line); line == "" {
		return "", cli.Usage("there is no token on standard input: write one line, such as leasehold login < ann.token")
	}
	return line, nil
}

// logIn has the server say whom a credential proves, and keeps it if it does.
func logIn(ctx context.Context, a *cli.App, client config.Client, cmd *cobra.Command, credential profile.Credential,
) error {
	client.Token = func(context.Context) (string, error) { return credential.Token, nil }
	c, err := cli.NewConn(client, cmd)
	if err != nil {
		return err
	}
	if c.Store {
		return cli.Usage("login is for Leasehold servers: another store has its credentials in its URL or its own " +
			"files")
	}
	me, err := c.Whoami(ctx)
	switch {
	case errors.Is(err, v1.ErrUnauthenticated):
		return cli.Hint(err, "nothing was kept; ask an admin for a token: leasehold access token create NAME")
	case err != nil:
		return c.Explain(err)
	case !me.Enabled:
		return cli.Failure(leasehold.Refused, "access is off at %s: everybody may do everything, and nobody logs in",
			client.Server)
	}
	dir, err := profile.UserDir(a.Getenv)
	if err != nil {
		return cli.Usage("there is no directory to keep the login in: %v", err)
	}
	credential.Servers = client.Servers
	if err := dir.SaveCredential(profile.Key(client.Context, client.Server), credential); err != nil {
		return cli.Usage("the login cannot be kept: %v", err)
	}
	if a.Output == cli.FormatJSON {
		return a.PrintJSON(me)
	}
	a.Say("logged in to %s as %s", client.Server, me.Principal)
	return nil
}

// Logout returns the command logout.
func Logout(a *cli.App) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "logout",
		Short: "Forget what login remembered",
		Long: `Logout removes what login kept for the current context, or for the server, from this
machine. The token itself goes on to be valid until it ends: if others may know it, revoke it
with leasehold access token revoke.`,
		Example: `  leasehold logout
  leasehold logout --context prod
  leasehold logout --server https://leases.example`,
		Args: cli.Takes(0, 0),
	}
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		client, err := a.ClientSettings(cmd)
		if err != nil {
			return err
		}
		dir, err := profile.UserDir(a.Getenv)
		if err != nil {
			return cli.Usage("%v", err)
		}
		known, err := dir.ForgetCredential(profile.Key(client.Context, client.Server))
		switch {
		case err != nil:
			return cli.Usage("%v", err)
		case !known:
			a.Say("nothing to do: nobody is logged in to %s", client.Server)
		default:
			a.Say("logged out of %s", client.Server)
		}
		if a.Output == cli.FormatJSON {
			return a.PrintJSON(v1.Nothing{})
		}
		return nil
	}
	a.ServerFlags(cmd)
	a.OutputFlag(cmd, cli.FormatJSON)
	return cmd
}
