package mcp

import (
	"encoding/json"
	"errors"
	"net/http"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/leasehold/leasehold"
	"github.com/leasehold/leasehold/internal/door"
)

// A failure is what an agent reads when something could not be done.
type failure struct {
	Error struct {
		Code      string `json:"code"`
		Message   string `json:"message"`
		Retryable bool   `json:"retryable"`
		Next      string `json:"next"`
	} `json:"error"`
	Warnings []string `json:"warnings,omitempty"`
}

// failure says what went wrong, whether the same call may work later, and what to do.
func (c *call) failure(err error) (f failure) {
	e := door.Coded(err)
	f.Error.Code, f.Error.Message, f.Warnings = e.Code.String(), e.Message, c.warnings
	f.Error.Retryable, f.Error.Next = advice(e)
	return f
}

// advice says for each code whether the same call may work later, and what to do now. Agents follow it to the letter:
// where it says nothing, they try again at once.
func advice(e *leasehold.Error) (retryable bool, next string) {
	switch e.Code {
	case leasehold.Held:
		return true, "See who holds it with lease_list, or ask them with lease_ask."
	case leasehold.Lost:
		return false, "Stop work on it: somebody else may have it. To take it again, call lease_acquire with a new " +
			"request_id, and look at what was changed meanwhile."
	case leasehold.NotFound:
		return false, "Look with lease_list at what there is."
	case leasehold.Invalid:
		return false, "Correct the arguments and call again."
	case leasehold.Denied:
		return false, "Ask a person who may grant this right; do not try to work around it."
	case leasehold.Limited:
		return true, "Release what you no longer need, or wait a minute and call again with the same arguments."
	case leasehold.Unavailable:
		return true, "Nothing happened. Wait some seconds and call again with the same arguments."
	case leasehold.Undecided:
		return true, "It may have happened. Call again with the same arguments, request_id included: it is not done " +
			"twice."
	case leasehold.Refused:
		return false, refusedAdvice(e)
	}
	return false, ""
}

// refusedAdvice tells a wait that would never end from other contradictions.
func refusedAdvice(e *leasehold.Error) string {
	if len(e.Cycle) > 0 {
		return "Waiting would never end: release what the others wait for, then call again."
	}
	return "Read the message; lease_list shows what contradicts it."
}

// gone reports whether an error says that something has ended, or never was.
func gone(err error) bool {
	return errors.Is(err, leasehold.ErrLost) || errors.Is(err, leasehold.ErrNotFound)
}

// result is a value as a client shows it to its agent.
func result(value any, failed bool) *sdk.CallToolResult {
	text, err := json.Marshal(value)
	if err != nil {
		panic(err) // all answers are plain values
	}
	return &sdk.CallToolResult{Content: []sdk.Content{&sdk.TextContent{Text: string(text)}}, IsError: failed}
}

// tell answers a request that did not come as far as a tool. Clients know a login that is missing by its status.
func tell(w http.ResponseWriter, err error) {
	e, standing := door.Told(w.Header(), err, door.StandingOf)
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("X-Content-Type-Options", "nosniff")
	w.WriteHeader(standing.Status)
	text, _ := json.Marshal(map[string]any{"jsonrpc": "2.0", "id": nil, "error": map[string]any{
		"code": serverError, "message": e.Message, "data": map[string]any{"code": e.Code.String()},
	}})
	_, _ = w.Write(text) // whether it arrives is not for us to know
}

// serverError is the first code that JSON-RPC leaves to servers.
const serverError = -32000
