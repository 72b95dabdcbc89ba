package terraform

import (
	"crypto/md5"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"github.com/leasehold/leasehold"
	"github.com/leasehold/leasehold/internal/audit"
	"github.com/leasehold/leasehold/internal/core"
	"github.com/leasehold/leasehold/internal/door"
	"github.com/leasehold/leasehold/internal/door/doortest"
	"github.com/leasehold/leasehold/internal/engine"
	"github.com/leasehold/leasehold/internal/engine/memory"
	"github.com/leasehold/leasehold/internal/tfstate"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// A bench is a door to an engine in memory, which is checked at the end.
type bench struct {
	t      testing.TB
	engine *memory.Engine
	door   http.Handler
}

func newBench(t testing.TB) *bench {
	t.Helper()
	e := doortest.StartMemory(t)
	return &bench{t, e, newDoor(e)}
}

func newDoor(e engine.Engine) *Door {
	return New(door.NewBackend(e, door.Options{}), Config{})
}

// An answer is what the door said.
type answer struct {
	t      testing.TB
	status int
	header http.Header
	body   string
}

func (b *bench) ask(method, target, body string, headers ...string) answer {
	b.t.Helper()
	r := httptest.NewRequest(method, target, strings.NewReader(body))
	for i := 0; i < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	w := httptest.NewRecorder()
	b.door.ServeHTTP(w, r)
	return answer{b.t, w.Code, w.Header(), w.Body.String()}
}

func (a answer) expect(status int, texts ...string) answer {
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

func (b *bench) do(command core.Command) core.Answer {
	b.t.Helper()
	a, err := b.engine.Do(b.t.Context(), command)
	if err != nil {
		b.t.Fatal(err)
	}
	return a
}

func (b *bench) status(state string) (s leasehold.Status) {
	b.t.Helper()
	if err := b.engine.Read(b.t.Context(), func(v core.View) { s = v.Status("default", tfstate.Path(state), 100) }); err != nil {
		b.t.Fatal(err)
	}
	return s
}

// info is the body of a LOCK as Terraform sends it.
func info(id string) string {
	return fmt.Sprintf(`{"ID":%q,"Operation":"OperationTypeApply","Info":"","Who":"ann@ci-42","Version":"1.11.4","Created":"2026-01-02T03:04:05.678Z","Path":""}`, id)
}

// state is a state with some resources in it.
func state(serial int, lineage, more string) string {
	return fmt.Sprintf(`{
  "version": 4,
  "terraform_version": "1.11.4",
  "serial": %d,
  "lineage": %q,
  "outputs": {},
  "resources": [%s],
  "check_results": null
}`, serial, lineage, more)
}

func md5Of(body string) string {
	sum := md5.Sum([]byte(body))
	return base64.StdEncoding.EncodeToString(sum[:])
}

func TestLockWriteUnlock(t *testing.T) {
	b := newBench(t)
	b.ask("GET", "/terraform/prod/net", "").expect(204)
	b.ask("LOCK", "/terraform/prod/net", info("id-1")).expect(200, `"ID":"id-1"`)
	s := b.status("prod/net")
	if len(s.Holders) != 1 || s.Holders[0].Foreign != "id-1" || s.Holders[0].Holder != "ann@ci-42" || s.Holders[0].Reason != "apply" || !s.Holders[0].Expires.IsZero() {
		t.Errorf("the lock is %+v", s.Holders)
	}
	one := state(1, "L", "")
	b.ask("POST", "/terraform/prod/net?ID=id-1", one, "Content-MD5", md5Of(one), "Content-Type", "application/json").expect(200)
	got := b.ask("GET", "/terraform/prod/net", "").expect(200)
	if got.body != one || got.header.Get("Content-Length") != fmt.Sprint(len(one)) {
		t.Errorf("the state came back as %q", got.body)
	}
	b.ask("UNLOCK", "/terraform/prod/net", info("id-1")).expect(200)
	if s := b.status("prod/net"); len(s.Holders) != 0 || s.Last.How != leasehold.Released {
		t.Errorf("after the unlock: %+v", s)
	}
}

func TestLockIsIdempotent(t *testing.T) {
	b := newBench(t)
	for range 12 {
		b.ask("LOCK", "/terraform/s", info("mine")).expect(200)
	}
	s := b.status("s")
	if len(s.Holders) != 1 || s.Holders[0].Token != 1 {
		t.Fatalf("the lock is %+v", s.Holders)
	}
	b.ask("POST", "/terraform/s?ID=mine", state(1, "L", "")).expect(200)
	b.ask("LOCK", "/terraform/s", info("other")).expect(423)
	for range 3 {
		b.ask("UNLOCK", "/terraform/s", info("mine")).expect(200)
	}
	// A copy of the request for it that comes late must not leave an orphan.
	b.ask("LOCK", "/terraform/s", info("mine")).expect(409, "late copy")
	b.ask("LOCK", "/terraform/s", info("other")).expect(200)
	b.ask("UNLOCK", "/terraform/s", info("mine")).expect(200)
	if s := b.status("s"); len(s.Holders) != 1 || lockOf(&s.Holders[0]) != "other" {
		t.Errorf("a repeated unlock has freed another's lock: %+v", s.Holders)
	}
}

func TestContentionTellsWho(t *testing.T) {
	b := newBench(t)
	b.ask("LOCK", "/terraform/s", info("mine")).expect(200)
	a := b.ask("LOCK", "/terraform/s", info("other")).expect(423)
	var told tfstate.LockInfo
	if err := json.Unmarshal([]byte(a.body), &told); err != nil {
		t.Fatal(err)
	}
	if !strings.HasPrefix(told.ID, "mine (ann@ci-42, apply, since ") || told.Who != "ann@ci-42" || told.Created != "2026-01-02T03:04:05.678Z" || told.Operation != "OperationTypeApply" {
		t.Errorf("the holder is told as %+v", told)
	}
	if !strings.HasPrefix(a.body, `{"ID":`) || a.header.Get(lockHeader) != "mine" {
		t.Errorf("the answer is %s with %v", a.body, a.header)
	}
	// From 1.15 on Terraform shows all of it, and the ID is alone.
	newer := strings.Replace(info("other"), "1.11.4", "1.15.0", 1)
	b.ask("LOCK", "/terraform/s", newer).expect(423, `"ID":"mine",`, `"Info":"ann@ci-42, apply, since `)
	// What was shown is accepted back.
	b.ask("UNLOCK", "/terraform/s", info(told.ID)).expect(200)
}

func TestUnlockNeedsTheID(t *testing.T) {
	b := newBench(t)
	b.ask("LOCK", "/terraform/s", info("mine")).expect(200)
	b.ask("UNLOCK", "/terraform/s", info("other")).expect(423, `"ID":"mine (`)
	b.ask("UNLOCK", "/terraform/s?ID=other", "").expect(423)
	b.ask("UNLOCK", "/terraform/s?ID=other", info("mine")).expect(400)
	b.ask("UNLOCK", "/terraform/s", `{"Who":"x"}`).expect(400)
	if s := b.status("s"); len(s.Holders) != 1 {
		t.Fatal("another's id has freed the lock")
	}
	b.ask("UNLOCK", "/terraform/free", info("other")).expect(409)
}

func TestForceUnlockIsABreak(t *testing.T) {
	b := newBench(t)
	b.ask("UNLOCK", "/terraform/s", "", "Content-MD5", md5Of("")).expect(200)
	b.ask("LOCK", "/terraform/s", info("mine")).expect(200)
	b.ask("UNLOCK", "/terraform/s", "", "Content-MD5", md5Of("")).expect(200)
	s := b.status("s")
	if len(s.Holders) != 0 || s.Last.How != leasehold.ByBreak || s.Last.By != "force-unlock" || !strings.Contains(s.Last.Reason, "terraform force-unlock from") {
		t.Errorf("after it: %+v", s.Last)
	}
	page, err := b.engine.Journal().Find(t.Context(), audit.Query{Kind: audit.Operation, Namespace: "default", Verb: "break", Limit: 10})
	if err != nil || len(page.Lines) != 1 || page.Lines[0].Door != "terraform" || page.Lines[0].Resource != "terraform/s" {
		t.Errorf("the audit has %+v, %v", page.Lines, err)
	}
	// Its holder is late with everything.
	b.ask("POST", "/terraform/s?ID=mine", state(1, "L", "")).expect(409)
	b.ask("UNLOCK", "/terraform/s", info("mine")).expect(409)
}

func TestWritesNeedTheLock(t *testing.T) {
	b := newBench(t)
	// Without a lock anybody may write who says nothing of one.
	b.ask("POST", "/terraform/s", state(1, "L", "")).expect(200)
	b.ask("POST", "/terraform/s?ID=never", state(2, "L", "")).expect(409)
	b.ask("LOCK", "/terraform/s", info("mine")).expect(200)
	b.ask("POST", "/terraform/s", state(2, "L", "")).expect(423)
	b.ask("POST", "/terraform/s?ID=other", state(2, "L", "")).expect(423, `"ID":"mine`)
	b.ask("DELETE", "/terraform/s", "").expect(423)
	b.ask("DELETE", "/terraform/s?ID=other", "").expect(423)
	b.ask("GET", "/terraform/s", "").expect(200, `"serial": 1,`)
	b.ask("POST", "/terraform/s?ID=mine", state(2, "L", "")).expect(200)
	b.do(&core.Break{Namespace: "default", Resource: "terraform/s", Token: 1, By: "oscar", Reason: "stuck"})
	b.ask("POST", "/terraform/s?ID=mine", state(3, "L", "")).expect(409)
	b.ask("LOCK", "/terraform/s", info("next")).expect(200)
	b.ask("POST", "/terraform/s?ID=mine", state(3, "L", "")).expect(423)
	// What was written before the break is not refused afterwards.
	b.ask("POST", "/terraform/s?ID=mine", state(2, "L", "")).expect(200)
	b.ask("POST", "/terraform/s?ID=next", state(3, "L", "x")).expect(400)
	b.ask("POST", "/terraform/s?ID=next", state(3, "L", "1")).expect(200)
	// But what somebody else wrote is not what it wrote, be it the same.
	b.ask("POST", "/terraform/s?ID=mine", state(3, "L", "1")).expect(423)
}

func TestWritesAreRepeatable(t *testing.T) {
	b := newBench(t)
	b.ask("LOCK", "/terraform/s", info("mine")).expect(200)
	for range 3 {
		b.ask("POST", "/terraform/s?ID=mine", state(1, "L", "")).expect(200)
	}
	var page tfstate.Page[tfstate.Version]
	read(b.ask("GET", "/terraform/s?versions", "").expect(200), &page)
	if len(page.Items) != 1 || page.Items[0].Serial != 1 || page.Items[0].Holder != "ann@ci-42" || !page.Items[0].Current {
		t.Errorf("the versions are %+v", page.Items)
	}
}

func read(a answer, into any) {
	a.t.Helper()
	if err := json.Unmarshal([]byte(a.body), into); err != nil {
		a.t.Fatalf("%v: %s", err, a.body)
	}
}

func TestSerialAndLineage(t *testing.T) {
	b := newBench(t)
	b.ask("LOCK", "/terraform/s", info("mine")).expect(200)
	b.ask("POST", "/terraform/s?ID=mine", state(5, "L", "")).expect(200)
	b.ask("POST", "/terraform/s?ID=mine", state(4, "L", "")).expect(409, "serial 5")
	b.ask("POST", "/terraform/s?ID=mine", state(6, "M", "")).expect(409, "lineage")
	b.ask("POST", "/terraform/s?ID=mine&force=true", state(4, "M", "")).expect(200)
	b.ask("POST", "/terraform/s?ID=mine", state(3, "M", ""), "Leasehold-Force", "true").expect(200)
	// Under the lock the same serial may be written again; without one it is a lost update.
	b.ask("POST", "/terraform/s?ID=mine", state(3, "M", "1")).expect(200)
	b.ask("UNLOCK", "/terraform/s", info("mine")).expect(200)
	b.ask("POST", "/terraform/s", state(3, "M", "2")).expect(409, "at the same time")
	b.ask("POST", "/terraform/s", state(3, "M", "1")).expect(200)
	b.ask("POST", "/terraform/s", state(4, "M", "2")).expect(200)
}

func TestBadInput(t *testing.T) {
	b := newBench(t)
	b.ask("LOCK", "/terraform/s", info("mine")).expect(200)
	b.ask("POST", "/terraform/s?ID=mine", state(1, "L", "")).expect(200)
	large := strings.Repeat("x", 5000)
	for _, test := range []struct {
		name, method, target, body string
		headers                    []string
		status                     int
		text                       string
	}{
		{"no JSON", "POST", "s?ID=mine", "hello", nil, 400, "not a state"},
		{"nothing", "POST", "s?ID=mine", "", nil, 400, "end too early"},
		{"a list", "POST", "s?ID=mine", "[]", nil, 400, "no object"},
		{"half of it", "POST", "s?ID=mine", state(2, "L", "")[:40], nil, 400, "end too early"},
		{"two of them", "POST", "s?ID=mine", state(2, "L", "") + "{}", nil, 400, "after the end"},
		{"no serial", "POST", "s?ID=mine", `{"version":4,"lineage":"L"}`, nil, 400, "no serial"},
		{"a serial below zero", "POST", "s?ID=mine", `{"version":4,"lineage":"L","serial":-1}`, nil, 400, "no serial"},
		{"two serials", "POST", "s?ID=mine", `{"version":4,"lineage":"L","serial":1,"serial":2}`, nil, 400, "twice"},
		{"no lineage", "POST", "s?ID=mine", `{"version":4,"serial":2}`, nil, 400, "no lineage"},
		{"no version", "POST", "s?ID=mine", `{"serial":2,"lineage":"L"}`, nil, 400, "no version"},
		{"a lock info", "PUT", "s?ID=mine", info("mine"), nil, 400, "no serial"},
		{"another MD5", "POST", "s?ID=mine", state(2, "L", ""), []string{"Content-MD5", md5Of("x")}, 400, "damaged"},
		{"no MD5", "POST", "s?ID=mine", state(2, "L", ""), []string{"Content-MD5", "x"}, 400, "base64"},
		{"a wrong query", "POST", "s?Id=mine", state(2, "L", ""), nil, 400, "unknown here"},
		{"an ID twice", "POST", "s?ID=mine&ID=mine", state(2, "L", ""), nil, 400, "2 times"},
		{"a wrong version", "GET", "s?version=x", "", nil, 400, "version"},
		{"a version that is gone", "GET", "s?version=999", "", nil, 404, "no version"},
		{"an empty segment", "GET", "a%2F%2Fb", "", nil, 400, "between slashes"},
		{"dots", "GET", "a%2F..%2Fb", "", nil, 400, "between slashes"},
		{"a control character", "GET", "a%00b", "", nil, 400, "control"},
		{"no name", "POST", "", state(1, "L", ""), nil, 400, "names no state"},
		{"a state called lock", "GET", "a/lock/lock", "", nil, 400, "last segment cannot be lock"},
		{"no verb", "PATCH", "s", "", nil, 405, "LOCK"},
		{"no lock info", "LOCK", "n", "", nil, 400, "lock info"},
		{"no ID", "LOCK", "n", `{"Who":"x"}`, nil, 400, "no ID"},
		{"an ID with a mark", "LOCK", "n", info("a~2"), nil, 400, "printable"},
		{"a number as ID", "LOCK", "n", `{"ID":7}`, nil, 400, "cannot be read"},
		{"a long ID", "LOCK", "n", info(large[:300]), nil, 400, "256"},
		{"a large lock info", "LOCK", "n", info(large), nil, 400, "4096"},
		{"another MD5 of a lock", "LOCK", "n", info("x"), []string{"Content-MD5", md5Of("x")}, 400, "damaged"},
		{"a wrong wait", "LOCK", "n?wait=soon", info("x"), nil, 400, "wait"},
		{"a wrong session", "LOCK", "n?session=none", info("x"), nil, 404, "session"},
		{"session and ttl", "LOCK", "n?session=none&ttl=1m", info("x"), nil, 400, "not both"},
		{"two names", "GET", "n?state=m", "", nil, 400, "by the query"},
	} {
		t.Run(test.name, func(t *testing.T) {
			b.ask(test.method, "/terraform/"+test.target, test.body, test.headers...).expect(test.status, test.text)
		})
	}
	b.ask("GET", "/terraform/s", "").expect(200, `"serial": 1,`)
	if s := b.status("n"); len(s.Holders) != 0 {
		t.Errorf("something was locked: %+v", s.Holders)
	}
}

func TestTooLargeIsRefusedUnread(t *testing.T) {
	b := newBench(t)
	r := httptest.NewRequest("POST", "/terraform/s", unread{t})
	r.ContentLength = 10 << 30
	w := httptest.NewRecorder()
	b.door.ServeHTTP(w, r)
	answer{t, w.Code, w.Header(), w.Body.String()}.expect(413, "268435456")
}

// unread is a body of which nothing may be read.
type unread struct{ t *testing.T }

func (u unread) Read([]byte) (int, error) {
	u.t.Error("the body was read")
	return 0, fmt.Errorf("no")
}

func TestLargeStates(t *testing.T) {
	b := newBench(t)
	b.ask("LOCK", "/terraform/s", info("mine")).expect(200)
	large := state(1, "L", `"`+strings.Repeat("0123456789", 100000)+`"`)
	for range 2 {
		b.ask("POST", "/terraform/s?ID=mine", large, "Content-MD5", md5Of(large)).expect(200)
	}
	b.ask("POST", "/terraform/s?ID=mine", large, "Content-MD5", md5Of("x")).expect(400)
	if got := b.ask("GET", "/terraform/s", "").expect(200); got.body != large {
		t.Errorf("%d bytes came back of %d", len(got.body), len(large))
	}
	head := b.ask("HEAD", "/terraform/s", "").expect(200)
	if head.body != "" || head.header.Get("Content-Length") != fmt.Sprint(len(large)) {
		t.Errorf("HEAD says %d bytes, %v", len(head.body), head.header)
	}
	b.ask("POST", "/terraform/s?ID=mine", state(2, "L", "")).expect(200)
	b.ask("POST", "/terraform/s?ID=mine", large).expect(409)
	var page tfstate.Page[tfstate.Version]
	read(b.ask("GET", "/terraform/s?versions", "").expect(200), &page)
	if len(page.Items) != 2 || page.Items[1].Size != int64(len(large)) || page.Items[1].Serial != 1 {
		t.Fatalf("the versions are %+v", page.Items)
	}
	if got := b.ask("GET", fmt.Sprintf("/terraform/s?version=%d", page.Items[1].Revision), "").expect(200); got.body != large {
		t.Errorf("the version has %d bytes", len(got.body))
	}
}

func TestDeleteKeepsVersions(t *testing.T) {
	b := newBench(t)
	b.ask("DELETE", "/terraform/s", "").expect(200)
	b.ask("POST", "/terraform/s", state(1, "L", "")).expect(200)
	b.ask("POST", "/terraform/s", state(2, "L", "")).expect(200)
	b.ask("DELETE", "/terraform/s", "").expect(200)
	b.ask("GET", "/terraform/s", "").expect(204)
	var page tfstate.Page[tfstate.Version]
	read(b.ask("GET", "/terraform/s?versions", "").expect(200), &page)
	if len(page.Items) != 2 || !page.Items[0].Deleted || page.Items[0].Serial != 2 {
		t.Errorf("the versions are %+v", page.Items)
	}
	b.ask("POST", "/terraform/s", state(0, "M", "")).expect(200)
}

func TestDialects(t *testing.T) {
	for name, d := range map[string]struct{ state, lock, lockVerb, unlockVerb, path string }{
		"ours, one path":  {"/terraform/a/b", "/terraform/a/b", "LOCK", "UNLOCK", "a/b"},
		"ours, two paths": {"/terraform/a/b", "/terraform/a/b/lock", "LOCK", "UNLOCK", "a/b"},
		"verbs of HTTP":   {"/terraform/a/b", "/terraform/a/b/lock", "PUT", "DELETE", "a/b"},
		"GitLab":          {"/api/v4/projects/42/terraform/state/net", "/api/v4/projects/42/terraform/state/net/lock", "POST", "DELETE", "42/net"},
		"GitLab, a path":  {"/api/v4/projects/g%2Fp/terraform/state/net", "/api/v4/projects/g%2Fp/terraform/state/net/lock", "POST", "DELETE", "g/p/net"},
		"Gitea":           {"/api/packages/ann/terraform/state/net", "/api/packages/ann/terraform/state/net/lock", "POST", "DELETE", "ann/net"},
		"etcd":            {"/terraform/state?state=/a/b", "/terraform/lock?state=/a/b&lease_ttl=600", "PUT", "DELETE", "a/b"},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t)
			with := func(target, query string) string {
				if strings.Contains(target, "?") {
					return target + "&" + query
				}
				return target + "?" + query
			}
			b.ask(d.lockVerb, d.lock, info("mine")).expect(200)
			b.ask(d.lockVerb, d.lock, info("other")).expect(423)
			b.ask("GET", "/terraform/"+d.path+"/lock", "").expect(200, `"ID":"mine"`)
			b.ask("POST", with(d.state, "ID=mine"), state(1, "L", "")).expect(200)
			b.ask("GET", d.state, "").expect(200, `"serial": 1,`)
			b.ask("GET", "/terraform/"+d.path, "").expect(200)
			b.ask(d.unlockVerb, with(d.lock, "ID=mine"), "").expect(200)
			b.ask("GET", "/terraform/"+d.path+"/lock", "").expect(404)
			b.ask(d.lockVerb, d.lock, info("more")).expect(200)
			b.ask(d.unlockVerb, d.lock, info("more")).expect(200)
		})
	}
}

