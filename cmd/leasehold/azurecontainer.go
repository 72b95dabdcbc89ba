package main

import (
	"context"
	"errors"

	"github.com/spf13/cobra"

	"github.com/leasehold/leasehold"
	v1 "github.com/leasehold/leasehold/api/v1"
	"github.com/leasehold/leasehold/internal/azureaccount"
)

func (a *app) azureContainerCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "container",
		Short: "Create a container without a client of Azure",
		Long: `Container is for who has no client of Azure at hand: the azurerm backend, for one,
wants its container to be there and does not make it.`,
		Example: `  leasehold azure container create prod tfstate
  leasehold azure container create prod tfstate --server http://127.0.0.1:4653
  leasehold azure container create prod tfstate --quiet`,
		Args: cobra.ArbitraryArgs,
		RunE: a.onlySubcommands,
	}
	cmd.AddCommand(a.createContainerCommand())
	return cmd
}

func (a *app) createContainerCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "create ACCOUNT CONTAINER",
		Short: "Create a container",
		Long: `Create makes a container of an account, by asking a server on its own port. That it is
there already is no failure: nothing is changed then.`,
		Example: `  leasehold azure container create prod tfstate
  leasehold azure container create prod tfstate --server http://127.0.0.1:4653
  leasehold azure container create prod tfstate --quiet`,
		Args: takes(2, 2),
	}
	cmd.RunE = a.talks(func(ctx context.Context, c *conn, args []string) error {
		path, value, err := azureaccount.NewContainer(args[0], args[1], a.now())
		if err != nil {
			return seeHelp(cmd, usage("%v", err))
		}
		_, err = c.PutRecord(ctx, v1.PutRequest{Path: path, Value: []byte(value), IfAbsent: true})
		switch {
		case errors.Is(err, leasehold.ErrRefused):
			a.say("container %s of %s is there already", args[1], args[0])
			return nil
		case err != nil:
			return c.explainRecord(err)
		}
		a.say("created container %s of %s", args[1], args[0])
		return nil
	})
	a.clientFlags(cmd)
	return cmd
}
