package azure

import (
	"context"
	"errors"
	"io/fs"
	"slices"

	"github.com/spf13/cobra"

	"github.com/leasehold/leasehold"
	"github.com/leasehold/leasehold/internal/cli"
	"github.com/leasehold/leasehold/internal/cli/record"

	v1 "github.com/leasehold/leasehold/api/v1"
	"github.com/leasehold/leasehold/internal/azureaccount"
)

func container(a *cli.App) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "container",
		Short: "Create a container without a client of Azure",
		Long: `Container creates containers without a client of Azure: the azurerm backend, for one,
needs its container to exist, and does not create it.`,
		Example: `  leasehold azure container create prod tfstate
  leasehold azure container create prod tfstate --server http://127.0.0.1:4653
  leasehold azure container create prod tfstate --quiet`,
		Args: cobra.ArbitraryArgs,
		RunE: a.Group,
	}
	cmd.AddCommand(createContainerCommand(a))
	return cmd
}

func createContainerCommand(a *cli.App) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "create ACCOUNT CONTAINER",
		Short: "Create a container",
		Long: `Create asks a server to create a container in an account. If the container exists,
nothing is changed, and the command succeeds.

The account has to be in the file of accounts (--azure-accounts), if there is one where
you run this: servers do not tell anybody which accounts they have.`,
		Example: `  leasehold azure container create prod tfstate
  leasehold azure container create prod tfstate --server http://127.0.0.1:4653
  leasehold azure container create prod tfstate --quiet`,
		Args: cli.Takes(2, 2),
	}
	cmd.RunE = a.Talk(func(ctx context.Context, c *cli.Conn, args []string) error {
		path, value, err := azureaccount.NewContainer(args[0], args[1], a.Now())
		if err != nil {
			return cli.SeeHelp(cmd, cli.Usage("%v", err))
		}
		if err := hasAccount(a, cmd, args[0]); err != nil {
			return err
		}
		_, err = c.PutRecord(ctx, v1.PutRequest{Path: path, Value: []byte(value), IfAbsent: true})
		existed := errors.Is(err, leasehold.ErrRefused)
		switch {
		case existed:
			a.Say("container %s of %s exists already", args[1], args[0])
		case err != nil:
			return record.ExplainRecord(c, err)
		default:
			a.Say("created container %s of %s", args[1], args[0])
		}
		if a.Output == cli.FormatJSON {
			return a.PrintJSON(createdContainer{args[0], args[1], !existed})
		}
		return nil
	})
	a.SettingFlag(cmd, "azure-accounts", "")
	a.SettingFlag(cmd, "config", "")
	a.ClientFlags(cmd)
	a.OutputFlag(cmd, cli.FormatJSON)
	return cmd
}

// hasAccount refuses an account that the file of accounts does not have: its container could not be
// used, and somebody would look for the reason elsewhere. Without a file, as on the machine of
// somebody who works on a remote cluster, nobody can tell.
func hasAccount(a *cli.App, cmd *cobra.Command, account string) error {
	settings, err := serverSettings(a, cmd)
	if err != nil {
		return err
	}
	file := settings.Doors["azure-accounts"]
	names, err := azureaccount.NamesIn(file)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		a.Say("note: there is no %s here, so nobody checked that the servers have an account %s", cli.Quote(file),
			account)
		return nil
	case err != nil:
		return cli.Usage("%v", err)
	case !slices.Contains(names, account):
		return unknownAccount(file, account)
	}
	return nil
}

// A createdContainer is what create did, for programs.
type createdContainer struct {
	Account   string `json:"account"`
	Container string `json:"container"`
	Created   bool   `json:"created"` // false: it existed
}
