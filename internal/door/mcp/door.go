package mcp

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/leasehold/leasehold"
	"github.com/leasehold/leasehold/internal/audit"
	"github.com/leasehold/leasehold/internal/door"
	"github.com/leasehold/leasehold/internal/telemetry"
)

// doorName is how the journal and the metrics call this door.
const doorName = "mcp"

// breakSetting lets agents end the leases of others.
const breakSetting = "mcp-break"

// Kind is this door in the table of a server.
var Kind = door.Kind{Name: doorName, What: "MCP: tools for agents", Tools: tools, Settings: []door.Setting{
	{Name: breakSetting, Default: "false", Switch: true,
		Help: "give agents the tool lease_break, by which they end leases of others"},
}, Open: func(b *door.Backend, s door.Settings) (door.Door, error) {
	return New(b, Config{Break: s[breakSetting] == "true"}).Door(), nil
}}

// Config is what a Door can be told. The zero value is good for tests.
type Config struct {
	Break bool // agents have the tool lease_break
}

// A Door answers agents by asking a backend of ours.
type Door struct {
	backend *door.Backend
	handler http.Handler
	verbs   map[string]*telemetry.Verb
}

// New returns a door to a backend.
func New(b *door.Backend, config Config) *Door {
	d := &Door{backend: b, verbs: map[string]*telemetry.Verb{}}
	requests := b.Requests(doorName)
	server := sdk.NewServer(&sdk.Implementation{Name: "leasehold", Version: b.Version().Version},
		&sdk.ServerOptions{Instructions: instructions, Capabilities: &sdk.ServerCapabilities{}})
	for i := range operations {
		o := &operations[i]
		d.verbs[o.name] = requests.Verb(o.name)
		if o.tool == nil || o.optional && !config.Break {
			continue
		}
		server.AddTool(o.tool, func(ctx context.Context, r *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
			return callOf(ctx).serve(ctx, o, r), nil
		})
	}
	d.handler = sdk.NewStreamableHTTPHandler(func(*http.Request) *sdk.Server { return server },
		&sdk.StreamableHTTPOptions{Stateless: true, MaxRequestBodyBytes: maxBody,
			// Names of hosts, and pages of other sites, are the port's matter.
			DisableLocalhostProtection: true})
	return d
}

// Door returns what is answered at which path.
func (d *Door) Door() door.Door {
	return door.Door{HTTP: door.HTTP{Routes: []door.Route{{Pattern: "/mcp", Handler: d}}, Refuse: d.refuse}}
}

const (
	maxBody   = 256 << 10        // bytes of a request
	callTime  = 24 * time.Second // of one call: many clients give up after a minute, and some earlier
	writeTime = 60 * time.Second // for all of a call, until its answer is taken
)

// ServeHTTP answers one request.
func (d *Door) ServeHTTP(w http.ResponseWriter, r *http.Request) { d.handle(w, r, nil) }

// refuse tells why the port does not let a request in.
func (d *Door) refuse(w http.ResponseWriter, r *http.Request, err error) { d.handle(w, r, err) }

// handle answers a request, with what the port refused it for, if it did. A tool accounts for itself, since the SDK
// calls it; what never comes as far as a tool is accounted for here.
func (d *Door) handle(w http.ResponseWriter, r *http.Request, refusal error) {
	c := &call{door: d, engine: d.backend.Witness(), r: r, began: time.Now(), namespace: leasehold.DefaultNamespace}
	o := &operations[0]
	err := cmp.Or(refusal, c.openQuery())
	if err == nil {
		err = c.login() // before the body is read: nobody shall hold memory who has not said who it is
	}
	if err == nil {
		o, err = c.receive(w)
	}
	if err != nil {
		c.done(o, err)
		tell(w, err)
		return
	}
	door.WriteWithin(w, writeTime)
	d.handler.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), callKey{}, c)))
	if o.tool == nil {
		c.done(o, nil)
	}
}

// openQuery reads the namespace.
func (c *call) openQuery() error {
	query, err := door.ReadQuery(c.r.URL.RawQuery, "namespace")
	if err == nil && query.Has("namespace") {
		c.namespace = query.Get("namespace")
		err = door.CheckName("namespace", c.namespace, leasehold.MaxName)
	}
	return err
}

// receive reads the body, and finds what is asked.
func (c *call) receive(w http.ResponseWriter) (o *operation, err error) {
	o = &operations[0]
	body, err := io.ReadAll(http.MaxBytesReader(w, c.r.Body, maxBody))
	if err != nil {
		if long := (*http.MaxBytesError)(nil); errors.As(err, &long) {
			return o, door.Invalidly(http.StatusRequestEntityTooLarge, "the request has more than %d bytes", maxBody)
		}
		return o, door.Invalid("the request cannot be read: %v", err)
	}
	if bytes.HasPrefix(bytes.TrimLeft(body, " \t\r\n"), []byte("[")) {
		return o, door.Invalid("the body is a batch of requests: send each by itself, as newer versions of MCP have it")
	}
	if err := door.CheckParts(body); err != nil {
		return o, err
	}
	c.r.Body = io.NopCloser(bytes.NewReader(body))
	return asked(body), nil
}

// asked returns which tool a request calls; the first operation if it calls none.
func asked(body []byte) *operation {
	var request struct {
		Method string `json:"method"`
		Params struct {
			Name string `json:"name"`
		} `json:"params"`
	}
	if json.Unmarshal(body, &request) == nil && request.Method == "tools/call" {
		for i := range operations {
			if o := &operations[i]; o.tool != nil && o.name == request.Params.Name {
				return o
			}
		}
	}
	return &operations[0]
}

// login finds out who sends the request: by a token or a certificate, and by the name that the agent gives itself.
func (c *call) login() (err error) {
	if c.proof, err = c.door.backend.Login(c.r, door.Bearer); err != nil {
		return err
	}
	if err := door.CheckText("the header "+AgentHeader, c.r.Header.Get(AgentHeader), maxAgent); err != nil {
		return err
	}
	c.agent = newAgent(door.Principal(c.proof), c.r.Header.Get(AgentHeader))
	return nil
}

// done accounts for a request, in the metrics and, if it is a refusal that only this door knows of, in the journal.
func (c *call) done(o *operation, err error) {
	b := c.door.backend
	if !b.Starting() && !door.Anonymous(err) {
		c.engine.Note(err, o.writes, audit.Refusal{
			Origin: c.origin(), Namespace: c.namespace, Verb: o.noted, Resource: c.resource, Holder: c.agent.holder,
		})
	}
	c.door.verbs[o.name].Done(c.r.Context(), telemetry.Outcome{
		Namespace: c.namespace, Err: err, Took: time.Since(c.began), Waited: c.waited,
		Expected: err != nil && b.Expected(c.r),
	})
}
