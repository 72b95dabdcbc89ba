package node

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/leasehold/leasehold"
	"github.com/leasehold/leasehold/internal/core"
	"github.com/leasehold/leasehold/internal/core/access"
)

// Ann is a member of a/ and of common/, and hostile. Vic is a member of b/ and common/, and has a namespace for itself.
// Everything of Vic's that Ann must not learn of has this word in it.
const (
	word  = "xyzzy"
	never = "plugh" // a word of the same length, which nothing has
)

// newHouse is a world with the two in it. Tests of tries share one.
func newHouse(t *testing.T) *world { return newHouseWith(t, nil) }

func newHouseWith(t *testing.T, given map[string]string) *world {
	w := newWorld(t, given)
	items := access.Items{Bindings: []*access.Binding{
		bind("root", "admin", access.AllNamespaces, ""),
		bind("ann", "member", leasehold.DefaultNamespace, "a/"), bind("ann", "member", leasehold.DefaultNamespace, "common/"),
		bind("ann", "member", leasehold.DefaultNamespace, "terraform/a/"),
		bind("vic", "operator", leasehold.DefaultNamespace, "b/"), bind("vic", "member", leasehold.DefaultNamespace, "common/"),
		bind("vic", "admin", word, ""), bind("vic", "member", leasehold.DefaultNamespace, "terraform/b/"),
		{Name: "held", Role: "member", Principal: "bea", Namespace: leasehold.DefaultNamespace, Prefix: "a/", Holders: "team-a/"},
	}}
	for _, root := range []string{"azure/", "azure.blobs/", "azure.blocks/", "azure.lists/", "azure.snapshots/", "azure.past/"} {
		items.Bindings = append(items.Bindings, bind("ann", "member", leasehold.DefaultNamespace, root+account+"/abox"),
			bind("vic", "member", leasehold.DefaultNamespace, root+account+"/bbox"+word))
	}
	for _, who := range []string{"root", "ann", "vic", "bea"} {
		items.Tokens = append(items.Tokens, w.token(who))
	}
	w.change(&core.ChangeAccess{Put: items})
	for _, space := range []string{leasehold.DefaultNamespace, word} {
		w.furnish(space)
	}
	return w
}

// furnish gives Vic what Ann wants to know of.
func (w *world) furnish(space string) {
	w.Helper()
	labels := leasehold.Labels{{Key: word, Value: word}}
	path, id := "b/"+word, "id-"+word
	for _, c := range []core.Command{
		&core.OpenSession{Namespace: space, ID: "s-" + word, TTL: time.Hour, Labels: labels},
		&core.Define{Namespace: space, Definition: leasehold.Definition{Path: path, Expected: time.Millisecond}, Reason: word},
		&core.Define{Namespace: space, Definition: leasehold.Definition{Path: path + "/", Capacity: 7}, Reason: word},
		&core.Acquire{Namespace: space, Resource: path, ID: id, Holder: "h-" + word, Reason: word, Labels: labels,
			Session: "s-" + word, Request: core.Request{Key: "key-" + word}},
		&core.Acquire{Namespace: space, Resource: path, ID: "wait-" + word, Holder: "w-" + word, TTL: time.Hour, Wait: time.Hour},
		&core.Acquire{Namespace: space, Resource: path + "/ended", ID: "ended-" + word, Holder: "e-" + word, TTL: time.Hour},
		&core.Break{Namespace: space, ID: "ended-" + word, By: word, Reason: word},
		&core.PutRecord{Namespace: space, Path: path, Value: word, Keep: 9},
		&core.PutRecord{Namespace: space, Path: path, Value: word + word, Session: "s-" + word},
	} {
		w.do("vic", c)
	}
	w.must("vic", request{"PUT", "/v1/records/b/" + word + "-large?namespace=" + space, strings.Repeat(word, 20000), nil, 0, ""})
	if space != leasehold.DefaultNamespace {
		return
	}
	info := fmt.Sprintf(`{"ID":"lock-%s","Who":"who-%[1]s","Operation":"%[1]s"}`, word)
	w.must("vic", request{method: "POST", path: "/terraform/b/" + word, body: strings.ReplaceAll(tfState, "XX", word)})
	w.must("vic", request{method: "LOCK", path: "/terraform/b/" + word, body: info})
	w.must("vic", request{method: "PUT", path: "azure:/bbox" + word + "?restype=container", headers: []string{"X-Ms-Meta-K", word}})
	w.must("vic", request{method: "PUT", path: "azure:/bbox" + word + "/" + word, body: word, headers: []string{"X-Ms-Blob-Type", "BlockBlob"}})
	w.must("ann", request{method: "PUT", path: "azure:/abox?restype=container"})
	w.must("ann", request{method: "PUT", path: "/v1/records/a/mine", body: "mine"})
	w.must("ann", request{method: "POST", path: "/v1/acquire", body: `{"resource":"a/mine","holder":"ann","id":"mine","ttl":"1h"}`})
	w.do("vic", &core.Acquire{Namespace: space, Resource: "b/untouched", ID: "untouched", Holder: "vic", TTL: 24 * time.Hour})
}

