package azure

import (
	"context"
	"errors"
	"net"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"time"

	"github.com/leasehold/leasehold"
	"github.com/leasehold/leasehold/internal/access/credential"
	"github.com/leasehold/leasehold/internal/azureaccount"
	"github.com/leasehold/leasehold/internal/azureblob"
	"github.com/leasehold/leasehold/internal/core"
	"github.com/leasehold/leasehold/internal/door"
	"github.com/leasehold/leasehold/internal/engine"
	"github.com/leasehold/leasehold/internal/telemetry"
)

// doorName is how the journal and the metrics call this door.
const doorName = "azure"

// Config is what a Door can be told.
type Config struct {
	Accounts   *azureaccount.Book
	Namespace  string // where everything is kept; empty: the default one
	Domain     string // what host-style names end with, as azurerm is told; empty: leasehold.test
	MaxUploads int    // large bodies that come in at the same time, of which one client can have half; 0: 64
}

// A Door answers the requests of Azure's clients by asking a backend.
type Door struct {
	backend *door.Backend
	config  Config
	verbs   map[string]*telemetry.Verb
	uploads *door.Places
}

// New returns a door to a backend.
func New(b *door.Backend, config Config) *Door {
	d := &Door{backend: b, config: config, verbs: map[string]*telemetry.Verb{}}
	door.SetDefault(&d.config.Namespace, leasehold.DefaultNamespace)
	door.SetDefault(&d.config.Domain, defaultDomain)
	door.SetDefault(&d.config.MaxUploads, 64)
	requests := b.Requests(doorName)
	for _, o := range operations {
		d.verbs[o.name] = requests.Verb("azure-" + o.name)
	}
	d.verbs["other"] = requests.Verb("azure-other")
	d.uploads = door.NewPlaces(d.config.MaxUploads, max(1, d.config.MaxUploads/2), "as many large bodies come in here "+
		"as can, or as one client may have: please retry your request")
	return d
}

// A call is one request on its way through the door.
type call struct {
	door   *Door
	engine *door.Witness
	w      http.ResponseWriter
	r      *http.Request
	ctx    context.Context
	id     string // of the request, which answers carry
	query  url.Values
	path   string // as it was sent, still escaped
	host   bool   // the account is in the host name
	at     azureblob.Place
	op     *operation
	who    string // proven to be

	proof *credential.Proof // who asks; nil: access is off

	inTheWay leasehold.Token // of the lease for which an acquire was refused

	listed *door.Answer // what a list has in memory
}

// ServeHTTP answers one request.
func (d *Door) ServeHTTP(w http.ResponseWriter, r *http.Request) { d.handle(w, r, (*call).serve) }

// refuse tells, as Azure does, why the port does not let a request in.
func (d *Door) refuse(w http.ResponseWriter, r *http.Request, err error) {
	d.handle(w, r, func(*call) error {
		switch {
		case errors.Is(err, leasehold.ErrDenied):
			return errMisdirected.saying("%s", err.Error())
		case d.backend.Stopping().Err() != nil:
			return errServerBusy.saying("The server is stopping: nothing was done. Please retry your request.")
		}
		return errServerBusy.saying("The server is starting: nothing was done. Please retry your request.")
	})
}

func (d *Door) handle(w http.ResponseWriter, r *http.Request, serve func(*call) error) {
	began := time.Now()
	c := &call{door: d, engine: d.backend.Witness(), w: w, r: r, id: azureblob.NewGUID(),
		listed: new(door.Answer)}
	defer c.listed.Done()
	defer c.hurry()()
	c.usualHeaders()
	err := serve(c)
	name := "other"
	if c.op != nil {
		name = c.op.name
	}
	outcome := telemetry.Outcome{Namespace: d.config.Namespace, Took: time.Since(began),
		Expected: d.backend.Expected(r)}
	if err != nil {
		f := faultOf(err)
		c.note(err, f)
		if !errors.Is(err, door.ErrCut) {
			c.fail(f)
		}
		outcome.Err = &leasehold.Error{Code: codeOf(f), Message: f.Error()}
	}
	d.verbs[name].Done(r.Context(), outcome)
	if errors.Is(err, door.ErrCut) {
		panic(http.ErrAbortHandler)
	}
}

func (c *call) serve() error {
	if err := c.open(); err != nil {
		return err
	}
	if found, err := c.discover(); found || err != nil {
		return err
	}
	if err := c.find(); err != nil {
		return err
	}
	if err := c.authorize(); err != nil {
		return err
	}
	if err := c.refuseUnsupported(); err != nil {
		return err
	}
	return c.op.serve(c)
}

var versionForm = regexp.MustCompile(`^\d{4}-\d{2}-\d{2}$`)

// open reads what every request has.
func (c *call) open() error {
	address, _, err := net.SplitHostPort(c.r.RemoteAddr)
	if err != nil {
		address = c.r.RemoteAddr
	}
	c.ctx = engine.WithOrigin(c.r.Context(),
		leasehold.Origin{Address: cut(address, leasehold.MaxAddress), Door: doorName})
	uri := c.r.RequestURI
	if u, err := url.Parse(uri); err == nil && u.Host != "" {
		uri = u.RequestURI() // the whole URL, as a proxy is sent it
	}
	path, query, _ := strings.Cut(uri, "?")
	if c.path = path; !strings.HasPrefix(path, "/") {
		return errInvalidURI // "*", say
	}
	if c.query, err = url.ParseQuery(query); err != nil {
		return errInvalidURI
	}
	if v := c.r.Header.Get("X-Ms-Version"); v != "" && !versionForm.MatchString(v) {
		return badHeader("x-ms-version", v)
	}
	return nil
}

