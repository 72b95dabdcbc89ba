package terraform

import (
	"cmp"
	"context"
	"errors"
	"net/http"
	"time"

	"github.com/leasehold/leasehold"
	"github.com/leasehold/leasehold/internal/access/credential"
	"github.com/leasehold/leasehold/internal/audit"
	"github.com/leasehold/leasehold/internal/azureblob"
	"github.com/leasehold/leasehold/internal/core"
	"github.com/leasehold/leasehold/internal/door"
	"github.com/leasehold/leasehold/internal/engine"
	"github.com/leasehold/leasehold/internal/telemetry"
	"github.com/leasehold/leasehold/internal/tfstate"
)

// doorName is how the journal and the metrics call this door.
const doorName = "terraform"

// patterns are the paths of this door, as http.ServeMux writes them.
var patterns = []string{
	"/terraform", "/terraform/",
	"/azurerm", "/azurerm/", // states of the azurerm backend
	"/api/v4/projects/{project}/terraform/state/{name...}", // GitLab
	"/api/packages/{owner}/terraform/state/{name...}",      // Gitea
}

// forceUnlock is the setting of what an UNLOCK needs in order to free a lock.
const forceUnlock = "terraform-force-unlock"

// Kind is this door in the table of a server.
var Kind = door.Kind{Name: doorName, What: "the http backend of Terraform and OpenTofu", Tools: tools,
	Settings: []door.Setting{
		{Name: forceUnlock, Default: "any", Check: checkForceUnlock,
			Help: "what terraform force-unlock may free: any lock, or with id only the one whose ID it sends"},
	}, Open: func(b *door.Backend, s door.Settings) (door.Door, error) {
		return New(b, Config{RequireID: s[forceUnlock] == "id"}).Door(), nil
	}}

func checkForceUnlock(value string) error {
	if value != "any" && value != "id" {
		return errors.New("write any or id")
	}
	return nil
}

// Config is what a Door can be told. The zero value is good for tests.
type Config struct {
	Keep      int  // former versions of a state; 0: tfstate.DefaultKeep
	RequireID bool // an UNLOCK without an ID frees nothing
}

// A Door answers the http backend of Terraform by asking a backend of ours.
type Door struct {
	backend *door.Backend
	config  Config
	verbs   map[string]*telemetry.Verb
}

// New returns a door to a backend, which has to keep large values.
func New(b *door.Backend, config Config) *Door {
	d := &Door{backend: b, config: config, verbs: map[string]*telemetry.Verb{}}
	door.SetDefault(&d.config.Keep, tfstate.DefaultKeep)
	requests := b.Requests(doorName)
	for _, o := range append(operations, unknown) {
		d.verbs[o.name] = requests.Verb(o.name)
	}
	return d
}

// Door returns what is answered at which path.
func (d *Door) Door() door.Door {
	var routes []door.Route
	for _, pattern := range patterns {
		routes = append(routes, door.Route{Pattern: pattern, Handler: d})
	}
	return door.Door{HTTP: door.HTTP{Routes: routes, Refuse: d.refuse}}
}

// A call is one request on its way through the door.
type call struct {
	door      *Door
	engine    *door.Witness
	w         http.ResponseWriter
	r         *http.Request
	ctx       context.Context   // of the request, with who sends it
	proof     *credential.Proof // who sends it; nil: access is off
	query     door.Query
	namespace string
	state     string
	path      string // of the resource, and of the record
	azure     bool   // it is about states of the azurerm backend
	blob      azureblob.Place
	md5       []byte // of the state that was received
	id        string // of the lock under which it is made, as far as that was read
	version   string // of the client, as it says itself
	waited    bool
}

// ServeHTTP answers one request.
func (d *Door) ServeHTTP(w http.ResponseWriter, r *http.Request) { d.handle(w, r, nil) }

// refuse tells, as Terraform understands it, why the port does not let a request in.
func (d *Door) refuse(w http.ResponseWriter, r *http.Request, err error) { d.handle(w, r, err) }

// handle answers a request, with what the port refused it for, if it did.
func (d *Door) handle(w http.ResponseWriter, r *http.Request, refusal error) {
	began := time.Now()
	c := &call{door: d, engine: d.backend.Witness(), w: w, r: r, ctx: r.Context(),
		namespace: leasehold.DefaultNamespace}
	at, err := c.open()
	o := find(r.Method, at)
	if refusal == nil {
		refusal = c.login()
	}
	if err = cmp.Or(refusal, err); err == nil {
		err = c.serve(&o)
	}
	if !d.backend.Starting() {
		c.note(&o, err)
	}
	if err != nil {
		c.refuse(err)
	}
	d.verbs[o.name].Done(r.Context(), telemetry.Outcome{
		Namespace: c.namespace, Err: err, Took: time.Since(began),
		Waited: c.waited, Expected: d.backend.Expected(r),
	})
}

// login finds out who sends the request: by a token, which Terraform sends as a password, or by a certificate.
func (c *call) login() (err error) {
	if c.proof, err = c.door.backend.Login(c.r, door.Basic); err == nil {
		c.ctx = door.WithProof(c.ctx, c.proof)
	}
	return err
}

// serve does what is asked, if it is anything.
func (c *call) serve(o *operation) error {
	switch {
	case o.serve == nil:
		c.w.Header().Set("Allow", "GET, HEAD, POST, PUT, DELETE, LOCK, UNLOCK")
		return door.Invalidly(http.StatusMethodNotAllowed,
			"method %s is unknown here: use GET, POST, DELETE, LOCK or UNLOCK", door.Brief(c.r.Method))
	case c.state == "" && o.on != ofAll:
		return door.Invalid("the path names no state: write /terraform/STATE")
	}
	if c.azure && o.writes {
		if err := c.mayWriteBlob(o); err != nil {
			return err
		}
	}
	return o.serve(c)
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
	c.state, c.path, c.azure = at.state, tfstate.Path(at.state), at.azure
	return at, door.CheckName("namespace", c.namespace, leasehold.MaxName)
}

// origin is where the request comes from. The address is that of the connection: what a
// header says of another one, anybody can write.
func (c *call) origin() leasehold.Origin {
	return leasehold.Origin{Actor: door.Principal(c.proof), Address: c.r.RemoteAddr, Door: doorName}
}

// signed is the request's context, with where the request comes from.
func (c *call) signed() context.Context { return engine.WithOrigin(c.ctx, c.origin()) }

// do carries out a command.
func (c *call) do(command core.Command) (core.Answer, error) {
	return c.engine.Do(c.signed(), command)
}

// look reads the state of the engine.
func (c *call) look(fn func(core.View)) error { return c.door.backend.Read(c.signed(), fn) }

// note puts in the journal what the door refused by itself.
func (c *call) note(o *operation, err error) {
	if door.Anonymous(err) {
		return
	}
	verb := o.noted
	if verb == "release" && c.id == "" {
		verb = "break" // by force-unlock
	}
	c.engine.Note(err, o.writes, audit.Refusal{
		Origin: c.origin(), Namespace: c.namespace, Verb: verb, Resource: c.path, ID: c.id,
	})
}

// patiently tries again what nobody could decide. Clients try three times and then give up: an
// election or a restart has to be over by then.
func (c *call) patiently(try func() error) error { return c.door.backend.Patiently(c.ctx, try) }

// pieceTime is what a piece of a body, or of an answer, has. The port's own limits are for
// small requests.
const pieceTime = 20 * time.Second

// pace is how fast a state has to pass, in either direction.
var pace = door.Pace{Time: pieceTime, Whole: 10 * time.Minute}
