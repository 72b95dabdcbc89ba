package main

import (
	"context"
	"io"
	"slices"
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
type offer struct {
	byName bool // only resources whose name begins with what was typed can have it
	of     func(v1.Resource) []cobra.Completion
}

var (
	resourceNames = offer{true, nameOf}
	leaseIDs      = offer{false, idsOf}
	holderNames   = offer{false, holdersOf}
)

// completes offers what the server knows for the first so many arguments; any
// number if most < 0.
func (a *app) completes(most int, offer offer) cobra.CompletionFunc {
	return a.asks(most, func(ctx context.Context, c *conn, typed string) []cobra.Completion {
		return offers(ctx, c, typed, offer)
	})
}

// asks completes by whatever a question to the server answers.
func (a *app) asks(most int, question func(ctx context.Context, c *conn, typed string) []cobra.Completion) cobra.CompletionFunc {
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
		return fitting(question(ctx, c, typed), typed), cobra.ShellCompDirectiveNoFileComp
	}
}

// completesFlag has the server complete what a flag takes.
func (a *app) completesFlag(cmd *cobra.Command, name string, offer offer) {
	if err := cmd.RegisterFlagCompletionFunc(name, a.completes(-1, offer)); err != nil {
		panic(err) // the flag was just made
	}
}

// fitting leaves out what does not begin with what was typed, and what came before.
func fitting(list []cobra.Completion, typed string) (fit []cobra.Completion) {
	for _, choice := range list {
		if strings.HasPrefix(choice, typed) && !slices.Contains(fit, choice) {
			fit = append(fit, choice)
		}
	}
	return fit
}

// offers asks for one page: nobody reads more.
func offers(ctx context.Context, c *conn, typed string, offer offer) (list []cobra.Completion) {
	query := v1.ResourceQuery{All: true, Limit: v1.MaxLimit}
	if offer.byName {
		query.Prefix = typed
	}
	page, err := c.ResourcePage(ctx, query)
	if err != nil {
		return nil
	}
	for _, resource := range page.Items {
		list = append(list, offer.of(resource)...)
	}
	return list
}

func nameOf(r v1.Resource) []cobra.Completion {
	described := r.State
	if len(r.Holders) > 0 {
		described += ", " + r.Holders[0].Holder
	}
	return []cobra.Completion{cobra.CompletionWithDesc(r.Resource, printable(described))}
}

func idsOf(r v1.Resource) (list []cobra.Completion) {
	for _, lease := range r.Holders {
		list = append(list, cobra.CompletionWithDesc(lease.ID, printable(r.Resource+", "+lease.Holder)))
	}
	return list
}

func holdersOf(r v1.Resource) (list []cobra.Completion) {
	for _, lease := range r.Holders {
		list = append(list, lease.Holder)
	}
	return list
}

// mostQueues is how many queues are looked into while somebody holds the tab key.
const mostQueues = 10

// waiterIDs are those that stand in queues, of which a list has only the lengths.
func waiterIDs(ctx context.Context, c *conn, _ string) (list []cobra.Completion) {
	page, err := c.ResourcePage(ctx, v1.ResourceQuery{Limit: v1.MaxLimit})
	if err != nil {
		return nil
	}
	queues := slices.DeleteFunc(page.Items, func(r v1.Resource) bool { return r.Waiting == 0 })
	for _, r := range queues[:min(mostQueues, len(queues))] {
		resource, err := c.Resource(ctx, r.Resource, 0)
		if err != nil {
			return list
		}
		for _, w := range resource.Queue {
			list = append(list, cobra.CompletionWithDesc(w.ID, printable(r.Resource+", "+w.Holder)))
		}
	}
	return list
}

// definedNames are those that have a definition of their own.
func definedNames(ctx context.Context, c *conn, typed string) (list []cobra.Completion) {
	page, err := c.Definitions(ctx, v1.DefinitionQuery{Prefix: typed, Limit: v1.MaxLimit})
	if err != nil {
		return nil
	}
	for _, d := range page.Items {
		list = append(list, cobra.CompletionWithDesc(d.Path, "defined"))
	}
	return list
}

// definableNames are those that have one, and all other resources.
func definableNames(ctx context.Context, c *conn, typed string) []cobra.Completion {
	return append(definedNames(ctx, c, typed), offers(ctx, c, typed, resourceNames)...)
}
