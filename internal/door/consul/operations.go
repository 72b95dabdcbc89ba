package consul

import (
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/leasehold/leasehold/internal/door"
)

// An operation is one thing that can be asked. The path and the method find it.
type operation struct {
	name   string // in metrics
	method string
	path   string // that ends with a slash: what follows names the thing
	with   string // a parameter that the query has; empty: any
	noted  string // as the journal calls it, in the words of all doors
	writes bool
	serve  func(*call) error
}

// operations is the whole door. Of two that fit, the first is meant.
var operations = []operation{
	{"kv-list", "GET", "/v1/kv/", "keys", "records", false, (*call).listKeys},
	{"kv-tree", "GET", "/v1/kv/", "recurse", "records", false, (*call).listEntries},
	{"kv-get", "GET", "/v1/kv/", "", "record", false, (*call).getKey},
	{"kv-acquire", "PUT", "/v1/kv/", "acquire", "acquire", true, (*call).acquireKey},
	{"kv-release", "PUT", "/v1/kv/", "release", "release", true, (*call).releaseKey},
	{"kv-put", "PUT", "/v1/kv/", "", "put-record", true, (*call).putKey},
	{"kv-delete", "DELETE", "/v1/kv/", "", "delete-record", true, (*call).deleteKeys},

	{"txn", "PUT", "/v1/txn", "", "txn", true, (*call).transact},

	{"session-create", "PUT", "/v1/session/create", "", "open-session", true, (*call).createSession},
	{"session-destroy", "PUT", "/v1/session/destroy/", "", "close-session", true, (*call).destroySession},
	{"session-renew", "PUT", "/v1/session/renew/", "", "renew-session", false, (*call).renewSession},
	{"session-info", "GET", "/v1/session/info/", "", "session", false, (*call).sessionInfo},
	{"session-list", "GET", "/v1/session/list", "", "sessions", false, (*call).listSessions},
	{"session-node", "GET", "/v1/session/node/", "", "sessions", false, (*call).nodeSessions},

	{"agent-self", "GET", "/v1/agent/self", "", "cluster", false, (*call).agentSelf},
	{"agent-version", "GET", "/v1/agent/version", "", "cluster", false, (*call).agentVersion},
	{"agent-members", "GET", "/v1/agent/members", "", "cluster", false, (*call).agentMembers},
	{"agent-services", "GET", "/v1/agent/services", "", "cluster", false, (*call).agentServices},
	{"agent-checks", "GET", "/v1/agent/checks", "", "cluster", false, (*call).agentServices},
	{"service-register", "PUT", "/v1/agent/service/register", "", "cluster", false, (*call).register},
	{"service-deregister", "PUT", "/v1/agent/service/deregister/", "", "cluster", false, (*call).register},
	{"check-register", "PUT", "/v1/agent/check/", "", "cluster", false, (*call).register},
	{"status-leader", "GET", "/v1/status/leader", "", "cluster", false, (*call).leader},
	{"status-peers", "GET", "/v1/status/peers", "", "cluster", false, (*call).peers},
	{"catalog-datacenters", "GET", "/v1/catalog/datacenters", "", "cluster", false, (*call).catalogDatacenters},
	{"catalog-nodes", "GET", "/v1/catalog/nodes", "", "cluster", false, (*call).catalogNodes},
	{"catalog-services", "GET", "/v1/catalog/services", "", "cluster", false, (*call).catalogServices},
	{"catalog-service", "GET", "/v1/catalog/service/", "", "cluster", false, (*call).catalogService},
	{"catalog-node", "GET", "/v1/catalog/node/", "", "cluster", false, (*call).catalogNode},
	{"health-service", "GET", "/v1/health/service/", "", "cluster", false, (*call).healthService},
	{"health-node", "GET", "/v1/health/node/", "", "cluster", false, (*call).health},
	{"health-checks", "GET", "/v1/health/checks/", "", "cluster", false, (*call).health},
	{"health-state", "GET", "/v1/health/state/", "", "cluster", false, (*call).health},
}

// unknown is what means nothing here.
var unknown = operation{name: "unknown", noted: "record", serve: (*call).unknown}

// fits reports whether a path is one of the operation.
func (o *operation) fits(path string) bool {
	return path == o.path || strings.HasSuffix(o.path, "/") && strings.HasPrefix(path, o.path)
}

// find finds what is asked.
func find(method, path string, query url.Values) *operation {
	for i := range operations {
		o := &operations[i]
		if o.method == method && o.fits(path) && (o.with == "" || query.Has(o.with)) {
			return o
		}
	}
	return &unknown
}

// unknown answers a path or a method that is none.
func (c *call) unknown() error {
	var methods []string
	for i := range operations {
		if o := &operations[i]; o.fits(c.r.URL.Path) && !slices.Contains(methods, o.method) {
			methods = append(methods, o.method)
		}
	}
	if len(methods) > 0 {
		c.w.Header().Set("Allow", "OPTIONS,"+strings.Join(methods, ","))
		if c.r.Method == http.MethodOptions {
			c.w.Header().Set("Content-Type", "application/json; charset=utf-8")
			c.sendBytes(http.StatusOK, nil)
			return nil
		}
		return door.Invalidly(http.StatusMethodNotAllowed, "method %s not allowed", c.r.Method)
	}
	return door.Invalidly(http.StatusNotFound, "Invalid URL path: not a recognized HTTP API endpoint\n%s",
		insteadOf(c.r.URL.Path))
}

// instead says what takes the place of what Consul has and this door has not.
var instead = []struct{ path, say string }{
	{"/v1/snapshot", "Leasehold is backed up with: leasehold backup\n"},
	{"/v1/acl/", "who may do what is changed with: leasehold access\n"},
	{"/v1/operator/", "the servers are looked after with: leasehold cluster\n"},
}

func insteadOf(path string) string {
	for _, i := range instead {
		if strings.HasPrefix(path, i.path) {
			return i.say
		}
	}
	return ""
}