// must sends what has to be done.
func (w *world) must(who string, r request) reply {
	w.Helper()
	got := w.ask(who, r)
	if got.status/100 != 2 {
		w.Fatalf("%s: %s %s: %s", who, r.method, r.path, got.all())
	}
	return got
}

// volatile is what two answers differ in although they say the same: the time, and in the journal of revisions what the
// tests themselves did meanwhile.
var volatile = regexp.MustCompile(`(Leasehold-Revision:\[|"revision":|X-Ms-Request-Id:\[)[\w.-]*|X-Ms-Request-Id:\S*|RequestId:\S*|Time:\S*|"time":"[^"]*"`)

func told(r reply) string { return volatile.ReplaceAllString(r.all(), "$1*") }

// A try is one of Ann's. W stands for the word: with the one that Vic's things have it must be answered as with the one that
// nothing has.
type try struct {
	name string
	request
}

func askFor(name, method, path, body string, headers ...string) try {
	return try{name, request{method: method, path: path, body: body, headers: headers}}
}

func (r request) about(word string) request {
	with := func(s string) string { return strings.ReplaceAll(s, "W", word) }
	r.path, r.body = with(r.path), with(r.body)
	headers := append([]string(nil), r.headers...)
	for i := 1; i < len(headers); i += 2 {
		headers[i] = with(headers[i])
	}
	r.headers = headers
	return r
}

