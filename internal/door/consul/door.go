package consul

import (
	"cmp"
	"context"
	"encoding/json"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/leasehold/leasehold"
	"github.com/leasehold/leasehold/internal/access/credential"
	"github.com/leasehold/leasehold/internal/audit"
	"github.com/leasehold/leasehold/internal/core"
	"github.com/leasehold/leasehold/internal/door"
	"github.com/leasehold/leasehold/internal/engine"
	"github.com/leasehold/leasehold/internal/telemetry"
)

// doorName is how the journal and the metrics call this door.
const doorName = "consul"

const allOf = core.AllOf

// A Door answers clients of Consul by asking a backend of ours.
type Door struct {
	backend *door.Backend
	config  Config
	verbs   map[string]*telemetry.Verb

	newest atomic.Uint64 // revision that an answer of this server has shown
}

// New returns a door to a backend.
func New(b *door.Backend, config Config) *Door {
	door.SetDefault(&config.Namespace, leasehold.DefaultNamespace)
	door.SetDefault(&config.Datacenter, defaultDatacenter)
	d := &Door{backend: b, config: config, verbs: map[string]*telemetry.Verb{}}
	requests := b.Requests(doorName)
	for _, o := range append(operations, unknown) {
		d.verbs[o.name] = requests.Verb(o.name)
	}
	return d
}

// Port returns the port of the door. Its paths are those of our own API, so that it shares none.
func (d *Door) Port(address string) *door.Port {
	return &door.Port{
		Name: doorName, Clients: "consul clients", Setting: listenSetting, Address: address, SharedTLS: true,
		HTTP:     door.HTTP{Routes: []door.Route{{Handler: d}}, Refuse: d.refuse},
		ReadTime: door.ReadTime, WriteTime: door.WriteTime,
		Opened: func(address string) {
			d.backend.Log().Info("consul clients are served", "address", address)
			go d.keepLasting()
		},
	}
}

// A call is one request on its way through the door.
type call struct {
	door   *Door
	engine *door.Witness
	w      http.ResponseWriter
	r      *http.Request
	ctx    context.Context   // of the request, with who sends it and from where
	proof  *credential.Proof // who sends it; nil: access is off
	query  url.Values
	name   string // what follows the path of the operation
	began  time.Time

	holder  string // of a lock, for the journal
	refusal error  // why an answer is no, for the metrics
	waited  bool   // for a change

	answer door.Answer
}

// ServeHTTP answers one request.
func (d *Door) ServeHTTP(w http.ResponseWriter, r *http.Request) { d.handle(w, r, nil) }

// refuse tells, as Consul does, why the port does not let a request in.
func (d *Door) refuse(w http.ResponseWriter, r *http.Request, err error) { d.handle(w, r, err) }

// handle answers a request, with what the port refused it for, if it did.
func (d *Door) handle(w http.ResponseWriter, r *http.Request, refusal error) {
	c := &call{door: d, engine: d.backend.Witness(), w: w, r: r, ctx: r.Context(), began: time.Now()}
	defer c.answer.Done()
	err := c.open()
	o := find(r.Method, r.URL.Path, c.query)
	c.name = strings.TrimPrefix(r.URL.Path, o.path)
	if refusal == nil && err == nil {
		refusal = c.login()
		c.ctx = engine.WithOrigin(c.ctx, c.origin())
	}
	if err = cmp.Or(refusal, err); err == nil {
		err = o.serve(c)
	}
	if !d.backend.Starting() {
		c.note(o, err)
	}
	if err != nil {
		c.tell(err)
	}
	d.verbs[o.name].Done(r.Context(), telemetry.Outcome{
		Namespace: d.config.Namespace, Err: cmp.Or(err, c.refusal), Took: time.Since(c.began), Endless: c.waited,
		Expected: err != nil && d.backend.Expected(r),
	})
}

// open reads what every request has. Parameters that mean nothing are ignored, as Consul does.
func (c *call) open() (err error) {
	if c.query, err = url.ParseQuery(c.r.URL.RawQuery); err != nil {
		return badRequest("the query cannot be read: %v", err)
	}
	if dc := c.query.Get("dc"); dc != "" && dc != c.door.config.Datacenter {
		return failed(leasehold.NotFound, "No path to datacenter")
	}
	for _, name := range []string{"ns", "partition"} {
		if value := c.query.Get(name); value != "" && value != "default" {
			return badRequest("Invalid query parameter: %q - %s are a Consul Enterprise feature", name,
				map[string]string{"ns": "Namespaces", "partition": "Partitions"}[name])
		}
	}
	if c.query.Has("stale") && c.query.Has("consistent") {
		return badRequest("Cannot specify ?stale with ?consistent, conflicting semantics.")
	}
	return nil
}

