package native

import (
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/leasehold/leasehold"
	v1 "github.com/leasehold/leasehold/api/v1"
)

// Every route of the mux is in openapi.yaml and the other way round, with the same
// query parameters.
func TestRoutesAreDescribed(t *testing.T) {
	type parameters = []string
	ours := map[string]parameters{}
	for _, r := range operations {
		_, path := described(r.method + " " + r.path)
		ours[r.method+" "+path] = strings.Fields(strings.ReplaceAll(strings.Join(r.known(), " "), "+", ""))
	}
	for _, path := range []string{"/livez", "/readyz", "/healthz", "/metrics", "/version", "/v1/openapi.yaml"} {
		ours["GET "+path] = nil
	}
	theirs := map[string]parameters{}
	for path, item := range description().Paths.Map() {
		for method, operation := range item.Operations() {
			var names parameters
			for _, p := range operation.Parameters {
				if p.Value.In == "query" && p.Value.Name != "verbose" {
					names = append(names, p.Value.Name)
				}
			}
			theirs[method+" "+path] = names
		}
	}
	for name, params := range ours {
		described, ok := theirs[name]
		slices.Sort(params)
		slices.Sort(described)
		if !ok || !slices.Equal(params, described) {
			t.Errorf("%s takes %q, in openapi.yaml %q (there: %v)", name, params, described, ok)
		}
	}
	mux := http.NewServeMux()
	for _, route := range newDoor(t, Config{}).Door.Door().HTTP.Routes {
		mux.Handle(route.Pattern, route.Handler)
	}
	for name := range theirs {
		method, path, _ := strings.Cut(name, " ")
		r, _ := http.NewRequest(method, strings.NewReplacer("{path}", "a/b", "{id}", "s", "{name}", "n1").Replace(path), nil)
		if _, pattern := mux.Handler(r); pattern == "/" || !strings.HasPrefix(pattern, method) {
			t.Errorf("%s is in openapi.yaml, but the door has only %q", name, pattern)
		}
	}
}

func TestAcquire(t *testing.T) {
	door := newDoor(t, Config{})
	a := ask(t, door, "POST", "/v1/acquire", `{"resource":"reports/nightly","holder":"worker-7","labels":{"host":"b","app":"<r>"},"reason":"it is \"night\""}`)
	l := read[v1.Lease](a.expect(200, `"ttl":"30s"`, `"available_at":null`).without("warning").without("waited_ms"))
	if l.Namespace != "default" || l.Resource != "reports/nightly" || l.Holder != "worker-7" || l.Token != 1 || l.Floor != 1 || l.State != "leased" {
		t.Errorf("the lease is %+v", l)
	}
	if len(l.ID) != 26 || l.ID != strings.ToLower(l.ID) {
		t.Errorf("the server made the id %q", l.ID)
	}
	if l.Labels["app"] != "<r>" || l.Reason != `it is "night"` || *l.RemainingMS != 30000 || l.Expires.Sub(l.Acquired.Time) != 30*time.Second {
		t.Errorf("the lease is %+v", l)
	}
	if got := a.header.Get("Cache-Control"); got != "no-store" {
		t.Errorf("Cache-Control is %q", got)
	}

	for _, test := range []struct{ name, body, wants, lacks string }{
		{"without ttl", `{"resource":"a","holder":"h","ttl":null}`, `"ttl":null,"expires":null,"remaining_ms":null`, "warning"},
		{"a short ttl", `{"resource":"b","holder":"h","ttl":"1s"}`, `"warning":"ttl 1s is short`, "waited"},
		{"days", `{"resource":"c","holder":"h","ttl":"2d"}`, `"ttl":"48h"`, "warning"},
		{"null means absent", `{"resource":"d","holder":"h","wait":null,"grace":null,"labels":null,"id":null}`, `"ttl":"30s"`, "labels"},
		{"its own id", `{"resource":"e","holder":"h","id":"mine/1"}`, `"id":"mine/1"`, "warning"},
		{"names of all kinds", `{"resource":"日本/a b/…","holder":"h/../x"}`, `"resource":"日本/a b/…"`, "warning"},
		{"wait for what is free", `{"resource":"f","holder":"h","wait":"5s"}`, `"resource":"f"`, "waited_ms"},
		{"a field twice", `{"resource":"zz","resource":"g","holder":"h"}`, `"resource":"g"`, `"zz"`},
	} {
		t.Run(test.name, func(t *testing.T) {
			ask(t, door, "POST", "/v1/acquire", test.body).expect(200, test.wants).without(test.lacks)
		})
	}
}

