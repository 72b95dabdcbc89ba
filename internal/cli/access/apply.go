package access

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"

	"github.com/spf13/cobra"
	"go.yaml.in/yaml/v3"

	v1 "github.com/leasehold/leasehold/api/v1"
	"github.com/leasehold/leasehold/internal/access/document"
	"github.com/leasehold/leasehold/internal/cli"
)

func apply(a *cli.App) *cobra.Command {
	var file string
	var yes, dry bool
	cmd := &cobra.Command{
		Use:   "apply -f FILE",
		Short: "Make access as a file says",
		Long: `Apply makes roles, bindings, quotas, issuers and certificate rules as a file of YAML or JSON
says: what the file does not have is removed. Tokens stay, whatever the file has: revoke them
with leasehold access token revoke. The file looks as leasehold access export prints it:

  bindings:
    - {role: admin, group: platform, namespace: "*"}
    - {role: member, group: team-a, prefix: a/, holders: team-a}

It shows what differs first, and asks unless --yes is given. If somebody else changes access
meanwhile, nothing is done. A file after which nobody could change access is refused.`,
		Example: `  leasehold access apply -f access.yaml
  leasehold access apply -f access.yaml --dry-run
  leasehold access apply -f access.yaml --yes --reason "team b begins"`,
		Args: cli.Takes(0, 0),
	}
	intent := intends(a, cmd)
	cmd.Flags().StringVarP(&file, "file", "f", "", "YAML or JSON; - is standard input (required)")
	cmd.Flags().BoolVar(&yes, "yes", false, "do not ask")
	cmd.Flags().BoolVar(&dry, "dry-run", false, "only show what differs")
	return talks(a, cmd, func(ctx context.Context, c *cli.Conn, _ []string) error {
		if err := cli.Needs(cmd, "file", "name the file, or - for standard input"); err != nil {
			return err
		}
		doc, err := readDocument(a, file)
		if err != nil {
			return err
		}
		i := intent(c)
		r := v1.ApplyAccessRequest{Access: doc, DryRun: true, By: i.By, Reason: i.Reason}
		seen, err := c.ApplyAccess(ctx, r)
		switch {
		case err != nil:
			return err
		case dry || len(seen.Changes) == 0:
			seen.Applied = !dry
			return printApplied(a, seen)
		}
		if err := confirm(ctx, a, seen, file, yes); err != nil {
			return err
		}
		r.DryRun, r.IfRevision = false, seen.Revision
		done, err := c.ApplyAccess(ctx, r)
		if err != nil {
			return err
		}
		if a.Output == cli.FormatJSON {
			return a.PrintJSON(done)
		}
		if yes {
			return printApplied(a, done)
		}
		a.Say("applied: access is at revision %d", done.Revision)
		return nil
	})
}

// readDocument reads what is to be applied.
func readDocument(a *cli.App, file string) (v1.Access, error) {
	text, err := []byte(nil), error(nil)
	if file == "-" {
		text, err = io.ReadAll(io.LimitReader(a.Stdin, document.MaxFile+1))
	} else {
		text, err = os.ReadFile(file)
	}
	if err != nil {
		return v1.Access{}, cli.Usage("%v", err)
	}
	doc, err := document.Parse(text)
	if err != nil {
		return v1.Access{}, cli.Usage("%s: %v", file, err)
	}
	return doc, nil
}

// confirm shows the differences, and asks.
func confirm(ctx context.Context, a *cli.App, seen v1.AppliedAccess, file string, yes bool) error {
	switch {
	case yes:
		return nil
	case file == "-" || !a.Terminal(a.Stdin):
		if a.Output != cli.FormatJSON {
			if err := printChanges(a, seen.Changes); err != nil {
				return err
			}
		}
		return cli.Usage("nothing was done, because there is no terminal to ask on: give --yes to apply it")
	}
	if err := printChanges(a, seen.Changes); err != nil {
		return err
	}
	return a.Confirm(ctx, `Type "yes" to apply it: `, "yes")
}

func printApplied(a *cli.App, seen v1.AppliedAccess) error {
	switch {
	case a.Output == cli.FormatJSON:
		return a.PrintJSON(seen)
	case len(seen.Changes) == 0:
		a.Say("nothing differs: access is at revision %d", seen.Revision)
		return nil
	}
	if err := printChanges(a, seen.Changes); err != nil {
		return err
	}
	if seen.Applied {
		a.Say("applied: access is at revision %d", seen.Revision)
	} else {
		a.Say("nothing was done: this was a dry run")
	}
	return nil
}

// printChanges prints a line for each difference, and for a change one for what there was and one for what there is.
func printChanges(a *cli.App, changes []v1.AccessChange) error {
	for _, c := range changes {
		sign := map[string]string{"add": "+", "remove": "-"}[c.Action]
		lines := []string{fmt.Sprintf("%s %s %s: %s", sign, c.Kind, c.Name, c.From+c.To)}
		if c.Action == "change" {
			lines = []string{fmt.Sprintf("- %s %s: %s", c.Kind, c.Name, c.From),
				fmt.Sprintf("+ %s %s: %s", c.Kind, c.Name, c.To)}
		}
		for _, line := range lines {
			if err := a.PrintLine(line); err != nil {
				return err
			}
		}
	}
	return nil
}

func export(a *cli.App) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "export",
		Short: "Print who may do what, as apply takes it",
		Long: `Export prints roles, bindings, quotas, issuers, certificate rules and tokens as one document,
without secrets or hashes: as YAML, or with -o json as JSON. Applying it changes nothing.`,
		Example: `  leasehold access export > access.yaml
  leasehold access export -o json | jq '.bindings | length'
  leasehold access export --context staging > staging.yaml`,
		Args: cli.Takes(0, 0),
	}
	cmd.RunE = a.Talk(func(ctx context.Context, c *cli.Conn, _ []string) error {
		doc, err := c.Access(ctx)
		if err != nil {
			return err
		}
		if a.Output == cli.FormatJSON {
			return a.PrintJSON(doc)
		}
		text, err := toYAML(doc)
		if err != nil {
			return err
		}
		_, err = a.Stdout.Write(text)
		return cli.Written(err)
	})
	a.ServerFlags(cmd)
	a.OutputFlag(cmd, cli.FormatYAML, cli.FormatJSON)
	return cmd
}

// toYAML writes a document with the keys that the API has, in its order.
func toYAML(doc v1.Access) ([]byte, error) {
	text, err := json.Marshal(doc)
	if err != nil {
		return nil, err
	}
	var node yaml.Node
	if err := yaml.Unmarshal(text, &node); err != nil {
		return nil, err
	}
	plain(&node)
	return yaml.Marshal(&node)
}

// plain makes blocks of what JSON writes in braces.
func plain(node *yaml.Node) {
	node.Style = 0
	for _, child := range node.Content {
		plain(child)
	}
}
