package cli

import (
	"context"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	v1 "github.com/leasehold/leasehold/api/v1"
)

func (a *App) Completion() *cobra.Command {
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
  leasehold completion zsh > "${fpath[1]}/_leasehold"    # every zsh from now on
  leasehold completion fish > ~/.config/fish/completions/leasehold.fish`,
		Args:              Takes(1, 1),
		ValidArgsFunction: cobra.FixedCompletions(names, cobra.ShellCompDirectiveNoFileComp),
		RunE: func(cmd *cobra.Command, args []string) error {
			generate, ok := shells[args[0]]
			if !ok {
				return SeeHelp(cmd, Usage("there is no script for %q: use %s", args[0], OrList(names)))
			}
			return Written(generate(cmd.Root(), a.Stdout))
		},
	}
}

// CompletionTime is how long the server is asked when somebody presses the tab key. Beyond it a
// shell seems to hang.
const CompletionTime = 500 * time.Millisecond

// An offer is what a resource gives to choose from.
type offer struct {
	byName bool // only resources whose name begins with what was typed can have it
	of     func(v1.Resource) []cobra.Completion
}

// What arguments are completed with.
var (
	ResourceNames = offer{true, nameOf}
	LeaseIDs      = offer{false, idsOf}
	HolderNames   = offer{false, holdersOf}
)

// Completes offers what the server knows for up to most arguments; any number if
// most < 0.
func (a *App) Completes(most int, offer offer) cobra.CompletionFunc {
	return a.Asks(most, func(ctx context.Context, c *Conn, typed string) []cobra.Completion {
		return offers(ctx, c, typed, offer)
	})
}

// Asks completes by whatever a question to the server answers.
func (a *App) Asks(most int, question func(ctx context.Context, c *Conn,
	typed string) []cobra.Completion) cobra.CompletionFunc {
	return func(cmd *cobra.Command, args []string, typed string) ([]cobra.Completion, cobra.ShellCompDirective) {
		if most >= 0 && len(args) >= most {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		// An error is not shown: it would appear in the middle of the line that is being typed.
		c, err := a.Connect(cmd)
		if err != nil {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		ctx, cancel := context.WithTimeout(context.Background(), CompletionTime)
		defer cancel()
		return fitting(question(ctx, c, typed), typed), cobra.ShellCompDirectiveNoFileComp
	}
}

// CompletesFlag completes the value of a flag by asking the server.
func (a *App) CompletesFlag(cmd *cobra.Command, name string, offer offer) {
	if err := cmd.RegisterFlagCompletionFunc(name, a.Completes(-1, offer)); err != nil {
		panic(err) // the flag was just made
	}
}

// fitting leaves out what does not begin with what was typed, and duplicates.
func fitting(list []cobra.Completion, typed string) (fit []cobra.Completion) {
	for _, choice := range list {
		if strings.HasPrefix(choice, typed) && !slices.Contains(fit, choice) {
			fit = append(fit, choice)
		}
	}
	return fit
}

// offers asks for one page: nobody reads more, and a second request could exceed CompletionTime.
func offers(ctx context.Context, c *Conn, typed string, offer offer) (list []cobra.Completion) {
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
	return []cobra.Completion{cobra.CompletionWithDesc(r.Resource, Printable(described))}
}

func idsOf(r v1.Resource) (list []cobra.Completion) {
	for _, lease := range r.Holders {
		list = append(list, cobra.CompletionWithDesc(lease.ID, Printable(r.Resource+", "+lease.Holder)))
	}
	return list
}

func holdersOf(r v1.Resource) (list []cobra.Completion) {
	for _, lease := range r.Holders {
		list = append(list, lease.Holder)
	}
	return list
}

// mostQueues is how many queues are read for one completion: each costs a request.
const mostQueues = 10

// WaiterIDs returns the ids of waiters. A list has only the lengths of queues, so each queue is
// read.
func WaiterIDs(ctx context.Context, c *Conn, _ string) (list []cobra.Completion) {
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
			list = append(list, cobra.CompletionWithDesc(w.ID, Printable(r.Resource+", "+w.Holder)))
		}
	}
	return list
}

// DefinedNames returns the names that have a definition of their own.
func DefinedNames(ctx context.Context, c *Conn, typed string) (list []cobra.Completion) {
	page, err := c.Definitions(ctx, v1.DefinitionQuery{Prefix: typed, Limit: v1.MaxLimit})
	if err != nil {
		return nil
	}
	for _, d := range page.Items {
		list = append(list, cobra.CompletionWithDesc(d.Path, "defined"))
	}
	return list
}

// DefinableNames returns the names that have a definition, and all other resources.
func DefinableNames(ctx context.Context, c *Conn, typed string) []cobra.Completion {
	return append(DefinedNames(ctx, c, typed), offers(ctx, c, typed, ResourceNames)...)
}
