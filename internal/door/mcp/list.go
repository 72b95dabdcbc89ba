package mcp

import (
	"github.com/leasehold/leasehold"
	"github.com/leasehold/leasehold/internal/core"
	"github.com/leasehold/leasehold/internal/door"
)

// maxRows is how many resources a list shows: more would fill an agent's context.
const maxRows = 50

// A listing is the arguments of lease_list.
type listing struct {
	Prefix string `json:"prefix"`
	Holder string `json:"holder"`
}

// A list is the answer to lease_list.
type list struct {
	Resources []holder `json:"resources"`
	More      bool     `json:"more,omitempty"`
	Next      string   `json:"next"`
	Warnings  []string `json:"warnings,omitempty"`
}

// serve shows who holds what. Resources that nobody has or wants are left out: there may be very many of them, and
// an agent that asks before it acts needs to know only what is in its way.
func (a *listing) serve(c *call) (any, error) {
	err := door.First(door.CheckText("prefix", a.Prefix, leasehold.MaxName),
		door.CheckText("holder", a.Holder, leasehold.MaxName))
	if err != nil {
		return nil, err
	}
	c.resource = a.Prefix
	query := core.ListQuery{Prefix: a.Prefix, Most: maxRows}
	if a.Holder != "" {
		query.Filter.Holder = core.NewPattern(a.Holder)
	}
	answer := list{Warnings: c.warnings, Next: "What is not listed nobody holds. Whether it overlaps what " +
		"is, or is reserved, lease_acquire says."}
	err = c.look(func(v core.View) {
		found, next := v.Find(c.namespace, query)
		answer.Resources, answer.More = []holder{}, next != ""
		for i := range found {
			if s := &found[i]; s.Holding > 0 || s.Waiting > 0 {
				answer.Resources = append(answer.Resources, holderOf(s))
			}
		}
	})
	if answer.More {
		answer.Next = "There are more: give a longer prefix."
	}
	return answer, err
}
