package token

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/leasehold/leasehold/internal/cli"

	v1 "github.com/leasehold/leasehold/api/v1"
)

// Command returns the command token, with all below it.
func Command(a *cli.App) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "token",
		Short: "Raise the fencing tokens of a namespace",
		Long: `Token is for moving from another store: the fencing tokens of a namespace can be raised
above those that the other store has granted.`,
		Example: `  leasehold token raise --above 1778400000000000 --reason "moved from Redis"
  leasehold token raise --above 81234 --reason "moved from etcd" -N billing
  leasehold audit --verb raise-tokens        # who raised them, and why`,
		Args: cobra.ArbitraryArgs,
		RunE: a.Group,
	}
	cmd.AddCommand(raise(a))
	return cmd
}

func raise(a *cli.App) *cobra.Command {
	var r v1.RaiseTokensRequest
	cmd := &cobra.Command{
		Use:   "raise",
		Short: "Make the tokens of a namespace go on above one that was seen",
		Long: `Raise makes every later grant in a namespace carry a larger token than --above. Run it
before the first grant of a namespace that takes over from another store: whatever checks
fencing tokens has seen those of the other store, and would refuse all smaller ones.

Give the largest token that the other store has granted, or that a guard has seen; more is
safe, up to 4503599627370496. Tokens only grow: if those of the namespace are above it
already, nothing changes and the command succeeds. Nothing lowers them again.

It needs a reason, which is kept in the audit.`,
		Example: `  leasehold token raise --above 1778400000000000 --reason "moved from Redis"
  leasehold token raise --above 81234 --reason "moved from etcd" -N billing
  leasehold token raise --above 81234 --reason "moved from etcd" -o json
  leasehold audit --verb raise-tokens        # who raised them, and why`,
		Args: cli.Takes(0, 0),
	}
	cmd.RunE = a.Talk(func(ctx context.Context, c *cli.Conn, _ []string) error {
		if err := cli.Needs(cmd, "above", "give the largest token that was seen"); err != nil {
			return err
		}
		if err := cli.Needs(cmd, "reason", "say where that token was seen"); err != nil {
			return err
		}
		r.By = c.Operator()
		tokens, err := c.RaiseTokens(ctx, r)
		if err != nil {
			return err
		}
		return show(a, r, tokens)
	})
	cmd.Flags().Uint64Var(&r.Above, "above", 0, "the largest token that was seen (required)")
	cmd.Flags().StringVar(&r.Reason, "reason", "", "where it was seen, for the audit (required)")
	a.ClientFlags(cmd)
	a.SettingFlag(cmd, "holder", "")
	a.OutputFlag(cmd, cli.FormatJSON)
	return cmd
}

func show(a *cli.App, r v1.RaiseTokensRequest, tokens v1.Tokens) error {
	switch {
	case a.Output == cli.FormatJSON:
		return a.PrintJSON(tokens)
	case tokens.Raised:
		a.Say("raised: the next token in namespace %s is above %d", tokens.Namespace, tokens.Newest)
	default:
		a.Say("nothing to do: the tokens of namespace %s are already above %d; the newest is %d", tokens.Namespace,
			r.Above, tokens.Newest)
	}
	return nil
}
