package server

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/leasehold/leasehold/internal/cli"

	v1 "github.com/leasehold/leasehold/api/v1"
	"github.com/leasehold/leasehold/store"
)

// Version returns the command version.
func Version(a *cli.App) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "version",
		Short: "Show the version of this program, and of a server",
		Long: `Version shows the version of this program, the commit that it was built from and
the Go version that built it, and which stores other than a Leasehold server
--server can name. With --server it asks that server for its version, too.

A client and a server understand each other as long as both speak /v1.`,
		Example: `  leasehold version
  leasehold version --server http://127.0.0.1:4653
  leasehold version -o json | jq -r .client.version`,
		Args: cli.Takes(0, 0),
	}
	cmd.RunE = func(cmd *cobra.Command, _ []string) error { return showVersions(a, cmd) }
	a.ServerFlags(cmd)
	a.OutputFlag(cmd, cli.FormatJSON)
	return cmd
}

// versions is what version prints as JSON.
type versions struct {
	Client v1.Version  `json:"client"`
	Stores []string    `json:"stores"` // the schemes of LEASEHOLD_SERVER, beside http and https
	Server *v1.Version `json:"server,omitempty"`
}

func showVersions(a *cli.App, cmd *cobra.Command) error {
	found := versions{Client: a.Version, Stores: store.Schemes()}
	var unreachable error
	if cmd.Flags().Changed("server") {
		// Our own version is worth knowing just when the server can't be asked.
		found.Server, unreachable = serverVersion(a, cmd)
	}
	if err := printVersions(a, found); err != nil {
		return err
	}
	return unreachable
}

func serverVersion(a *cli.App, cmd *cobra.Command) (*v1.Version, error) {
	c, err := a.Connect(cmd)
	if err != nil {
		return nil, err
	}
	found, err := c.Version(cmd.Context())
	if err != nil {
		return nil, c.Explain(err)
	}
	return &found, nil
}

func printVersions(a *cli.App, found versions) error {
	if a.Output == cli.FormatJSON {
		return a.PrintJSON(found)
	}
	_, err := fmt.Fprintf(a.Stdout, "leasehold %s\nstores    %s\n", cli.VersionLine(found.Client),
		cmp.Or(strings.Join(found.Stores, ", "), "none in this build; make build has them all"))
	if err == nil && found.Server != nil {
		_, err = fmt.Fprintf(a.Stdout, "server    %s\n", cli.Printable(cli.VersionLine(*found.Server)))
	}
	return cli.Written(err)
}
