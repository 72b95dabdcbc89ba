package native

import (
	"context"
	"crypto/tls"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"path"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/leasehold/leasehold"
	v1 "github.com/leasehold/leasehold/api/v1"
	"github.com/leasehold/leasehold/internal/audit"
	"github.com/leasehold/leasehold/internal/core"
	"github.com/leasehold/leasehold/internal/door"
	"github.com/leasehold/leasehold/internal/engine"
	"github.com/leasehold/leasehold/internal/listen"
	"github.com/leasehold/leasehold/internal/telemetry"
)

// Config is what a Door can be told. The zero value is good for tests.
type Config struct {
	Version v1.Version
	Metrics *telemetry.Metrics // nil: the door keeps its own, and counts by its engine
	Log     *slog.Logger       // nil: nothing is written

	TLS            *tls.Config   // nil: plain
	Hosts          *listen.Hosts // names that it answers to; nil: all of them
	Mutual         bool          // clients show certificates
	Gates          *listen.Gates // where its gate is counted; nil: nowhere
	MaxConnections int           // 0: 10,000
	MaxStreams     int           // watches and waiting acquires together; 0: 8,000
	Linger         time.Duration // how long a server that stops still takes requests, and refuses them
	DrainTimeout   time.Duration // how long it then waits for what is under way; 0: 10s
}

// A Door answers HTTP requests by asking an engine.
type Door struct {
	engine  engine.Engine // set before open is
	opened  atomic.Bool
	config  Config
	metrics *telemetry.Metrics
	mux     *http.ServeMux
	mounted []*mounted
	verbs   []string // that a deed can have
	origins *http.CrossOriginProtection

	streams   atomic.Int64
	watching  atomic.Int64
	transfers atomic.Int64
	press     press
	stopping  context.Context // done when the server drains
	stop      context.CancelFunc
}

// New returns a door to an engine.
func New(e engine.Engine, config Config) *Door {
	own := config.Metrics == nil
	d := NewShut(config)
	if own {
		d.metrics.CountBy(e.Read)
	}
	d.Open(e)
	return d
}

// NewShut returns a door whose engine is not there yet. It can serve: that it is alive it
// says at once, and to all else that it is not ready, so that callers go elsewhere and
// do not hang.
func NewShut(config Config) *Door {
	d := &Door{config: config, metrics: config.Metrics, mux: http.NewServeMux(), origins: http.NewCrossOriginProtection()}
	if d.metrics == nil {
		d.metrics = telemetry.NewMetrics()
	}
	if d.config.Log == nil {
		d.config.Log = slog.New(slog.DiscardHandler)
	}
	setDefault(&d.config.MaxConnections, 10000)
	setDefault(&d.config.MaxStreams, 8000)
	setDefault(&d.config.DrainTimeout, 10*time.Second)
	d.stopping, d.stop = context.WithCancel(context.Background())
	d.mount()
	return d
}

// Open lets requests in, to an engine. It is called once.
func (d *Door) Open(e engine.Engine) {
	d.engine = e
	for _, m := range d.mounted {
		m.handler = m.build(e)
	}
	d.opened.Store(true)
}

const startingMessage = "the server is starting: it reads its data, or waits for others of its cluster"

func setDefault[T comparable](at *T, value T) {
	var zero T
	if *at == zero {
		*at = value
	}
}

// A route is one thing that can be asked.
type route struct {
	method  string
	path    string // as http.ServeMux writes it
	verb    string
	params  []string // what the query may say, besides the namespace
	serve   func(*call) error
	endless bool
	global  bool // it is about no namespace
}