func cut(s string, most int) string {
	if len(s) > most {
		return s[:most]
	}
	return s
}

var hostForm = regexp.MustCompile(`^([a-z0-9]{3,24})\.blob\.`)

// find finds what is asked, and of which account, container or blob.
func (c *call) find() error {
	path, err := url.PathUnescape(c.path)
	if err != nil || !strings.HasPrefix(path, "/") {
		return errInvalidURI
	}
	path = path[1:]
	if m := hostForm.FindStringSubmatch(strings.ToLower(c.r.Host)); m != nil {
		c.host, c.at.Account = true, m[1]
	} else {
		c.at.Account, path, _ = strings.Cut(path, "/")
	}
	c.at.Container, c.at.Blob, _ = strings.Cut(path, "/")
	c.at.Snapshot = c.query.Get("snapshot")
	kind := ofAccount
	switch {
	case !azureaccount.ValidName(c.at.Account):
		return errInvalidURI
	case c.at.Blob == "" && c.at.Container != "" && c.query.Get("restype") != "container" &&
		c.query.Get("comp") != "list":
		// A blob of the root container has no container in its name.
		c.at.Container, c.at.Blob = "$root", c.at.Container
		kind = ofBlob
	case c.at.Blob != "":
		kind = ofBlob
	case c.at.Container != "":
		kind = ofContainer
	}
	if kind != ofAccount && !azureaccount.ValidContainer(c.at.Container) || kind == ofBlob && !c.at.ValidBlob() {
		return errInvalidName
	}
	if c.at.Snapshot != "" && !validSnapshot(c.at.Snapshot) {
		return badQuery("snapshot", c.at.Snapshot)
	}
	return c.findOperation(kind)
}

// unsupported are headers that ask for something this door cannot do. To ignore them would
// be worse than to refuse: the client relies on it.
var unsupported = []string{
	"X-Ms-If-Tags", "X-Ms-Source-If-Tags", "X-Ms-Tags", "X-Ms-Encryption-Key", "X-Ms-Encryption-Scope",
	"X-Ms-Immutability-Policy-Until-Date", "X-Ms-Legal-Hold", "X-Ms-Content-Crc64", "X-Ms-Structured-Body",
	"X-Ms-Blob-Public-Access", "X-Ms-Default-Encryption-Scope",
}

func (c *call) refuseUnsupported() error {
	for _, name := range unsupported {
		if value := c.r.Header.Get(name); value != "" {
			return errUnsupportedHeader.with("HeaderName", strings.ToLower(name)).with("HeaderValue", value)
		}
	}
	if tier := c.r.Header.Get("X-Ms-Access-Tier"); tier != "" && !strings.EqualFold(tier, "Hot") {
		return errUnsupportedHeader.with("HeaderName", "x-ms-access-tier").with("HeaderValue", tier)
	}
	if version := c.query.Get("versionid"); version != "" {
		return errUnsupportedQuery.with("QueryParameterName", "versionid").with("QueryParameterValue", version)
	}
	return nil
}

// newestVersion is the version of the protocol that answers say if the request said none.
const newestVersion = "2023-11-03"

// usualHeaders are on every answer.
func (c *call) usualHeaders() {
	h := c.w.Header()
	h.Set("Server", "Leasehold-Blob/1.0")
	h["x-ms-request-id"] = []string{c.id}
	version := c.r.Header.Get("X-Ms-Version")
	if !versionForm.MatchString(version) {
		version = newestVersion
	}
	h["x-ms-version"] = []string{version}
	if id := c.r.Header.Get("X-Ms-Client-Request-Id"); id != "" && len(id) <= 1024 {
		h["x-ms-client-request-id"] = []string{id}
	}
}

// base is this server's address, as the client wrote it.
func (c *call) base() string { return "https://" + c.r.Host }

// answer ends a request that has no body to send.
func (c *call) answer(status int) error {
	c.w.Header().Set("Content-Length", "0")
	c.w.WriteHeader(status)
	return nil
}

// read looks at the state.
func (c *call) read(fn func(core.View)) error { return c.door.backend.Read(c.ctx, fn) }

// decide runs a step, which reads and then does a command that compares that what it read is
// still so, until it decides.
func (c *call) decide(step door.Step) error { return door.Decide(c.ctx, errServerBusy, step) }

// do carries out a transaction, and reports whether its comparisons held.
func (c *call) do(compares []core.Compare, ops ...core.Op) (*core.TxnAnswer, bool, error) {
	answer, err := c.engine.Do(c.ctx, &core.Txn{Namespace: c.door.config.Namespace, If: compares, Then: ops})
	if err != nil {
		return nil, false, err
	}
	return answer.Txn, answer.Txn.Succeeded, nil
}
