package agent

import (
	"context"
	"errors"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

// A server may answer a call with questions to the person behind the agent, and wants the call again with what the
// person said. Programs that speak the protocol of 2026-07-28 or later do that themselves. For the others the bridge
// asks, which it can because it has a connection to the agent's program, and a server has none.

// firstToAsk is the first revision of the protocol in which a question can be an answer.
const firstToAsk = "2026-07-28"

// askTime is how long a person has within a call. Calls are short, since many programs cut off those that are not.
const askTime = 20 * time.Second

// canAsk reports whether the agent's program can show a person a form.
func canAsk(r *sdk.CallToolRequest) bool {
	c := r.ClientCapabilities()
	return c != nil && c.Elicitation != nil && (c.Elicitation.Form != nil || c.Elicitation.URL == nil)
}

// capabilitiesOf are those of the agent's program that a server has to know of.
func capabilitiesOf(r *sdk.CallToolRequest) map[string]any {
	if !canAsk(r) {
		return map[string]any{}
	}
	return map[string]any{"elicitation": map[string]any{"form": map[string]any{}}}
}

// ask puts the questions in an answer to the person, and makes the call again with what the person said.
func (b *bridge) ask(ctx context.Context, r *sdk.CallToolRequest, params *sdk.CallToolParams,
	asked *sdk.CallToolResult) (*sdk.CallToolResult, error) {
	params.InputResponses, params.RequestState = sdk.InputResponseMap{}, asked.RequestState
	within, cancel := context.WithTimeout(ctx, askTime)
	defer cancel()
	for name, question := range asked.InputRequests {
		form, ok := question.(*sdk.ElicitParams)
		if !ok {
			return nil, errors.New("the server asks for something that only newer programs can give: " + name)
		}
		said, err := r.Session.Elicit(within, form)
		switch {
		case within.Err() != nil && ctx.Err() == nil:
			said = &sdk.ElicitResult{Action: "cancel"} // nobody answered in time, and that is no yes
		case err != nil:
			return nil, err
		}
		params.InputResponses[name] = said
	}
	return b.current().CallTool(ctx, params)
}
