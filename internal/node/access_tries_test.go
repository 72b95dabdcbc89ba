package node

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/leasehold/leasehold"
	"github.com/leasehold/leasehold/internal/core"
)

// These tries are not about one thing that may or may not exist: each has a judgement of its own.
func TestAHostileNeighbourOtherwise(t *testing.T) {
	t.Run("by HTTP", func(t *testing.T) { tryOtherwise(t, newHouse(t)) })
	t.Run("by RESP", func(t *testing.T) {
		w := newHouse(t)
		w.byRESP()
		tryOtherwise(t, w)
	})
}

func tryOtherwise(t *testing.T, w *world) {
	t.Helper()
	for name, try := range map[string]func(*testing.T, *world){
		"pages and their cursors":       tryPages,
		"watches from the beginning":    tryWatches,
		"what is about the cluster":     tryCluster,
		"an id that is used":            tryUsedIDs,
		"another's request key":         tryRequestKey,
		"a hidden step of a deadlock":   tryDeadlock,
		"another's party":               tryParty,
		"a definition that covers b":    tryDefinitions,
		"another's name":                tryHolders,
		"who it was, by its own word":   tryActor,
		"paths that are not one's own":  tryPaths,
		"a namespace given twice":       tryNamespaces,
		"a credential that is not good": tryCredentials,
	} {
		t.Run(name, func(t *testing.T) { try(t, w) })
	}
}

// silent fails if Ann's request tells something of Vic's.
func (w *world) silent(t *testing.T, r request) reply {
	t.Helper()
	got := w.ask("ann", r)
	if strings.Contains(got.all(), word) {
		t.Errorf("%s %s tells %s", r.method, r.path, got.all())
	}
	return got
}

func (w *world) get(t *testing.T, path string) reply {
	t.Helper()
	return w.silent(t, request{method: "GET", path: path})
}

// acquire has Ann acquire something, with more to say in JSON.
func (w *world) acquire(t *testing.T, who, path, id, more string) reply {
	t.Helper()
	return w.ask(who, request{method: "POST", path: "/v1/acquire",
		body: fmt.Sprintf(`{"resource":%q,"holder":%q,"id":%q,"ttl":"1h"%s}`, path, who, id, more)})
}

func tryPages(t *testing.T, w *world) {
	for _, list := range []string{"/v1/resources?all&limit=1", "/v1/sessions?limit=1", "/v1/records?limit=1",
		"/v1/definitions?limit=1", "/v1/alarms?limit=1", "/v1/history?limit=1", "/terraform/?limit=1"} {
		after := ""
		for range 50 {
			got := w.get(t, list+after)
			var page struct{ Next string }
			_ = json.Unmarshal([]byte(got.body), &page)
			if page.Next == "" {
				break
			}
			name, _ := base64.RawURLEncoding.DecodeString(page.Next)
			if strings.Contains(string(name), word) {
				t.Errorf("%s goes on after %q", list, name)
			}
			after = "&after=" + page.Next
			if strings.HasPrefix(list, "/v1/history") {
				after = "&before=" + page.Next
			}
		}
	}
}

func tryWatches(t *testing.T, w *world) {
	for _, what := range []string{"", "&prefix=b/", "&session=s-", "&values&previous", "&namespace=" + word} {
		for _, headers := range [][]string{nil, {"Last-Event-ID", "1"}} {
			got := w.ask("ann", request{method: "GET", path: "/v1/watch?since=1" + what, headers: headers,
				within: 200 * time.Millisecond})
			if strings.Contains(strings.ReplaceAll(got.body, `"namespace":"`+word, ""), word) && !strings.Contains(what, word) {
				t.Errorf("%s shows %s", what, got.body)
			}
		}
	}
}

func tryCluster(t *testing.T, w *world) {
	for _, path := range []string{"/metrics", "/healthz", "/readyz", "/livez", "/version", "/", "/v1/cluster", "/v1/cluster/limits",
		"/v1/cluster/quarantine", "/v1/cluster/check", "/v1/cluster/backup", "/v1/audit", "/v1/holds", "/v1/audit?namespace=x",
		"/v1/advice/a/mine", "/v1/alarms", "azure:/?comp=list", "azure:/?restype=service&comp=properties"} {
		w.get(t, path)
	}
	if got := w.get(t, "/v1/cluster/limits"); got.status != 403 || strings.Contains(got.body, "used") {
		t.Errorf("limits tell %s", got.body)
	}
	if got := w.ask("ann", request{method: "POST", path: "/v1/tokens/raise", body: `{"above":99999,"reason":"r"}`}); got.status != 403 {
		t.Errorf("tokens are raised: %s", got.body)
	}
}

