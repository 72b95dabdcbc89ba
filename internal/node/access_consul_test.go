package node

import (
	"strings"
	"time"

	"github.com/leasehold/leasehold"
	"github.com/leasehold/leasehold/internal/core"
)

func openConsul(w *world, p place) {
	w.do(p.owner, &core.OpenSession{Namespace: p.space, ID: "s-" + p.x, TTL: time.Hour,
		Labels: leasehold.Labels{{Key: "consul-name", Value: "h-" + p.x}}})
}

// lockConsul is a lock that its owner has taken.
func lockConsul(w *world, p place) {
	openConsul(w, p)
	sent(atConsul("PUT", "/v1/kv/PATH?acquire=s-XX", "v-XX")(p))(w, p)
}

// atConsul is a request at the port for clients of Consul.
func atConsul(method, path, body string) func(place) request {
	return func(p place) request {
		put := strings.NewReplacer("PATH", p.path(), "XX", p.x).Replace
		return request{method: method, path: "consul:" + put(path), body: put(body)}
	}
}

// consulWait is a request that waits for a change.
func consulWait(path string) func(place) request {
	return func(p place) request {
		r := atConsul("GET", path, "")(p)
		r.within = 300 * time.Millisecond
		return r
	}
}

var (
	consulOpened = befores{openConsul}
	consulTaken  = befores{lockConsul}
)

// consulRows are those of Consul.
var consulRows = []row{
	{"kv-get", "", kept, atConsul("GET", "/v1/kv/PATH?raw", ""), "v"},
	{"kv-get", "that waits", kept, consulWait("/v1/kv/PATH?raw&index=1"), "v"},
	{"kv-get", "of nothing", nil, atConsul("GET", "/v1/kv/PATH", ""), ""},
	{"kv-tree", "", kept, atConsul("GET", "/v1/kv/PATH?recurse", ""), "x"},
	{"kv-list", "", kept, atConsul("GET", "/v1/kv/PATH?keys", ""), "x"},
	{"kv-put", "", nil, atConsul("PUT", "/v1/kv/PATH", "v"), ""},
	{"kv-put", "over", kept, atConsul("PUT", "/v1/kv/PATH", "v"), ""},
	{"kv-put", "held", consulTaken, atConsul("PUT", "/v1/kv/PATH", "v"), ""},
	{"kv-acquire", "", consulOpened, atConsul("PUT", "/v1/kv/PATH?acquire=s-XX", "v"), ""},
	{"kv-acquire", "again", consulTaken, atConsul("PUT", "/v1/kv/PATH?acquire=s-XX", "v"), ""},
	{"kv-release", "", consulTaken, atConsul("PUT", "/v1/kv/PATH?release=s-XX", "v"), ""},
	{"kv-delete", "", kept, atConsul("DELETE", "/v1/kv/PATH", ""), ""},
	{"kv-delete", "held", consulTaken, atConsul("DELETE", "/v1/kv/PATH", ""), ""},
	{"kv-delete", "all below", kept, atConsul("DELETE", "/v1/kv/PATH?recurse", ""), ""},
	{"txn", "that reads", kept, atConsul("PUT", "/v1/txn", `[{"KV":{"Verb":"get","Key":"PATH"}}]`), "x"},
	{"txn", "that reads all below", kept, atConsul("PUT", "/v1/txn", `[{"KV":{"Verb":"get-tree","Key":"PATH"}}]`), "x"},
	{"txn", "that writes", kept, atConsul("PUT", "/v1/txn", `[{"KV":{"Verb":"set","Key":"PATH"}}]`), ""},
	{"txn", "that deletes", kept, atConsul("PUT", "/v1/txn", `[{"KV":{"Verb":"delete-tree","Key":"PATH"}}]`), ""},
	{"txn", "that locks", consulOpened,
		atConsul("PUT", "/v1/txn", `[{"KV":{"Verb":"lock","Key":"PATH","Session":"s-XX"}}]`), ""},
	{"txn", "that unlocks", consulTaken,
		atConsul("PUT", "/v1/txn", `[{"KV":{"Verb":"unlock","Key":"PATH","Session":"s-XX"}}]`), ""},
	{"session-create", "", nil, atConsul("PUT", "/v1/session/create", `{"TTL":"15s"}`), ""},
	{"session-destroy", "", consulOpened, atConsul("PUT", "/v1/session/destroy/s-XX", ""), ""},
	{"session-renew", "", consulOpened, atConsul("PUT", "/v1/session/renew/s-XX", ""), "h"},
	{"session-info", "", consulOpened, atConsul("GET", "/v1/session/info/s-XX", ""), "h"},
	{"session-list", "", consulOpened, atConsul("GET", "/v1/session/list", ""), "h"},
	{"session-node", "", consulOpened, atConsul("GET", "/v1/session/node/leasehold", ""), "h"},
	{"agent-self", "", nil, atConsul("GET", "/v1/agent/self", ""), ""},
	{"agent-version", "", nil, atConsul("GET", "/v1/agent/version", ""), ""},
	{"agent-members", "", nil, atConsul("GET", "/v1/agent/members", ""), ""},
	{"agent-services", "", nil, atConsul("GET", "/v1/agent/services", ""), ""},
	{"agent-checks", "", nil, atConsul("GET", "/v1/agent/checks", ""), ""},
	{"service-register", "", nil, atConsul("PUT", "/v1/agent/service/register", ""), ""},
	{"service-deregister", "", nil, atConsul("PUT", "/v1/agent/service/deregister/x", ""), ""},
	{"check-register", "", nil, atConsul("PUT", "/v1/agent/check/register", ""), ""},
	{"status-leader", "", nil, atConsul("GET", "/v1/status/leader", ""), ""},
	{"status-peers", "", nil, atConsul("GET", "/v1/status/peers", ""), ""},
	{"catalog-datacenters", "", nil, atConsul("GET", "/v1/catalog/datacenters", ""), ""},
	{"catalog-nodes", "", nil, atConsul("GET", "/v1/catalog/nodes", ""), ""},
	{"catalog-services", "", nil, atConsul("GET", "/v1/catalog/services", ""), ""},
	{"catalog-service", "", nil, atConsul("GET", "/v1/catalog/service/consul", ""), ""},
	{"catalog-node", "", nil, atConsul("GET", "/v1/catalog/node/leasehold", ""), ""},
	{"health-service", "", nil, atConsul("GET", "/v1/health/service/consul", ""), ""},
	{"health-node", "", nil, atConsul("GET", "/v1/health/node/leasehold", ""), ""},
	{"health-checks", "", nil, atConsul("GET", "/v1/health/checks/consul", ""), ""},
	{"health-state", "", nil, atConsul("GET", "/v1/health/state/any", ""), ""},
}
