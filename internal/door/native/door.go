package native

import (
	"net/http"
	"sync/atomic"

	"github.com/leasehold/leasehold/internal/audit"
	"github.com/leasehold/leasehold/internal/door"
	"github.com/leasehold/leasehold/internal/door/native/encode"
	"github.com/leasehold/leasehold/internal/door/native/paste"
	"github.com/leasehold/leasehold/internal/door/native/probe"
	"github.com/leasehold/leasehold/internal/telemetry"
)

// A Door answers requests of our own API by asking a backend.
type Door struct {
	backend *door.Backend
	asked   map[string]*accounted // by pattern
	verbs   []string              // that the journal may be asked for

	watching  atomic.Int64
	transfers *door.Places // for large values that pass
	events    encode.EventCache
}

// An accounted operation has the account of its requests.
type accounted struct {
	*operation
	account *telemetry.Verb
}

// Kind is this door in the table of a server. It has no settings of its own.
var Kind = door.Kind{Name: doorName, What: "our own API, over HTTP and RESP", Tools: paste.Tools,
	Open: func(b *door.Backend, _ door.Settings) (door.Door, error) { return New(b).Door(), nil },
}

// New returns a door to a backend.
func New(b *door.Backend) *Door {
	return &Door{backend: b, asked: map[string]*accounted{}, transfers: door.NewPlaces(maxTransfers,
		maxTransfers/2, "as many large values are being read and written as can be, or as one client may: try again "+
			"in a moment")}
}

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
	d.verbs = []string{audit.Expire, audit.Grant, audit.Login, changeAccess, audit.BeginReservation,
		audit.FreeReservation}
	for i := range operations {
		o := &accounted{&operations[i], requests.Verb(operations[i].name)}
		d.verbs = append(d.verbs, o.name)
		d.asked[o.method+" "+o.path] = o
		handle(o.method, door.Route{Pattern: o.path, Handler: d.handler(o)})
	}
	health := func(path string, h http.HandlerFunc) {
		handle("GET", door.Route{Pattern: path, Handler: h, Early: true, Late: true, AnySite: true})
	}
	probes := &probe.Prober{Backend: d.backend, Problem: problem}
	health("/livez", probes.Livez)
	health("/readyz", probes.Readyz)
	health("/healthz", probes.Readyz)
	health("/version", probes.Version)
	health("/metrics", probes.Metrics)
	page := func(pattern string, h http.HandlerFunc) door.Route {
		return door.Route{Pattern: pattern, Handler: h, Early: true, AnySite: true}
	}
	handle("GET", page("/v1/openapi.yaml", probes.OpenAPI))
	for path, allowed := range methods {
		all = append(all, page(path, wrongMethod(allowed)))
	}
	all = append(all, page("/", unknownRoute))
	return door.Door{HTTP: door.HTTP{Routes: all, Refuse: d.refuse}, Protocol: d.protocol()}
}