func tryUsedIDs(t *testing.T, w *world) {
	for _, id := range []string{"id-" + word, "wait-" + word, "ended-" + word} {
		got := w.acquire(t, "ann", "a/used", id, "")
		if got.code() != "refused" || strings.Contains(strings.ReplaceAll(got.body, id, ""), word) {
			t.Errorf("an acquire as %s says %s", id, got.body)
		}
	}
	got := w.ask("ann", request{method: "POST", path: "/v1/sessions", body: `{"id":"s-` + word + `"}`})
	if got.code() != "refused" || strings.Contains(got.body, "remaining") {
		t.Errorf("a session of the same id says %s", got.body)
	}
	// Of a namespace that it does not know, not even that.
	got = w.ask("ann", request{method: "POST", path: "/v1/sessions?namespace=" + word, body: `{"id":"s-` + word + `"}`})
	if got.code() != "denied" {
		t.Errorf("a session in another namespace says %s", got.body)
	}
}

func tryRequestKey(t *testing.T, w *world) {
	send := func(who string) reply {
		return w.ask(who, request{method: "POST", path: "/v1/acquire", body: `{"resource":"common/key","holder":"one"}`,
			headers: []string{"Idempotency-Key", "the-same"}})
	}
	if got := send("vic"); got.status != 200 {
		t.Fatal(got.all())
	}
	if got := send("ann"); got.status != 409 {
		t.Errorf("with another's key ann gets %s", got.all())
	}
	again := send("vic")
	if again.status != 200 {
		t.Errorf("vic sends it again and gets %s", again.all())
	}
}

func tryDeadlock(t *testing.T, w *world) {
	must := func(r reply) {
		t.Helper()
		if r.status != 200 {
			t.Fatal(r.all())
		}
	}
	must(w.acquire(t, "ann", "common/2", "d2", `,"party":"P1"`))
	must(w.acquire(t, "vic", "common/1", "d1", `,"party":"P2"`))
	must(w.acquire(t, "vic", "b/"+word+"-d", "d3-"+word, `,"party":"P3"`))
	wait := func(path, id, party string) {
		w.do("vic", &core.Acquire{Namespace: leasehold.DefaultNamespace, Resource: path, ID: id, Holder: "vic", TTL: time.Hour,
			Wait: time.Hour, Party: party})
	}
	wait("b/"+word+"-d", "d4-"+word, "P2")
	wait("common/2", "d5", "P3")
	got := w.acquire(t, "ann", "common/1", "d6", `,"party":"P1","wait":"1s"`)
	if got.code() != "refused" || strings.Contains(got.body, "b/"+word) || strings.Contains(got.body, "d4-") ||
		!strings.Contains(got.body, "another party") {
		t.Errorf("the deadlock says %s", got.all())
	}
}

func tryParty(t *testing.T, w *world) {
	for _, r := range []reply{w.acquire(t, "ann", "common/3", "p3", `,"party":"anns"`), w.acquire(t, "ann", "a/p", "p4", `,"party":"vics"`)} {
		if r.status != 200 {
			t.Fatal(r.all())
		}
	}
	w.do("ann", &core.Acquire{Namespace: leasehold.DefaultNamespace, Resource: "a/p", ID: "p5", Holder: "ann", TTL: time.Hour, Wait: time.Hour,
		Party: "anns"})
	if got := w.acquire(t, "vic", "common/3", "p6", `,"party":"vics","wait":"10ms"`); got.code() != "held" {
		t.Errorf("vic cannot wait: %s", got.body)
	}
}

func tryDefinitions(t *testing.T, w *world) {
	for _, path := range []string{"%2F", "b", "b/", "b/" + word, "a", "x/", "common"} {
		for method, body := range map[string]string{"PUT": `{"capacity":3}`, "PATCH": `{"capacity":3}`, "DELETE": ""} {
			if got := w.ask("ann", request{method: method, path: "/v1/definitions/" + path, body: body}); got.status != 403 {
				t.Errorf("%s of %s says %s", method, path, got.all())
			}
		}
	}
}

