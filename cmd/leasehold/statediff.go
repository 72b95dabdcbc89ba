package main

import (
	"context"
	"strings"

	"github.com/spf13/cobra"

	"github.com/leasehold/leasehold"
	"github.com/leasehold/leasehold/internal/tfstate"
)

func (a *app) stateDiffCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "diff STATE [FROM] [TO]",
		Short: "Show what became of a state between two serials",
		Long: `Diff compares two versions of a state: which resources and outputs are new, which are
gone, and which attributes of others changed. Without FROM and TO it compares the version
before with the one that is there now; with FROM alone, that one with the present.

Versions are named by their serial, or by @ and their revision. Values are not shown,
since states hold secrets: leasehold state pull prints them.`,
		Example: `  leasehold state diff prod/network                         # what the last run did
  leasehold state diff prod/network 40 42
  leasehold state diff prod/network 40 -o json | jq -r '.changes[] | .change + " " + .address'`,
		Args:              takes(1, 3),
		ValidArgsFunction: a.completesStates(),
	}
	cmd.RunE = a.talks(func(ctx context.Context, c *conn, args []string) error {
		from, to, err := c.twoVersions(ctx, args)
		if err != nil {
			return c.stateless(args[0], err)
		}
		before, err := c.contentsOf(ctx, args[0], from)
		if err != nil {
			return err
		}
		after, err := c.contentsOf(ctx, args[0], to)
		if err != nil {
			return err
		}
		return a.printDiff(args[0], from, to, differences(before, after))
	})
	a.clientFlags(cmd)
	a.outputFlag(cmd, formatJSON, formatName)
	return cmd
}

// twoVersions finds what is to be compared.
func (c *conn) twoVersions(ctx context.Context, args []string) (from, to tfstate.Version, err error) {
	versions, err := c.states().Versions(ctx, args[0])
	if err != nil {
		return from, to, err
	}
	to = versions[0]
	switch {
	case len(args) == 1 && len(versions) == 1:
		return from, to, hint(failure(leasehold.NotFound, "%s has no version but the present one", args[0]), "see it: %s", c.again("state", "show", args[0]))
	case len(args) == 1:
		return versions[1], to, nil
	}
	if from, err = findVersion(versions, args[1]); err == nil && len(args) == 3 {
		to, err = findVersion(versions, args[2])
	}
	if err != nil {
		return from, to, hint(err, "see which there are: %s", c.again("state", "versions", args[0]))
	}
	return from, to, nil
}

func (c *conn) contentsOf(ctx context.Context, state string, v tfstate.Version) (contents, error) {
	body, err := c.states().Read(ctx, state, v.Revision)
	if err != nil {
		return contents{}, err
	}
	return readContents(body)
}

// stateDiff is what diff prints as JSON.
type stateDiff struct {
	State   string        `json:"state"`
	From    uint64        `json:"from"`
	To      uint64        `json:"to"`
	Changes []stateChange `json:"changes"`
}

func (a *app) printDiff(state string, from, to tfstate.Version, changes []stateChange) error {
	if a.output == formatJSON {
		return a.printJSON(stateDiff{state, from.Serial, to.Serial, changes})
	}
	counts := map[string]int{}
	signs := map[string]string{"added": "+", "removed": "-", "changed": "~"}
	for _, ch := range changes {
		counts[ch.Change]++
		line := signs[ch.Change] + " " + ch.Address
		if a.output == formatName {
			line = ch.Address
		} else if len(ch.Attributes) > 0 {
			line += " (" + strings.Join(ch.Attributes, ", ") + ")"
		}
		if err := a.printLine(line); err != nil {
			return err
		}
	}
	if a.output == formatTable {
		note := ""
		if to.Deleted {
			note = " (the last before the state was deleted)"
		}
		a.say("from serial %d to %d%s: %d added, %d removed, %d changed", from.Serial, to.Serial, note, counts["added"], counts["removed"], counts["changed"])
	}
	return nil
}
