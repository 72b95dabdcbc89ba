package consul

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"github.com/leasehold/leasehold"
	"github.com/leasehold/leasehold/internal/core"
	"github.com/leasehold/leasehold/internal/door"
	"github.com/leasehold/leasehold/internal/door/doortest"
	"github.com/leasehold/leasehold/internal/engine/memory"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// A bench is a door to an engine in memory, which is checked at the end.
type bench struct {
	t       testing.TB
	engine  *memory.Engine
	backend *door.Backend
	door    *Door
}

func newBench(t testing.TB, config Config) *bench {
	t.Helper()
	e := doortest.StartMemory(t)
	b := door.NewBackend(e, door.Options{})
	return &bench{t, e, b, New(b, config)}
}

// inTime runs a test in virtual time.
func inTime(t *testing.T, test func(*testing.T, *bench)) {
	synctest.Test(t, func(t *testing.T) { test(t, newBench(t, Config{})) })
}

// A told is what the door said.
type told struct {
	t      testing.TB
	status int
	header http.Header
	body   string
}

// ask sends a request: "PUT /v1/kv/a?acquire=s" and a body.
func (b *bench) ask(what, body string, headers ...string) told {
	b.t.Helper()
	method, target, _ := strings.Cut(what, " ")
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

// is expects a whole body.
func (a told) is(body string) told {
	a.t.Helper()
	if a.status != 200 || a.body != body {
		a.t.Fatalf("the answer is %d %s, want %s", a.status, a.body, body)
	}
	return a
}

func (a told) index() string { return a.header.Get("X-Consul-Index") }

// open creates a session.
func (b *bench) open(body string) string {
	b.t.Helper()
	var made struct{ ID string }
	if err := json.Unmarshal([]byte(b.ask("PUT /v1/session/create", body).expect(200).body), &made); err != nil {
		b.t.Fatal(err)
	}
	return made.ID
}

// get reads a key, which must be there.
func (b *bench) get(key string) entry {
	b.t.Helper()
	var list []entry
	if err := json.Unmarshal([]byte(b.ask("GET /v1/kv/"+key, "").expect(200).body), &list); err != nil {
		b.t.Fatal(err)
	}
	return list[0]
}

// status is what the core knows of a resource.
func (b *bench) status(path string) (s leasehold.Status) {
	b.t.Helper()
	err := b.engine.Read(b.t.Context(), func(v core.View) { s = v.Status(leasehold.DefaultNamespace, path, 1) })
	if err != nil {
		b.t.Fatal(err)
	}
	return s
}

func (b *bench) do(command core.Command) core.Answer {
	b.t.Helper()
	answer, err := b.engine.Do(b.t.Context(), command)
	if err != nil {
		b.t.Fatal(err)
	}
	return answer
}

func TestLifeOfAKey(t *testing.T) {
	b := newBench(t, Config{})
	missing := b.ask("GET /v1/kv/a/b", "").expect(404)
	if missing.index() != "1" || missing.body != "" {
		t.Errorf("a key that is not there is answered %q at index %s", missing.body, missing.index())
	}
	b.ask("PUT /v1/kv/a/b?flags=42", "hello").is("true")
	got := b.ask("GET /v1/kv/a/b", "")
	got.is(`[{"LockIndex":0,"Key":"a/b","Flags":42,"Value":"aGVsbG8=","CreateIndex":2,"ModifyIndex":2}]`)
	for name, want := range map[string]string{
		"X-Consul-Index": "2", "X-Consul-Knownleader": "true", "X-Consul-Lastcontact": "0",
		"Content-Type": "application/json",
	} {
		if got.header.Get(name) != want {
			t.Errorf("%s is %q, want %q", name, got.header.Get(name), want)
		}
	}
	raw := b.ask("GET /v1/kv/a/b?raw", "").is("hello")
	if raw.header.Get("Content-Type") != "text/plain; charset=utf-8" || raw.header.Get("Content-Security-Policy") != "sandbox" {
		t.Errorf("a raw value has the headers %v", raw.header)
	}
	b.ask("PUT /v1/kv/a/c", "").is("true")
	b.ask("PUT /v1/kv/b", "x").is("true")
	if e := b.get("a/c"); e.Value != nil {
		t.Errorf("an empty value is %q", e.Value)
	}
	b.ask("GET /v1/kv/a/?recurse", "").expect(200, `"Key":"a/b"`, `"Key":"a/c","Flags":0,"Value":null`)
	b.ask("GET /v1/kv/a/?keys", "").is(`["a/b","a/c"]`)
	b.ask("GET /v1/kv/?keys&separator=/", "").is(`["a/","b"]`)
	b.ask("GET /v1/kv/?keys&seperator=/", "").is(`["a/","b"]`)
	b.ask("GET /v1/kv/none?keys", "").expect(404)
	b.ask("GET /v1/kv/none?recurse", "").expect(404)
	b.ask("DELETE /v1/kv/a/?recurse", "").is("true")
	b.ask("DELETE /v1/kv/b", "").is("true")
	b.ask("DELETE /v1/kv/b", "").is("true")
	b.ask("GET /v1/kv/?keys", "").is(`[]`)
}

func TestCAS(t *testing.T) {
	b := newBench(t, Config{})
	b.ask("PUT /v1/kv/a?cas=0", "1").is("true")
	b.ask("PUT /v1/kv/a?cas=0", "2").is("false")
	b.ask("PUT /v1/kv/a?cas=1", "2").is("false")
	index := b.get("a").ModifyIndex
	b.ask(fmt.Sprintf("PUT /v1/kv/a?cas=%d", index+1), "2").is("false")
	b.ask(fmt.Sprintf("PUT /v1/kv/a?cas=%d", index), "2").is("true")
	b.ask(fmt.Sprintf("PUT /v1/kv/a?cas=%d", index), "3").is("false")
	b.ask(fmt.Sprintf("PUT /v1/kv/none?cas=%d", index), "3").is("false")
	if e := b.get("a"); string(e.Value) != "2" || e.CreateIndex != index {
		t.Errorf("the key is %+v", e)
	}
	b.ask(fmt.Sprintf("DELETE /v1/kv/a?cas=%d", index), "").is("false")
	b.ask("DELETE /v1/kv/a?cas=0", "").is("false")
	b.ask(fmt.Sprintf("DELETE /v1/kv/a?cas=%d", b.get("a").ModifyIndex), "").is("true")
	b.ask("DELETE /v1/kv/a?cas=0", "").is("true")
	b.ask("DELETE /v1/kv/a?cas=7", "").is("true")
}

func TestWrongRequests(t *testing.T) {
	b := newBench(t, Config{})
	s := b.open("")
	for _, c := range []struct {
		what, body string
		status     int
		text       string
	}{
		{"GET /v1/kv/", "", 400, "Missing key name"},
		{"PUT /v1/kv/", "", 400, "Missing key name"},
		{"DELETE /v1/kv/", "", 400, "Missing key name"},
		{"POST /v1/kv/a", "", 405, "method POST not allowed"},
		{"PUT /v1/kv/a?cas=1&acquire=" + s, "", 400, "Conflicting flags: acquire="},
		{"DELETE /v1/kv/a?cas=1&recurse", "", 400, "Conflicting flags: "},
		{"PUT /v1/kv/a?flags=x", "", 500, `strconv.ParseUint: parsing "x": invalid syntax`},
		{"PUT /v1/kv/a?cas=-1", "", 500, `strconv.ParseUint: parsing "-1": invalid syntax`},
		{"PUT /v1/kv/a?acquire=deadbeef", "", 500, `invalid session "deadbeef"`},
		{"PUT /v1/kv/a?acquire=", "", 500, "missing session"},
		{"PUT /v1/kv/a?release=", "", 500, "missing session"},
		{"GET /v1/kv/a?index=x", "", 400, "Invalid index"},
		{"GET /v1/kv/a?wait=x", "", 400, "Invalid wait time"},
		{"GET /v1/kv/a?stale&consistent", "", 400, "Cannot specify ?stale with ?consistent"},
		{"GET /v1/kv/a?dc=dc2", "", 500, "No path to datacenter"},
		{"GET /v1/kv/a?ns=team", "", 400, "Namespaces are a Consul Enterprise feature"},
		{"GET /v1/kv/%20a", "", 500, "leading/trailing spaces are not allowed"},
		{"GET /v1/kv/../a", "", 500, "path traversal is not allowed"},
		{"GET /v1/kv/" + strings.Repeat("k", 1025), "", 400, "too long"},
		{"PUT /v1/kv/a", strings.Repeat("v", 512<<10+1), 413, "Request body(524289 bytes) too large, max size: 524288 bytes."},
		{"GET /v1/nothing", "", 404, "not a recognized HTTP API endpoint"},
		{"GET /v1/snapshot", "", 404, "leasehold backup"},
		{"GET /v1/acl/tokens", "", 404, "leasehold access"},
		{"PUT /v1/session/create", `{"TTL":"5s"}`, 500, "Invalid Session TTL '5000000000', must be between [10s=24h0m0s]"},
		{"PUT /v1/session/create", `{"TTL":"x"}`, 500, `Session TTL 'x' invalid: time: invalid duration "x"`},
		{"PUT /v1/session/create", `{"Behavior":"keep"}`, 500, "Invalid Behavior setting 'keep'"},
		{"PUT /v1/session/create", `{"Node":"other"}`, 500, "Missing node registration"},
		{"PUT /v1/session/create", `{"NodeChecks":["mine"]}`, 500, "Missing check 'mine' registration"},
		{"PUT /v1/session/create", `{"Checks":["mine"]}`, 500, "Missing check 'mine' registration"},
		{"PUT /v1/session/create", `{"Name":1}`, 400, "Request decode failed: "},
		{"PUT /v1/session/create", `{"LockDelay":"x"}`, 400, "Request decode failed: "},
		{"PUT /v1/session/create", `{`, 400, "Request decode failed: "},
		{"PUT /v1/session/destroy/", "", 400, "Missing session"},
		{"PUT /v1/session/renew/", "", 400, "Missing session"},
		{"PUT /v1/session/renew/none", "", 404, "Session id 'none' not found"},
		{"GET /v1/session/info/", "", 400, "Missing session"},
		{"GET /v1/session/node/", "", 400, "Missing node name"},
	} {
		got := b.ask(c.what, c.body)
		if got.status != c.status || !strings.Contains(got.body, c.text) {
			t.Errorf("%.60s %.60s is answered %d %.200s, want %d %s", c.what, c.body, got.status, got.body, c.status, c.text)
		}
	}
	// Patroni looks how it begins.
	if got := b.ask("PUT /v1/kv/a?acquire=none", ""); !strings.HasPrefix(got.body, "invalid session") {
		t.Errorf("the answer begins otherwise: %s", got.body)
	}
}

func TestLifeOfASession(t *testing.T) {
	inTime(t, func(t *testing.T, b *bench) {
		id := b.open(`{"Name":"web","TTL":"15s","LockDelay":"7s","Behavior":"delete"}`)
		want := `[{"ID":"` + id + `","Name":"web","Node":"leasehold","LockDelay":7000000000,"Behavior":"delete","TTL":"15s",` +
			`"NodeChecks":["serfHealth"],"ServiceChecks":null,"CreateIndex":1,"ModifyIndex":1}]`
		b.ask("GET /v1/session/info/"+id, "").is(want)
		b.ask("GET /v1/session/list", "").is(want)
		b.ask("GET /v1/session/node/leasehold", "").is(want)
		b.ask("GET /v1/session/node/other", "").is("[]")
		for range 3 {
			time.Sleep(29 * time.Second) // just under twice its TTL
			b.ask("PUT /v1/session/renew/"+id, "").is(want)
		}
		time.Sleep(31 * time.Second)
		b.ask("GET /v1/session/info/"+id, "").is("[]")
		b.ask("PUT /v1/session/renew/"+id, "").expect(404)
		b.ask("PUT /v1/session/destroy/"+id, "").is("true")
		b.ask("PUT /v1/session/destroy/none", "").is("true")
	})
}

func TestLockDelaysAreReadAsConsulDoes(t *testing.T) {
	b := newBench(t, Config{})
	for body, want := range map[string]string{
		`{}`: "15000000000", `{"LockDelay":"15000ms"}`: "15000000000", `{"LockDelay":20}`: "20000000000",
		`{"LockDelay":5000000000}`: "5000000000", `{"LockDelay":"2m"}`: "60000000000", `{"LockDelay":0}`: "0",
		`{"LockDelay":"0.001s"}`: "1000000", `{"LockDelay":-3}`: "0", `{"LockDelay":1e300}`: "60000000000",
		`{"lockdelay":"3s"}`: "3000000000", `{"LockDelay":null}`: "15000000000",
	} {
		b.ask("GET /v1/session/info/"+b.open(body), "").expect(200, `"LockDelay":`+want+`,`)
	}
}

func TestExactSessionsEndAtTheirTTL(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, Config{Exact: true})
		id := b.open(`{"TTL":"10s"}`)
		time.Sleep(9 * time.Second)
		b.ask("GET /v1/session/info/"+id, "").expect(200, id)
		time.Sleep(2 * time.Second)
		b.ask("GET /v1/session/info/"+id, "").is("[]")
	})
}

// A session without a TTL lasts, as long as a server looks after it.
func TestSessionsWithoutTTLLast(t *testing.T) {
	inTime(t, func(t *testing.T, b *bench) {
		kept, short := b.open(""), b.open(`{"TTL":"24h"}`)
		b.ask("PUT /v1/kv/a?acquire="+kept, "").is("true")
		for range 40 {
			time.Sleep(24 * time.Hour)
			b.door.renewLasting()
		}
		b.ask("GET /v1/session/info/"+kept, "").expect(200, kept)
		b.ask("GET /v1/session/info/"+short, "").is("[]")
		if b.get("a").Session != kept {
			t.Error("the lock was lost")
		}
	})
}
