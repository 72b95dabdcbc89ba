package mcp

import (
	"github.com/leasehold/leasehold"
	"github.com/leasehold/leasehold/internal/core"
	"github.com/leasehold/leasehold/internal/door"
)

// A messaging is the arguments of lease_ask.
type messaging struct {
	Resource string `json:"resource"`
	Message  string `json:"message"`
}

// A delivered is the answer to lease_ask.
type delivered struct {
	DeliveredTo []string `json:"delivered_to"`
	Next        string   `json:"next"`
	Warnings    []string `json:"warnings,omitempty"`
}

// serve passes a message on. It goes where the messages of people go, so that programs that watch a resource, and
// people at the console, see it as well.
func (a *messaging) serve(c *call) (any, error) {
	err := door.First(door.CheckName("resource", a.Resource, leasehold.MaxName),
		door.CheckSegments("resource", a.Resource), door.CheckName("message", a.Message, leasehold.MaxName))
	if err != nil {
		return nil, err
	}
	c.resource = a.Resource
	// A message that was sent twice does no harm; one that was not sent does.
	answer, err := c.do(&core.Ask{Namespace: c.namespace, Resource: a.Resource, By: c.agent.holder, Message: a.Message})
	if err != nil {
		return nil, err
	}
	told := delivered{DeliveredTo: []string{}, Warnings: c.warnings,
		Next: "An agent reads it with its next call of lease_check; it need not answer. Keep your ticket checked."}
	if answer.Lease != nil {
		told.DeliveredTo = append(told.DeliveredTo, answer.Lease.Holder)
	}
	for i := range answer.Also {
		told.DeliveredTo = append(told.DeliveredTo, answer.Also[i].Holder)
	}
	return told, nil
}
