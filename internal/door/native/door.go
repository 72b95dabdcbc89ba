package native

import (
	"context"
	"io"
	"net/http"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/leasehold/leasehold"
	v1 "github.com/leasehold/leasehold/api/v1"
	"github.com/leasehold/leasehold/internal/access/credential"
	"github.com/leasehold/leasehold/internal/audit"
	"github.com/leasehold/leasehold/internal/core"
	"github.com/leasehold/leasehold/internal/door"
	"github.com/leasehold/leasehold/internal/telemetry"
)

// A Door answers requests of our own API by asking a backend.
type Door struct {
	backend *door.Backend
	asked   map[string]*accounted // by pattern
	verbs   []string              // that the journal may be asked for

	watching  atomic.Int64
	transfers atomic.Int64
	events    eventCache
}

// An accounted operation has the account of its requests.
type accounted struct {
	*operation
	account *telemetry.Verb
}

// Kind is this door in the table of a server. It has no settings of its own.
var Kind = door.Kind{Name: doorName, Open: func(b *door.Backend, _ door.Settings) (door.Door, error) {
	return New(b).Door(), nil
}}

// New returns a door to a backend.
func New(b *door.Backend) *Door { return &Door{backend: b, asked: map[string]*accounted{}} }

// Door returns what is answered at which path. Each path also has an entry for the methods that
// it does not have, so that those too are answered with a problem.
func (d *Door) Door() door.Door {
	requests := d.backend.Requests(doorName)
	methods := map[string][]string{}
	var all []door.Route
	handle := func(method string, route door.Route) {
		methods[route.Pattern] = append(methods[route.Pattern], method)
		route.Pattern = method + " " + route.Pattern
		all = append(all, route)
	}
	d.verbs = []string{audit.Expire, audit.Grant, audit.Login, changeAccess}
	for i := range operations {
		o := &accounted{&operations[i], requests.Verb(operations[i].name)}
		d.verbs = append(d.verbs, o.name)
		d.asked[o.method+" "+o.path] = o
		handle(o.method, door.Route{Pattern: o.path, Handler: d.handler(o)})
	}
	health := func(path string, h http.HandlerFunc) {
		handle("GET", door.Route{Pattern: path, Handler: h, Early: true, Late: true, AnySite: true})
	}
	health("/livez", d.livez)
	health("/readyz", d.readyz)
	health("/healthz", d.readyz)
	health("/version", d.version)
	health("/metrics", d.metrics)
	page := func(pattern string, h http.HandlerFunc) door.Route {
		return door.Route{Pattern: pattern, Handler: h, Early: true, AnySite: true}
	}
	handle("GET", page("/v1/openapi.yaml", d.openapi))
	handle("GET", page("/{$}", d.index))
	for path, allowed := range methods {
		all = append(all, page(path, wrongMethod(allowed)))
	}
	all = append(all, page("/", unknownRoute))
	return door.Door{HTTP: door.HTTP{Routes: all, Refuse: d.refuse}}
}

// refuse answers why the port does not let a request in. One that was meant for an operation is
// counted there, and noted if it had no right.
func (d *Door) refuse(w http.ResponseWriter, r *http.Request, err error) {
	if o := d.asked[r.Pattern]; o != nil {
		began := time.Now()
		c := &call{door: d, w: w, r: r, ctx: r.Context()}
		if !d.backend.Starting() {
			c.sayLevel()
			c.noteDenied(o.operation, err)
		}
		if c.namespace == "" {
			_ = c.readQuery(o.operation) // for the log, which has it whatever is wrong with the rest
		}
		o.account.Done(r.Context(), telemetry.Outcome{
			Namespace: c.namespace, Err: err, Took: time.Since(began), Expected: d.backend.Expected(r),
		})
	}
	problem(w, err)
}

// A call is one request on its way through the door.
type call struct {
	door      *Door
	w         http.ResponseWriter
	r         *http.Request
	ctx       context.Context   // of the request, with who sends it
	proof     *credential.Proof // who sends it; nil: access is off
	namespace string
	query     door.Query
	once      core.Request // the name by which the request can be sent again
	made      bool         // the id is the server's: the caller does not know it yet
	saidAll   bool         // all slots are asked for, in so many words
	waited    bool
	decided   *leasehold.Error // the last refusal that is in the log
	maxBody   int              // of JSON; 0: v1.MaxBody
}