// reading are tries to learn.
var reading = []try{
	askFor("the status of its path", "GET", "/v1/resources/b/W", ""),
	askFor("the head of its status", "HEAD", "/v1/resources/b/W", ""),
	askFor("its queue", "GET", "/v1/resources/b/W?queue=1", ""),
	askFor("a list of its prefix", "GET", "/v1/resources?prefix=b/W", ""),
	askFor("a list by holder", "GET", "/v1/resources?holder=h-W", ""),
	askFor("a list by label", "GET", "/v1/resources?label=W%3DW", ""),
	askFor("a list by session", "GET", "/v1/resources?session=s-W", ""),
	askFor("a list after it", "GET", "/v1/resources?limit=1&after="+base64.RawURLEncoding.EncodeToString([]byte("b/")), ""),
	askFor("its session", "GET", "/v1/sessions/s-W", ""),
	askFor("a list of its sessions", "GET", "/v1/sessions?prefix=s-W", ""),
	askFor("its advice", "GET", "/v1/advice/b/W", ""),
	askFor("its alarms", "GET", "/v1/alarms?prefix=b/W", ""),
	askFor("its definition", "GET", "/v1/definitions/b/W", ""),
	askFor("the definition below it", "GET", "/v1/definitions/b/W/", ""),
	askFor("a list of its definitions", "GET", "/v1/definitions?prefix=b/W", ""),
	askFor("its history", "GET", "/v1/history?resource=b/W", ""),
	askFor("its audit", "GET", "/v1/audit?resource=b/W", ""),
	askFor("its audit by actor", "GET", "/v1/audit?actor=vic&holder=h-W", ""),
	askFor("its holds", "GET", "/v1/holds?resource=b/W", ""),
	askFor("its holds by holder", "GET", "/v1/holds?holder=e-W", ""),
	askFor("its record", "GET", "/v1/records/b/W", ""),
	askFor("the size and tag of its record", "HEAD", "/v1/records/b/W", ""),
	askFor("its record if it changed", "GET", "/v1/records/b/W", "", "If-None-Match", `"1"`),
	askFor("its record at a revision", "GET", "/v1/records/b/W?revision=8", ""),
	askFor("a version of its record", "GET", "/v1/records/b/W?version=8", ""),
	askFor("its large record", "GET", "/v1/records/b/W-large", "", "Range", "bytes=0-9"),
	askFor("its versions", "GET", "/v1/versions/b/W", ""),
	askFor("a list of its records", "GET", "/v1/records?prefix=b/W", ""),
	askFor("a count of its records", "GET", "/v1/records?prefix=b/W&count&keys", ""),
	askFor("a range over its records", "GET", "/v1/records?from=a/zz&to=c/", ""),
	askFor("a range of keys at a revision", "GET", "/v1/records?from=a/zz&to=c/&keys&revision=8", ""),
	askFor("its state of Terraform", "GET", "/terraform/b/W", ""),
	askFor("the head of its state", "HEAD", "/terraform/b/W", ""),
	askFor("its lock of Terraform", "GET", "/terraform/b/W/lock", ""),
	askFor("the versions of its state", "GET", "/terraform/b/W?versions", ""),
	askFor("a list of its states", "GET", "/terraform/?prefix=b/W", ""),
	askFor("its state by GitLab's path", "GET", "/api/v4/projects/b/terraform/state/W", ""),
	askFor("its state by the native door", "GET", "/v1/records/terraform/b/W", ""),
	askFor("its container", "GET", "azure:/bboxW?restype=container", ""),
	askFor("its blobs", "GET", "azure:/bboxW?restype=container&comp=list", ""),
	askFor("its blob", "GET", "azure:/bboxW/W", ""),
	askFor("the head of its blob", "HEAD", "azure:/bboxW/W", ""),
	askFor("the blocks of its blob", "GET", "azure:/bboxW/W?comp=blocklist", ""),
	askFor("its blob by the native door", "GET", "/v1/records/azure/"+account+"/bboxW/W", ""),
	askFor("its blob by Terraform's door", "GET", "/azurerm/"+account+"/bboxW/W", ""),
	askFor("a comparison of its record", "POST", "/v1/txn", `{"if":[{"record":"b/W","field":"version","number":2}]}`),
	askFor("a comparison of its value", "POST", "/v1/txn", `{"if":[{"record":"b/W","field":"value","is":">","value":"eA=="}]}`),
	askFor("a comparison of its session", "POST", "/v1/txn", `{"if":[{"record":"b/W","field":"session","text":"s-W"}]}`),
	askFor("a comparison of its token", "POST", "/v1/txn", `{"if":[{"resource":"b/W","field":"token","is":">"}]}`),
	askFor("a comparison of its id", "POST", "/v1/txn", `{"if":[{"resource":"b/W","field":"id","text":"id-W"}]}`),
	askFor("a comparison of its floor", "POST", "/v1/txn", `{"if":[{"resource":"b/W","field":"floor","is":">"}]}`),
	askFor("a get in a transaction", "POST", "/v1/txn", `{"then":[{"do":"get","path":"b/W"}]}`),
	askFor("a get that is not done", "POST", "/v1/txn", `{"else":[{"do":"get","path":"b/W"}]}`),
	askFor("a count in a transaction", "POST", "/v1/txn", `{"then":[{"do":"get","prefix":"b/W/","count":true}]}`),
	askFor("a range in a transaction", "POST", "/v1/txn", `{"then":[{"do":"get","from":"a/","to":"c/"}]}`),
	askFor("another's rights", "GET", "/v1/access/can-i?verb=break&path=b/W&as=vic", ""),
}