// routes is the whole of /v1/. openapi.yaml lists the same.
var routes = []route{
	{method: "POST", path: "/v1/acquire", verb: "acquire", serve: (*call).acquire},
	{method: "POST", path: "/v1/renew", verb: "renew", serve: (*call).renew},
	{method: "POST", path: "/v1/release", verb: "release", serve: (*call).release},
	{method: "POST", path: "/v1/change", verb: "change", serve: (*call).change},
	{method: "POST", path: "/v1/break", verb: "break", serve: (*call).breakLease},
	{method: "POST", path: "/v1/move", verb: "move", serve: (*call).move},
	{method: "POST", path: "/v1/ask", verb: "ask", serve: (*call).ask},
	{method: "POST", path: "/v1/acknowledge", verb: "acknowledge", serve: (*call).acknowledge},
	{method: "GET", path: "/v1/definitions", verb: "definitions", serve: (*call).definitions, params: []string{"prefix", "after", "limit"}},
	{method: "GET", path: "/v1/definitions/{path...}", verb: "definition", serve: (*call).definition},
	{method: "PUT", path: "/v1/definitions/{path...}", verb: "define", serve: (*call).define},
	{method: "DELETE", path: "/v1/definitions/{path...}", verb: "undefine", serve: (*call).undefine, params: []string{"by", "reason"}},
	{method: "POST", path: "/v1/sessions", verb: "open-session", serve: (*call).openSession},
	{method: "POST", path: "/v1/sessions/{id}/renew", verb: "renew-session", serve: (*call).renewSession, params: []string{"seen"}},
	{method: "GET", path: "/v1/sessions/{id}", verb: "session", serve: (*call).session},
	{method: "DELETE", path: "/v1/sessions/{id}", verb: "close-session", serve: (*call).closeSession},
	{method: "GET", path: "/v1/resources", verb: "resources", serve: (*call).resources, params: []string{"prefix", "after", "limit", "all"}},
	{method: "GET", path: "/v1/resources/{path...}", verb: "resource", serve: (*call).resource, params: []string{"queue"}},
	{method: "GET", path: "/v1/advice/{path...}", verb: "advice", serve: (*call).advice},
	{method: "GET", path: "/v1/alarms", verb: "alarms", serve: (*call).alarms, params: []string{"prefix", "kind", "after", "limit"}},
	{method: "GET", path: "/v1/history", verb: "history", serve: (*call).history, params: []string{"resource", "before", "limit"}},
	{method: "GET", path: "/v1/audit", verb: "audit", serve: (*call).audit, params: append([]string{"actor", "verb"}, journalParams...)},
	{method: "GET", path: "/v1/holds", verb: "holds", serve: (*call).holds, params: journalParams},
	{method: "GET", path: "/v1/watch", verb: "watch", serve: (*call).watch, params: []string{"prefix", "resource", "session", "since", "values", "previous"}, endless: true},
	{method: "GET", path: "/v1/records", verb: "records", serve: (*call).records, params: []string{"prefix", "from", "to", "after", "limit", "keys", "count", "revision"}},
	{method: "DELETE", path: "/v1/records", verb: "delete-records", serve: (*call).deleteRecords, params: []string{"prefix", "from", "to"}},
	{method: "GET", path: "/v1/records/{path...}", verb: "record", serve: (*call).record, params: []string{"revision", "version"}},
	{method: "PUT", path: "/v1/records/{path...}", verb: "put-record", serve: (*call).putRecord, params: []string{"session", "keep", "version"}},
	{method: "DELETE", path: "/v1/records/{path...}", verb: "delete-record", serve: (*call).deleteRecord},
	{method: "GET", path: "/v1/versions/{path...}", verb: "versions", serve: (*call).versions, params: []string{"after", "limit"}},
	{method: "POST", path: "/v1/txn", verb: "txn", serve: (*call).txn},
	{method: "GET", path: "/v1/cluster", verb: "cluster", serve: (*call).cluster, global: true},
	{method: "POST", path: "/v1/cluster/members", verb: "add-server", serve: (*call).addServer, global: true},
	{method: "POST", path: "/v1/cluster/upgrade", verb: "upgrade-cluster", serve: (*call).upgradeCluster, global: true},
	{method: "POST", path: "/v1/cluster/members/{name}/promote", verb: "promote-server", serve: (*call).promoteServer, global: true},
	{method: "DELETE", path: "/v1/cluster/members/{name}", verb: "remove-server", serve: (*call).removeServer, global: true},
	{method: "POST", path: "/v1/cluster/transfer", verb: "transfer-lead", serve: (*call).transferLead, global: true},
	{method: "GET", path: "/v1/cluster/limits", verb: "limits", serve: (*call).limits, global: true},
	{method: "POST", path: "/v1/cluster/limits", verb: "set-limits", serve: (*call).setLimits, global: true},
	{method: "GET", path: "/v1/cluster/check", verb: "check-cluster", serve: (*call).checkCluster, global: true},
	{method: "GET", path: "/v1/cluster/backup", verb: "backup", serve: (*call).backup, global: true},
}

