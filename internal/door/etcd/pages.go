package etcd

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"go.etcd.io/etcd/api/v3/version"
	"google.golang.org/grpc/health/grpc_health_v1"

	"github.com/leasehold/leasehold/internal/door"
	"github.com/leasehold/leasehold/internal/engine"
)

// pageRoutes are the pages of etcd that scripts look at. The port that doors share has such pages of its own.
func (d *Door) pageRoutes() []door.Route {
	routes := []door.Route{
		{Pattern: "/health", Handler: http.HandlerFunc(d.healthPage)},
		{Pattern: "/version", Early: true, Handler: http.HandlerFunc(versionPage)},
	}
	local := probe{"serializable_read", func(ctx context.Context) error {
		return d.backend.Ready(engine.WithStale(ctx))
	}}
	led := probe{"linearizable_read", d.backend.Ready}
	for path, probes := range map[string][]probe{"/livez": {local}, "/readyz": {local, led}} {
		routes = append(routes, door.Route{Pattern: path, Handler: probePage(probes)})
		for _, p := range probes {
			routes = append(routes, door.Route{Pattern: path + "/" + p.name, Handler: probePage{p}})
		}
	}
	return routes
}

func (d *Door) healthPage(w http.ResponseWriter, r *http.Request) {
	page := map[string]string{"health": "true", "reason": ""}
	code := http.StatusOK
	if d.healthy(r.Context()) != grpc_health_v1.HealthCheckResponse_SERVING {
		page, code = map[string]string{"health": "false", "reason": "RAFT NO LEADER"}, http.StatusServiceUnavailable
	}
	writePage(w, code, page)
}

// clusterVersion is that of the API that all servers speak, without patches.
var clusterVersion = version.APIVersion + ".0"

func versionPage(w http.ResponseWriter, _ *http.Request) {
	writePage(w, http.StatusOK, map[string]string{"etcdserver": version.Version, "etcdcluster": clusterVersion,
		"storage": clusterVersion})
}

func writePage(w http.ResponseWriter, code int, page map[string]string) {
	text, _ := json.Marshal(page)
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	_, _ = w.Write(text) // whether it arrives is not for us to know
}

// A probe is one of the things that a probe page looks at.
type probe struct {
	name  string
	check func(context.Context) error
}

// A probePage says whether all is well, in the words of etcd: all it has found with ?verbose or if something is not,
// else "ok". With ?exclude it leaves some out.
type probePage []probe

// ServeHTTP answers one request.
func (p probePage) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodGet {
		w.Header().Set("Allow", http.MethodGet)
		http.Error(w, "Method Not Allowed", http.StatusMethodNotAllowed)
		return
	}
	ctx, cancel := context.WithTimeout(r.Context(), leaderTime)
	defer cancel()
	asked := r.URL.Query()
	found, failed := strings.Builder{}, false
	for _, one := range p {
		if slices.Contains(asked["exclude"], one.name) {
			continue
		}
		if err := one.check(ctx); err != nil {
			failed = true
			fmt.Fprintf(&found, "[-]%s failed: %v\n", one.name, err)
			continue
		}
		fmt.Fprintf(&found, "[+]%s ok\n", one.name)
	}
	if failed {
		http.Error(w, found.String(), http.StatusServiceUnavailable)
		return
	}
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.Header().Set("X-Content-Type-Options", "nosniff")
	if !asked.Has("verbose") {
		found.Reset()
	}
	_, _ = fmt.Fprint(w, found.String()+"ok\n") // whether it arrives is not for us to know
}
