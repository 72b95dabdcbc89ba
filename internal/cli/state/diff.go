package state

import (
	"context"
	"strings"

	"github.com/spf13/cobra"

	"github.com/leasehold/leasehold"
	"github.com/leasehold/leasehold/internal/cli"
	"github.com/leasehold/leasehold/internal/statediff"
	"github.com/leasehold/leasehold/internal/tfstate"
)

func diff(a *cli.App) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "diff STATE [FROM] [TO]",
		Short: "Compare two versions of a state",
		Long: `Diff compares two versions of a state: which resources and outputs are new, which are
gone, and which attributes of others changed. Without FROM and TO it compares the version
before with the one that is there now; with FROM alone, that one with the present.

Versions are named by their serial, or by @ and their revision. Values are not shown,
since states hold secrets: leasehold state pull prints them.`,
		Example: `  leasehold state diff prod/network              # what the last run did
  leasehold state diff prod/network 40 42
  leasehold state diff prod/network 40 -o json |
      jq -r '.changes[] | .change + " " + .address'`,
		Args:              cli.Takes(1, 3),
		ValidArgsFunction: Completes(a),
	}
	cmd.RunE = a.Talk(func(ctx context.Context, c *cli.Conn, args []string) error {
		from, to, err := twoVersions(ctx, c, args)
		if err != nil {
			return stateless(c, args[0], err)
		}
		before, err := contentsOf(ctx, c, args[0], from)
		if err != nil {
			return err
		}
		after, err := contentsOf(ctx, c, args[0], to)
		if err != nil {
			return err
		}
		return printDiff(a, args[0], from, to, statediff.Compare(before, after))
	})
	a.ClientFlags(cmd)
	a.OutputFlag(cmd, cli.FormatJSON, cli.FormatName)
	return cmd
}

// twoVersions finds the two versions to compare.
func twoVersions(ctx context.Context, c *cli.Conn, args []string) (from, to tfstate.Version, err error) {
	versions, err := states(c).Versions(ctx, args[0])
	if err != nil {
		return from, to, err
	}
	to = versions[0]
	switch {
	case len(args) == 1 && len(versions) == 1:
		return from, to, cli.Hint(cli.Failure(leasehold.NotFound, "%s has only one version", args[0]),
			"see it: %s", c.Again("state", "show", args[0]))
	case len(args) == 1:
		return versions[1], to, nil
	}
	if from, err = findVersion(versions, args[1]); err == nil && len(args) == 3 {
		to, err = findVersion(versions, args[2])
	}
	if err != nil {
		return from, to, cli.Hint(err, "see all versions: %s", c.Again("state", "versions", args[0]))
	}
	return from, to, nil
}

func contentsOf(ctx context.Context, c *cli.Conn, state string, v tfstate.Version) (statediff.Contents, error) {
	body, err := states(c).Read(ctx, state, v.Revision)
	if err != nil {
		return statediff.Contents{}, err
	}
	return statediff.Read(body)
}

// stateDiff is what diff prints as JSON.
type stateDiff struct {
	State   string             `json:"state"`
	From    uint64             `json:"from"`
	To      uint64             `json:"to"`
	Changes []statediff.Change `json:"changes"`
}

func printDiff(a *cli.App, state string, from, to tfstate.Version, changes []statediff.Change) error {
	if a.Output == cli.FormatJSON {
		return a.PrintJSON(stateDiff{state, from.Serial, to.Serial, changes})
	}
	counts := map[string]int{}
	signs := map[string]string{"added": "+", "removed": "-", "changed": "~"}
	for _, ch := range changes {
		counts[ch.Change]++
		line := signs[ch.Change] + " " + ch.Address
		if a.Output == cli.FormatName {
			line = ch.Address
		} else if len(ch.Attributes) > 0 {
			line += " (" + strings.Join(ch.Attributes, ", ") + ")"
		}
		if err := a.PrintLine(line); err != nil {
			return err
		}
	}
	if a.Output == cli.FormatTable {
		note := ""
		if to.Deleted {
			note = " (the last before the state was deleted)"
		}
		a.Say("from serial %d to %d%s: %d added, %d removed, %d changed", from.Serial, to.Serial, note, counts["added"],
			counts["removed"], counts["changed"])
	}
	return nil
}