func TestHeldTellsEverything(t *testing.T) {
	door := newDoor(t, Config{})
	ask(t, door, "POST", "/v1/acquire", `{"resource":"r","holder":"ann","id":"a","reason":"repair","ttl":"1m"}`).expect(200)
	a := ask(t, door, "POST", "/v1/acquire", `{"resource":"r","holder":"bob"}`).expect(409)
	if got := a.header.Get("Content-Type"); got != "application/problem+json" {
		t.Errorf("the type is %q", got)
	}
	p := read[v1.Problem](a)
	if p.Code != "held" || p.Status != 409 || p.Holder != "ann" || p.Reason != "repair" || p.Token != 1 || p.ID != "a" || p.State != "leased" || p.Resource != "r" {
		t.Errorf("the problem is %+v", p)
	}
	if p.Waiting == nil || *p.Waiting != 0 || p.Since == nil || p.Expires == nil || p.RemainingMS == nil || *p.RemainingMS > 60000 || *p.RemainingMS < 50000 {
		t.Errorf("the problem is %+v", p)
	}
	if !strings.Contains(p.Detail, "r is held by ann (repair); ends in") {
		t.Errorf("the detail is %q", p.Detail)
	}
}

func TestRenewReleaseChangeBreak(t *testing.T) {
	door := newDoor(t, Config{})
	post := func(path, body string) answer { t.Helper(); return ask(t, door, "POST", path, body) }
	post("/v1/acquire", `{"resource":"r","holder":"ann","id":"a"}`).expect(200)
	post("/v1/renew", `{"id":"a"}`).expect(200, `"id":"a"`, `"remaining_ms":30000`)
	post("/v1/change", `{"id":"a","new_id":"b"}`).expect(200, `"id":"b"`, `"token":1`)
	post("/v1/change", `{"id":"b","holder":"bob"}`).expect(200, `"holder":"bob"`, `"token":2`)
	post("/v1/renew", `{"id":"a"}`).expect(410, `"code":"lost"`)
	post("/v1/renew", `{"id":"nobody"}`).expect(404, `"code":"not-found"`)
	post("/v1/acquire", `{"resource":"r2","holder":"eve","id":"b"}`).expect(422, `"code":"refused"`)
	post("/v1/release", `{"id":"b"}`).expect(200, "{}")
	post("/v1/release", `{"id":"b"}`).expect(200, "{}")
	post("/v1/release", `{"id":"nobody"}`).expect(404)

	post("/v1/acquire", `{"resource":"r","holder":"ann","id":"c"}`).expect(200, `"token":3`)
	post("/v1/break", `{"resource":"r","token":2}`).expect(410, `token 3`)
	post("/v1/break", `{"resource":"r","token":3,"by":"op","reason":"stuck"}`).expect(200, `"state":"breaking"`)
	post("/v1/break", `{"resource":"r","token":3,"period":"10s"}`).expect(200, `"state":"breaking"`)
	post("/v1/break", `{"id":"c","period":"0s","by":"op"}`).expect(200, `"state":"broken"`)
	post("/v1/break", `{"id":"c","period":"0s"}`).expect(200, `"state":"broken"`)
	post("/v1/break", `{"resource":"nothing","token":1}`).expect(404)
	ask(t, door, "GET", "/v1/resources/r", "").expect(200, `"state":"broken"`, `"how":"broken"`, `"by":"op"`)
}

