package kubernetes

import (
	"cmp"
	"context"
	"errors"
	"net/http"
	"net/url"
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
const doorName = "kubernetes"

// patterns are the paths of this door, as http.ServeMux writes them.
var patterns = []string{"/api", "/api/", "/apis", "/apis/", "/openapi/"}

// A Door answers clients of Kubernetes by asking a backend of ours.
type Door struct {
	backend *door.Backend
	config  Config
	verbs   map[string]*telemetry.Verb

	watching atomic.Int64
	events   eventCache
	lists    *door.Places
}

// maxLists is how many lists without a limit are put together and sent at a time: each may be of all objects. One
// client can have half of them.
const maxLists = 64

// New returns a door to a backend.
func New(b *door.Backend, config Config) *Door {
	door.SetDefault(&config.Namespace, leasehold.DefaultNamespace)
	d := &Door{backend: b, config: config, verbs: map[string]*telemetry.Verb{}}
	d.lists = door.NewPlaces(maxLists, maxLists/2, "as many lists are put together here as can be, or as one client "+
		"may have: try again in a moment, or with limit")
	requests := b.Requests(doorName)
	for _, o := range append(operations, unknown) {
		if d.verbs[o.name] == nil {
			d.verbs[o.name] = requests.Verb(o.name)
		}
	}
	return d
}

// Door returns what is answered at which path. /version belongs to the native door, which says what this one adds.
func (d *Door) Door() door.Door {
	d.backend.AddVersion(versionFields)
	var routes []door.Route
	for _, pattern := range patterns {
		routes = append(routes, door.Route{Pattern: pattern, Handler: d})
	}
	return door.Door{HTTP: door.HTTP{Routes: routes, Refuse: d.refuse}}
}

// A call is one request on its way through the door.
type call struct {
	door   *Door
	engine *door.Witness
	w      http.ResponseWriter
	r      *http.Request
	ctx    context.Context   // of the request, with who sends it
	proof  *credential.Proof // who sends it; nil: access is off
	query  url.Values
	place
	form   form // that the answer has
	holder string

	answer  *door.Answer // nil: of a watch that has begun
	lasting bool         // it goes on after its handler has returned, and is accounted for at its end
}

// ServeHTTP answers one request.
func (d *Door) ServeHTTP(w http.ResponseWriter, r *http.Request) { d.handle(w, r, nil) }

// refuse tells, as Kubernetes does, why the port does not let a request in.
func (d *Door) refuse(w http.ResponseWriter, r *http.Request, err error) { d.handle(w, r, err) }

// handle answers a request, with what the port refused it for, if it did.
func (d *Door) handle(w http.ResponseWriter, r *http.Request, refusal error) {
	began := time.Now()
	c := &call{door: d, engine: d.backend.Witness(), w: w, r: r, ctx: r.Context(), answer: new(door.Answer)}
	err := c.open()
	o := c.find()
	if refusal == nil {
		refusal = c.login()
	}
	if err = cmp.Or(refusal, err); err == nil {
		err = o.serve(c)
	}
	if !d.backend.Starting() {
		c.note(o, err)
	}
	if err != nil && err != door.ErrCut {
		c.tell(err)
	}
	if c.lasting {
		return
	}
	d.verbs[o.name].Done(r.Context(), telemetry.Outcome{
		Namespace: d.config.Namespace, Err: err, Took: time.Since(began), Endless: o.endless,
		Expected: err != nil && d.backend.Expected(r),
	})
	if err == door.ErrCut {
		panic(http.ErrAbortHandler)
	}
}

// open reads what every request has. Parameters that mean nothing are ignored, as Kubernetes does.
func (c *call) open() (err error) {
	if c.r.URL.RawQuery != "" {
		if c.query, err = url.ParseQuery(c.r.URL.RawQuery); err != nil {
			return badRequest("the query cannot be read: %v", err)
		}
	}
	if c.place, err = placeOf(c.r.URL.EscapedPath()); err != nil {
		return err
	}
	c.form, err = negotiate(c.r.Header["Accept"], c.on)
	return err
}

// login finds out who sends the request: by a token, a JWT of a service account, or a certificate.
func (c *call) login() (err error) {
	if c.proof, err = c.door.backend.Login(c.r, door.Bearer); err == nil {
		c.ctx = door.WithProof(c.ctx, c.proof)
	}
	return err
}

// signed is the request's context, with where the request comes from.
func (c *call) signed() context.Context { return engine.WithOrigin(c.ctx, c.origin()) }

// origin is where the request comes from: the address of the connection, whatever a header says.
func (c *call) origin() leasehold.Origin {
	return leasehold.Origin{Actor: door.Principal(c.proof), Address: c.r.RemoteAddr, Door: doorName}
}

// do carries out a command.
func (c *call) do(command core.Command) (core.Answer, error) { return c.engine.Do(c.signed(), command) }

// look reads the state of the engine.
func (c *call) look(fn func(core.View)) error { return c.door.backend.Read(c.signed(), fn) }

// note puts in the journal what the door refused by itself. That a client wrote what somebody else had changed, or
// made what was there, is ordinary here: it is how elections are decided.
func (c *call) note(o *operation, err error) {
	var own *apiError
	if door.Anonymous(err) || errors.As(err, &own) && own.Our != leasehold.Held {
		return
	}
	c.engine.Note(err, o.writes, audit.Refusal{
		Origin: c.origin(), Namespace: c.door.config.Namespace, Verb: o.noted, Resource: c.path(), Holder: c.holder,
	})
}
