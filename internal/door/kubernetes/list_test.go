package kubernetes

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/leasehold/leasehold/internal/core"
	"github.com/leasehold/leasehold/internal/door/kubernetes/object"
)

// A listed is a list in JSON.
type listed struct {
	Kind     string
	Metadata struct{ ResourceVersion, Continue string }
	Items    []struct {
		Metadata struct{ Name, Namespace string }
	}
}

func (b *bench) list(target string) (l listed) {
	b.t.Helper()
	if err := json.Unmarshal([]byte(b.ask("GET", target, "").expect(200).body), &l); err != nil {
		b.t.Fatal(err)
	}
	return l
}

func (l *listed) names() string {
	var names []string
	for _, item := range l.Items {
		names = append(names, item.Metadata.Namespace+"/"+item.Metadata.Name)
	}
	return strings.Join(names, " ")
}

func TestList(t *testing.T) {
	b := newBench(t, Config{})
	for i := range 5 {
		b.ask("POST", leases, fmt.Sprintf(`{"metadata":{"name":"l%d","labels":{"odd":"%d"}}}`, i, i%2)).expect(201)
	}
	b.ask("POST", strings.Replace(leases, "/ns/", "/ns2/", 1), `{"metadata":{"name":"other"}}`).expect(201)
	b.do(&core.PutRecord{Namespace: "default", Path: "kubernetes/ns/zzz", Value: "no object"})
	b.do(&core.PutRecord{Namespace: "default", Path: "kubernetes/stray", Value: "no object"})
	b.ask("GET", leases+"/zzz", "").expect(500, "is no Lease of Kubernetes")
	for target, want := range map[string]string{
		leases:                            "ns/l0 ns/l1 ns/l2 ns/l3 ns/l4",
		every:                             "ns/l0 ns/l1 ns/l2 ns/l3 ns/l4 ns2/other",
		leases + "?labelSelector=odd%3D1": "ns/l1 ns/l3",
		leases + "?fieldSelector=metadata.name%3Dl2":                    "ns/l2",
		every + "?fieldSelector=metadata.namespace%3Dns2":               "ns2/other",
		every + "?fieldSelector=metadata.name!%3Dl0&limit=0":            "ns/l1 ns/l2 ns/l3 ns/l4 ns2/other",
		leases + "?resourceVersion=0":                                   "ns/l0 ns/l1 ns/l2 ns/l3 ns/l4",
		leases + "?resourceVersion=3&resourceVersionMatch=Exact":        "ns/l0 ns/l1 ns/l2",
		leases + "?resourceVersion=3&resourceVersionMatch=NotOlderThan": "ns/l0 ns/l1 ns/l2 ns/l3 ns/l4",
	} {
		if l := b.list(target); l.names() != want || l.Kind != "LeaseList" {
			t.Errorf("%s: %s, want %s", target, l.names(), want)
		}
	}

	// Pages are as of the first, whatever happens between them.
	first := b.list(leases + "?limit=2")
	b.ask("DELETE", leases+"/l3", "").expect(200)
	b.ask("POST", leases, `{"metadata":{"name":"l25"}}`).expect(201)
	second := b.list(leases + "?limit=2&continue=" + url.QueryEscape(first.Metadata.Continue))
	third := b.list(leases + "?limit=2&continue=" + url.QueryEscape(second.Metadata.Continue))
	if got := first.names() + "|" + second.names() + "|" + third.names(); got != "ns/l0 ns/l1|ns/l2 ns/l3|ns/l4" ||
		third.Metadata.Continue != "" || second.Metadata.ResourceVersion != first.Metadata.ResourceVersion {
		t.Errorf("the pages are %s, and then %q", got, third.Metadata.Continue)
	}
	b.ask("GET", leases+"?continue=nonsense", "").expect(400, "continue key is not valid")
	b.ask("GET", leases+"?resourceVersion=999999", "").expect(504, "Too large resource version: 999999, current: ")
	b.ask("GET", leases+"?resourceVersion=x", "").expect(400, "invalid resource version")
	b.ask("GET", leases+"?labelSelector=%3Dx", "").expect(400, "unable to parse requirement")
	b.ask("GET", leases+"?fieldSelector=spec.x%3Dy", "").expect(400, "field label not supported: spec.x")
	b.ask("GET", leases+"?limit=-1", "").expect(400)
	b.ask("GET", leases+"?resourceVersionMatch=Exact", "").expect(422, "ListOptions.meta.k8s.io")

	b.ask("DELETE", leases+"?labelSelector=odd%3D0", "").expect(200, `"name":"l0"`, `"name":"l4"`)
	if l := b.list(leases); l.names() != "ns/l1 ns/l25" {
		t.Errorf("after a delete of some there are %s", l.names())
	}
}

