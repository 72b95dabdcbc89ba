package mcp

import (
	"bufio"
	"context"
	"encoding/json"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/leasehold/leasehold"
	"github.com/leasehold/leasehold/internal/door"
	"github.com/leasehold/leasehold/internal/door/doortest"
)

// Clients do not wait as the contract means it: what they wait for has a ticket, and calls are short.
func TestContract(t *testing.T) {
	doortest.Run(t, &doortest.Adapter{
		Name: "mcp", Resource: "jobs/x", Undecided: leasehold.Undecided,
		Open: func(_ testing.TB, b *door.Backend) door.Door { return New(b, Config{}).Door() },
		Dial: func(_ testing.TB, dial doortest.Dialer) doortest.Client {
			return contractClient{doortest.NewHTTP(dial, codeOfAnswer)}
		},
		Bad: []string{
			"POST /mcp HTTP/1.1\r\nHost: x\r\nContent-Length: 1\r\n\r\n{",
			"POST /mcp HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\n\r\n[]",
			"GET /mcp HTTP/1.1\r\nHost: x\r\n\r\n",
			"POST /mcp?namespace=%zz HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\n\r\n{}",
		},
	})
}

type contractClient struct{ *doortest.HTTP }

// codeOfAnswer reads a status, or the result of a tool in a stream of events.
func codeOfAnswer(r *http.Response, body string) leasehold.Code {
	if r.StatusCode != http.StatusOK {
		var refused struct {
			Error struct{ Data struct{ Code string } }
		}
		_ = json.Unmarshal([]byte(body), &refused)
		return leasehold.CodeOf(refused.Error.Data.Code)
	}
	text, failed := resultOf(body)
	var said struct {
		Status string
		Error  struct{ Code string }
	}
	_ = json.Unmarshal([]byte(text), &said)
	switch {
	case failed:
		return leasehold.CodeOf(said.Error.Code)
	case said.Status == statusWaiting:
		return leasehold.Held
	}
	return 0
}

// resultOf returns what a tool said.
func resultOf(body string) (text string, failed bool) {
	lines := bufio.NewScanner(strings.NewReader(body))
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		data, ok := strings.CutPrefix(lines.Text(), "data: ")
		if !ok {
			continue
		}
		var m struct {
			Result struct {
				Content []struct{ Text string }
				IsError bool
			}
		}
		if json.Unmarshal([]byte(data), &m) == nil && len(m.Result.Content) > 0 {
			return m.Result.Content[0].Text, m.Result.IsError
		}
	}
	return "", false
}

// request is a call of a tool in an agent's name.
func request(ctx context.Context, agent, tool, arguments string) *http.Request {
	body := `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"` + tool + `","arguments":` + arguments + `}}`
	r, err := http.NewRequestWithContext(ctx, "POST", "http://server/mcp", strings.NewReader(body))
	if err != nil {
		panic(err)
	}
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Accept", "application/json, text/event-stream")
	r.Header.Set(AgentHeader, agent)
	return r
}

func (c contractClient) Acquire(ctx context.Context, holder string, _ time.Duration) (doortest.Answer, error) {
	return c.Ask(request(ctx, holder, "lease_acquire",
		`{"resources":["jobs/x"],"reason":"work","request_id":"1"}`))
}

func (c contractClient) Release(ctx context.Context, holder string) (doortest.Answer, error) {
	return c.Ask(request(ctx, holder, "lease_release", `{"ids":["`+newAgent("", holder).id("1")+`"]}`))
}

func (c contractClient) Intrude(ctx context.Context) (doortest.Answer, error) {
	r := request(ctx, "ann", "lease_acquire", `{"resources":["jobs/x"],"reason":"work"}`)
	r.Header.Set("Sec-Fetch-Site", "cross-site")
	return c.Ask(r)
}