// A path of a dialect that ends before the name of the state means no state at all.
func TestDialectsNeedAName(t *testing.T) {
	b := newBench(t)
	for _, path := range []string{"/api/v4/projects/p/terraform/state/", "/api/packages/ann/terraform/state/"} {
		b.ask("LOCK", path, info("mine")).expect(400, "names no state")
	}
}

func TestModes(t *testing.T) {
	b := newBench(t)
	b.do(&core.Define{Namespace: "default", Definition: leasehold.Definition{Path: "terraform/ttl/", DefaultTTL: time.Hour, Unclean: leasehold.AwaitAcknowledgement}})
	b.do(&core.Define{Namespace: "default", Definition: leasehold.Definition{Path: "terraform/most/", LargestTTL: time.Minute}})
	b.do(&core.OpenSession{Namespace: "default", ID: "alive", TTL: time.Minute})
	for _, test := range []struct {
		target  string
		ttl     time.Duration
		session string
	}{
		{"hold/s", 0, ""}, {"ttl/s", time.Hour, ""}, {"most/s", time.Minute, ""}, {"ttl/own?ttl=5m", 5 * time.Minute, ""},
		{"ttl/live?session=alive", 0, "alive"}, {"hold/live?session=alive", 0, "alive"}, {"hold/etcd?lease_ttl=600", 10 * time.Minute, ""},
	} {
		b.ask("LOCK", "/terraform/"+test.target, info("id-"+test.target)).expect(200)
		name, _, _ := strings.Cut(test.target, "?")
		s := b.status(name)
		if len(s.Holders) != 1 || s.Holders[0].TTL != test.ttl || s.Holders[0].Session != test.session {
			t.Errorf("%s: %+v", test.target, s.Holders)
		}
	}
	b.do(&core.CloseSession{Namespace: "default", ID: "alive"})
	if s := b.status("hold/live"); len(s.Holders) != 0 {
		t.Errorf("the lock outlives its session: %+v", s.Holders)
	}
	// An unclean end that has to be acknowledged.
	b.ask("UNLOCK", "/terraform/ttl/s", "").expect(200)
	b.ask("LOCK", "/terraform/ttl/s", info("next")).expect(423, "acknowledge", `"ID":"id-ttl/s (`)
	b.ask("POST", "/terraform/ttl/s", state(1, "L", "")).expect(200)
	b.ask("GET", "/terraform/ttl/s?info", "").expect(200, `"unacknowledged":"ann@ci-42 (broken)"`)
	b.do(&core.Acknowledge{Namespace: "default", Resource: "terraform/ttl/s", Token: b.status("ttl/s").Last.Token, By: "oscar"})
	b.ask("LOCK", "/terraform/ttl/s", info("next")).expect(200)
}

