package etcd

import (
	"encoding/json"
	"net/http"

	"go.etcd.io/etcd/api/v3/version"
	"google.golang.org/grpc/health/grpc_health_v1"

	"github.com/leasehold/leasehold/internal/door"
)

// pageRoutes are the pages of etcd that scripts look at. The port that doors share has such pages of its own.
func (d *Door) pageRoutes() []door.Route {
	return []door.Route{
		{Pattern: "/health", Handler: http.HandlerFunc(d.healthPage)},
		{Pattern: "/version", Early: true, Handler: http.HandlerFunc(versionPage)},
	}
}

func (d *Door) healthPage(w http.ResponseWriter, r *http.Request) {
	page := map[string]string{"health": "true", "reason": ""}
	code := http.StatusOK
	if d.healthy(r.Context()) != grpc_health_v1.HealthCheckResponse_SERVING {
		page, code = map[string]string{"health": "false", "reason": "RAFT NO LEADER"}, http.StatusServiceUnavailable
	}
	writePage(w, code, page)
}

func versionPage(w http.ResponseWriter, _ *http.Request) {
	writePage(w, http.StatusOK, map[string]string{"etcdserver": version.Version, "etcdcluster": version.Version,
		"storage": "3.6.0"})
}

func writePage(w http.ResponseWriter, code int, page map[string]string) {
	text, _ := json.Marshal(page)
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	_, _ = w.Write(text) // whether it arrives is not for us to know
}