func (d *Door) handler(o *accounted) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		began := time.Now()
		c := &call{door: d, w: w, r: r, ctx: r.Context()}
		c.sayLevel()
		err := c.login()
		if err == nil {
			err = c.open(o.operation)
		}
		if err == nil {
			err = o.serve(c)
		}
		c.noteDenied(o.operation, err)
		if err != nil && err != errCut {
			problem(w, err)
		}
		o.account.Done(r.Context(), telemetry.Outcome{
			Namespace: c.namespace, Err: err, Took: time.Since(began),
			Waited: c.waited, Endless: o.endless(), Expected: d.backend.Expected(r),
		})
		if err == errCut {
			panic(http.ErrAbortHandler) // which net/http knows, and cuts the connection for
		}
	}
}

// login finds out who sends the request.
func (c *call) login() (err error) {
	if c.proof, err = c.door.backend.Login(c.r, door.Bearer); err == nil {
		c.ctx = door.WithProof(c.ctx, c.proof)
	}
	return err
}

// metrics answers those who may see how the server does.
func (d *Door) metrics(w http.ResponseWriter, r *http.Request) {
	if !d.backend.Starting() {
		proof, err := d.backend.Login(r, door.Bearer)
		if err == nil {
			err = d.backend.Monitors(door.WithProof(r.Context(), proof))
		}
		if err != nil {
			problem(w, err)
			return
		}
	}
	d.backend.Metrics().Handler().ServeHTTP(w, r)
}

// sayLevel tells clients the level of the rules: they send what a level brought only to servers
// that are at it.
func (c *call) sayLevel() {
	c.w.Header().Set(v1.LevelHeader, strconv.FormatUint(uint64(c.door.backend.Engine().Level()), 10))
}

// open reads what every request has: the namespace and the request's own name.
func (c *call) open(r *operation) error {
	if err := c.readQuery(r); err != nil {
		return err
	}
	return c.readOnce()
}

// Times of one request on its connection. The server's own limits hold for what
// is answered at once; a request that stays lifts them and limits each write.
const (
	readTime   = door.ReadTime
	writeTime  = door.WriteTime
	streamTime = 10 * time.Second // one write of a watch
)

// stay lifts the limits on how long the request may take. It has been read; what is read
// from now on is only whether the caller is still there.
func (c *call) stay() {
	control := http.NewResponseController(c.w)
	_ = control.SetReadDeadline(time.Time{})
	_ = control.SetWriteDeadline(time.Time{})
}

// writeWithin limits the next writes. A writer that has no deadlines, as in some
// tests, does without.
func (c *call) writeWithin(d time.Duration) {
	_ = http.NewResponseController(c.w).SetWriteDeadline(time.Now().Add(d))
}

// written lifts the limit on writes until there is another one. HTTP/2 ends a stream whose
// time is up even if nothing is being written; HTTP/1 looks at it only when it writes.
func (c *call) written() {
	if c.r.ProtoMajor >= 2 {
		_ = http.NewResponseController(c.w).SetWriteDeadline(time.Time{})
	}
}

// The values of headers that never change: a slice for each would be made anew
// with each answer.
var (
	jsonType    = []string{"application/json"}
	problemType = []string{"application/problem+json"}
	streamType  = []string{"text/event-stream"}
	textType    = []string{"text/plain; charset=utf-8"}
	bytesType   = []string{"application/octet-stream"}
	noStore     = []string{"no-store"}
	noSniff     = []string{"nosniff"}
)

// write sends an answer whose headers are set but for the usual ones.
func write(w http.ResponseWriter, contentType []string, status int, body []byte) {
	h := w.Header()
	h["Content-Type"] = contentType
	h["Cache-Control"] = noStore
	h["X-Content-Type-Options"] = noSniff
	w.WriteHeader(status)
	// Whether it arrives is not for us to know; the caller has an id to ask again by.
	_, _ = w.Write(body)
}

func text(w http.ResponseWriter, status int, body string) {
	h := w.Header()
	h["Content-Type"], h["Cache-Control"], h["X-Content-Type-Options"] = textType, noStore, noSniff
	w.WriteHeader(status)
	_, _ = io.WriteString(w, body)
}
