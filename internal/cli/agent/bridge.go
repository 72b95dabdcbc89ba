package agent

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/url"
	"os"
	"strconv"
	"sync"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/leasehold/leasehold"
	"github.com/leasehold/leasehold/internal/certificate"
	"github.com/leasehold/leasehold/internal/cli"
)

// agentHeader is the header by which a server knows agents apart.
const agentHeader = "Leasehold-Agent"

// A bridge joins an agent, which speaks on standard input and output, to the door of a server. It knows no tool: those
// are the server's, with all their texts, so that agents of any age see what their server has.
type bridge struct {
	app   *cli.App
	place *place
	name  string // of the agent
	kept  bool   // the name is the agent's own: another process may go on with what it holds

	looking sync.Mutex // one call at a time looks for a server

	mu       sync.Mutex // guards what follows
	session  *sdk.ClientSession
	progress map[string]func(*sdk.ProgressNotificationParams) // by token
	calls    int

	registered string // the file that says that the agent is here
}

// newBridge returns a bridge for an agent. One without a name gets that of its process, with a number that nobody else
// has: two agents must never be taken for one, or both would be told that they hold the same lease. The process alone
// does not do: containers may share the name of a host, and each begins to count its processes anew.
func newBridge(a *cli.App, p *place, name string) *bridge {
	b := &bridge{app: a, place: p, name: name, kept: name != "",
		progress: map[string]func(*sdk.ProgressNotificationParams){}}
	if !b.kept {
		b.name = fmt.Sprintf("%s:%d-%06d", cli.Person(), os.Getpid(), rand.N(1_000_000))
	}
	return b
}

// connect connects to the first server that answers. Nothing is tried again below this: whether a call may be made
// twice is decided in forward.
func (b *bridge) connect(ctx context.Context) (err error) {
	client := sdk.NewClient(&sdk.Implementation{Name: "leasehold-mcp", Version: b.app.Version.Version},
		&sdk.ClientOptions{ProgressNotificationHandler: b.report,
			// Questions to a person are for the agent's program, or for ask: see confirm.go.
			MultiRoundTrip: &sdk.MultiRoundTripOptions{Disabled: true}})
	for _, server := range b.place.client.Servers {
		transport := &sdk.StreamableClientTransport{Endpoint: endpoint(b.place, server), DisableStandaloneSSE: true,
			MaxRetries: -1}
		if transport.HTTPClient, err = httpClient(b.place, b.name); err != nil {
			return err
		}
		var session *sdk.ClientSession
		if session, err = client.Connect(ctx, transport, nil); err == nil {
			b.mu.Lock()
			defer b.mu.Unlock()
			if b.session != nil {
				_ = b.session.Close()
			}
			b.session = session
			return nil
		}
	}
	return err
}

// endpoint is where a server has its tools for agents.
func endpoint(p *place, server string) string {
	if p.client.Namespace == "" {
		return server + "/mcp"
	}
	return server + "/mcp?namespace=" + url.QueryEscape(p.client.Namespace)
}

// httpClient returns a client that says who the agent is, and proves whose it is.
func httpClient(p *place, name string) (*http.Client, error) {
	transport := http.DefaultTransport.(*http.Transport).Clone()
	if p.client.TLS != (certificate.Files{}) {
		ring, err := certificate.Open(p.client.TLS, nil)
		if err != nil {
			return nil, err
		}
		transport.TLSClientConfig = ring.Dial()
	}
	return &http.Client{Transport: &signed{transport, p, name}}, nil
}

// signed adds to requests who sends them.
type signed struct {
	http.RoundTripper
	place *place
	name  string
}

// RoundTrip sends a request as the agent. The token is asked for each time, since it may be one that is replaced.
func (s *signed) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.Header.Set(agentHeader, s.name)
	if token := s.place.client.Token; token != nil {
		if r.URL.Scheme != "https" && !s.place.client.Insecure && !loopback(r.URL.Hostname()) {
			return nil, errors.New("a token is not sent to another machine without TLS: use https, or --insecure")
		}
		secret, err := token(r.Context())
		if err != nil {
			return nil, err
		}
		r.Header.Set("Authorization", "Bearer "+secret)
	}
	return s.RoundTripper.RoundTrip(r)
}

// serve gives the agent the server's tools until it leaves.
func (b *bridge) serve(ctx context.Context) error {
	session := b.current()
	list, err := session.ListTools(ctx, nil)
	if err != nil {
		return err
	}
	options := &sdk.ServerOptions{Capabilities: &sdk.ServerCapabilities{}}
	if begun := session.InitializeResult(); begun != nil {
		options.Instructions = begun.Instructions
	}
	server := sdk.NewServer(&sdk.Implementation{Name: "leasehold", Version: b.app.Version.Version}, options)
	for _, tool := range list.Tools {
		server.AddTool(tool, b.forward)
	}
	out := &output{out: b.app.Stdout}
	err = server.Run(ctx, &sdk.IOTransport{Reader: newLines(b.app.Stdin, out), Writer: out})
	if errors.Is(err, io.EOF) || ctx.Err() != nil {
		return nil // it is the agent's program that ends the connection
	}
	return err
}

// current is the connection that calls go over, until another one takes its place.
func (b *bridge) current() *sdk.ClientSession {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.session
}

