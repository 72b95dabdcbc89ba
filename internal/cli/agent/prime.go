package agent

import (
	_ "embed"
	"strings"

	"github.com/spf13/cobra"

	"github.com/leasehold/leasehold/internal/cli"
)

// primer is what agents read before they begin. Ten lines are as many as stay in mind.
//
//go:embed primer.md
var primer string

// The lines around the primer in a file, by which it is found and replaced. They are comments, which nobody sees who
// reads the file as Markdown.
const (
	primerBegins = "<!-- leasehold begins -->"
	primerEnds   = "<!-- leasehold ends -->"
)

// Prime returns the command prime.
func Prime(a *cli.App) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "prime",
		Short: "Print what an agent has to know to work with leases",
		Long: `Prime prints the lines that "leasehold setup" writes to AGENTS.md: how an agent takes a
lease before it changes something, and what it does when it has to wait or has lost it. It
is for agents that read no such file, and for hooks that prepare an agent's context.`,
		Example: `  leasehold prime
  leasehold prime >> AGENTS.md
  leasehold prime -o json | jq -r .text`,
		Args: cli.Takes(0, 0),
	}
	cmd.RunE = func(*cobra.Command, []string) error {
		if a.Output == cli.FormatJSON {
			return a.PrintJSON(struct {
				Text string `json:"text"`
			}{primer})
		}
		return printLines(a, primer)
	}
	a.OutputFlag(cmd, cli.FormatJSON)
	return cmd
}

// printLines prints a text line by line.
func printLines(a *cli.App, text string) error {
	for line := range strings.Lines(text) {
		if err := a.PrintLine(strings.TrimSuffix(line, "\n")); err != nil {
			return err
		}
	}
	return nil
}

// primed returns a text with the primer in it, in the place of an older one. What people wrote around it stays as it
// is; a text without one gets it at its end.
func primed(text string) string {
	section := primerBegins + "\n" + primer + primerEnds + "\n"
	before, rest, found := strings.Cut(text, primerBegins+"\n")
	_, after, closed := strings.Cut(rest, primerEnds+"\n")
	switch {
	case found && closed:
		return before + section + after
	case text == "":
		return section
	}
	return strings.TrimRight(text, "\n") + "\n\n" + section
}