func TestList(t *testing.T) {
	b := newBench(t)
	for i := range 5 {
		b.ask("POST", fmt.Sprintf("/terraform/prod/s%d", i), state(i+1, "L", "")).expect(200)
	}
	b.ask("POST", "/terraform/test/a", state(1, "L", "")).expect(200)
	b.ask("LOCK", "/terraform/prod/s3", info("mine")).expect(200)
	var page tfstate.Page[tfstate.State]
	read(b.ask("GET", "/terraform/?prefix=prod/&limit=4", "").expect(200), &page)
	if len(page.Items) != 4 || page.Items[3].Name != "prod/s3" || page.Items[3].Serial != 4 || page.Items[3].Lock == nil || page.Items[3].Lock.Who != "ann@ci-42" || page.Next == "" {
		t.Errorf("the page is %+v", page)
	}
	read(b.ask("GET", "/terraform/?prefix=prod/&limit=4&after="+page.Next, "").expect(200), &page)
	if len(page.Items) != 1 || page.Items[0].Name != "prod/s4" {
		t.Errorf("the next page is %+v", page)
	}
	var one tfstate.State
	read(b.ask("GET", "/terraform/prod/s3?info", "").expect(200), &one)
	if one.Serial != 4 || one.Lineage != "L" || one.Versions != 1 || one.Lock.Lock != "mine" {
		t.Errorf("the state is %+v", one)
	}
	b.ask("GET", "/terraform/none?info", "").expect(404)
	b.ask("GET", "/terraform/none?versions", "").expect(404)
}