// Several releases in one request are done each for itself.
func TestReleaseOfMany(t *testing.T) {
	door := newDoor(t, Config{})
	var ids []string
	for i := range 200 {
		id := fmt.Sprint("r", i)
		ids = append(ids, strconv.Quote(id))
		body := fmt.Sprintf(`{"resource":%q,"holder":"ann","id":%q}`, id, id)
		ask(t, door, "POST", "/v1/acquire", body).expect(200)
	}
	list := strings.Join(ids, ",")
	ask(t, door, "POST", "/v1/release", `{"ids":["r0","nobody","r1"]}`).expect(404, "nobody")
	ask(t, door, "POST", "/v1/break", `{"id":"r2","period":"0s"}`).expect(200)
	for range 2 {
		ask(t, door, "POST", "/v1/release", `{"ids":[`+list+`]}`).expect(200, "{}")
	}
	for i := range ids {
		ask(t, door, "GET", fmt.Sprint("/v1/resources/r", i), "").expect(200, `"holders":[]`)
	}
	ask(t, door, "POST", "/v1/release", `{"id":"a","ids":["b"]}`).expect(400, "leave one of them out")
	ask(t, door, "POST", "/v1/release", `{"ids":["b"]}`, v1.KeyHeader, "k").expect(400, "needs no Idempotency-Key")
	ask(t, door, "POST", "/v1/release", `{"ids":[`+strings.Repeat(`"x",`, 1024)+`"x"]}`).expect(400, "at most 1024")
	ask(t, door, "POST", "/v1/release", `{"ids":[]}`).expect(400, "ids is empty")
}

func TestSessions(t *testing.T) {
	door := newDoor(t, Config{})
	made := read[v1.Session](ask(t, door, "POST", "/v1/sessions", `{}`).expect(200, `"ttl":"30s"`))
	if len(made.ID) != 26 {
		t.Errorf("the server made the id %q", made.ID)
	}
	ask(t, door, "POST", "/v1/sessions", "").expect(200, `"ttl":"30s"`)
	const id = "one/two .. %"
	at := "/v1/sessions/" + url.PathEscape(id)
	ask(t, door, "POST", "/v1/sessions", `{"id":"one/two .. %","ttl":"4s","labels":{"a":"b"}}`).expect(200, `"warning":"ttl 4s is short`)
	ask(t, door, "POST", "/v1/sessions", `{"id":"one/two .. %","ttl":"5s"}`).expect(422)
	ask(t, door, "POST", "/v1/acquire", `{"resource":"r","holder":"ann","id":"a","session":"one/two .. %"}`).expect(200, `"ttl":null`, `"session":"one/two .. %"`)
	ask(t, door, "POST", "/v1/acquire", `{"resource":"r2","holder":"ann","session":"none"}`).expect(404)
	ask(t, door, "POST", at+"/renew", "").expect(200, `"claims":1`, `"remaining_ms":4000`)
	ask(t, door, "POST", at+"/renew", "{}").expect(200)
	ask(t, door, "POST", at+"/renew", " { } ").expect(200)
	ask(t, door, "POST", at+"/renew", `{"id":"x"}`).expect(400, "this request has no fields")
	s := read[v1.Session](ask(t, door, "GET", at, "").expect(200))
	if s.ID != id || s.Claims != 1 || s.Labels["a"] != "b" || time.Duration(s.TTL) != 4*time.Second {
		t.Errorf("the session is %+v", s)
	}
	ask(t, door, "DELETE", at, "").expect(200, "{}")
	ask(t, door, "DELETE", at, "").expect(200, "{}")
	ask(t, door, "GET", at, "").expect(410)
	ask(t, door, "POST", at+"/renew", "").expect(410)
	ask(t, door, "GET", "/v1/sessions/none", "").expect(404)
	ask(t, door, "DELETE", "/v1/sessions/none", "").expect(404)
	ask(t, door, "GET", "/v1/resources/r", "").expect(200, `"state":"available"`, `"how":"session closed"`)
	ask(t, door, "POST", "/v1/sessions", `{"id":".."}`).expect(200)
	ask(t, door, "GET", "/v1/sessions/%2E%2E", "").expect(200, `"id":".."`)
}

func TestNamespaces(t *testing.T) {
	door := newDoor(t, Config{})
	ask(t, door, "POST", "/v1/acquire?namespace=blue", `{"resource":"r","holder":"ann","id":"a"}`).expect(200, `"namespace":"blue"`)
	ask(t, door, "POST", "/v1/acquire", `{"resource":"r","holder":"bob","id":"a"}`).expect(200, `"namespace":"default"`)
	ask(t, door, "POST", "/v1/renew?namespace=green", `{"id":"a"}`).expect(404)
	ask(t, door, "GET", "/v1/resources?namespace=blue", "").expect(200, `"holder":"ann"`)
	ask(t, door, "GET", "/v1/resources?namespace=green", "").expect(200, `"items":[]`)
	ask(t, door, "GET", "/v1/history?namespace=green", "").expect(200, `"items":[]`)
}

