package mcp

import (
	"fmt"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/leasehold/leasehold"
)

// What ends somebody else's work is put to the person behind an agent, if the agent's program can ask one. The question
// is an answer of ours, and the program calls again with what the person said: no call is kept open meanwhile, and any
// server may get the second one. It is no protection against agents that lie, since their programs write both calls:
// who may break leases is decided by access.

// firstToAsk is the revision of the protocol from which on a question can be an answer. To ask clients of older ones, a
// server has to keep their connection; "leasehold mcp" does that for them.
const firstToAsk = "2026-07-28"

// confirmation is the name of the question in a call, and reasonField that of what the person fills in.
const (
	confirmation = "confirm"
	reasonField  = "reason"
)

// A question is an answer to a call that a person has to confirm first.
type question struct {
	message string
	reason  string // what the agent gave, which the person may replace
	state   string // comes back with the answer
}

// result is the question as a client shows it.
func (q *question) result() *sdk.CallToolResult {
	schema := map[string]any{"type": "object", "required": []string{reasonField}, "properties": map[string]any{
		reasonField: map[string]any{"type": "string", "title": "Reason", "default": q.reason,
			"description": "why this lease has to end; its holder sees it"}}}
	return &sdk.CallToolResult{RequestState: q.state, InputRequests: sdk.InputRequestMap{
		confirmation: &sdk.ElicitParams{Mode: "form", Message: q.message, RequestedSchema: schema}}}
}

// A confirming is what is known about the person behind a call.
type confirming struct {
	can    bool              // there is somebody who can be asked
	answer *sdk.ElicitResult // nil: nobody was asked yet
	state  string            // of the question
}

// confirmingOf reads it from a call.
func confirmingOf(r *sdk.CallToolRequest) (c confirming) {
	c.answer, _ = r.Params.InputResponses[confirmation].(*sdk.ElicitResult)
	c.state = r.Params.RequestState
	if program := r.ClientCapabilities(); program != nil && r.ProtocolVersion() >= firstToAsk {
		forms := program.Elicitation
		c.can = forms != nil && (forms.Form != nil || forms.URL == nil)
	}
	return c
}

// confirm returns the question that comes first, or why the lease must not be broken, or else the reason for the break.
// An answer is about the lease that the person was asked about, and about none that came after it.
func (a *breaking) confirm(c *call, lease *leasehold.Lease) (reason string, q *question, err error) {
	switch p := &c.person; {
	case !p.can:
		return a.Reason, nil, nil
	case p.answer == nil:
		return "", &question{state: lease.ID, reason: a.Reason, message: fmt.Sprintf(
			"%s wants to end the lease of %s on %s (%s), held since %s. What %s is doing may be left half-way.",
			c.agent.holder, lease.Holder, a.Resource, lease.Reason, lease.Acquired.UTC().Format(time.RFC3339),
			lease.Holder)}, nil
	case p.answer.Action != "accept":
		return "", nil, &leasehold.Error{Code: leasehold.Denied, Message: "the person who was asked did not confirm " +
			"that the lease on " + a.Resource + " is ended"}
	case p.state != lease.ID:
		return "", nil, &leasehold.Error{Code: leasehold.Refused, Message: a.Resource + " has another holder than " +
			"the one the person was asked about: " + lease.Holder}
	}
	if text, ok := c.person.answer.Content[reasonField].(string); ok && text != "" {
		return text, nil, nil
	}
	return a.Reason, nil, nil
}