// More objects than one look at the state shows are listed as one.
func TestLongList(t *testing.T) {
	b := newBench(t, Config{})
	const n = 2500
	for i := range n {
		l := &object.Lease{Meta: object.Meta{UID: fmt.Sprint(i)}}
		b.do(&core.PutRecord{Namespace: "default", Path: fmt.Sprintf("kubernetes/ns/l%04d", i), Value: encode(l)})
	}
	if l := b.list(every); len(l.Items) != n || l.Metadata.Continue != "" {
		t.Errorf("%d were listed, and then %q", len(l.Items), l.Metadata.Continue)
	}
}

// kubectl get asks, when a Lease is not found, whether its namespace is: only if it is does it tell of the Lease.
func TestEachNamespaceIsThere(t *testing.T) {
	b := newBench(t, Config{})
	b.ask("GET", "/api/v1/namespaces/apps", "", "Accept", "application/json").expect(200,
		`"kind":"Namespace"`, `"name":"apps"`, `"phase":"Active"`)
	b.ask("GET", "/api/v1/namespaces/No_Name", "").expect(400, `"reason":"BadRequest"`)
	b.ask("DELETE", "/api/v1/namespaces/apps", "").expect(405)
	b.ask("GET", "/api/v1/namespaces", "").expect(404)
}

func TestFormsOfAnswers(t *testing.T) {
	b := newBench(t, Config{})
	b.ask("POST", leases, held("op", "ann", 15)).expect(201)
	const table = "application/json;as=Table;v=v1;g=meta.k8s.io,application/json;as=Table;v=v1beta1;g=meta.k8s.io,application/json"
	b.ask("GET", leases+"/none", "", "Accept", table).expect(404, `"kind":"Status"`, `leases.coordination.k8s.io \"none\" not found`)
	got := b.ask("GET", leases+"?limit=500", "", "Accept", table).expect(200, `"kind":"Table"`, `"name":"Holder"`, `"cells":["op","ann","`,
		`"kind":"PartialObjectMetadata"`)
	if got.header.Get("Content-Type") != "application/json" {
		t.Errorf("a table is %s", got.header)
	}
	if got := b.ask("GET", leases+"/op?includeObject=None", "", "Accept", table).expect(200, `"rows":[{"cells":["op"`); strings.Contains(got.body, "PartialObject") {
		t.Errorf("without objects it is %s", got.body)
	}
	b.ask("GET", leases+"/op", "", "Accept", "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1,application/json").
		expect(200, `{"kind":"PartialObjectMetadata","apiVersion":"meta.k8s.io/v1","metadata":{"name":"op"`)
	const protobuf = object.Protobuf + ",application/json"
	got = b.ask("GET", leases+"/op", "", "Accept", protobuf).expect(200)
	_, kind, message, err := object.Open([]byte(got.body))
	var l object.Lease
	if err != nil || kind != "Lease" || l.Unmarshal(message) != nil || l.Spec.HolderName() != "ann" || got.header.Get("Content-Type") != object.Protobuf {
		t.Errorf("in protobuf it is %q, %s, %v", got.body, got.header, err)
	}
	l.Spec.Holder = new("bob")
	b.ask("PUT", leases+"/op", string(object.Envelope(object.APIVersion, object.Kind, l.Marshal())), "Content-Type", object.Protobuf).
		expect(200, `"holderIdentity":"bob"`)
	got = b.ask("GET", leases+"/none", "", "Accept", protobuf).expect(404)
	if _, kind, _, err := object.Open([]byte(got.body)); err != nil || kind != "Status" {
		t.Errorf("an error in protobuf is %q", got.body)
	}
	b.ask("DELETE", leases+"/op", string(object.Envelope("v1", "DeleteOptions", []byte("\x12\x03\x0a\x01u"))), "Content-Type", object.Protobuf).
		expect(409, "UID in precondition: u")
	b.ask("DELETE", leases+"/op", `{"preconditions":{"resourceVersion":"1"}}`).expect(409, "ResourceVersion in precondition: 1")
	b.ask("DELETE", leases+"/op?dryRun=All", "").expect(200)
	b.get("op")
	b.ask("POST", leases, "metadata: {name: yaml}\nspec:\n  holderIdentity: ann\n  renewTime: 2026-01-02T03:04:05.000000Z\n", "Content-Type", "application/yaml").
		expect(201, `"renewTime":"2026-01-02T03:04:05.000000Z"`)
	b.ask("POST", leases+"?dryRun=All", held("tried", "ann", 15)).expect(201)
	b.ask("GET", leases+"/tried", "").expect(404)
	if name := b.ask("POST", leases, `{"metadata":{"generateName":"made-"}}`).expect(201).lease().Meta.Name; len(name) != 10 {
		t.Errorf("the name is %q", name)
	}
}