var journalParams = []string{"resource", "prefix", "holder", "from", "until", "oldest", "after", "limit"}

// mount puts everything in the mux. Each path also has an entry for the methods
// that it does not have, so that those too are answered with a problem.
func (d *Door) mount() {
	requests := d.metrics.Requests("native", d.config.Log)
	methods := map[string][]string{}
	handle := func(method, path string, h http.HandlerFunc) {
		d.mux.HandleFunc(method+" "+path, h)
		methods[path] = append(methods[path], method)
	}
	d.verbs = []string{audit.Expire, audit.Grant, audit.Login}
	for _, r := range routes {
		d.verbs = append(d.verbs, r.verb)
		handle(r.method, r.path, d.handler(r, requests.Verb(r.verb)))
	}
	handle("GET", "/v1/openapi.yaml", d.openapi)
	handle("GET", "/livez", d.livez)
	handle("GET", "/readyz", d.readyz)
	handle("GET", "/healthz", d.readyz)
	handle("GET", "/version", d.version)
	handle("GET", "/metrics", d.metrics.Handler().ServeHTTP)
	handle("GET", "/{$}", d.index)
	for path, allowed := range methods {
		d.mux.HandleFunc(path, wrongMethod(allowed))
	}
	d.mux.HandleFunc("/", unknownRoute)
}

// Mount lets another door answer at some paths, as http.ServeMux writes them; it is made
// when there is an engine. Until then those paths say that the server is starting, and not
// that there is nothing: some clients would take that for an answer. It is called before
// the first request.
func (d *Door) Mount(build func(engine.Engine) http.Handler, patterns ...string) {
	m := &mounted{build: build}
	if d.opened.Load() {
		m.handler = build(d.engine)
	}
	d.mounted = append(d.mounted, m)
	for _, pattern := range patterns {
		d.mux.HandleFunc(pattern, func(w http.ResponseWriter, r *http.Request) {
			switch err := d.sameSite(r); {
			case err != nil:
				problem(w, err)
			case !d.opened.Load():
				problem(w, engine.Unavailable(startingMessage+": try another server, or this one in a moment"))
			default:
				m.handler.ServeHTTP(w, r)
			}
		})
	}
}

// A mounted door is another one that answers some paths.
type mounted struct {
	build   func(engine.Engine) http.Handler
	handler http.Handler // set before the native door is opened
}

// Stay counts a request of another door that waits for a resource. leave is to be called
// when it ends.
func (d *Door) Stay() (leave func(), err error) { return d.enter(d.metrics.Waiting) }

// Stopping is done when the server drains.
func (d *Door) Stopping() context.Context { return d.stopping }