func TestEveryCodeHasAStatus(t *testing.T) {
	for _, code := range leasehold.Codes {
		if s := standingOf(code); s.Status == 0 || s.Title == "" {
			t.Errorf("%v has no status", code)
		}
	}
}

// alarms lists the kinds of alarms that stand about a state.
func (b *bench) alarms(state string) (kinds []leasehold.AlarmKind) {
	b.t.Helper()
	err := b.engine.Read(b.t.Context(), func(v core.View) {
		list, _ := v.Alarms("default", core.AlarmQuery{Prefix: tfstate.Path(state), Most: 10})
		for _, a := range list {
			kinds = append(kinds, a.Kind)
		}
	})
	if err != nil {
		b.t.Fatal(err)
	}
	return kinds
}

// An orphan is noticed: by the limit that is defined for its prefix, or because it is
// unusual.
func TestOrphansRaiseAlarms(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		b.do(&core.Define{Namespace: "default", Definition: leasehold.Definition{Path: "terraform/prod/", Expected: time.Hour}})
		b.ask("LOCK", "/terraform/prod/s", info("orphan")).expect(200)
		time.Sleep(59 * time.Minute)
		if got := b.alarms("prod/"); len(got) != 0 {
			t.Errorf("too early there are %v", got)
		}
		time.Sleep(2 * time.Minute)
		if got := b.alarms("prod/"); !slices.Equal(got, []leasehold.AlarmKind{leasehold.HeldLong}) {
			t.Errorf("after an hour there are %v", got)
		}
		for i := range 8 {
			id := fmt.Sprintf("run-%d", i)
			b.ask("LOCK", "/terraform/test/s", info(id)).expect(200)
			time.Sleep(5 * time.Minute)
			b.ask("UNLOCK", "/terraform/test/s", info(id)).expect(200)
		}
		b.ask("LOCK", "/terraform/test/s", info("orphan-2")).expect(200)
		time.Sleep(20 * time.Minute)
		if got := b.alarms("test/"); !slices.Equal(got, []leasehold.AlarmKind{leasehold.HeldLong}) {
			t.Errorf("after four times the usual there are %v", got)
		}
		// Who frees it by force clears the alarm, and did that on purpose: it is no other alarm.
		b.ask("UNLOCK", "/terraform/test/s", "").expect(200)
		if got := b.alarms("test/"); len(got) != 0 {
			t.Errorf("after the unlock there are %v", got)
		}
	})
}
