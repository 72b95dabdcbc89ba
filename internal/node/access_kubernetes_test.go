package node

import (
	"encoding/json"
	"strconv"
	"strings"
	"time"

	"github.com/leasehold/leasehold"
)

// kubeLeases are the Leases of the Kubernetes namespace that a place is in.
const kubeLeases = "/apis/coordination.k8s.io/v1/namespaces/NS/leases"

// kube is a request of a client of Kubernetes.
func kube(method, path, body string, headers ...string) func(place) request {
	return func(p place) request {
		return p.filled(request{method: method, path: strings.ReplaceAll(path, "NS", strings.TrimSuffix(p.prefix, "/")), body: body,
			headers: append([]string(nil), headers...)})
	}
}

const (
	kubeHeld  = `{"metadata":{"name":"XX","resourceVersion":"TOKEN"},"spec":{"holderIdentity":"h-XX","leaseDurationSeconds":3600}}`
	kubeFree  = `{"metadata":{"name":"XX","resourceVersion":"TOKEN"},"spec":{"holderIdentity":""}}`
	kubeTaken = `{"metadata":{"name":"XX","resourceVersion":"TOKEN"},"spec":{"holderIdentity":"me","leaseDurationSeconds":3600}}`
)

// kubeLease makes the Lease of a place, which somebody holds. Its version is kept where other rows have a token.
func kubeLease(w *world, p place) {
	w.Helper()
	body := strings.Replace(kubeHeld, `,"resourceVersion":"TOKEN"`, "", 1)
	got := w.ask(p.owner, kube("POST", kubeLeases, body)(p))
	var made struct {
		Metadata struct{ ResourceVersion string }
	}
	err := json.Unmarshal([]byte(got.body), &made)
	n, bad := strconv.ParseUint(made.Metadata.ResourceVersion, 10, 64)
	if err != nil || bad != nil {
		w.Fatalf("%s: %s", p.owner, got.all())
	}
	*p.token = leasehold.Token(n)
}

var (
	kubeMade = befores{kubeLease}
	merge    = []string{"Content-Type", "application/merge-patch+json"}
)

// kubernetesRows are those of Leases.
var kubernetesRows = []row{
	{"list-leases", "", kubeMade, kube("GET", kubeLeases+"?fieldSelector=metadata.name=XX", ""), "h"},
	{"list-leases", "everywhere", kubeMade, kube("GET", "/apis/coordination.k8s.io/v1/leases?fieldSelector=metadata.name=XX", ""), "h"},
	{"watch-leases", "", kubeMade, func(p place) request {
		r := kube("GET", kubeLeases+"?watch=true&fieldSelector=metadata.name=XX", "")(p)
		r.within, r.until = time.Second, "h-"+p.x
		return r
	}, "h"},
	{"read-lease", "", kubeMade, kube("GET", kubeLeases+"/XX", ""), "h"},
	{"read-lease", "by native", kubeMade, get("/v1/resources/kubernetes/PATH"), "h"},
	{"create-lease", "", nil, kube("POST", kubeLeases, `{"metadata":{"name":"XX"}}`), ""},
	{"create-lease", "held", nil, kube("POST", kubeLeases, strings.Replace(kubeHeld, `,"resourceVersion":"TOKEN"`, "", 1)), ""},
	{"create-lease", "again", kubeMade, kube("POST", kubeLeases, `{"metadata":{"name":"XX"}}`), ""},
	{"write-lease", "new", nil, kube("PUT", kubeLeases+"/XX", `{"metadata":{"name":"XX"}}`), ""},
	{"write-lease", "renew", kubeMade, kube("PUT", kubeLeases+"/XX", strings.Replace(kubeHeld, "3600", "3601", 1)), ""},
	{"write-lease", "release", kubeMade, kube("PUT", kubeLeases+"/XX", kubeFree), ""},
	{"write-lease", "take", kubeMade, kube("PUT", kubeLeases+"/XX", kubeTaken), ""},
	{"patch-lease", "", kubeMade, kube("PATCH", kubeLeases+"/XX", `{"metadata":{"labels":{"a":"b"}}}`, merge...), ""},
	{"patch-lease", "take", kubeMade, kube("PATCH", kubeLeases+"/XX", `{"spec":{"holderIdentity":"me"}}`, merge...), ""},
	{"delete-lease", "", kubeMade, kube("DELETE", kubeLeases+"/XX", ""), ""},
	{"delete-leases", "", kubeMade, kube("DELETE", kubeLeases+"?fieldSelector=metadata.name=XX", ""), ""},
	{"post-event", "", nil, kube("POST", "/api/v1/namespaces/NS/events", `{"kind":"Event"}`), ""},
	{"list-events", "", nil, kube("GET", "/api/v1/namespaces/NS/events", ""), ""},
	{"read-namespace", "", nil, kube("GET", "/api/v1/namespaces/NS", ""), ""},
	{"discover", "", nil, kube("GET", "/apis", ""), ""},
	{"describe-api", "", nil, kube("GET", "/openapi/v3", ""), ""},
}
