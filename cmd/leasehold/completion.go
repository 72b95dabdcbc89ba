package main

import (
	"context"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"

	v1 "github.com/leasehold/leasehold/api/v1"
)

func (a *app) completionCommand() *cobra.Command {
	shells := map[string]func(root *cobra.Command, w io.Writer) error{
		"bash":       func(root *cobra.Command, w io.Writer) error { return root.GenBashCompletionV2(w, true) },
		"zsh":        (*cobra.Command).GenZshCompletion,
		"fish":       func(root *cobra.Command, w io.Writer) error { return root.GenFishCompletion(w, true) },
		"powershell": (*cobra.Command).GenPowerShellCompletionWithDesc,
	}
	names := []string{"bash", "zsh", "fish", "powershell"}
	return &cobra.Command{
		Use:   "completion SHELL",
		Short: "Print a script that completes commands, flags and names in your shell",
		Long: `Completion prints a script for bash, zsh, fish or powershell. Once the shell has
read it, the tab key completes commands, flags and their values, and also the
names of resources and the ids of leases, which it asks the server for.

The server is asked for at most half a second; if it does not answer by then,
nothing is offered.`,
		Example: `  source <(leasehold completion bash)                       # this shell only
  leasehold completion zsh > "${fpath[1]}/_leasehold"       # every zsh from now on
  leasehold completion fish > ~/.config/fish/completions/leasehold.fish`,
		Args:              takes(1, 1),
		ValidArgsFunction: cobra.FixedCompletions(names, cobra.ShellCompDirectiveNoFileComp),
		RunE: func(cmd *cobra.Command, args []string) error {
			generate, ok := shells[args[0]]
			if !ok {
				return seeHelp(cmd, usage("there is no script for %q: use %s", args[0], orList(names)))
			}
			return written(generate(cmd.Root(), a.stdout))
		},
	}
}

// completionTime is how long the server is asked while somebody holds the tab key.
const completionTime = 500 * time.Millisecond

// An offer is what a resource gives to choose from.
type offer func(v1.Resource) []cobra.Completion

// completes offers what the server knows for the first so many arguments; any
// number if most < 0.
func (a *app) completes(most int, offer offer) cobra.CompletionFunc {
	return func(cmd *cobra.Command, args []string, typed string) ([]cobra.Completion, cobra.ShellCompDirective) {
		if most >= 0 && len(args) >= most {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		c, err := a.connect(cmd)
		if err != nil {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		ctx, cancel := context.WithTimeout(context.Background(), completionTime)
		defer cancel()
		return offers(ctx, c, typed, offer), cobra.ShellCompDirectiveNoFileComp
	}
}

// offers asks for one page: nobody reads more.
func offers(ctx context.Context, c *conn, typed string, offer offer) (list []cobra.Completion) {
	page, err := c.ResourcePage(ctx, v1.ResourceQuery{All: true, Limit: v1.MaxLimit})
	if err != nil {
		return nil
	}
	for _, resource := range page.Items {
		for _, choice := range offer(resource) {
			if strings.HasPrefix(choice, typed) {
				list = append(list, choice)
			}
		}
	}
	return list
}

func resourceNames(r v1.Resource) []cobra.Completion {
	described := r.State
	if len(r.Holders) > 0 {
		described += ", " + r.Holders[0].Holder
	}
	return []cobra.Completion{cobra.CompletionWithDesc(r.Resource, printable(described))}
}

func leaseIDs(r v1.Resource) (list []cobra.Completion) {
	for _, lease := range r.Holders {
		list = append(list, cobra.CompletionWithDesc(lease.ID, printable(r.Resource+", "+lease.Holder)))
	}
	return list
}
