package main

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/leasehold/leasehold"
	"github.com/leasehold/leasehold/internal/tfstate"
)

// contents are the things in a state: of each the attributes, as JSON.
type contents struct {
	instances map[string]map[string]json.RawMessage // by address
	outputs   map[string]json.RawMessage
	types     map[string]int // how many instances of each type of resource
}

// readContents reads the fourth format, which all versions since 0.12 write.
func readContents(body []byte) (c contents, err error) {
	var state struct {
		Version   int                        `json:"version"`
		Outputs   map[string]json.RawMessage `json:"outputs"`
		Resources []struct {
			Module, Mode, Type, Name string
			Instances                []struct {
				Index      json.RawMessage            `json:"index_key"`
				Deposed    string                     `json:"deposed"`
				Attributes map[string]json.RawMessage `json:"attributes"`
			}
		} `json:"resources"`
	}
	if err := json.Unmarshal(body, &state); err != nil {
		return c, failure(leasehold.Refused, "the state can not be read: %v", err)
	}
	if state.Version != 4 {
		return c, failure(leasehold.Refused, "the state is encrypted, or has a format that is not known here (%d): only whole states can be compared", state.Version)
	}
	c = contents{map[string]map[string]json.RawMessage{}, state.Outputs, map[string]int{}}
	for _, r := range state.Resources {
		for _, i := range r.Instances {
			address := r.Type + "." + r.Name
			if r.Mode == "data" {
				address = "data." + address
			}
			if r.Module != "" {
				address = r.Module + "." + address
			}
			if len(i.Index) > 0 && string(i.Index) != "null" {
				address += "[" + string(i.Index) + "]"
			}
			if i.Deposed != "" {
				address += " (deposed " + i.Deposed + ")"
			}
			c.instances[address] = i.Attributes
			c.types[r.Type]++
		}
	}
	return c, nil
}

// kinds counts the things in a state by their type.
func (c contents) kinds() (lines []string) {
	counts := c.types
	names := slices.SortedFunc(maps.Keys(counts), func(x, y string) int { return cmp.Or(counts[y]-counts[x], strings.Compare(x, y)) })
	for _, name := range names {
		lines = append(lines, fmt.Sprintf("%d %s", counts[name], name))
	}
	return lines
}

// A stateChange is one difference between two versions. It has no values: they may be
// secret.
type stateChange struct {
	Change     string   `json:"change"` // added, removed or changed
	Address    string   `json:"address"`
	Attributes []string `json:"attributes,omitempty"` // that changed
}

// differences lists what became of a state, in the order of the addresses.
func differences(from, to contents) []stateChange {
	list := []stateChange{}
	for _, address := range both(from.instances, to.instances) {
		old, before := from.instances[address]
		now, after := to.instances[address]
		switch {
		case !before:
			list = append(list, stateChange{Change: "added", Address: address})
		case !after:
			list = append(list, stateChange{Change: "removed", Address: address})
		default:
			if changed := unequal(old, now); len(changed) > 0 {
				list = append(list, stateChange{"changed", address, changed})
			}
		}
	}
	for _, name := range both(from.outputs, to.outputs) {
		old, before := from.outputs[name]
		now, after := to.outputs[name]
		switch {
		case !before:
			list = append(list, stateChange{Change: "added", Address: "output." + name})
		case !after:
			list = append(list, stateChange{Change: "removed", Address: "output." + name})
		case !sameJSON(old, now):
			list = append(list, stateChange{Change: "changed", Address: "output." + name})
		}
	}
	return list
}

func both[T any](a, b map[string]T) []string {
	all := maps.Clone(a)
	if all == nil {
		all = map[string]T{}
	}
	maps.Copy(all, b)
	return slices.Sorted(maps.Keys(all))
}

// unequal lists the attributes that differ.
func unequal(a, b map[string]json.RawMessage) (names []string) {
	for _, name := range both(a, b) {
		x, had := a[name]
		y, has := b[name]
		if had != has || !sameJSON(x, y) {
			names = append(names, name)
		}
	}
	return names
}

// sameJSON compares two values whatever the blanks between their parts.
func sameJSON(a, b json.RawMessage) bool {
	var x, y bytes.Buffer
	if json.Compact(&x, a) != nil || json.Compact(&y, b) != nil {
		return bytes.Equal(a, b)
	}
	return bytes.Equal(x.Bytes(), y.Bytes())
}

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
		ValidArgsFunction: a.completesStates,
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