func TestResource(t *testing.T) {
	door := newDoor(t, Config{})
	ask(t, door, "GET", "/v1/resources/never/seen", "").expect(200, `"state":"available"`, `"holders":[]`, `"last":null`)
	for _, name := range []string{"a", "a/b", "a%b", "a b/ü?#", "v1/..x", "日本"} {
		body := fmt.Sprintf(`{"resource":%q,"holder":"h"}`, name)
		ask(t, door, "POST", "/v1/acquire", body).expect(200)
		for _, path := range []string{url.PathEscape(name), strings.ReplaceAll(url.PathEscape(name), "%2F", "/")} {
			r := read[v1.Resource](ask(t, door, "GET", "/v1/resources/"+path, "").expect(200))
			if r.Resource != name || r.State != "leased" || len(r.Holders) != 1 {
				t.Errorf("%s is %+v", name, r)
			}
		}
	}
	if got := ask(t, door, "GET", "/v1/resources/a", "").header.Get(v1.RevisionHeader); got != "6" {
		t.Errorf("the revision is %q", got)
	}
	ask(t, door, "HEAD", "/v1/resources/a", "").expect(200)
}

func TestResourcesInPages(t *testing.T) {
	door := newDoor(t, Config{})
	var all []string
	for i := range 25 {
		name := fmt.Sprintf("jobs/%02d", i)
		all = append(all, name)
		ask(t, door, "POST", "/v1/acquire", fmt.Sprintf(`{"resource":%q,"holder":"h","id":"j%d"}`, name, i)).expect(200)
	}
	ask(t, door, "POST", "/v1/acquire", `{"resource":"other","holder":"h"}`).expect(200)
	ask(t, door, "POST", "/v1/release", `{"id":"j7"}`).expect(200)
	list := func(query string) (names []string) {
		t.Helper()
		for after, pages := "", 0; pages < 10; pages++ {
			page := read[v1.List[v1.Resource]](ask(t, door, "GET", "/v1/resources?"+query+"&after="+after, "").expect(200))
			for _, r := range page.Items {
				names = append(names, r.Resource)
			}
			if after = page.Next; after == "" {
				return names
			}
		}
		t.Fatal("the pages do not end")
		return nil
	}
	if got := list("prefix=jobs/&limit=4&all=true"); !slices.Equal(got, all) {
		t.Errorf("all in pages of 4: %q", got)
	}
	held := slices.Delete(slices.Clone(all), 7, 8)
	if got := list("prefix=jobs/&limit=4"); !slices.Equal(got, held) {
		t.Errorf("what is held in pages of 4: %q", got)
	}
	if got := list("prefix=jobs/1&all=0"); !slices.Equal(got, all[10:20]) {
		t.Errorf("by prefix: %q", got)
	}
	if got := list("all"); len(got) != 26 {
		t.Errorf("everything: %q", got)
	}
}

func TestHistoryInPages(t *testing.T) {
	door := newDoor(t, Config{})
	for i := range 10 {
		ask(t, door, "POST", "/v1/acquire", fmt.Sprintf(`{"resource":"r","holder":"h","id":"r%d"}`, i)).expect(200)
		ask(t, door, "POST", "/v1/release", fmt.Sprintf(`{"id":"r%d"}`, i)).expect(200)
		ask(t, door, "POST", "/v1/acquire", fmt.Sprintf(`{"resource":"x%d","holder":"h"}`, i)).expect(200)
	}
	ask(t, door, "POST", "/v1/sessions", `{"id":"s"}`).expect(200)
	history := func(query string) (kinds []string) {
		t.Helper()
		for before, pages := "", 0; pages < 20; pages++ {
			page := read[v1.EventPage](ask(t, door, "GET", "/v1/history?"+query+"&before="+before, "").expect(200).without("gone"))
			var here []string
			for _, e := range page.Items {
				here = append(here, fmt.Sprintf("%v %s", e.Position(), e.Kind))
			}
			kinds = append(here, kinds...)
			if before = page.Next; before == "" {
				return kinds
			}
		}
		t.Fatal("the pages do not end")
		return nil
	}
	got := history("resource=r&limit=3")
	if len(got) != 20 || got[0] != "1.0 acquired" || got[1] != "2.0 ended" || got[19] != "29.0 ended" {
		t.Errorf("of one resource: %q", got)
	}
	if got := history("limit=7"); len(got) != 31 || got[30] != "31.0 session opened" {
		t.Errorf("of all: %q", got)
	}
	ask(t, door, "GET", "/v1/history?before=3&limit=1", "").expect(200, `"revision":2`)
	ask(t, door, "GET", "/v1/history?limit=1", "").expect(200, `"revision":31`)
}