// acting are tries to change something.
var acting = []try{
	askFor("renew its lease", "POST", "/v1/renew", `{"id":"id-W"}`),
	askFor("renew its lease with a note", "POST", "/v1/renew", `{"id":"id-W","note":"n"}`),
	askFor("renew its waiter", "POST", "/v1/renew", `{"id":"wait-W"}`),
	askFor("renew what ended", "POST", "/v1/renew", `{"id":"ended-W"}`),
	askFor("release its lease", "POST", "/v1/release", `{"id":"id-W"}`),
	askFor("release what ended", "POST", "/v1/release", `{"id":"ended-W"}`),
	askFor("release several", "POST", "/v1/release", `{"ids":["id-W","wait-W"]}`),
	askFor("release by its session", "POST", "/v1/release", `{"ids":["id-W"],"session":"s-W"}`),
	askFor("withdraw its lease", "POST", "/v1/release", `{"id":"id-W","withdraw":true}`),
	askFor("withdraw its waiter", "POST", "/v1/release", `{"id":"wait-W","withdraw":true}`),
	askFor("hand its lease to oneself", "POST", "/v1/change", `{"id":"id-W","holder":"ann"}`),
	askFor("give its lease another id", "POST", "/v1/change", `{"id":"id-W","new_id":"ann-W"}`),
	askFor("break its lease", "POST", "/v1/break", `{"id":"id-W","reason":"r"}`),
	askFor("break its waiter", "POST", "/v1/break", `{"id":"wait-W","waiting":true,"reason":"r"}`),
	askFor("break what ended", "POST", "/v1/break", `{"id":"ended-W","reason":"r"}`),
	askFor("break by the first token", "POST", "/v1/break", `{"resource":"b/W","token":1,"reason":"r"}`),
	askFor("break by the second token", "POST", "/v1/break", `{"resource":"b/W","token":2,"reason":"r"}`),
	askFor("move its waiter", "POST", "/v1/move", `{"id":"wait-W","priority":9}`),
	askFor("ask for it", "POST", "/v1/ask", `{"resource":"b/W","message":"m"}`),
	askFor("acquire it", "POST", "/v1/acquire", `{"resource":"b/W","holder":"ann"}`),
	askFor("wait for it", "POST", "/v1/acquire", `{"resource":"b/W","holder":"ann","wait":"1s"}`),
	askFor("share it", "POST", "/v1/acquire", `{"resource":"b/W","holder":"ann","slots":1}`),
	askFor("acquire it with one's own", "POST", "/v1/acquire", `{"resource":"a/also","holder":"ann","also":[{"resource":"b/W"}]}`),
	askFor("acquire in its session", "POST", "/v1/acquire", `{"resource":"a/s","holder":"ann","session":"s-W"}`),
	askFor("acquire in a transaction", "POST", "/v1/txn", `{"then":[{"do":"acquire","acquire":{"resource":"b/W","holder":"ann"}}]}`),
	askFor("acquire in its session in a transaction", "POST", "/v1/txn",
		`{"then":[{"do":"acquire","acquire":{"resource":"a/t","holder":"ann","session":"s-W"}}]}`),
	askFor("release in a transaction", "POST", "/v1/txn", `{"then":[{"do":"release","id":"id-W"}]}`),
	askFor("release in the other list", "POST", "/v1/txn", `{"else":[{"do":"release","id":"id-W"}]}`),
	askFor("release what ended in a transaction", "POST", "/v1/txn", `{"then":[{"do":"release","id":"ended-W"}]}`),
	askFor("acknowledge it", "POST", "/v1/acknowledge", `{"resource":"b/W","token":1,"reason":"r"}`),
	askFor("acknowledge its alarm", "POST", "/v1/alarms/acknowledge", `{"kind":"held-long","resource":"b/W","id":"id-W","occurrence":1}`),
	askFor("define it", "PUT", "/v1/definitions/b/W", `{"capacity":2}`),
	askFor("change its definition", "PATCH", "/v1/definitions/b/W", `{"capacity":2}`),
	askFor("take its definition away", "DELETE", "/v1/definitions/b/W", ""),
	askFor("define what is below it", "PUT", "/v1/definitions/b/W/", `{"capacity":2}`),
	askFor("define everything", "PUT", "/v1/definitions/%2F", `{"capacity":2}`),
	askFor("open its session", "POST", "/v1/sessions/s-W/renew", ""),
	askFor("close its session", "DELETE", "/v1/sessions/s-W", ""),
	askFor("abandon its session", "DELETE", "/v1/sessions/s-W?abandon", ""),
	askFor("put a record in its session", "PUT", "/v1/records/a/s?session=s-W", "v"),
	askFor("put in its session in a transaction", "POST", "/v1/txn", `{"then":[{"do":"put","path":"a/s","text":"t","session":"s-W"}]}`),
	askFor("put under its lease", "PUT", "/v1/records/a/f", "v", "Leasehold-Lease", "id-W"),
	askFor("put under its lease and token", "PUT", "/v1/records/a/f", "v", "Leasehold-Lease", "id-W", "Leasehold-Token", "1"),
	askFor("put under what ended", "PUT", "/v1/records/a/f", "v", "Leasehold-Lease", "ended-W"),
	askFor("delete under its lease", "DELETE", "/v1/records/a/none", "", "Leasehold-Lease", "id-W"),
	askFor("a request in its session", "POST", "/v1/acquire", `{"resource":"a/q","holder":"ann"}`,
		"Leasehold-Session", "s-W", "Idempotency-Key", "1"),
	askFor("its record", "PUT", "/v1/records/b/W", "v"),
	askFor("its record if it is there", "PUT", "/v1/records/b/W", "v", "If-Match", "*"),
	askFor("its record if it is not there", "PUT", "/v1/records/b/W", "v", "If-None-Match", "*"),
	askFor("go back to a version", "PUT", "/v1/records/b/W?version=8", ""),
	askFor("delete its record", "DELETE", "/v1/records/b/W", ""),
	askFor("delete its record by revision", "DELETE", "/v1/records/b/W", "", "If-Match", `"8"`),
	askFor("delete a range", "DELETE", "/v1/records?from=a/zz&to=c/", ""),
	askFor("delete a prefix that is short", "DELETE", "/v1/records?prefix=", ""),
	askFor("delete in a transaction", "POST", "/v1/txn", `{"then":[{"do":"delete","prefix":"b/W/"}]}`),
	askFor("write its state", "POST", "/terraform/b/W", tfState),
	askFor("delete its state", "DELETE", "/terraform/b/W", ""),
	askFor("lock its state", "LOCK", "/terraform/b/W", `{"ID":"mine","Who":"ann"}`),
	askFor("unlock its state", "UNLOCK", "/terraform/b/W", `{"ID":"lock-W"}`),
	askFor("force its lock", "UNLOCK", "/terraform/b/W", ""),
	askFor("allow another lineage", "POST", "/terraform/b/W?allow-lineage=1m", `{"by":"ann","reason":"r"}`),
	askFor("a state outside of one's own", "POST", "/terraform/a/../b/W", tfState),
	askFor("write its blob", "PUT", "azure:/bboxW/W", "v", "X-Ms-Blob-Type", "BlockBlob"),
	askFor("copy its blob", "PUT", "azure:/abox/copy", "", "X-Ms-Copy-Source", "AZURE/bboxW/W"),
	askFor("lease its blob", "PUT", "azure:/bboxW/W?comp=lease", "", "X-Ms-Lease-Action", "acquire", "X-Ms-Lease-Duration", "-1"),
	askFor("break the lease of its blob", "PUT", "azure:/bboxW/W?comp=lease", "", "X-Ms-Lease-Action", "break"),
	askFor("delete its container", "DELETE", "azure:/bboxW?restype=container", ""),
	askFor("create its container", "PUT", "azure:/bboxW?restype=container", ""),
}

