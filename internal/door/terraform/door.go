package terraform

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"time"

	"github.com/leasehold/leasehold"
	"github.com/leasehold/leasehold/internal/audit"
	"github.com/leasehold/leasehold/internal/core"
	"github.com/leasehold/leasehold/internal/door"
	"github.com/leasehold/leasehold/internal/engine"
	"github.com/leasehold/leasehold/internal/telemetry"
	"github.com/leasehold/leasehold/internal/tfstate"
)

// doorName is how the journal and the metrics call this door.
const doorName = "terraform"

// DefaultKeep is how many former versions of a state are kept.
const DefaultKeep = 20

// Config is what a Door can be told. The zero value is good for tests.
type Config struct {
	Metrics *telemetry.Metrics // nil: the door keeps its own
	Log     *slog.Logger       // nil: nothing is written
	Keep    int                // former versions of a state; 0: DefaultKeep

	// Stay counts a request that waits, and refuses it if too many do. Nil: all may.
	Stay func() (leave func(), err error)

	// Stopping is done when the server drains. Nil: never.
	Stopping context.Context
}

// Patterns are the paths that belong to a Door, as http.ServeMux writes them.
var Patterns = []string{
	"/terraform", "/terraform/",
	"/api/v4/projects/{project}/terraform/state/{name...}", // GitLab
	"/api/packages/{owner}/terraform/state/{name...}",      // Gitea
}

// A Door answers the http backend of Terraform by asking an engine.
type Door struct {
	engine engine.Engine
	values engine.Values
	config Config
	verbs  map[string]*telemetry.Verb
}

// New returns a door to an engine, which has to keep large values.
func New(e engine.Engine, config Config) *Door {
	d := &Door{engine: e, config: config, verbs: map[string]*telemetry.Verb{}}
	d.values, _ = e.(engine.Values)
	if d.config.Metrics == nil {
		d.config.Metrics = telemetry.NewMetrics()
	}
	if d.config.Log == nil {
		d.config.Log = slog.New(slog.DiscardHandler)
	}
	if d.config.Keep == 0 {
		d.config.Keep = DefaultKeep
	}
	if d.config.Stay == nil {
		d.config.Stay = func() (func(), error) { return func() {}, nil }
	}
	if d.config.Stopping == nil {
		d.config.Stopping = context.Background()
	}
	requests := d.config.Metrics.Requests(doorName, d.config.Log)
	for _, o := range append(operations, unknown) {
		d.verbs[o.name] = requests.Verb(o.name)
	}
	return d
}

// A call is one request on its way through the door.
type call struct {
	door      *Door
	engine    *engine.Witness
	w         http.ResponseWriter
	r         *http.Request
	query     door.Query
	namespace string
	state     string
	path      string // of the resource, and of the record
	id        string // of the lock under which it is made, as far as that was read
	version   string // of the client, as it says itself
	waited    bool
}

// ServeHTTP answers one request.
func (d *Door) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	began := time.Now()
	c := &call{door: d, engine: &engine.Witness{Engine: d.engine}, w: w, r: r, namespace: leasehold.DefaultNamespace}
	at, err := c.open()
	o := find(r.Method, at)
	switch {
	case err != nil:
	case o.serve == nil:
		w.Header().Set("Allow", "GET, HEAD, POST, PUT, DELETE, LOCK, UNLOCK")
		err = door.Invalidly(http.StatusMethodNotAllowed, "method %s is unknown here: use GET, POST, DELETE, LOCK or UNLOCK", door.Brief(r.Method))
	case c.state == "" && o.on != ofAll:
		err = door.Invalid("the path names no state: write /terraform/STATE")
	default:
		err = o.serve(c)
	}
	if c.engine.Unnoted(err) && (o.writes || errors.Is(err, leasehold.ErrDenied)) {
		c.note(&o, err)
	}
	if err != nil {
		c.refuse(err)
	}
	d.verbs[o.name].Done(r.Context(), telemetry.Outcome{
		Namespace: c.namespace, Err: err, Took: time.Since(began),
		Waited: c.waited, Expected: r.Context().Err() != nil || d.config.Stopping.Err() != nil,
	})
}

// open reads what every request has.
func (c *call) open() (at place, err error) {
	if c.query, err = door.ReadQuery(c.r.URL.RawQuery, params...); err != nil {
		return at, err
	}
	if c.query.Has("namespace") {
		c.namespace = c.query.Get("namespace")
	}
	if at, err = placeOf(c.r.URL.EscapedPath(), c.query); err != nil {
		return at, err
	}
	c.state, c.path = at.state, tfstate.Path(at.state)
	return at, door.CheckName("namespace", c.namespace, leasehold.MaxName)
}

// origin is where the request comes from. The address is that of the connection: what a
// header says of another one, anybody can write.
func (c *call) origin() leasehold.Origin {
	return leasehold.Origin{Address: c.r.RemoteAddr, Door: doorName}
}

// signed is the request's context, with where the request comes from.
func (c *call) signed() context.Context { return engine.WithOrigin(c.r.Context(), c.origin()) }

// do carries out a command.
func (c *call) do(command core.Command) (core.Answer, error) {
	return c.engine.Do(c.signed(), command)
}

// look reads the state of the engine.
func (c *call) look(fn func(core.View)) error { return c.door.engine.Read(c.r.Context(), fn) }

// note puts in the journal what the door refused by itself.
func (c *call) note(o *operation, err error) {
	var e *leasehold.Error
	errors.As(err, &e)
	verb := o.noted
	if verb == "release" && c.id == "" {
		verb = "break" // by force-unlock
	}
	c.engine.Journal().Refused(audit.Refusal{
		Origin: c.origin(), Namespace: c.namespace, Verb: verb, Resource: c.path, ID: c.id, Outcome: e.Code.String(), Reason: err.Error(),
	})
}

// Clients try again three times and then give up, so an election or a restart has to be
// over by then: the door waits it out with them.
const (
	patience = 2 * time.Second
	pause    = 50 * time.Millisecond
)

// patiently tries again what nobody could decide. Only what may be done twice is tried so.
func (c *call) patiently(try func() error) error {
	var since time.Time
	for {
		err := try()
		if !door.Unsure(err) {
			return err
		}
		if since.IsZero() {
			since = time.Now()
		}
		if time.Since(since) >= patience || !c.rest(pause) {
			return err
		}
	}
}

// rest waits, and tells whether there is still somebody to wait for.
func (c *call) rest(d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-c.r.Context().Done():
	case <-c.door.config.Stopping.Done():
	}
	return false
}

// pieceTime is what a piece of a body, or of an answer, has. The port's own limits are for
// small requests.
const pieceTime = 20 * time.Second

// pace is how fast a state has to pass, in either direction.
var pace = door.Pace{Time: pieceTime, Whole: 10 * time.Minute}