// A request that is sent again gets what became of the first.
func TestOnceIsOnce(t *testing.T) {
	door := newDoor(t, Config{})
	first := read[v1.Lease](ask(t, door, "POST", "/v1/acquire", `{"resource":"r","holder":"h"}`, v1.KeyHeader, "k1").expect(200))
	again := read[v1.Lease](ask(t, door, "POST", "/v1/acquire", `{"resource":"r","holder":"h"}`, v1.KeyHeader, "k1").expect(200))
	if first.ID != again.ID || first.Token != again.Token {
		t.Errorf("first %+v, again %+v", first, again)
	}
	ask(t, door, "POST", "/v1/acquire", `{"resource":"other","holder":"h"}`, v1.KeyHeader, "k1").expect(400, "another request")
	s := read[v1.Session](ask(t, door, "POST", "/v1/sessions", `{}`, v1.KeyHeader, "k2").expect(200))
	ask(t, door, "POST", "/v1/sessions", `{}`, v1.KeyHeader, "k2").expect(200, `"id":"`+s.ID+`"`)
	ask(t, door, "POST", "/v1/sessions", `{}`, v1.KeyHeader, "k3").expect(200).without(s.ID)

	ask(t, door, "POST", "/v1/sessions", `{"id":"s"}`).expect(200)
	in := []string{v1.SessionHeader, "s", v1.KeyHeader, "1"}
	first = read[v1.Lease](ask(t, door, "POST", "/v1/acquire", `{"resource":"q","holder":"h"}`, in...).expect(200))
	again = read[v1.Lease](ask(t, door, "POST", "/v1/acquire", `{"resource":"q","holder":"h"}`, in...).expect(200))
	if first.ID != again.ID {
		t.Errorf("first %+v, again %+v", first, again)
	}
	for _, test := range []struct {
		name, detail string
		headers      []string
	}{
		{"session without key", "which is missing", []string{v1.SessionHeader, "s"}},
		{"not a number", "counted up from 1", []string{v1.SessionHeader, "s", v1.KeyHeader, "x"}},
		{"zero", "counted up from 1", []string{v1.SessionHeader, "s", v1.KeyHeader, "0"}},
		{"twice", "once each", []string{v1.KeyHeader, "a", v1.KeyHeader, "b"}},
		{"empty", "is missing", []string{v1.KeyHeader, ""}},
		{"too long", "at most 1024", []string{v1.KeyHeader, strings.Repeat("k", 1025)}},
		{"not UTF-8", "not valid UTF-8", []string{v1.KeyHeader, "\xff"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			ask(t, door, "POST", "/v1/release", `{"id":"x"}`, test.headers...).expect(400, test.detail)
		})
	}
}

