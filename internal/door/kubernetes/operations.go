package kubernetes

import (
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/leasehold/leasehold/internal/door/kubernetes/object"
)

// What the path of a request names.
const (
	ofNothing   = iota
	ofAll       // the Leases of all namespaces
	ofSpace     // those of one
	ofLease     // one of them
	ofEvents    // the events of a namespace, or of all
	ofNamespace // a namespace itself
	ofCore      // /api: what there is in the group without a name
	ofCoreV1
	ofGroups // /apis: the groups
	ofGroup
	ofVersion // a version of the group, with its resources
	ofSpec    // /openapi/v3
	ofPage    // the page of the group in it
)

// An operation is one thing that can be asked. What the path names and the method find it.
type operation struct {
	name    string // in metrics
	on      []int
	method  string
	noted   string // as the journal calls it, in the words of all doors
	writes  bool
	endless bool
	serve   func(*call) error
}

var (
	ofLeases    = []int{ofAll, ofSpace}
	ofOne       = []int{ofLease}
	ofDiscovery = []int{ofCore, ofCoreV1, ofGroups, ofGroup, ofVersion}
	ofMessages  = []int{ofEvents}

	ofNamespaces = []int{ofNamespace}
	ofOpenAPI    = []int{ofSpec, ofPage}
)

// watchVerb is the name of a watch in metrics.
const watchVerb = "watch-leases"

// operations is the whole door.
var operations = []operation{
	{"list-leases", ofLeases, "GET", "records", false, false, (*call).list},
	{watchVerb, ofLeases, "WATCH", "watch", false, true, (*call).watch},
	{"create-lease", []int{ofSpace}, "POST", "put-record", true, false, (*call).create},
	{"delete-leases", []int{ofSpace}, "DELETE", "delete-record", true, false, (*call).deleteAll},
	{"read-lease", ofOne, "GET", "record", false, false, (*call).read},
	{"write-lease", ofOne, "PUT", "put-record", true, false, (*call).replace},
	{"patch-lease", ofOne, "PATCH", "put-record", true, false, (*call).patch},
	{"delete-lease", ofOne, "DELETE", "delete-record", true, false, (*call).remove},
	{"post-event", ofMessages, "POST", "record", false, false, (*call).postEvent},
	{"list-events", ofMessages, "GET", "records", false, false, (*call).listEvents},
	{"read-namespace", ofNamespaces, "GET", "record", false, false, (*call).readNamespace},
	{"discover", ofDiscovery, "GET", "record", false, false, (*call).discover},
	{"describe-api", ofOpenAPI, "GET", "record", false, false, (*call).describeAPI},
}

// unknown is what means nothing here.
var unknown = operation{name: "unknown", noted: "record", serve: (*call).unknown}

// find finds what is asked.
func (c *call) find() *operation {
	method := c.r.Method
	switch {
	case method == http.MethodHead:
		method = http.MethodGet
	case method == http.MethodGet && c.watches() && c.on != ofLease:
		method = "WATCH"
	}
	for i := range operations {
		if o := &operations[i]; o.method == method && slices.Contains(o.on, c.on) {
			return o
		}
	}
	return &unknown
}

// watches reports whether a request that reads wants to go on reading.
func (c *call) watches() bool { return isTrue(c.query.Get("watch")) }

// isTrue reads a parameter that is yes or no.
func isTrue(value string) bool { return value == "true" || value == "1" }

// unknown answers a path or a method that is none.
func (c *call) unknown() error {
	if c.on == ofNothing {
		return &apiError{Code: http.StatusNotFound, Reason: "NotFound",
			Message: "the server could not find the requested resource"}
	}
	return &apiError{Code: http.StatusMethodNotAllowed, Reason: "MethodNotAllowed",
		Message: "the server does not allow this method on the requested resource"}
}

// A place is what a path names.
type place struct {
	on    int
	space string // the namespace of Kubernetes; empty: all
	name  string
}

// placeOf reads a path.
func placeOf(escaped string) (at place, err error) {
	segments := strings.Split(strings.Trim(escaped, "/"), "/")
	for i := range segments {
		if segments[i], err = url.PathUnescape(segments[i]); err != nil {
			return at, badRequest("the path cannot be read: %v", err)
		}
	}
	switch {
	case segments[0] == "openapi":
		at.on = openAPIPlace(segments[1:])
		return at, nil
	case segments[0] == "api" && len(segments) == 1:
		return place{on: ofCore}, nil
	case segments[0] == "apis" && len(segments) == 1:
		return place{on: ofGroups}, nil
	case segments[0] == "apis" && len(segments) == 2 && segments[1] == object.Group:
		return place{on: ofGroup}, nil
	case segments[0] == "api" && len(segments) == 4 && segments[1] == "v1" && segments[2] == "namespaces":
		return spacePlace(segments[3])
	case segments[0] == "api" && segments[1] == "v1":
		return resourcePlace(segments[2:], "events", ofCoreV1, ofEvents, ofEvents)
	case segments[0] == "apis" && len(segments) > 2 && segments[1] == "events.k8s.io" && segments[2] == "v1":
		return resourcePlace(segments[3:], "events", ofNothing, ofEvents, ofEvents)
	case segments[0] == "apis" && len(segments) > 2 && segments[1]+"/"+segments[2] == object.APIVersion:
		return resourcePlace(segments[3:], object.Resource, ofVersion, ofAll, ofSpace)
	}
	return at, nil
}

// openAPIPlace finds a page below /openapi/.
func openAPIPlace(segments []string) int {
	switch strings.Join(segments, "/") {
	case "v3":
		return ofSpec
	case "v3/apis/" + object.APIVersion:
		return ofPage
	}
	return ofNothing
}

// spacePlace reads the name of a namespace.
func spacePlace(name string) (place, error) {
	if detail := object.CheckNamespace(name); detail != "" {
		return place{}, badRequest("namespace %q is invalid: %s", name, detail)
	}
	return place{on: ofNamespace, space: name}, nil
}

// resourcePlace reads what follows a version: nothing, RESOURCE, namespaces/NAMESPACE/RESOURCE and perhaps a name.
func resourcePlace(segments []string, resource string, version, all, space int) (at place, err error) {
	switch {
	case len(segments) == 0:
		return place{on: version}, nil
	case len(segments) == 1 && segments[0] == resource:
		return place{on: all}, nil
	case len(segments) < 3 || len(segments) > 4 || segments[0] != "namespaces" || segments[2] != resource:
		return at, nil
	}
	at = place{on: space, space: segments[1]}
	if detail := object.CheckNamespace(at.space); detail != "" {
		return at, badRequest("namespace %q is invalid: %s", at.space, detail)
	}
	if len(segments) == 4 {
		if at.name = segments[3]; space != ofSpace {
			return place{}, nil // an event that is named: none is kept
		}
		at.on = ofLease
	}
	return at, nil
}