// login finds out who sends the request: by a token of ours, or by the certificate of its connection.
func (c *call) login() (err error) {
	shown := credential.Shown{Secret: c.secret(), From: c.r.RemoteAddr}
	if tls := c.r.TLS; tls != nil && len(tls.VerifiedChains) > 0 {
		shown.Certificate = tls.VerifiedChains[0][0]
	}
	if c.proof, err = c.door.backend.Prove(c.ctx, shown); err == nil {
		c.ctx = door.WithProof(c.ctx, c.proof)
	}
	return err
}

// secret returns the token of a request, from wherever Consul takes it.
func (c *call) secret() string {
	if token := cmp.Or(c.query.Get("token"), c.r.Header.Get("X-Consul-Token")); token != "" {
		return token
	}
	scheme, value, _ := strings.Cut(c.r.Header.Get("Authorization"), " ")
	if !strings.EqualFold(scheme, "Bearer") {
		return ""
	}
	return strings.TrimSpace(value)
}

// origin is where the request comes from: the address of the connection, whatever a header says.
func (c *call) origin() leasehold.Origin {
	return leasehold.Origin{Actor: door.Principal(c.proof), Address: c.r.RemoteAddr, Door: doorName}
}

// do carries out a command.
func (c *call) do(command core.Command) (core.Answer, error) { return c.engine.Do(c.ctx, command) }

// patiently carries out a command that may be done twice.
func (c *call) patiently(command core.Command) (answer core.Answer, err error) {
	err = c.door.backend.Patiently(c.ctx, func() (err error) {
		answer, err = c.do(command)
		return err
	})
	return answer, err
}

// look reads the state of the engine.
func (c *call) look(fn func(core.View)) error { return c.door.backend.Read(c.ctx, fn) }

// namespace keeps everything.
func (c *call) namespace() string { return c.door.config.Namespace }

// note puts in the journal what the door refused by itself.
func (c *call) note(o *operation, err error) {
	if err == nil || door.Anonymous(err) {
		return
	}
	c.engine.Note(err, o.writes, audit.Refusal{
		Origin: c.origin(), Namespace: c.namespace(), Verb: o.noted, Resource: c.name, Holder: c.holder,
	})
}

// showed notes the newest revision that an answer shows.
func (d *Door) showed(r leasehold.Revision) {
	for old := d.newest.Load(); uint64(r) > old && !d.newest.CompareAndSwap(old, uint64(r)); old = d.newest.Load() {
	}
}

// writeTime is how long a reader may take for an answer. The port gives as much from the beginning of a request on,
// which does for one that is answered soon.
const (
	writeTime = 30 * time.Second
	soon      = time.Second
)

// The values of headers that are the same in many answers, which share them.
var (
	jsonType      = []string{"application/json"}
	jsonErrorType = []string{"application/json; charset=utf-8"}
	textType      = []string{"text/plain; charset=utf-8"}
	noSniff       = []string{"nosniff"}
	varies        = []string{"Accept-Encoding"}
	denies        = []string{"deny"}
	allows        = []string{"allow"}
	known         = []string{"true"}
	noDelay       = []string{"0"}
)

// send answers with something as JSON.
func (c *call) send(value any) error { return c.sendAs(http.StatusOK, value) }

func (c *call) sendAs(status int, value any) error {
	text, err := json.Marshal(value)
	if c.query.Has("pretty") {
		text, err = json.MarshalIndent(value, "", "    ")
		text = append(text, '\n')
	}
	if err != nil {
		return err
	}
	h := c.w.Header()
	if h["Content-Type"] = jsonType; status != http.StatusOK {
		h["Content-Type"] = jsonErrorType // as Consul has it
	}
	c.sendBytes(status, text)
	return nil
}

// sendText answers with a line of text.
func (c *call) sendText(status int, text string) {
	c.w.Header()["Content-Type"] = textType
	c.sendBytes(status, []byte(text))
}

func (c *call) sendBytes(status int, text []byte) {
	h := c.w.Header()
	h["X-Content-Type-Options"], h["Vary"], h["X-Consul-Default-Acl-Policy"] = noSniff, varies, c.aclPolicy()
	if c.waited || time.Since(c.began) > soon {
		door.WriteWithin(c.w, writeTime)
	}
	c.w.WriteHeader(status)
	_, _ = c.w.Write(text) // whether it arrives is not for us to know
}

// aclPolicy is what nobody allowed means.
func (c *call) aclPolicy() []string {
	if !c.door.backend.Starting() && c.door.backend.AccessOn() {
		return denies
	}
	return allows
}

// setMeta sets the headers of an answer about the state, which was so at an index.
func (c *call) setMeta(index uint64) {
	h := c.w.Header()
	h["X-Consul-Index"] = []string{strconv.FormatUint(max(1, index), 10)}
	h["X-Consul-Knownleader"], h["X-Consul-Lastcontact"] = known, noDelay
}
