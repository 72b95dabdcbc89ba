package console

import (
	"io/fs"
	"net/http"

	"github.com/leasehold/leasehold/internal/door"
	"github.com/leasehold/leasehold/internal/telemetry"
	"github.com/leasehold/leasehold/web"
)

// doorName is how the settings and the metrics call this door.
const doorName = "console"

// Kind is this door in the table of a server.
var Kind = door.Kind{Name: doorName, Settings: []door.Setting{
	{Name: doorName, Default: "true", Switch: true, Help: "serve the web console at / of the client port"},
}, Open: func(b *door.Backend, s door.Settings) (door.Door, error) {
	if s[doorName] == "false" {
		return greeting(b), nil
	}
	d, err := New(b, web.Files())
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
}

// New returns a door that serves files, of which one is index.html.
func New(b *door.Backend, files fs.FS) (*Door, error) {
	loaded, err := load(files)
	if err != nil {
		return nil, err
	}
	d := &Door{backend: b, files: loaded, verbs: map[string]*telemetry.Verb{}}
	requests := b.Requests(doorName)
	for method, verb := range verbs {
		d.verbs[method] = requests.Verb(verb)
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
	for method, serve := range map[string]func(http.ResponseWriter, *http.Request) error{
		http.MethodGet: d.session, http.MethodPost: d.signIn, http.MethodDelete: d.signOut,
	} {
		routes = append(routes, door.Route{Pattern: method + " " + sessionPath, Handler: d.accounted(method, serve)})
	}
	routes = append(routes, door.Route{Pattern: sessionPath, Handler: wrongMethod("GET, POST, DELETE, HEAD")})
	return door.Door{HTTP: door.HTTP{Routes: routes, Refuse: refuse}}
}

// greeting is the door of a server without the console.
func greeting(b *door.Backend) door.Door {
	return door.Door{HTTP: door.HTTP{Refuse: refuse, Routes: []door.Route{
		{Pattern: "GET /{$}", Handler: greeter(b), Early: true, AnySite: true},
		{Pattern: "/{$}", Handler: wrongMethod("GET, HEAD"), Early: true, AnySite: true},
	}}}
}
