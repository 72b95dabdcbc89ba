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
	{"session-create", "", nil, atConsul("PUT", "/v1/session/create", `{"TTL":"15s"}`), ""},
	{"session-destroy", "", consulOpened, atConsul("PUT", "/v1/session/destroy/s-XX", ""), ""},
	{"session-renew", "", consulOpened, atConsul("PUT", "/v1/session/renew/s-XX", ""), "h"},
	{"session-info", "", consulOpened, atConsul("GET", "/v1/session/info/s-XX", ""), "h"},
	{"session-list", "", consulOpened, atConsul("GET", "/v1/session/list", ""), "h"},
	{"session-node", "", consulOpened, atConsul("GET", "/v1/session/node/leasehold", ""), "h"},
}
