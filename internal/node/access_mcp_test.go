package node

import (
	"encoding/json"
	"net/http"
	"strings"
	"sync"

	"github.com/leasehold/leasehold"
)

// atMCP is a call of a tool, by an agent that is called h-XX.
func atMCP(tool, arguments string) func(place) request {
	return func(p place) request {
		id, _ := grips.Load(p.x)
		if id == nil {
			id = ""
		}
		put := strings.NewReplacer("PATH", p.path(), "XX", p.x, "GRIP", id.(string)).Replace
		body := `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"` + tool + `","arguments":` + put(arguments) +
			`}}`
		if tool == "" {
			body = `{"jsonrpc":"2.0","id":1,"method":"tools/list"}`
		}
		return request{method: "POST", path: "/mcp?namespace=" + p.space, body: body, headers: []string{
			"Content-Type", "application/json", "Accept", "application/json, text/event-stream",
			"Leasehold-Agent", "h-" + p.x}}
	}
}

// grips are the ids of what agents were given, by place.
var grips sync.Map

// holdMCP is a lease that its owner's agent has taken.
func holdMCP(w *world, p place) {
	got := w.ask(p.owner, atMCP("lease_acquire", `{"resources":["PATH"],"reason":"v-XX","request_id":"1"}`)(p))
	var made struct{ ID string }
	if err := json.Unmarshal([]byte(got.body), &made); err != nil || got.status != http.StatusOK {
		w.Fatalf("%s: %s", p.owner, got.all())
	}
	grips.Store(p.x, made.ID)
}

// ofTool is the reply of a tool with the status that our own API has for it.
func (r reply) ofTool() reply {
	_, data, found := strings.Cut(r.body, "data: ")
	var answer struct {
		Result struct {
			Content []struct{ Text string }
			IsError bool
		}
	}
	if !found || json.Unmarshal([]byte(data), &answer) != nil || len(answer.Result.Content) == 0 {
		return r
	}
	r.body = answer.Result.Content[0].Text
	var failure struct{ Error struct{ Code string } }
	if !answer.Result.IsError || json.Unmarshal([]byte(r.body), &failure) != nil {
		return r
	}
	switch leasehold.CodeOf(failure.Error.Code) {
	case leasehold.Denied:
		r.status = http.StatusForbidden
	case leasehold.NotFound:
		r.status = http.StatusNotFound
	default:
		r.status = http.StatusConflict
	}
	return r
}

var agentHolds = befores{holdMCP}

// mcpRows are those of agents.
var mcpRows = []row{
	{"protocol", "lists tools", nil, atMCP("", ""), ""},
	{"lease_acquire", "", nil, atMCP("lease_acquire", `{"resources":["PATH"],"reason":"x"}`), ""},
	{"lease_acquire", "to wait", agentHolds, atMCP("lease_acquire", `{"resources":["PATH"],"reason":"x","slots":1}`), "v"},
	{"lease_check", "all", agentHolds, atMCP("lease_check", `{}`), "x"},
	{"lease_check", "one", agentHolds, atMCP("lease_check", `{"ids":["GRIP"]}`), "x"},
	{"lease_release", "", agentHolds, atMCP("lease_release", `{"ids":["GRIP"]}`), ""},
	{"lease_list", "", agentHolds, atMCP("lease_list", `{"prefix":"PATH"}`), "v"},
	{"lease_ask", "", agentHolds, atMCP("lease_ask", `{"resource":"PATH","message":"please"}`), "h"},
	{"lease_break", "", agentHolds, atMCP("lease_break", `{"resource":"PATH","reason":"x"}`), ""},
}
