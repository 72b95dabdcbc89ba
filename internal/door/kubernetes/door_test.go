package kubernetes

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"github.com/leasehold/leasehold"
	"github.com/leasehold/leasehold/internal/core"
	"github.com/leasehold/leasehold/internal/door"
	"github.com/leasehold/leasehold/internal/door/doortest"
	"github.com/leasehold/leasehold/internal/door/kubernetes/object"
	"github.com/leasehold/leasehold/internal/engine/memory"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// A bench is a door to an engine in memory, which is checked at the end.
type bench struct {
	t      testing.TB
	engine *memory.Engine
	door   http.Handler
}

func newBench(t testing.TB, config Config) *bench {
	t.Helper()
	e := doortest.StartMemory(t)
	return &bench{t, e, New(door.NewBackend(e, door.Options{}), config)}
}

// An told is what the door said.
type told struct {
	t      testing.TB
	status int
	header http.Header
	body   string
}

const (
	leases = "/apis/coordination.k8s.io/v1/namespaces/ns/leases"
	every  = "/apis/coordination.k8s.io/v1/leases"
)

func (b *bench) ask(method, target, body string, headers ...string) told {
	b.t.Helper()
	r := httptest.NewRequest(method, target, strings.NewReader(body))
	for i := 0; i < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	w := httptest.NewRecorder()
	b.door.ServeHTTP(w, r)
	return told{b.t, w.Code, w.Header(), w.Body.String()}
}

func (a told) expect(status int, texts ...string) told {
	a.t.Helper()
	if a.status != status {
		a.t.Fatalf("the status is %d, want %d: %s", a.status, status, a.body)
	}
	for _, text := range texts {
		if !strings.Contains(a.body, text) {
			a.t.Errorf("the answer has no %q: %s", text, a.body)
		}
	}
	return a
}

// lease reads the object in an answer.
func (a told) lease() *object.Lease {
	a.t.Helper()
	tree, _, err := object.ParseTree([]byte(a.body))
	if err != nil {
		a.t.Fatal(err, a.body)
	}
	l, _, err := object.FromTree(tree)
	if err != nil {
		a.t.Fatal(err, a.body)
	}
	return l
}

// put writes an object as an elector does: all of it, as it was read.
func (b *bench) put(l *object.Lease) told {
	b.t.Helper()
	text, err := l.JSON()
	if err != nil {
		b.t.Fatal(err)
	}
	return b.ask("PUT", leases+"/"+l.Meta.Name, string(text))
}

func (b *bench) get(name string) *object.Lease {
	b.t.Helper()
	return b.ask("GET", leases+"/"+name, "").expect(200).lease()
}

// held is an object with a holder.
func held(name, holder string, seconds int) string {
	return fmt.Sprintf(`{"metadata":{"name":%q},"spec":{"holderIdentity":%q,"leaseDurationSeconds":%d}}`, name, holder, seconds)
}

func (b *bench) status(name string) (s leasehold.Status) {
	b.t.Helper()
	err := b.engine.Read(b.t.Context(), func(v core.View) {
		s = v.Status(leasehold.DefaultNamespace, "kubernetes/ns/"+name, 0)
	})
	if err != nil {
		b.t.Fatal(err)
	}
	return s
}

// holder is who holds the resource of an object, past the door; empty: nobody.
func (b *bench) holder(name string) string {
	b.t.Helper()
	if s := b.status(name); len(s.Holders) == 1 {
		return s.Holders[0].Holder
	}
	return ""
}

