package kubernetes

import (
	"strings"
	"testing"

	"github.com/leasehold/leasehold/internal/access/credential"
	"github.com/leasehold/leasehold/internal/audit"
	"github.com/leasehold/leasehold/internal/core"
	"github.com/leasehold/leasehold/internal/core/access"
)

// govern turns access on, for an admin and for ann, who is a member in one namespace of Kubernetes.
func (b *bench) govern() (root, ann string) {
	b.t.Helper()
	root, rootHash := credential.NewToken()
	ann, annHash := credential.NewToken()
	b.do(&core.ChangeAccess{Put: access.Items{
		Tokens: []*access.Token{{ID: "t1", Hash: rootHash, Principal: "root"}, {ID: "t2", Hash: annHash, Principal: "ann"}},
		Bindings: []*access.Binding{
			{Name: "admins", Role: "admin", Principal: "root", Namespace: "*"},
			{Name: "apps", Role: "member", Principal: "ann", Namespace: "default", Prefix: "kubernetes/ns/"},
		},
	}})
	return "Bearer " + root, "Bearer " + ann
}

func TestLogin(t *testing.T) {
	b := newBench(t, Config{Strict: parseSpaces("*")})
	b.ask("GET", leases, "", "Authorization", "rubbish").expect(200) // access is off
	root, ann := b.govern()
	got := b.ask("GET", leases, "").expect(401, `"reason":"Unauthorized"`, `"kind":"Status"`)
	if !strings.HasPrefix(got.header.Get("WWW-Authenticate"), "Bearer ") {
		t.Errorf("it is answered with %v", got.header)
	}
	b.ask("GET", "/apis", "").expect(401)
	b.ask("GET", "/apis", "", "Authorization", ann).expect(200)
	other := strings.Replace(leases, "/ns/", "/other/", 1)
	b.ask("POST", leases, held("op", "ann", 15), "Authorization", ann).expect(201, `"holderIdentity":"ann"`)
	b.ask("POST", other, held("op", "ann", 15), "Authorization", ann).expect(403, `"reason":"Forbidden"`, `leases.coordination.k8s.io is forbidden: `)
	b.ask("POST", other, held("op", "root", 15), "Authorization", root).expect(201)
	got = b.ask("GET", every, "", "Authorization", ann).expect(200, `"namespace":"ns"`)
	if strings.Contains(got.body, "other") {
		t.Errorf("ann sees %s", got.body)
	}
	b.ask("PATCH", leases+"/op", `{"spec":{"holderIdentity":"root"}}`, "Content-Type", mergePatch, "Authorization", root).expect(409, "strict")
	page, err := b.engine.Journal().Find(t.Context(), audit.Query{Kind: audit.Operation, Namespace: "default", Oldest: true, Limit: 100})
	if err != nil {
		t.Fatal(err)
	}
	var lines []string
	for _, l := range page.Lines {
		if l.Outcome == audit.OK {
			continue
		}
		lines = append(lines, l.Actor+" "+l.Verb+" "+l.Resource+" "+l.Outcome)
		if l.Door != doorName || l.Address == "" || l.Reason == "" {
			t.Errorf("the journal has %+v", l)
		}
	}
	want := []string{"ann put-record kubernetes/other/ denied", "root put-record kubernetes/ns/op held"}
	if strings.Join(lines, "|") != strings.Join(want, "|") {
		t.Errorf("the journal has %q, want %q", lines, want)
	}
}

// Nothing is made of the body of somebody who may not write what the path names.
func TestRightsAreJudgedBeforeTheBody(t *testing.T) {
	b := newBench(t, Config{})
	_, ann := b.govern()
	other := strings.Replace(leases, "/ns/", "/other/", 1)
	for _, c := range []struct{ method, path, contentType string }{
		{"POST", other, jsonType}, {"POST", other, yamlType}, {"PUT", other + "/op", jsonType}, {"DELETE", other + "/op", jsonType},
		{"DELETE", other, jsonType}, {"PATCH", other + "/op?fieldManager=m", applyPatch}, {"PATCH", other + "/op", jsonPatch},
		{"PATCH", other + "/op", mergePatch}, {"PATCH", other + "/op", strategicPatch},
	} {
		b.ask(c.method, c.path, "[", "Content-Type", c.contentType, "Authorization", ann).expect(403, "forbidden")
		own := strings.Replace(c.path, "/other/", "/ns/", 1)
		b.ask(c.method, own, "[", "Content-Type", c.contentType, "Authorization", ann).expect(400)
	}
}
