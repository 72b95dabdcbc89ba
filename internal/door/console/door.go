package console

import (
	"io/fs"
	"net/http"

	"github.com/leasehold/leasehold/internal/access/credential"
	"github.com/leasehold/leasehold/internal/door"
	"github.com/leasehold/leasehold/internal/telemetry"
	"github.com/leasehold/leasehold/web"
)

// doorName is how the settings and the metrics call this door.
const doorName = "console"

// Kind is this door in the table of a server.
var Kind = door.Kind{Name: doorName, What: "the web console", Settings: []door.Setting{
	{Name: doorName, Default: "true", Switch: true, Help: "serve the web console at / of the client port"},
	{Name: "console-sign-in", Check: checkClients,
		Help: "issuers with which people sign in to the console, as ISSUER=CLIENT_ID,…; the rules of access name them"},
	{Name: "console-sign-in-secrets",
		Help: "file with a line ISSUER=SECRET for each of them that wants a client secret"},
	{Name: "console-sign-in-scopes", Default: "openid profile email",
		Help: "scopes that they are asked for"},
}, Open: func(b *door.Backend, s door.Settings) (door.Door, error) {
	if s[doorName] == "false" {
		return greeting(b), nil
	}
	clients, err := readClients(s)
	if err != nil {
		return door.Door{}, err
	}
	d, err := New(b, web.Files(), clients)
	if err != nil {
		return door.Door{}, err
	}
	return d.Door(), nil
}}

// pages are the paths at which a browser gets the console. It finds out by itself which page is meant.
var pages = []string{"/timeline", "/alarms", "/audit", "/cluster", "/pools", "/connect", "/signin"}

// index is the page that all paths share.
const index = "index.html"

// A Door serves the console.
type Door struct {
	backend *door.Backend
	files   map[string]*file // by name
	verbs   map[string]*telemetry.Verb
	clients map[string]credential.Client // of this server, by the issuer that people sign in with
}

// New returns a door that serves files, of which one is index.html.
func New(b *door.Backend, files fs.FS, clients map[string]credential.Client) (*Door, error) {
	loaded, err := load(files)
	if err != nil {
		return nil, err
	}
	d := &Door{backend: b, files: loaded, verbs: map[string]*telemetry.Verb{}, clients: clients}
	requests := b.Requests(doorName)
	for _, verb := range verbs {
		d.verbs[verb] = requests.Verb(verb)
	}
	return d, nil
}

// Door returns what is answered at which path. Each path is named in full: what is not here belongs to other doors.
func (d *Door) Door() door.Door {
	var routes []door.Route
	page := func(pattern string, h http.Handler) {
		routes = append(routes,
			door.Route{Pattern: "GET " + pattern, Handler: h, Early: true, AnySite: true},
			door.Route{Pattern: pattern, Handler: wrongMethod("GET, HEAD"), Early: true, AnySite: true})
	}
	for name, f := range d.files {
		if name != index {
			page("/"+name, f)
		}
	}
	for _, path := range pages {
		page(path, d.files[index])
	}
	page("/{$}", d.root())
	for _, one := range []struct {
		pattern, verb string
		serve         func(http.ResponseWriter, *http.Request) error
	}{
		{"GET " + sessionPath, verbSession, d.session},
		{"POST " + sessionPath, verbSignIn, d.signIn},
		{"DELETE " + sessionPath, verbSignOut, d.signOut},
		{"POST " + oidcPath, verbLeave, d.leave},
		{"GET " + oidcPath + "/{issuer}", verbComeBack, d.comeBack},
	} {
		routes = append(routes, door.Route{Pattern: one.pattern, Handler: d.accounted(one.verb, one.serve)})
	}
	routes = append(routes, door.Route{Pattern: sessionPath, Handler: wrongMethod("GET, POST, DELETE, HEAD")},
		door.Route{Pattern: oidcPath, Handler: wrongMethod("POST")},
		door.Route{Pattern: oidcPath + "/{issuer}", Handler: wrongMethod("GET")})
	return door.Door{HTTP: door.HTTP{Routes: routes, Refuse: refuse}}
}

// greeting is the door of a server without the console.
func greeting(b *door.Backend) door.Door {
	return door.Door{Off: true, HTTP: door.HTTP{Refuse: refuse, Routes: []door.Route{
		{Pattern: "GET /{$}", Handler: greeter(b), Early: true, AnySite: true},
		{Pattern: "/{$}", Handler: wrongMethod("GET, HEAD"), Early: true, AnySite: true},
	}}}
}