func TestLifeOfALease(t *testing.T) {
	b := newBench(t, Config{})
	b.ask("GET", leases+"/op", "").expect(404, `"reason":"NotFound"`,
		`"message":"leases.coordination.k8s.io \"op\" not found"`,
		`"details":{"name":"op","group":"coordination.k8s.io","kind":"leases"}`, `"code":404`)
	made := b.ask("POST", leases, held("op", "ann", 15)).expect(201).lease()
	if made.Meta.UID == "" || made.Meta.ResourceVersion == "" || made.Meta.Created.IsZero() || made.Meta.Namespace != "ns" {
		t.Errorf("the server filled in %+v", made.Meta)
	}
	token := made.Meta.Annotations[tokenKey]
	if token == "" || b.holder("op") != "ann" {
		t.Errorf("%s holds it, with the token %q", b.holder("op"), token)
	}
	b.ask("POST", leases, held("op", "bob", 15)).expect(409, `"reason":"AlreadyExists"`,
		`leases.coordination.k8s.io \"op\" already exists`)

	// A renewal, which keeps the token.
	renewed := made.Clone()
	renewed.Spec.Transitions = new(int32(0))
	got := b.put(renewed).expect(200).lease()
	if got.Meta.ResourceVersion == made.Meta.ResourceVersion || got.Meta.Annotations[tokenKey] != token ||
		got.Meta.UID != made.Meta.UID || got.Meta.Created != made.Meta.Created {
		t.Errorf("renewed as %+v after %+v", got.Meta, made.Meta)
	}
	b.put(renewed).expect(409, `"reason":"Conflict"`, `Operation cannot be fulfilled on leases.coordination.k8s.io \"op\": `+
		`the object has been modified; please apply your changes to the latest version and try again`)

	// Another takes over, which only the version forbids; the token that it sends means nothing.
	taken := got.Clone()
	taken.Spec.Holder, taken.Spec.Transitions = new("bob"), new(int32(1))
	taken.Annotate(tokenKey, "999999")
	taken = b.put(taken).expect(200).lease()
	if next := taken.Meta.Annotations[tokenKey]; next <= token || b.holder("op") != "bob" || next == "999999" {
		t.Errorf("%s holds it, with the token %s after %s", b.holder("op"), next, token)
	}

	// It gives the lease back.
	taken.Spec.Holder, taken.Spec.DurationSeconds = new(""), new(int32(1))
	free := b.put(taken).expect(200).lease()
	if b.holder("op") != "" || free.Meta.Annotations[tokenKey] != "" || free.Spec.HolderName() != "" {
		t.Errorf("%q still holds it: %+v", b.holder("op"), free)
	}
	uid := free.Meta.UID
	b.ask("DELETE", leases+"/op", `{"propagationPolicy":"Background"}`).expect(200, `"status":"Success"`, `"uid":"`+uid+`"`)
	b.ask("DELETE", leases+"/op", "").expect(404)
	b.put(free).expect(409, "Precondition failed: UID in precondition: "+uid+", UID in object meta: ")
}

func TestWhatIsRefused(t *testing.T) {
	b := newBench(t, Config{})
	made := b.ask("POST", leases, held("op", "ann", 15)).expect(201).lease()
	for _, c := range []struct {
		name, method, target, body string
		status                     int
		want                       string
	}{
		{"no version", "PUT", "/op", held("op", "ann", 15), 422, `leases.coordination.k8s.io \"op\" is invalid: ` +
			`metadata.resourceVersion: Invalid value: 0: must be specified for an update`},
		{"duration", "POST", "", held("x", "ann", 0), 422, `Lease.coordination.k8s.io \"x\" is invalid: ` +
			`spec.leaseDurationSeconds: Invalid value: 0: must be greater than 0`},
		{"transitions", "POST", "", `{"metadata":{"name":"x"},"spec":{"leaseTransitions":-1}}`, 422,
			`spec.leaseTransitions: Invalid value: -1: must be greater than or equal to 0`},
		{"no name", "POST", "", `{"spec":{}}`, 422, `metadata.name: Required value: name or generateName is required`},
		{"bad name", "POST", "", `{"metadata":{"name":"X"}}`, 422, `a lowercase RFC 1123 subdomain must consist of`},
		{"bad label", "POST", "", `{"metadata":{"name":"x","labels":{"a":"b c"}}}`, 422, `metadata.labels: Invalid value: \"b c\"`},
		{"other name", "PUT", "/op", held("other", "ann", 15), 400, `the name of the object (other) does not match the name on the URL (op)`},
		{"other namespace", "POST", "", `{"metadata":{"name":"x","namespace":"other"}}`, 400,
			`the namespace of the provided object does not match the namespace sent on the request`},
		{"version on create", "POST", "", `{"metadata":{"name":"x","resourceVersion":"1"}}`, 400, `resourceVersion should not be set`},
		{"other uid", "PUT", "/op", `{"metadata":{"name":"op","uid":"u","resourceVersion":"` + made.Meta.ResourceVersion + `"}}`, 409,
			`UID in precondition: u, UID in object meta: ` + made.Meta.UID},
		{"no JSON", "POST", "", `{"metadata":`, 400, `cannot be handled as a Lease`},
		{"wrong type", "POST", "", `{"metadata":{"name":"x"},"spec":{"leaseDurationSeconds":"15"}}`, 400,
			`spec.leaseDurationSeconds has to be a number`},
		{"other kind", "POST", "", `{"kind":"Pod","metadata":{"name":"x"}}`, 400, `a Lease of coordination.k8s.io/v1 is wanted`},
		{"too large", "POST", "", `{"metadata":{"name":"x","annotations":{"a":"` + strings.Repeat("x", 70<<10) + `"}}}`, 413, "Request entity too large"},
		{"unknown method", "POST", "/op", `{}`, 405, `"reason":"MethodNotAllowed"`},
		{"unknown resource", "GET", "/../pods", "", 404, `the server could not find the requested resource`},
		{"strictly unknown", "POST", "?fieldValidation=Strict", `{"metadata":{"name":"x"},"spec":{"bogus":1},"more":2}`, 400,
			`strict decoding error: unknown field \"more\", unknown field \"spec.bogus\"`},
		{"strictly twice", "POST", "?fieldValidation=Strict", `{"metadata":{"name":"x","name":"y"}}`, 400,
			`strict decoding error: duplicate field \"metadata.name\"`},
		{"bad validation", "POST", "?fieldValidation=Hard", `{"metadata":{"name":"x"}}`, 422, `fieldValidation: Unsupported value`},
	} {
		got := b.ask(c.method, leases+c.target, c.body)
		if got.status != c.status || !strings.Contains(got.body, c.want) || !strings.Contains(got.body, `"kind":"Status"`) {
			t.Errorf("%s: %d %s\nwant %d %s", c.name, got.status, got.body, c.status, c.want)
		}
	}
	b.ask("POST", leases, "x", "Content-Type", "application/cbor").expect(415, `"reason":"UnsupportedMediaType"`)
	b.ask("GET", leases, "", "Accept", "application/cbor").expect(406, `"reason":"NotAcceptable"`)
	got := b.ask("POST", leases, `{"metadata":{"name":"warned"},"spec":{"bogus":1}}`).expect(201)
	if w := got.header.Get("Warning"); w != `299 - "unknown field \"spec.bogus\""` {
		t.Errorf("the warning is %q", w)
	}
	if b.holder("op") != "ann" {
		t.Errorf("%q holds it", b.holder("op"))
	}
}