// ServeHTTP answers one request.
func (d *Door) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if !d.config.Hosts.Allows(r.Host) {
		problem(w, &door.Fault{
			Err:    &leasehold.Error{Code: leasehold.Denied, Message: d.config.Hosts.Refusal(r.Host)},
			Status: http.StatusMisdirectedRequest,
		})
		return
	}
	if d.stopping.Err() != nil && !alwaysServed[r.URL.Path] {
		listen.Leave(w.Header())
		problem(w, engine.Unavailable(stoppingMessage))
		return
	}
	// The mux would send the caller to a tidied path, which is another resource.
	if p := r.URL.EscapedPath(); !tidy(p) {
		problem(w, invalid("path %s has an empty, \".\" or \"..\" segment: write such characters as %%2F and %%2E where they belong to a name", brief(p)))
		return
	}
	d.mux.ServeHTTP(w, r)
}

// alwaysServed are the paths by which others see that the server stops.
var alwaysServed = map[string]bool{"/livez": true, "/readyz": true, "/healthz": true, "/metrics": true, "/version": true}

func tidy(p string) bool {
	clean := path.Clean(p)
	return p == "" || p == clean || len(p) == len(clean)+1 && strings.HasSuffix(p, "/") && p[:len(clean)] == clean
}

// A call is one request on its way through the door.
type call struct {
	door      *Door
	w         http.ResponseWriter
	r         *http.Request
	namespace string
	query     door.Query
	once      core.Request // the name by which the request can be sent again
	made      bool         // the id is the server's: the caller does not know it yet
	waited    bool
	maxBody   int // of JSON; 0: v1.MaxBody
}

func (d *Door) handler(route route, verb *telemetry.Verb) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		began := time.Now()
		c := &call{door: d, w: w, r: r}
		err := c.open(&route)
		if d.opened.Load() {
			// Clients send what a level brought only to servers that are at it.
			w.Header().Set(v1.LevelHeader, strconv.FormatUint(uint64(d.engine.Level()), 10))
		} else {
			err = engine.Unavailable(startingMessage + ": try another server, or this one in a moment")
		}
		if err == nil {
			err = route.serve(c)
		}
		if errors.Is(err, leasehold.ErrDenied) {
			c.noteDenied(&route, err)
		}
		if err != nil && err != errCut {
			problem(w, err)
		}
		verb.Done(r.Context(), telemetry.Outcome{
			Namespace: c.namespace, Err: err, Took: time.Since(began),
			Waited: c.waited, Endless: route.endless, Expected: r.Context().Err() != nil || d.stopping.Err() != nil,
		})
		if err == errCut {
			panic(http.ErrAbortHandler) // which net/http knows, and cuts the connection for
		}
	}
}

// open reads what every request has: the namespace and the request's own name.
func (c *call) open(r *route) error {
	if err := c.door.sameSite(c.r); err != nil {
		return err
	}
	if err := c.readQuery(r); err != nil {
		return err
	}
	return c.readOnce()
}

// sameSite refuses what a page of another site makes a browser ask.
func (d *Door) sameSite(r *http.Request) error {
	if d.origins.Check(r) != nil {
		return &leasehold.Error{Code: leasehold.Denied, Message: "a page of another site may not ask this: send the request from a program, or from this server's own pages"}
	}
	return nil
}

// enter counts a request that stays. leave is to be called when it ends.
func (d *Door) enter(kind prometheus.Gauge) (leave func(), err error) {
	if d.stopping.Err() != nil {
		return nil, engine.Unavailable(stoppingMessage)
	}
	if d.streams.Add(1) > int64(d.config.MaxStreams) {
		d.streams.Add(-1)
		return nil, &leasehold.Error{Code: leasehold.Limited, Message: "as many requests wait or watch here as can: try again in a moment, or on another server"}
	}
	kind.Inc()
	return func() {
		kind.Dec()
		d.streams.Add(-1)
	}, nil
}

const stoppingMessage = "the server is stopping: try again"

// Times of one request on its connection. The server's own limits hold for what
// is answered at once; a request that stays lifts them and limits each write.
const (
	headerTime = 5 * time.Second
	readTime   = 20 * time.Second
	writeTime  = 30 * time.Second
	streamTime = 10 * time.Second // one write of a watch
	idleTime   = 2 * time.Minute
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
