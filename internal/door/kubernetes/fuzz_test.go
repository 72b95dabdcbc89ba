package kubernetes

import (
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/leasehold/leasehold/internal/door"
	"github.com/leasehold/leasehold/internal/engine"
	"github.com/leasehold/leasehold/internal/engine/memory"
)

// Whatever is asked, something is answered, and the state is sound.
func FuzzRequests(f *testing.F) {
	f.Add("GET", "/leases?limit=1&labelSelector=a%3Db&resourceVersion=2&resourceVersionMatch=Exact", "", "application/json", "")
	f.Add("PUT", "/leases/op", `{"metadata":{"name":"op","resourceVersion":"1"},"spec":{"holderIdentity":"bob"}}`, "application/json;as=Table;v=v1;g=meta.k8s.io", "")
	f.Add("POST", "/leases?dryRun=All&fieldValidation=Strict", "k8s\x00\x0a\x00\x12\x04\x0a\x02\x0a\x00", "application/vnd.kubernetes.protobuf", "application/vnd.kubernetes.protobuf")
	f.Add("PATCH", "/leases/op?fieldManager=x", `[{"op":"copy","from":"/spec","path":"/metadata"}]`, "*/*;q=0", "application/json-patch+json")
	f.Add("PATCH", "/leases/op?fieldManager=x", "a: &a [*a, *a]", "", "application/apply-patch+yaml")
	f.Add("DELETE", "/leases?fieldSelector=metadata.name!%3Dop&continue=MSBr", `{"preconditions":{"uid":null}}`, "", "application/json")
	f.Fuzz(func(t *testing.T, method, target, body, accept, contentType string) {
		for _, s := range []string{method, target} {
			if s == "" || strings.ContainsFunc(s, func(r rune) bool { return r <= ' ' || r > '~' }) {
				return
			}
		}
		e := memory.Start(engine.NewGoClock())
		defer e.Close()
		b := &bench{t, e, New(door.NewBackend(e, door.Options{}), Config{})}
		b.ask("POST", leases, held("op", "ann", 15)).expect(201)
		if strings.Contains(target, "watch") || strings.ContainsAny(method, "()<>@,;:\\\"/[]?={}") || strings.Contains(target, "#") {
			return // a watch ends in its own time
		}
		defer func() { // httptest panics for what no server would let in
			if r := recover(); r != nil && !strings.Contains(strings.ToLower(toText(r)), "invalid newrequest") {
				panic(r)
			}
		}()
		r := httptest.NewRequest(method, "/apis/coordination.k8s.io/v1/namespaces/ns"+target, strings.NewReader(body))
		r.Header.Set("Accept", accept)
		r.Header.Set("Content-Type", contentType)
		w := httptest.NewRecorder()
		b.door.ServeHTTP(w, r)
		if w.Code < 200 || w.Code > 599 || w.Code == 500 && !strings.Contains(w.Body.String(), "Status") {
			t.Errorf("%s %s is answered %d %s", method, target, w.Code, w.Body)
		}
		if err := e.Check(); err != nil {
			t.Errorf("the state contradicts itself: %v", err)
		}
	})
}

func toText(r any) string {
	switch r := r.(type) {
	case string:
		return r
	case error:
		return r.Error()
	}
	return ""
}
