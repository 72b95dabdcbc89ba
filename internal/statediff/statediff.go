package statediff

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/leasehold/leasehold"
)

// Contents are the resources and outputs in a state, with the attributes of each as JSON.
type Contents struct {
	instances map[string]map[string]json.RawMessage // by address
	outputs   map[string]json.RawMessage
	types     map[string]int // how many instances of each type of resource
}

// Read reads a state in format 4, which all versions of Terraform since 0.12 and of OpenTofu write.
func Read(body []byte) (c Contents, err error) {
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
		return c, refused("the state cannot be read: %v", err)
	}
	if state.Version != 4 {
		return c, refused("the state is encrypted, or has a format that is not known here (%d): only whole states can "+
			"be compared", state.Version)
	}
	c = Contents{map[string]map[string]json.RawMessage{}, state.Outputs, map[string]int{}}
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
			// A deposed instance has the address of its replacement and would overwrite it.
			if i.Deposed != "" {
				address += " (deposed " + i.Deposed + ")"
			}
			// The addresses are those that terraform state list prints, so that they can be used
			// with it.
			c.instances[address] = i.Attributes
			c.types[r.Type]++
		}
	}
	return c, nil
}

func refused(format string, args ...any) error {
	return &leasehold.Error{Code: leasehold.Refused, Message: fmt.Sprintf(format, args...)}
}

// Kinds counts the resources in a state by their type, the most frequent first.
func (c Contents) Kinds() (lines []string) {
	counts := c.types
	names := slices.SortedFunc(maps.Keys(counts), func(x, y string) int {
		return cmp.Or(counts[y]-counts[x],
			strings.Compare(x, y))
	})
	for _, name := range names {
		lines = append(lines, fmt.Sprintf("%d %s", counts[name], name))
	}
	return lines
}

// A Change is one difference between two versions. It names attributes but has no values: states
// are full of secrets, and the output of a diff ends up in logs.
type Change struct {
	Change     string   `json:"change"` // added, removed or changed
	Address    string   `json:"address"`
	Attributes []string `json:"attributes,omitempty"` // that changed
}

// Compare lists what changed between two versions, in the order of addresses.
func Compare(from, to Contents) []Change {
	list := []Change{}
	for _, address := range both(from.instances, to.instances) {
		old, before := from.instances[address]
		now, after := to.instances[address]
		switch {
		case !before:
			list = append(list, Change{Change: "added", Address: address})
		case !after:
			list = append(list, Change{Change: "removed", Address: address})
		default:
			if changed := unequal(old, now); len(changed) > 0 {
				list = append(list, Change{"changed", address, changed})
			}
		}
	}
	for _, name := range both(from.outputs, to.outputs) {
		old, before := from.outputs[name]
		now, after := to.outputs[name]
		switch {
		case !before:
			list = append(list, Change{Change: "added", Address: "output." + name})
		case !after:
			list = append(list, Change{Change: "removed", Address: "output." + name})
		case !sameJSON(old, now):
			list = append(list, Change{Change: "changed", Address: "output." + name})
		}
	}
	return list
}

// both returns the keys of either map, in order.
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

// sameJSON compares two values without regard to whitespace. If either is not valid JSON, it
// compares the bytes.
func sameJSON(a, b json.RawMessage) bool {
	var x, y bytes.Buffer
	if json.Compact(&x, a) != nil || json.Compact(&y, b) != nil {
		return bytes.Equal(a, b)
	}
	return bytes.Equal(x.Bytes(), y.Bytes())
}