func TestDiscovery(t *testing.T) {
	b := newBench(t, Config{})
	const all = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList,application/json"
	for _, path := range []string{"/api", "/apis"} {
		got := b.ask("GET", path, "", "Accept", all).expect(200, `"kind":"APIGroupDiscoveryList"`)
		if got.header.Get("Content-Type") != "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList" {
			t.Errorf("%s is %s", path, got.header)
		}
	}
	b.ask("GET", "/apis", "", "Accept", all).expect(200, `"resource":"leases"`, `"singularResource":"lease"`)
	b.ask("GET", "/api", "").expect(200, `"kind":"APIVersions"`)
	b.ask("GET", "/api/v1", "").expect(200, `"name":"events"`)
	b.ask("GET", "/apis", "").expect(200, `"kind":"APIGroupList"`, `"coordination.k8s.io/v1"`)
	b.ask("GET", "/apis/coordination.k8s.io", "").expect(200, `"kind":"APIGroup"`)
	b.ask("GET", "/apis/coordination.k8s.io/v1", "").expect(200, `"kind":"APIResourceList"`, `"name":"leases"`, `"deletecollection"`)
	page := b.ask("GET", "/openapi/v3", "").expect(200, "/openapi/v3/apis/coordination.k8s.io/v1?hash=")
	if !json.Valid([]byte(page.body)) {
		t.Error("the list of pages is no JSON")
	}
	b.ask("GET", "/openapi/v3/apis/coordination.k8s.io/v1?hash=x", "").expect(200, `"x-kubernetes-group-version-kind"`, `"fieldValidation"`)
	b.ask("GET", "/openapi/v2", "").expect(404)
	b.ask("POST", "/api/v1/namespaces/ns/events", `{"kind":"Event","reason":"LeaderElection"}`).expect(201, "LeaderElection")
	b.ask("POST", "/apis/events.k8s.io/v1/namespaces/ns/events", `{"kind":"Event"}`).expect(201)
	b.ask("POST", "/api/v1/namespaces/ns/events", `{`).expect(400)
	b.ask("GET", "/api/v1/namespaces/ns/events?fieldSelector=x", "").expect(200, `"items":[]`)
	b.ask("GET", "/api/v1/namespaces/ns/pods", "").expect(404, "could not find the requested resource")
	b.ask("GET", "/apis/apps/v1/deployments", "").expect(404)
	b.ask("GET", "/apis/coordination.k8s.io/v1/namespaces/NS/leases", "").expect(400)
}

