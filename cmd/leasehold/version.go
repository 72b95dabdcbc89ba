package main

import (
	"fmt"

	"github.com/spf13/cobra"

	v1 "github.com/leasehold/leasehold/api/v1"
)

func (a *app) versionCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "version",
		Short: "Show the version of this program, and of a server",
		Long: `Version shows the version of this program, the commit that it was built from and
the Go version that built it. With --server it asks that server for its version,
too.

A client and a server understand each other as long as both speak /v1.`,
		Example: `  leasehold version
  leasehold version --server http://127.0.0.1:4653
  leasehold version -o json | jq -r .client.version`,
		Args: takes(0, 0),
	}
	cmd.RunE = func(cmd *cobra.Command, _ []string) error { return a.showVersions(cmd) }
	serverFlags(cmd)
	a.outputFlag(cmd, formatJSON)
	return cmd
}

// versions is what version prints as JSON.
type versions struct {
	Client v1.Version  `json:"client"`
	Server *v1.Version `json:"server,omitempty"`
}

func (a *app) showVersions(cmd *cobra.Command) error {
	found := versions{Client: a.version}
	var unreachable error
	if cmd.Flags().Changed("server") {
		// Our own version is worth knowing just when the server can't be asked.
		found.Server, unreachable = a.serverVersion(cmd)
	}
	if err := a.printVersions(found); err != nil {
		return err
	}
	return unreachable
}

func (a *app) serverVersion(cmd *cobra.Command) (*v1.Version, error) {
	c, err := a.connect(cmd)
	if err != nil {
		return nil, err
	}
	found, err := c.Version(cmd.Context())
	if err != nil {
		return nil, c.explain(err)
	}
	return &found, nil
}

func (a *app) printVersions(found versions) error {
	if a.output == formatJSON {
		return a.printJSON(found)
	}
	_, err := fmt.Fprintf(a.stdout, "leasehold %s\n", versionLine(found.Client))
	if err == nil && found.Server != nil {
		_, err = fmt.Fprintf(a.stdout, "server    %s\n", printable(versionLine(*found.Server)))
	}
	return written(err)
}