// TestAHostileNeighbour has Ann try everything. What is hidden and what never was are answered alike, byte by byte; in the
// end Vic's things are as they were.
func TestAHostileNeighbour(t *testing.T) {
	t.Run("by HTTP", func(t *testing.T) { tryAll(t, newHouse(t)) })
	t.Run("by RESP", func(t *testing.T) {
		w := newHouse(t)
		w.byRESP()
		if tried := tryAll(t, w); tried < 150 {
			t.Errorf("only %d tries can be said by RESP", tried)
		}
	})
}

// tryAll returns how many tries could be made.
func tryAll(t *testing.T, w *world) (tried int) {
	t.Helper()
	before := w.possessions()
	for _, tries := range [][]try{reading, acting} {
		for _, one := range tries {
			one.headers = slices.Clone(one.headers)
			for i := 1; i < len(one.headers); i += 2 {
				one.headers[i] = strings.Replace(one.headers[i], "AZURE", w.azure, 1)
			}
			if w.spoken != nil && w.words(one.request) == nil {
				continue
			}
			tried++
			t.Run(one.name, func(t *testing.T) { w.indistinct(t, one.request) })
			// Of another namespace not even a revision may be known.
			if !strings.HasPrefix(one.path, "/v1/") || strings.HasPrefix(one.path, "/v1/access") {
				continue
			}
			mark := "?"
			if strings.Contains(one.path, "?") {
				mark = "&"
			}
			one.path += mark + "namespace=W"
			tried++
			t.Run(one.name+" in another namespace", func(t *testing.T) { w.indistinct(t, one.request) })
		}
	}
	if after := w.possessions(); after != before {
		t.Errorf("Vic has now\n%s\nand had\n%s", after, before)
	}
	return tried
}