func TestQueryIsChecked(t *testing.T) {
	door := newDoor(t, Config{})
	for _, test := range []struct{ target, detail string }{
		{"/v1/resources?namepsace=prod", `the query has \"namepsace\", which is unknown here; known are: namespace, prefix, after, limit, all`},
		{"/v1/resources?namespace=", "namespace is missing"},
		{"/v1/resources?namespace=a&namespace=b", "2 times"},
		{"/v1/resources?namespace=" + strings.Repeat("n", 1025), "at most 1024"},
		{"/v1/resources?namespace=%ff", "not valid UTF-8"},
		{"/v1/resources?namespace=a%00", "control character U+0000 at byte 1"},
		{"/v1/resources?limit=0", "not a number from 1 to 1000"},
		{"/v1/resources?limit=1001", "not a number from 1 to 1000"},
		{"/v1/resources?limit=x", "not a number from 1 to 1000"},
		{"/v1/resources?limit=99999999999999999999", "not a number"},
		{"/v1/resources?after=%3F", "leave it out to begin again"},
		{"/v1/resources?prefix=%80", "not valid UTF-8"},
		{"/v1/resources?all=maybe", "neither true nor false"},
		{"/v1/resources?a;b", "the query cannot be read"},
		{"/v1/resources?%zz", "the query cannot be read"},
		{"/v1/resources/r?queue=1001", "not a number from 1 to 1000"},
		{"/v1/resources/r?limit=1", "unknown here"},
		{"/v1/resources/", "resource is missing"},
		{"/v1/resources/a//b", "segment"},
		{"/v1/resources/a/../b", "segment"},
		{"/v1/resources/a/./b", "segment"},
		{"/v1/resources/a%2F%2Fb", "has the segment"},
		{"/v1/resources/a/%2E%2E", "has the segment"},
		{"/v1/resources/a/", "has the segment"},
		{"/v1/resources/%2Fa", "has the segment"},
		{"/v1/resources/%01", "control character"},
		{"/v1/resources/%C2%85", "control character U+0085"},
		{"/v1/resources/%ff", "not valid UTF-8"},
		{"/v1/resources/" + strings.Repeat("n", 1025), "at most 1024"},
		{"/v1/sessions/%00", "control character"},
		{"/v1/history?resource=", "resource is missing"},
		{"/v1/history?resource=a//b", "has the segment"},
		{"/v1/history?before=x", "is not a position"},
		{"/v1/history?limit=5000", "not a number"},
		{"/v1/watch?since=-1", "is not a position"},
		{"/v1/watch?since=1.", "is not a position"},
		{"/v1/watch?since=1.x", "is not a position"},
		{"/v1/watch?since=1.4294967296", "is not a position"},
		{"/v1/watch?prefix=%00", "control character"},
	} {
		t.Run(test.target[:min(40, len(test.target))], func(t *testing.T) {
			ask(t, door, "GET", test.target, "").expect(400, `"code":"invalid"`, test.detail)
		})
	}
	ask(t, door, "GET", "/v1/watch", "", "Last-Event-ID", "x").expect(400, "header Last-Event-ID")
}

func TestUnknownRoutesAndMethods(t *testing.T) {
	door := newDoor(t, Config{})
	for _, target := range []string{"/v2/acquire", "/v1", "/v1/", "/v1/acquire/", "/v1/sessions/a/b/c", "/debug/pprof/", "/favicon.ico"} {
		ask(t, door, "GET", target, "").expect(404, `"code":"not-found"`, "the API is under /v1/")
	}
	for _, test := range []struct{ method, target, allow string }{
		{"GET", "/v1/acquire", "POST"},
		{"PUT", "/v1/release", "POST"},
		{"POST", "/v1/resources", "GET, HEAD"},
		{"POST", "/v1/resources/a/b", "GET, HEAD"},
		{"PATCH", "/v1/sessions/s", "GET, DELETE, HEAD"},
		{"PUT", "/v1/sessions", "POST, GET, HEAD"},
		{"GET", "/v1/sessions/s/renew", "POST"},
		{"DELETE", "/v1/watch", "GET, HEAD"},
		{"POST", "/readyz", "GET, HEAD"},
	} {
		a := ask(t, door, test.method, test.target, "").expect(405, `"code":"invalid"`, "use "+test.allow)
		if got := a.header.Get("Allow"); got != test.allow {
			t.Errorf("%s %s: Allow is %q", test.method, test.target, got)
		}
	}
}

func TestOtherSitesMayNotWrite(t *testing.T) {
	door := newDoor(t, Config{})
	body := `{"resource":"r","holder":"page"}`
	ask(t, door, "POST", "/v1/acquire", body, "Sec-Fetch-Site", "cross-site").expect(403, `"code":"denied"`)
	ask(t, door, "POST", "/v1/acquire", body, "Origin", "https://elsewhere.example").expect(403)
	ask(t, door, "DELETE", "/v1/sessions/s", "", "Sec-Fetch-Site", "cross-site").expect(403)
	ask(t, door, "POST", "/v1/acquire", body, "Sec-Fetch-Site", "same-origin").expect(200)
	ask(t, door, "GET", "/v1/resources/r", "", "Sec-Fetch-Site", "cross-site").expect(200)
}