func TestPatch(t *testing.T) {
	b := newBench(t, Config{})
	made := b.ask("POST", leases, held("op", "ann", 15)).expect(201).lease()
	patch := func(kind, body string, status int, texts ...string) told {
		t.Helper()
		return b.ask("PATCH", leases+"/op?fieldManager=test", body, "Content-Type", kind).expect(status, texts...)
	}
	patch(mergePatch, `{"metadata":{"labels":{"a":"1"}}}`, 200, `"labels":{"a":"1"}`, `"holderIdentity":"ann"`)
	patch(strategicPatch, `{"metadata":{"finalizers":["x/y"]},"spec":{"leaseTransitions":3}}`, 200, `"finalizers":["x/y"]`, `"leaseTransitions":3`)
	patch(jsonPatch, `[{"op":"remove","path":"/metadata/labels/a"}]`, 200)
	patch(applyPatch, "metadata:\n  annotations: {b: c}\n", 200, `"b":"c"`)
	got := b.get("op")
	if len(got.Meta.Labels) != 0 || got.Meta.Annotations["b"] != "c" || b.holder("op") != "ann" ||
		got.Meta.Annotations[tokenKey] != made.Meta.Annotations[tokenKey] {
		t.Errorf("after all patches it is %+v", got)
	}
	before := got.Meta.ResourceVersion
	if patch(mergePatch, `{}`, 200).lease().Meta.ResourceVersion != before {
		t.Error("a patch that changes nothing makes a new version")
	}
	patch(mergePatch, `{"metadata":{"resourceVersion":"1"},"spec":{"leaseTransitions":9}}`, 409, "has been modified")
	patch(mergePatch, `{"metadata":{"uid":"u"}}`, 409, "UID in precondition")
	patch(mergePatch, `{"metadata":{"name":"other"}}`, 400)
	patch(mergePatch, `{"spec":{"leaseDurationSeconds":0}}`, 422, "must be greater than 0")
	patch(mergePatch, `[]`, 422)
	patch(mergePatch, `{`, 400)
	patch(jsonPatch, `[{"op":"test","path":"/spec/leaseTransitions","value":1}]`, 422, "test failed")
	patch("text/plain", `{}`, 415)
	b.ask("PATCH", leases+"/op", "{}", "Content-Type", applyPatch).expect(422, "fieldManager: Required value: is required for apply patch")
	b.ask("PATCH", leases+"/new", `{}`, "Content-Type", mergePatch).expect(404)
	b.ask("PATCH", leases+"/new?fieldManager=f", "spec: {holderIdentity: bob}\n", "Content-Type", applyPatch).expect(201, `"holderIdentity":"bob"`)

	// An object with a finalizer goes when that does.
	b.ask("DELETE", leases+"/op", "").expect(200, `"deletionTimestamp"`)
	b.ask("DELETE", leases+"/op", "").expect(200, `"deletionTimestamp"`)
	patch(strategicPatch, `{"metadata":{"$deleteFromPrimitiveList/finalizers":["x/y"]}}`, 200)
	b.ask("GET", leases+"/op", "").expect(404)
	if b.holder("op") != "" {
		t.Errorf("%q holds what was deleted", b.holder("op"))
	}
}

func TestAge(t *testing.T) {
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	for d, want := range map[time.Duration]string{
		0: "0s", -time.Second / 2: "0s", -time.Minute: "<invalid>", 119 * time.Second: "119s", 2 * time.Minute: "2m", 125 * time.Second: "2m5s",
		10 * time.Minute: "10m", 179 * time.Minute: "179m", 3 * time.Hour: "3h", 3*time.Hour + 5*time.Minute: "3h5m", 8*time.Hour + 5*time.Minute: "8h",
		47 * time.Hour: "47h", 48 * time.Hour: "2d", 50 * time.Hour: "2d2h", 8 * 24 * time.Hour: "8d", 800 * 24 * time.Hour: "2y70d",
	} {
		if got := age(now, now.Add(-d)); got != want {
			t.Errorf("%v is %s, want %s", d, got, want)
		}
	}
}

// A stuck is a client that does not take its answer before it is let.
type stuck struct {
	*httptest.ResponseRecorder
	let chan struct{}
}

func (s *stuck) Write(b []byte) (int, error) {
	<-s.let
	return s.ResponseRecorder.Write(b)
}

// One client that does not take its lists keeps nobody else from listing.
func TestListsAreShared(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, Config{})
		list := func(address string, w http.ResponseWriter) {
			r := httptest.NewRequest("GET", leases, nil)
			r.RemoteAddr = address
			b.door.ServeHTTP(w, r)
		}
		let := make(chan struct{})
		for range 2 * maxLists {
			go list("192.0.2.1:1", &stuck{httptest.NewRecorder(), let})
		}
		synctest.Wait()
		w := httptest.NewRecorder()
		list("192.0.2.2:1", w)
		if w.Code != 200 {
			t.Errorf("another client is told %d %s", w.Code, w.Body)
		}
		close(let)
		synctest.Wait()
		w = httptest.NewRecorder()
		if list("192.0.2.1:1", w); w.Code != 200 {
			t.Errorf("afterwards it is told %d %s", w.Code, w.Body)
		}
	})
}
