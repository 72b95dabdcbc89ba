// Package translate is between what requests say and what the core knows, as far as that takes nothing of a wire:
// bodies become commands, durations durations, and names are checked.
package translate

import (
	"slices"
	"strings"

	"github.com/leasehold/leasehold"
	"github.com/leasehold/leasehold/internal/core"
	"github.com/leasehold/leasehold/internal/door"
)

// A Command is what a request says beside its body.
type Command struct {
	Namespace string
	Path      string       // in the request's own path; empty: there is none
	Once      core.Request // by which it can be sent again
}

// Path says what is wrong with the path of a resource.
func Path(field, s string) error { return door.First(Name(field, s), door.CheckSegments(field, s)) }

// Name says what is wrong with a name that has to be there.
func Name(field, s string) error { return door.CheckName(field, s, leasehold.MaxName) }

// Text says what is wrong with a text that may be empty.
func Text(field, s string) error { return door.CheckText(field, s, leasehold.MaxName) }

// Labels sorts what a request says of its sender.
func Labels(m map[string]string) (leasehold.Labels, error) {
	if len(m) == 0 {
		return nil, nil
	}
	ls := make(leasehold.Labels, 0, len(m))
	for k, v := range m {
		if err := door.First(Name("the key of a label", k),
			door.CheckText("label "+door.Brief(k), v, len(v))); err != nil {
			return nil, err
		}
		ls = append(ls, leasehold.Label{Key: k, Value: v})
	}
	slices.SortFunc(ls, func(a, b leasehold.Label) int { return strings.Compare(a.Key, b.Key) })
	return ls, nil
}