// breakTool is the one tool that must not be called twice.
const breakTool = "lease_break"

// callTime is how long a call may take, with all that it may need: a server that has to be started again, and a person
// who is asked. A server has 24 s for its part.
const callTime = 25 * time.Second

// forward passes a call on. What is not answered in time is told as such, in words that an agent can act on: its
// program would cut it off some day, and say nothing.
func (b *bridge) forward(ctx context.Context, r *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
	params := &sdk.CallToolParams{Name: r.Params.Name, Arguments: r.Params.Arguments,
		Meta:           sdk.Meta{sdk.MetaKeyClientCapabilities: capabilitiesOf(r)},
		InputResponses: r.Params.InputResponses, RequestState: r.Params.RequestState}
	within, cancel := context.WithTimeout(ctx, callTime)
	defer cancel()
	defer b.follow(within, r, params)()
	result, err := b.send(within, params)
	if err == nil && result.NeedsInput() && r.ProtocolVersion() < firstToAsk {
		result, err = b.ask(within, r, params, result)
	}
	if err != nil && ctx.Err() == nil {
		return unanswered(params.Name, err), nil
	}
	return result, err
}

// send makes a call. One that got no answer is made once more, since the tools do nothing twice; but for a break, which
// could meet the next holder.
func (b *bridge) send(ctx context.Context, params *sdk.CallToolParams) (*sdk.CallToolResult, error) {
	result, err := b.current().CallTool(ctx, params)
	if err == nil || ctx.Err() != nil || params.Name == breakTool {
		return result, err
	}
	if err := b.reconnect(ctx); err != nil {
		return nil, err
	}
	return b.current().CallTool(ctx, params)
}

// reconnect looks for the server anew: the one that agents share may have to be started again.
func (b *bridge) reconnect(ctx context.Context) error {
	b.looking.Lock()
	defer b.looking.Unlock()
	if b.place.dir != (state{}) {
		find, cancel := context.WithTimeout(ctx, startTime)
		defer cancel()
		if err := b.place.find(find); err != nil {
			return err
		}
	}
	return b.connect(ctx)
}

// unanswered is what an agent reads when no server answers. It has the form of the server's own errors, so that the
// agent need not know two.
func unanswered(tool string, err error) *sdk.CallToolResult {
	code, retryable := leasehold.Unavailable, true
	next := "Wait some seconds and call again with the same arguments. Until then, do not rely on your leases."
	if tool == breakTool {
		code, retryable = leasehold.Undecided, false
		next = "It may have happened. Look with lease_list who holds it before you call again."
	}
	text, _ := json.Marshal(map[string]any{"error": map[string]any{"code": code.String(), "retryable": retryable,
		"message": "no server answers: " + err.Error(), "next": next}})
	return &sdk.CallToolResult{Content: []sdk.Content{&sdk.TextContent{Text: string(text)}}, IsError: true}
}

// follow passes notices of progress on while a call lasts, if the agent's program wants them.
func (b *bridge) follow(ctx context.Context, r *sdk.CallToolRequest, params *sdk.CallToolParams) (end func()) {
	theirs := r.Params.GetProgressToken()
	if theirs == nil {
		return func() {}
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.calls++
	token := strconv.Itoa(b.calls)
	params.SetProgressToken(token)
	b.progress[token] = func(p *sdk.ProgressNotificationParams) {
		_ = r.Session.NotifyProgress(ctx, &sdk.ProgressNotificationParams{ProgressToken: theirs, Message: p.Message,
			Progress: p.Progress, Total: p.Total})
	}
	return func() {
		b.mu.Lock()
		defer b.mu.Unlock()
		delete(b.progress, token)
	}
}

// report hands a notice of the server to the call that it is about.
func (b *bridge) report(_ context.Context, r *sdk.ProgressNotificationClientRequest) {
	b.mu.Lock()
	tell := b.progress[fmt.Sprint(r.Params.ProgressToken)]
	b.mu.Unlock()
	if tell != nil {
		tell(r.Params)
	}
}

// endTime is how long an agent's program is kept waiting when it ends.
const endTime = 3 * time.Second

// end gives back what the agent holds, unless another process can go on with it: it would keep others out for a TTL.
// The agent did not do so itself, so what it worked on may be half done.
func (b *bridge) end() {
	ctx, cancel := context.WithTimeout(context.Background(), endTime)
	defer cancel()
	if b.registered != "" {
		_ = os.Remove(b.registered)
	}
	session := b.current()
	defer session.Close()
	if b.kept {
		return
	}
	r, err := session.CallTool(ctx, &sdk.CallToolParams{Name: "lease_check", Arguments: struct{}{}})
	if err != nil || len(r.Content) == 0 {
		return
	}
	var has struct{ Leases []struct{ ID string } }
	text, _ := r.Content[0].(*sdk.TextContent)
	if text == nil || json.Unmarshal([]byte(text.Text), &has) != nil || len(has.Leases) == 0 {
		return
	}
	var ids []string
	for _, l := range has.Leases {
		ids = append(ids, l.ID)
	}
	_, _ = session.CallTool(ctx, &sdk.CallToolParams{Name: "lease_release",
		Arguments: map[string]any{"ids": ids, "outcome": "unclean"}})
}