// indistinct fails if Vic's things can be told from none.
func (w *world) indistinct(t *testing.T, r request) {
	t.Helper()
	known, unknown := w.ask("ann", r.about(word)), w.ask("ann", r.about(never))
	got, want := told(known), strings.ReplaceAll(told(unknown), never, word)
	if strings.Contains(r.path, "namespace=W") {
		got, want = known.all(), strings.ReplaceAll(unknown.all(), never, word)
	}
	if got != want {
		t.Errorf("%s %s is answered\n%s\nand about what never was\n%s", r.method, r.path, got, want)
	}
	asked := r.about(word)
	if !strings.Contains(fmt.Sprint(asked), word) && strings.Contains(known.all(), word) {
		t.Errorf("%s %s tells %s", r.method, r.path, known.all())
	}
	if known.status == 0 || known.status == 500 {
		t.Errorf("%s %s is answered %s", r.method, r.path, known.all())
	}
}

// possessions is what Vic has, and until when.
func (w *world) possessions() string {
	var all strings.Builder
	all.WriteString(w.deadlines())
	for _, space := range []string{leasehold.DefaultNamespace, word} {
		for _, path := range []string{"/v1/resources?all&", "/v1/sessions?", "/v1/records?keys&prefix=b/&", "/v1/definitions?"} {
			r := w.must("root", request{method: "GET", path: path + "namespace=" + url.QueryEscape(space)})
			var page struct{ Items []map[string]any }
			if err := json.Unmarshal([]byte(r.body), &page); err != nil {
				w.Fatal(err)
			}
			for _, item := range page.Items {
				text, _ := json.Marshal(item)
				if bytes.Contains(text, []byte(word)) {
					all.Write(regexp.MustCompile(`"(remaining_ms|expires|forecast)":[^,}]*`).ReplaceAll(text, nil))
					all.WriteString("\n")
				}
			}
		}
	}
	return all.String()
}

// deadlines is when Vic's leases and sessions end, counted from the end of a lease that nobody touches. What a request shows
// of that is on the calendar, which does not run as cluster time does: from one entry to the next it may move by a millisecond.
func (w *world) deadlines() string {
	w.Helper()
	var all strings.Builder
	err := w.engine.Read(w.Context(), func(v core.View) {
		from := v.Claim(leasehold.DefaultNamespace, "untouched").Lease.Remaining
		for _, space := range []string{leasehold.DefaultNamespace, word} {
			resources, _ := v.List(space, "", "", 1000, true)
			for _, r := range resources {
				for _, l := range r.Holders {
					if strings.Contains(fmt.Sprint(l), word) && l.TTL > 0 {
						fmt.Fprintln(&all, space, l.ID, l.Remaining-from)
					}
				}
			}
			sessions, _ := v.Sessions(space, "", "", 1000)
			for _, s := range sessions {
				if strings.Contains(s.ID, word) {
					fmt.Fprintln(&all, space, s.ID, s.Remaining-from)
				}
			}
		}
	})
	if err != nil || strings.Count(all.String(), "\n") < 2 {
		w.Fatalf("%q, %v", all.String(), err)
	}
	return all.String()
}