func tryHolders(t *testing.T, w *world) {
	hold := func(holder string) reply {
		return w.ask("bea", request{method: "POST", path: "/v1/acquire", body: fmt.Sprintf(`{"resource":"a/h","holder":%q,"id":"h1"}`, holder)})
	}
	for _, holder := range []string{"vic", "team-a", "team-ab/x", "team-a/../vic", ""} {
		if got := hold(holder); got.status == 200 && holder != "team-a/../vic" {
			t.Errorf("bea holds as %q: %s", holder, got.body)
		}
	}
	w.ask("bea", request{method: "POST", path: "/v1/release", body: `{"id":"h1"}`})
	if got := hold("team-a/bea"); got.status != 200 && got.code() != "lost" {
		t.Errorf("bea does not hold as itself: %s", got.body)
	}
	if got := w.ask("bea", request{method: "POST", path: "/v1/change", body: `{"id":"h1","holder":"vic"}`}); got.status == 200 {
		t.Errorf("bea made itself vic: %s", got.body)
	}
	if got := w.ask("bea", request{method: "POST", path: "/v1/txn",
		body: `{"then":[{"do":"acquire","acquire":{"resource":"a/h2","holder":"vic"}}]}`}); got.status != 403 {
		t.Errorf("bea holds as vic by a transaction: %s", got.body)
	}
}

// tryActor: the journal has who was proven, whatever the request says.
func tryActor(t *testing.T, w *world) {
	w.must("ann", request{method: "POST", path: "/v1/acquire", body: `{"resource":"a/actor","holder":"root","id":"act"}`})
	w.must("ann", request{method: "POST", path: "/v1/break", body: `{"id":"act","by":"root","reason":"I am root"}`})
	var page struct {
		Items []struct{ Verb, Actor string }
	}
	if err := json.Unmarshal([]byte(w.must("root", request{method: "GET", path: "/v1/audit?resource=a/actor"}).body), &page); err != nil {
		t.Fatal(err)
	}
	if len(page.Items) != 2 || page.Items[0].Actor != "ann" || page.Items[1].Actor != "ann" {
		t.Errorf("the journal has %+v", page.Items)
	}
}

func tryPaths(t *testing.T, w *world) {
	for _, path := range []string{"a/../b/" + word, "a%2F..%2Fb%2F" + word, "a//../b/" + word, "./b/" + word, "/b/" + word,
		"%2Fb%2F" + word, "b%2F" + word, "B/" + word, "a%00/../b/" + word} {
		for _, route := range []string{"/v1/resources/", "/v1/records/", "/v1/definitions/", "/v1/versions/", "/terraform/"} {
			got := w.ask("ann", request{method: "GET", path: route + path})
			if got.status == 200 || strings.Contains(got.body, "h-"+word) {
				t.Errorf("%s%s says %s", route, path, got.all())
			}
		}
	}
	for _, path := range []string{"a", "ab/x", "a-b", "comm", "common-x/y", "c"} {
		if got := w.acquire(t, "ann", path, "edge-"+path, ""); got.status != 403 && got.status != 400 {
			t.Errorf("ann acquires %s: %s", path, got.body)
		}
	}
}

func tryNamespaces(t *testing.T, w *world) {
	for _, query := range []string{"?namespace=default&namespace=" + word, "?namespace=" + word + "&namespace=default", "?namespace=*",
		"?Namespace=" + word, "?namespace=%2A", "?namespace="} {
		got := w.ask("ann", request{method: "GET", path: "/v1/resources" + query})
		if got.status == 200 || strings.Contains(got.body, "h-"+word) {
			t.Errorf("%s says %s", query, got.all())
		}
	}
}

func tryCredentials(t *testing.T, w *world) {
	good := w.tokens["vic"]
	for _, header := range []string{"Bearer " + good[:len(good)-1], "Bearer " + good + "A", "Bearer t-vic", "Bearer vic", "Bearer lh_",
		"Basic " + base64.StdEncoding.EncodeToString([]byte("vic:"+good)), "bearer", "Bearer " + strings.ToUpper(good)} {
		got := w.ask("", request{method: "GET", path: "/v1/resources/b/" + word, headers: []string{"Authorization", header}})
		if got.status != 401 && got.status != 429 || strings.Contains(got.body, good) || strings.Contains(got.body, "h-"+word) {
			t.Errorf("%.12s… says %s", header, got.all())
		}
	}
}
