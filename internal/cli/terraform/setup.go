package terraform

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/leasehold/leasehold/internal/cli"
)

// The formats of config, beside JSON.
const (
	formatHCL   = "hcl"   // a backend block, which is a whole file
	formatEnv   = "env"   // NAME=VALUE, as files of variables have it
	formatShell = "shell" // for eval
)

// formatFlag gives config its own -o: what it prints is read by Terraform or by a shell.
func formatFlag(a *cli.App, cmd *cobra.Command) {
	formats := []string{formatHCL, formatEnv, formatShell, cli.FormatJSON}
	flag := cmd.Flags().VarPF(&cli.Choice{Value: &a.Output, Allowed: formats, Kind: "format"}, "output", "o",
		"how to print: "+strings.Join(formats, ", "))
	flag.DefValue = formatHCL
	cli.CompleteFlag(cmd, "output", formats)
}

// A backendSetup is how Terraform is told where its state is.
type backendSetup struct {
	Backend     string            `json:"backend"` // a block of a configuration
	Environment map[string]string `json:"environment"`
	Files       map[string]string `json:"files,omitempty"` // variables whose value is what a file holds

	order  []string          // of the variables
	values map[string]string // as a shell reads them
	beside []string          // variables that the block needs too
	secret string            // why the variables cannot be written to a file; empty: they can
	notes  []string          // for the person who pastes it
}

// print writes the setup and nothing else to standard output, so that it can go to a file; notes
// go to the person.
func (s backendSetup) print(a *cli.App) error {
	var text strings.Builder
	switch a.Output {
	case cli.FormatJSON:
		return a.PrintJSON(s)
	case formatShell:
		for _, name := range s.order {
			fmt.Fprintf(&text, "export %s=%s\n", name, s.values[name])
		}
	case formatEnv:
		if s.secret != "" {
			return cli.Usage("-o env writes one line for each variable, and %s: use -o shell", s.secret)
		}
		for _, name := range s.order {
			fmt.Fprintf(&text, "%s=%s\n", name, s.Environment[name])
		}
	default:
		text.WriteString(s.Backend)
		for _, name := range s.beside {
			s.notes = append(s.notes, fmt.Sprintf("Terraform also needs: export %s=%s", name, s.values[name]))
		}
	}
	for _, note := range s.notes {
		a.Say("%s", note)
	}
	_, err := fmt.Fprint(a.Stdout, text.String())
	return cli.Written(err)
}
