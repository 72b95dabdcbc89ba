package main

import (
	"cmp"
	"fmt"
	"runtime"
	"runtime/debug"

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
	cmd.RunE = a.showVersions
	serverFlags(cmd)
	a.outputFlag(cmd, formatJSON)
	return cmd
}

// versions is what version prints as JSON.
type versions struct {
	Client v1.Version  `json:"client"`
	Server *v1.Version `json:"server,omitempty"`
}

func (a *app) showVersions(cmd *cobra.Command, _ []string) error {
	found := versions{Client: buildVersion()}
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

func versionLine(v v1.Version) string {
	return fmt.Sprintf("%s (commit %s, %s)", v.Version, v.Commit, v.Go)
}

// The linker sets these, as the Makefile tells it to.
var version, commit string

// buildVersion is what the linker was told, or else what the Go toolchain noted: that
// is all there is after "go install".
func buildVersion() v1.Version {
	v := v1.Version{Version: version, Commit: commit, Go: runtime.Version()}
	if info, ok := debug.ReadBuildInfo(); ok {
		v.Version = cmp.Or(v.Version, info.Main.Version)
		for _, s := range info.Settings {
			if s.Key == "vcs.revision" {
				v.Commit = cmp.Or(v.Commit, s.Value[:min(12, len(s.Value))])
			}
		}
	}
	v.Version, v.Commit = cmp.Or(v.Version, "(devel)"), cmp.Or(v.Commit, "unknown")
	return v
}
