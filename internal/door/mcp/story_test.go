package mcp

import (
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/leasehold/leasehold"
)

// named gives the requests of a client an agent's name.
type named string

func (n named) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.Header.Set(AgentHeader, string(n))
	return http.DefaultTransport.RoundTrip(r)
}

// An sdkAgent is an agent behind the client of the SDK.
type sdkAgent struct {
	t        *testing.T
	session  *sdk.ClientSession
	progress atomic.Int64
}

// A person answers what an agent's program asks; nil: nobody is there.
type person = func(context.Context, *sdk.ElicitRequest) (*sdk.ElicitResult, error)

func dialSDK(t *testing.T, address, name string, person person) *sdkAgent {
	t.Helper()
	a := &sdkAgent{t: t}
	client := sdk.NewClient(&sdk.Implementation{Name: name, Version: "1"}, &sdk.ClientOptions{
		ProgressNotificationHandler: func(context.Context, *sdk.ProgressNotificationClientRequest) { a.progress.Add(1) },
		ElicitationHandler:          person,
	})
	session, err := client.Connect(t.Context(), &sdk.StreamableClientTransport{Endpoint: address + "/mcp",
		HTTPClient: &http.Client{Transport: named(name)}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = session.Close() })
	a.session = session
	return a
}

func (a *sdkAgent) call(tool string, arguments map[string]any) (got told) {
	a.t.Helper()
	params := &sdk.CallToolParams{Name: tool, Arguments: arguments}
	params.SetProgressToken("p")
	r, err := a.session.CallTool(a.t.Context(), params)
	if err != nil {
		a.t.Fatalf("%s: %v", tool, err)
	}
	got.t, got.failed, got.text = a.t, r.IsError, r.Content[0].(*sdk.TextContent).Text
	if tool == "lease_list" {
		return got
	}
	if err := json.Unmarshal([]byte(got.text), &got); err != nil && tool != "lease_check" {
		a.t.Fatalf("%s: %v", got.text, err)
	}
	return got
}

// serve serves a door on a real port.
func serve(t *testing.T, b *bench) (address string) {
	t.Helper()
	mux := http.NewServeMux()
	for _, route := range b.door.Door().HTTP.Routes {
		mux.Handle(route.Pattern, route.Handler)
	}
	server := httptest.NewServer(mux)
	t.Cleanup(func() {
		server.Close()
		http.DefaultTransport.(*http.Transport).CloseIdleConnections()
	})
	return server.URL
}

// A whole story by the SDK's own client, on real connections: two agents, one file, a wait with progress, a
// message, a hand-over.
func TestStoryOfTwoAgents(t *testing.T) {
	address := serve(t, newBench(t, Config{}))
	ann, bob := dialSDK(t, address, "ann", nil), dialSDK(t, address, "bob", nil)

	list, err := ann.session.ListTools(t.Context(), nil)
	if err != nil || len(list.Tools) != 5 {
		t.Fatalf("there are %d tools, %v", len(list.Tools), err)
	}
	for _, tool := range list.Tools {
		if reads := tool.Name == "lease_list"; tool.Annotations.ReadOnlyHint != reads {
			t.Errorf("%s says that it is read-only: %v", tool.Name, tool.Annotations.ReadOnlyHint)
		}
	}
	file := []string{"repo/web:src/auth/login.go"}
	first := ann.call("lease_acquire", map[string]any{"resources": file, "reason": "fix the login", "request_id": "1"}).
		is(statusHeld)
	ticket := bob.call("lease_acquire", map[string]any{"resources": file, "reason": "rename", "wait_seconds": 6}).
		is(statusWaiting, `"holder":"ann"`)
	if bob.progress.Load() == 0 {
		t.Error("nobody told bob that he waits")
	}
	bob.call("lease_ask", map[string]any{"resource": file[0], "message": "please release"}).says("ann")
	ann.call("lease_check", map[string]any{}).says("please release", `"from":"bob"`)
	ann.call("lease_release", map[string]any{"ids": []string{first.ID}}).says(file[0], `"released"`)
	turn := bob.call("lease_check", map[string]any{"ids": []string{ticket.ID}, "wait_seconds": 20}).says(statusHeld)
	bob.call("lease_list", nil).says(`"holder":"bob"`)
	if !strings.Contains(turn.text, `"token":2`) {
		t.Errorf("bob's token is not the next one: %s", turn.text)
	}
	bob.call("lease_acquire", map[string]any{"resources": file, "bad": 1}).fails(leasehold.Invalid, "allowed are")
}