func TestJSONOfAnObject(t *testing.T) {
	b := newBench(t, Config{})
	body := `{"kind":"Lease","apiVersion":"coordination.k8s.io/v1","metadata":{"name":"op","namespace":"ns","uid":"mine",` +
		`"creationTimestamp":"2001-01-01T00:00:00Z","labels":{"b":"2","a":"1"},"annotations":{"k":"<v>"},` +
		`"ownerReferences":[{"apiVersion":"v1","kind":"Node","name":"n","uid":"u","controller":true}]},` +
		`"spec":{"holderIdentity":"ann","leaseDurationSeconds":15,"acquireTime":"2026-01-02T03:04:05.678901Z",` +
		`"renewTime":"2026-01-02T03:04:05.000000Z","leaseTransitions":0,"strategy":"OldestEmulationVersion"}}`
	l := b.ask("POST", leases, body).expect(201).lease()
	var got map[string]any
	if err := json.Unmarshal([]byte(b.ask("GET", leases+"/op", "").expect(200).body), &got); err != nil {
		t.Fatal(err)
	}
	meta := got["metadata"].(map[string]any)
	for _, key := range []string{"uid", "creationTimestamp", "resourceVersion"} {
		if meta[key] == "" || meta[key] == "mine" {
			t.Errorf("%s is %v", key, meta[key])
		}
		delete(meta, key)
	}
	text, _ := json.Marshal(got)
	want := `{"apiVersion":"coordination.k8s.io/v1","kind":"Lease","metadata":{"annotations":{"k":"\u003cv\u003e",` +
		`"leasehold/token":"` + l.Meta.Annotations[tokenKey] + `"},"labels":{"a":"1","b":"2"},"name":"op","namespace":"ns","ownerReferences":[` +
		`{"apiVersion":"v1","controller":true,"kind":"Node","name":"n","uid":"u"}]},"spec":{"acquireTime":"2026-01-02T03:04:05.678901Z",` +
		`"holderIdentity":"ann","leaseDurationSeconds":15,"leaseTransitions":0,"renewTime":"2026-01-02T03:04:05.000000Z"}}`
	if string(text) != want {
		t.Errorf("got  %s\nwant %s", text, want)
	}
}
