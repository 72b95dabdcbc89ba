package v1

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"net"
	"net/http"
	"net/url"
	"strings"
	"sync/atomic"
	"time"

	"github.com/leasehold/leasehold"
	"github.com/leasehold/leasehold/internal/redial"
	"github.com/leasehold/leasehold/internal/resp"
	"github.com/leasehold/leasehold/internal/resp/pipeline"
)

// A Wire is how requests are written.
type Wire string

// The wires. Servers have both on the same port. RESP costs less; HTTP passes every proxy.
const (
	WireHTTP Wire = "http" // also if none is named
	WireRESP Wire = "resp" // RESP, or an error if the server does not speak it
	WireAuto Wire = "auto" // RESP where the server speaks it, else HTTP
)

// check returns an error for a text that names no wire.
func (w Wire) check() error {
	switch w {
	case "", WireHTTP, WireRESP, WireAuto:
		return nil
	}
	message := "unknown wire \"" + string(w) + "\": write http, resp or auto"
	return &leasehold.Error{Code: leasehold.Invalid, Message: message}
}

// errHTTP says that a server is to be asked by HTTP. Nothing was sent to it.
var errHTTP = errors.New("the server does not speak RESP")

// A wire is the RESP side of one server.
type wire struct {
	endpoint  *endpoint
	url       *url.URL
	namespace string
	forced    bool // RESP or nothing
	pool      *pipeline.Pool
	ttl       atomic.Int64 // that a dead connection must not cost; 0: none
}

// newWire returns the RESP side of a server; nil: it is to be asked by HTTP.
func newWire(e *endpoint, config CallerConfig) (*wire, error) {
	if config.Wire != WireRESP && (config.Wire != WireAuto || config.Client != nil) {
		return nil, nil
	}
	u, err := url.Parse(e.address)
	if err != nil {
		return nil, err
	}
	w := &wire{endpoint: e, url: u, namespace: config.Namespace, forced: config.Wire == WireRESP}
	w.ttl.Store(int64(config.PingWithin))
	if !w.forced && (u.Path != "" || viaProxy(u)) {
		return nil, nil // something is between that knows only HTTP
	}
	how := pipeline.PoolConfig{
		Host: u.Host, Dial: config.Dial, Protocol: "leasehold-resp", Idle: redial.IdleTimeout, Forced: w.forced,
		Greeting: w.greeting, Greeted: []func(*resp.Value) error{w.welcomed, w.introduced, named},
		Patience: w.patience,
	}
	if how.Dial == nil {
		how.Dial = redial.NewDialer().DialContext
	}
	port := "80"
	if u.Scheme == "https" {
		port, how.TLS = "443", pipeline.Secure(config.TLS, u.Hostname(), how.Protocol)
	}
	if u.Port() == "" {
		how.Host = net.JoinHostPort(u.Hostname(), port)
	}
	w.pool = pipeline.NewPool(how)
	return w, nil
}

// viaProxy reports whether the environment names an HTTP proxy for a server.
func viaProxy(u *url.URL) bool {
	proxy, err := http.ProxyFromEnvironment(&http.Request{URL: u})
	return proxy != nil || err != nil
}

// get returns a connection, under the caller's token.
func (w *wire) get(ctx context.Context, token string, l pipeline.Lane) (*pipeline.Conn, error) {
	conn, err := w.pool.Get(ctx, token, l)
	if err == nil {
		return conn, nil
	}
	var refused *resp.Failure
	switch {
	case errors.Is(err, pipeline.ErrNotRESP) && w.forced:
		return nil, &leasehold.Error{Code: leasehold.Refused, Message: "the server at " + w.endpoint.address +
			" does not speak RESP, or a proxy before it does not: use the wire http"}
	case errors.Is(err, pipeline.ErrNotRESP):
		return nil, errHTTP
	case errors.As(err, &refused):
		return nil, w.refusal(refused)
	}
	return nil, unreached(w.endpoint.address, err)
}

// greeting returns the first commands of a connection.
func (w *wire) greeting(token string) []byte {
	hello := []string{"HELLO", "3"}
	if token != "" {
		hello = append(hello, "AUTH", "default", token)
	}
	b := w.introduction(resp.AppendCommand(nil, hello...))
	return resp.AppendCommand(b, "CLIENT", "SETINFO", "LIB-NAME", redial.Agent())
}

// named takes the answer to our name, which no server needs.
func named(*resp.Value) error { return nil }

// introduction appends our own greeting.
func (w *wire) introduction(b []byte) []byte {
	ours := []string{"LH.HELLO", "ERRORS", "json"}
	if w.namespace != "" {
		ours = append(ours, "NAMESPACE", w.namespace)
	}
	return resp.AppendCommand(b, ours...)
}

func (w *wire) welcomed(v *resp.Value) error {
	if v.Kind != resp.Error {
		return nil
	}
	code, text := v.Code()
	if unknownCommand(code, text) {
		return pipeline.ErrNotRESP // another server of that protocol
	}
	return &resp.Failure{Code: code, Text: text}
}

// introduced takes what the server says of itself.
func (w *wire) introduced(v *resp.Value) error {
	if err := w.welcomed(v); err != nil {
		return err
	}
	for i := 0; i+1 < len(v.Items); i += 2 {
		if string(v.Items[i].Text) == "level" {
			w.endpoint.level.Store(v.Items[i+1].Int)
			return nil
		}
	}
	return pipeline.ErrNotRESP
}

func unknownCommand(code, text string) bool {
	return code == "NOPROTO" || code == "ERR" && strings.HasPrefix(text, "unknown command")
}

// refusal returns the error that a server answered with; errHTTP if it does not know the command.
func (w *wire) refusal(f *resp.Failure) error {
	switch {
	case unknownCommand(f.Code, f.Text):
		return errHTTP
	case f.Code == "NOAUTH" || f.Code == "WRONGPASS":
		return unproven(w.problem(f, leasehold.Denied), http.StatusUnauthorized)
	case f.Code == "LOADING": // it starts or stops, and did nothing
		return w.problem(f, leasehold.Unavailable)
	}
	return w.problem(f, cmp.Or(leasehold.CodeOf(strings.ToLower(f.Code)), leasehold.Refused))
}

// problem returns the error that a server describes, as JSON or as text.
func (w *wire) problem(f *resp.Failure, code leasehold.Code) *leasehold.Error {
	var p Problem
	if !strings.HasPrefix(f.Text, "{") || json.Unmarshal([]byte(f.Text), &p) != nil {
		return &leasehold.Error{Code: code, Message: f.Text}
	}
	return p.err(cmp.Or(leasehold.CodeOf(p.Code), code), cmp.Or(w.namespace, leasehold.DefaultNamespace))
}

// pingWithin makes dead connections be noticed in time for leases of a TTL. It only ever shortens that time.
func (w *wire) pingWithin(ttl time.Duration) {
	for old := w.ttl.Load(); old == 0 || int64(ttl) < old; old = w.ttl.Load() {
		if w.ttl.CompareAndSwap(old, int64(ttl)) {
			w.pool.PatienceChanged()
			return
		}
	}
}

// patience returns how long a connection may be silent. Reads may take longer than what a short TTL would allow.
func (w *wire) patience(l pipeline.Lane) pipeline.Patience {
	ttl := time.Duration(w.ttl.Load())
	if ttl == 0 {
		return pipeline.Patience{}
	}
	after, within := redial.Pings(ttl)
	if l == pipeline.Reads {
		within = max(within, readLimit)
	}
	return pipeline.Patience{After: after, Within: within}
}
