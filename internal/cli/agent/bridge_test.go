package agent

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

// A server that does not answer, or a person who does not, keeps an agent waiting for no longer than a call may take.
func TestACallEndsInTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := sdk.NewServer(&sdk.Implementation{Name: "server", Version: "1"}, nil)
		for _, name := range []string{"lease_check", breakTool} {
			server.AddTool(&sdk.Tool{Name: name, InputSchema: map[string]any{"type": "object"}},
				func(ctx context.Context, _ *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
					<-ctx.Done()
					return nil, ctx.Err()
				})
		}
		near, far := sdk.NewInMemoryTransports()
		serving, err := server.Connect(t.Context(), far, nil)
		if err != nil {
			t.Fatal(err)
		}
		client := sdk.NewClient(&sdk.Implementation{Name: "bridge", Version: "1"}, nil)
		session, err := client.Connect(t.Context(), near, nil)
		if err != nil {
			t.Fatal(err)
		}
		b := &bridge{session: session, place: &place{}}
		for name, code := range map[string]string{"lease_check": "unavailable", breakTool: "undecided"} {
			began := time.Now()
			result, err := b.forward(t.Context(), &sdk.CallToolRequest{Params: &sdk.CallToolParamsRaw{Name: name}})
			if err != nil || !result.IsError || time.Since(began) != callTime {
				t.Fatalf("after %v %s is answered %+v, %v", time.Since(began), name, result, err)
			}
			if text := result.Content[0].(*sdk.TextContent).Text; !strings.Contains(text, code) {
				t.Errorf("%s is answered %s", name, text)
			}
		}
		_ = session.Close()
		_ = serving.Wait()
	})
}

// Two processes may have the same number on hosts of the same name, as in containers.
func TestNoTwoAgentsHaveOneName(t *testing.T) {
	name := func() string { return newBridge(nil, nil, "").name }
	if one, other := name(), name(); one == other {
		t.Errorf("both are %s", one)
	}
}