func TestOperators(t *testing.T) {
	door := newDoor(t, Config{Version: v1.Version{Version: "1.2.3", Commit: "abc", Go: "go1.26"}})
	if got := ask(t, door, "GET", "/livez", "").expect(200).body; got != "ok" {
		t.Errorf("livez says %q", got)
	}
	if got := ask(t, door, "GET", "/readyz", "").expect(200).body; got != "ok" {
		t.Errorf("readyz says %q", got)
	}
	ask(t, door, "GET", "/healthz?verbose", "").expect(200, "[+]serving ok\n[+]engine ok\nhealthz check passed\n")
	ask(t, door, "GET", "/livez?verbose", "").expect(200, "[+]ping ok\nlivez check passed\n")
	ask(t, door, "GET", "/version", "").expect(200, `{"version":"1.2.3","commit":"abc","go":"go1.26"}`)
	ask(t, door, "GET", "/v1/openapi.yaml", "").expect(200, "openapi: 3.1.0")

	ask(t, door, "POST", "/v1/acquire", `{"resource":"r","holder":"h"}`).expect(200)
	ask(t, door, "POST", "/v1/acquire", `{"resource":"r","holder":"h"}`).expect(409)
	ask(t, door, "POST", "/v1/acquire", `{`).expect(400)
	ask(t, door, "GET", "/metrics", "").expect(200,
		"leasehold_leases 1\n", "leasehold_waiters 0\n", "leasehold_sessions 0\n", "leasehold_namespaces 1\n",
		`leasehold_requests_total{code="ok",door="native",verb="acquire"} 1`,
		`leasehold_requests_total{code="held",door="native",verb="acquire"} 1`,
		`leasehold_requests_total{code="invalid",door="native",verb="acquire"} 1`,
		`leasehold_requests_total{code="undecided",door="native",verb="watch"} 0`,
		`leasehold_request_seconds_count{verb="acquire"} 3`,
		"leasehold_watches 0\n", "leasehold_waiting_requests 0\n", "go_goroutines", "process_open_fds")
}

// A server that cannot read its state is alive, but not ready.
func TestNotReady(t *testing.T) {
	door := open(&stub{err: &leasehold.Error{Code: leasehold.Unavailable, Message: "there is no leader"}}, Config{})
	ask(t, door, "GET", "/livez", "").expect(200)
	ask(t, door, "GET", "/readyz", "").expect(503, "[+]serving ok\n[-]engine failed: there is no leader\nreadyz check failed\n")
	ask(t, door, "GET", "/metrics", "").expect(200, "leasehold_requests_total").without("leasehold_leases")
}

// Time that passes is shown, and what is over is over.
func TestTimePasses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		door := newDoor(t, Config{})
		ask(t, door, "POST", "/v1/acquire", `{"resource":"r","holder":"ann","id":"a","ttl":"10s","grace":"5s"}`).expect(200, `"remaining_ms":10000`)
		time.Sleep(4 * time.Second)
		synctest.Wait()
		ask(t, door, "GET", "/v1/resources/r", "").expect(200, `"remaining_ms":6000`)
		time.Sleep(6 * time.Second)
		synctest.Wait()
		ask(t, door, "GET", "/v1/resources/r", "").expect(200, `"state":"expired"`, `"how":"expired"`, `"holders":[]`)
		p := read[v1.Problem](ask(t, door, "POST", "/v1/acquire", `{"resource":"r","holder":"bob"}`).expect(409, "rests after the unclean end of ann's lease"))
		if p.AvailableAt == nil || p.Holder != "ann" {
			t.Errorf("the problem is %+v", p)
		}
		ask(t, door, "POST", "/v1/renew", `{"id":"a"}`).expect(410)
		time.Sleep(5 * time.Second)
		synctest.Wait()
		ask(t, door, "POST", "/v1/acquire", `{"resource":"r","holder":"bob"}`).expect(200, `"token":2`)
	})
}

// The session of a holder that died ends at once, and what it held ends uncleanly.
func TestAbandonSession(t *testing.T) {
	door := newDoor(t, Config{})
	ask(t, door, "POST", "/v1/sessions", `{"id":"s","ttl":"10m"}`).expect(200)
	ask(t, door, "POST", "/v1/acquire", `{"resource":"r","holder":"ann","session":"s","grace":"1m"}`).expect(200)
	ask(t, door, "DELETE", "/v1/sessions/s?abandon=maybe", "").expect(400)
	for range 2 { // the first answer may be lost
		ask(t, door, "DELETE", "/v1/sessions/s?abandon=true", "").expect(200)
	}
	ask(t, door, "DELETE", "/v1/sessions/s", "").expect(410)
	ask(t, door, "POST", "/v1/acquire", `{"resource":"r","holder":"bob"}`).expect(409)
	ask(t, door, "GET", "/v1/resources/r", "").expect(200, `"how":"abandoned"`)
}
