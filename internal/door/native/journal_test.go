package native

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/leasehold/leasehold"
	v1 "github.com/leasehold/leasehold/api/v1"
	"github.com/leasehold/leasehold/internal/engine"
	"github.com/leasehold/leasehold/internal/engine/memory"
)

// address is what httptest says that requests come from.
const address = "192.0.2.1:1234"

func TestAudit(t *testing.T) {
	door := newDoor(t, Config{})
	post := func(path, body string) answer { t.Helper(); return ask(t, door, "POST", path, body) }
	post("/v1/acquire", `{"resource":"r","holder":"ann","id":"a","reason":"repair"}`).expect(200)
	post("/v1/renew", `{"id":"a"}`).expect(200)
	post("/v1/renew", `{"id":"nobody"}`).expect(404)
	post("/v1/acquire", `{"resource":"r","holder":"bob","id":"b"}`).expect(409)
	post("/v1/break", `{"id":"a","by":"ops","reason":"stuck","period":"0s"}`).expect(200)
	post("/v1/release", `{"id":"a"}`).expect(410)
	ask(t, door, "PUT", "/v1/records/config/x", "one").expect(200)

	got := read[v1.List[v1.Operation]](ask(t, door, "GET", "/v1/audit", "", "X-Forwarded-For", "1.2.3.4").expect(200).without("1.2.3.4"))
	var told []string
	for _, d := range got.Items {
		if d.Address != address || d.Door != "native" || d.Namespace != "default" || d.At.IsZero() || d.Index == 0 {
			t.Errorf("%+v", d)
		}
		told = append(told, strings.TrimSpace(fmt.Sprintf("%s %s %s %s %s %d %s %s", d.Verb, d.Outcome, d.Resource, d.Actor, d.Holder, d.Token, d.How, d.Reason)))
	}
	want := `put-record ok config/x   0
release lost    0  lease "a" on r has ended (broken): acquire again under another id
break ok r ops ann 1 broken stuck
acquire held r bob bob 0  r is held by ann (repair); ends in 30s unless renewed
acquire ok r ann ann 1  repair`
	if text := strings.Join(told, "\n"); text != want {
		t.Errorf("the audit has\n%s\nwant\n%s", text, want)
	}
	for query, n := range map[string]int{
		"resource=r": 3, "resource=none": 0, "prefix=config/": 1, "holder=ann": 2, "actor=ops": 1, "actor=ann&verb=acquire": 1, "verb=renew": 0,
		"from=2000-01-01T00:00:00Z": 5, "until=2000-01-01T00:00:00Z": 0, "from=2199-01-01T00:00:00Z": 0, "namespace=other": 0, "limit=2": 2, "verb=grant": 0,
	} {
		if got := read[v1.List[v1.Operation]](ask(t, door, "GET", "/v1/audit?"+query, "").expect(200)); len(got.Items) != n {
			t.Errorf("%s: %d operations", query, len(got.Items))
		}
	}
}

// A request that was refused for lack of right is in the audit of the server that
// refused it, whatever else is wrong with it.
func TestDenialsAreKept(t *testing.T) {
	door := newDoor(t, Config{})
	cross := []string{"Sec-Fetch-Site", "cross-site"}
	ask(t, door, "POST", "/v1/acquire", `{"resource":"r","holder":"page"}`, cross...).expect(403)
	ask(t, door, "DELETE", "/v1/sessions/s?namespace=blue", "", cross...).expect(403)
	ask(t, door, "PUT", "/v1/records/a/b?nonsense", "", cross...).expect(403)
	here := read[v1.List[v1.Operation]](ask(t, door, "GET", "/v1/audit", "").expect(200))
	there := read[v1.List[v1.Operation]](ask(t, door, "GET", "/v1/audit?namespace=blue", "").expect(200))
	if len(here.Items) != 2 || len(there.Items) != 1 {
		t.Fatalf("%d and %d denials are there", len(here.Items), len(there.Items))
	}
	put, acquire, session := here.Items[0], here.Items[1], there.Items[0]
	if put.Verb != "put-record" || put.Resource != "a/b" || acquire.Verb != "acquire" || session.Verb != "close-session" || session.ID != "s" {
		t.Errorf("%+v, %+v, %+v", put, acquire, session)
	}
	if d := acquire; d.Outcome != "denied" || d.Address != address || d.Door != "native" || d.Index != 0 || !strings.Contains(d.Reason, "another site") {
		t.Errorf("%+v", d)
	}
}

func TestHolds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := build(t, Config{})
		defer h.close()
		began := time.Now()
		h.acquire(v1.AcquireRequest{Resource: "r", Holder: "ann", ID: "a", TTL: v1.TTL{Duration: v1.Duration(10 * time.Second)}})
		bob := h.acquire(v1.AcquireRequest{Resource: "r", Holder: "bob", ID: "b", Wait: v1.Duration(time.Minute)})
		time.Sleep(5 * time.Second)
		if err := h.caller.Release(t.Context(), v1.ReleaseRequest{ID: bob.ID}); err != nil {
			t.Fatal(err)
		}
		var told []string
		for hold, err := range h.caller.Holds(t.Context(), v1.JournalQuery{Resource: "r", Limit: 1, Oldest: true}) {
			if err != nil {
				t.Fatal(err)
			}
			told = append(told, fmt.Sprintf("%s %d %v-%v waited %d: %s", hold.Holder, hold.Token, hold.Since.Sub(began), hold.Until.Sub(began), hold.WaitedMS, hold.How))
		}
		if want := "ann 1 0s-10s waited 0: expired\nbob 2 10s-15s waited 10000: released"; strings.Join(told, "\n") != want {
			t.Errorf("got\n%s", strings.Join(told, "\n"))
		}
		for name, q := range map[string]struct {
			v1.JournalQuery
			want int
		}{
			"during both":       {v1.JournalQuery{From: began.Add(9 * time.Second), Until: began.Add(11 * time.Second)}, 2},
			"while ann had it":  {v1.JournalQuery{From: began.Add(8 * time.Second), Until: began.Add(9 * time.Second)}, 1},
			"before":            {v1.JournalQuery{Until: began}, 0},
			"after":             {v1.JournalQuery{From: began.Add(time.Hour)}, 0},
			"of bob":            {v1.JournalQuery{Holder: "bob"}, 1},
			"of others":         {v1.JournalQuery{Prefix: "s"}, 0},
			"of all":            {v1.JournalQuery{Prefix: "r"}, 2},
			"what is held":      {v1.JournalQuery{Resource: "none"}, 0},
			"the newest of all": {v1.JournalQuery{Limit: 1}, 1},
		} {
			page, err := h.caller.HoldPage(t.Context(), q.JournalQuery)
			if err != nil || len(page.Items) != q.want {
				t.Errorf("%s: %+v, %v", name, page, err)
			}
		}
	})
}

// An export has every line once, however many pages it takes.
func TestExport(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := build(t, Config{})
		defer h.close()
		const cycles = 1500
		for i := range cycles {
			id := fmt.Sprint("id", i)
			h.acquire(v1.AcquireRequest{Resource: "r", Holder: "ann", ID: id})
			if err := h.caller.Release(t.Context(), v1.ReleaseRequest{ID: id}); err != nil {
				t.Fatal(err)
			}
		}
		for limit, want := range map[int]int{0: 2 * cycles, 1: 1, 1000: 1000} {
			body, err := h.caller.ExportAudit(t.Context(), v1.JournalQuery{Oldest: true, Limit: limit})
			if err != nil {
				t.Fatal(err)
			}
			n := 0
			for lines := bufio.NewScanner(body); lines.Scan(); n++ {
				var d v1.Operation
				if err := json.Unmarshal(lines.Bytes(), &d); err != nil || d.ID != fmt.Sprint("id", n/2) {
					t.Fatalf("line %d: %+v, %v", n, d, err)
				}
			}
			body.Close()
			if n != want {
				t.Errorf("limit %d: %d lines", limit, n)
			}
		}
		body, err := h.caller.ExportHolds(t.Context(), v1.JournalQuery{Holder: "ann"})
		if err != nil {
			t.Fatal(err)
		}
		defer body.Close()
		if b, err := io.ReadAll(body); err != nil || strings.Count(string(b), "\n") != cycles {
			t.Errorf("%d holds, %v", strings.Count(string(b), "\n"), err)
		}
		if n := value(h.door.backend.Metrics().Exports); n != 0 {
			t.Errorf("%v exports are under way", n)
		}
	})
}

// An export that cannot go on is cut, so that nobody takes it for whole.
func TestAnExportThatIsCutSaysSo(t *testing.T) {
	e := memory.Start(engine.NewGoClock())
	defer e.Close()
	door := open(e, Config{})
	for i := range 800 {
		id := fmt.Sprint("id", i)
		record(door, "POST", "/v1/acquire", `{"resource":"r","holder":"h","id":"`+id+`"}`)
		record(door, "POST", "/v1/release", `{"id":"`+id+`"}`)
	}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		door.ServeHTTP(&tired{w, door.backend.State().Stop}, r)
	}))
	defer server.Close()
	caller, err := v1.NewCaller(v1.CallerConfig{Server: server.URL, Client: server.Client()})
	if err != nil {
		t.Fatal(err)
	}
	body, err := caller.ExportAudit(t.Context(), v1.JournalQuery{})
	if err != nil {
		t.Fatal(err)
	}
	defer body.Close()
	b, err := io.ReadAll(body)
	if n := strings.Count(string(b), "\n"); err == nil || n != 1000 || !errors.Is(err, leasehold.ErrUnavailable) {
		t.Errorf("after %d lines: %v", n, err)
	}
	if _, err := caller.ExportAudit(t.Context(), v1.JournalQuery{}); !errors.Is(err, leasehold.ErrUnavailable) {
		t.Errorf("from a server that stops: %v", err)
	}
}

// tired stops the server after the first write.
type tired struct {
	http.ResponseWriter
	stop context.CancelFunc
}

func (w *tired) Unwrap() http.ResponseWriter { return w.ResponseWriter }

func (w *tired) Write(b []byte) (int, error) {
	defer w.stop()
	return w.ResponseWriter.Write(b)
}

func TestJournalQueryIsChecked(t *testing.T) {
	door := newDoor(t, Config{})
	for query, detail := range map[string]string{
		"resource=":                           "resource is missing",
		"resource=a//b":                       "has the segment",
		"resource=a&prefix=b":                 "give one",
		"prefix=%00":                          "control character",
		"holder=" + strings.Repeat("h", 1025): "at most 1024",
		"from=yesterday":                      "from \\\"yesterday\\\" is not a time: write it as 2026-03-01T04:30:00Z",
		"until=2026-03-01":                    "until \\\"2026-03-01\\\" is not a time",
		"from=0001-01-01T00:00:00Z":           "is not a time",
		"from=9999-01-01T00:00:00Z":           "is not a time",
		"oldest=maybe":                        "neither true nor false",
		"after=x":                             "leave it out to begin again",
		"after=1":                             "leave it out to begin again",
		"after=0.0":                           "leave it out to begin again",
		"limit=0":                             "from 1 to 1000",
		"limit=1001":                          "from 1 to 1000",
		"kind=x":                              "unknown here; known are: namespace",
	} {
		for _, path := range []string{"/v1/audit", "/v1/holds"} {
			ask(t, door, "GET", path+"?"+query, "").expect(400, `"code":"invalid"`, detail)
		}
	}
	ask(t, door, "GET", "/v1/audit?verb=steal", "").expect(400, `verb \"steal\" is unknown; known are: expire, grant, login, change-access, begin-reservation`)
	ask(t, door, "GET", "/v1/audit?actor=%ff", "").expect(400, "not valid UTF-8")
	ask(t, door, "GET", "/v1/holds?verb=break", "").expect(400, "unknown here")
	ask(t, door, "GET", "/v1/audit?after=99.0", "").expect(200, `"items":[]`)
}

func TestNoJournal(t *testing.T) {
	door := open(&stub{}, Config{})
	for _, path := range []string{"/v1/audit", "/v1/holds"} {
		ask(t, door, "GET", path, "").expect(404, "this server keeps no journal: its setting journal-size is 0")
	}
	ask(t, door, "POST", "/v1/acquire", `{}`, "Sec-Fetch-Site", "cross-site").expect(403)
}

// Whatever a query says, the answer is one that is documented, and has no line that was
// not asked for.
func FuzzJournalQuery(f *testing.F) {
	f.Add("resource=held&holder=ann&from=2026-03-01T04:30:00Z&until=2199-03-01T04:30:00Z&oldest&after=1.8&limit=1")
	f.Add("prefix=he&actor=ann&verb=acquire")
	f.Add("after=18446744073709551615.9223372036854775807")
	f.Add("from=&until=&limit=1000&namespace=default")
	e := memory.Start(engine.NewGoClock())
	f.Cleanup(func() { e.Close() })
	door := open(e, Config{Metrics: shared()})
	record(door, "POST", "/v1/acquire", `{"resource":"held","holder":"ann","id":"a"}`)
	record(door, "POST", "/v1/release", `{"id":"a"}`)
	f.Fuzz(func(t *testing.T, query string) {
		for _, path := range []string{"/v1/audit", "/v1/holds"} {
			r := httptest.NewRequest("GET", path, nil)
			r.URL.RawQuery = query
			w := httptest.NewRecorder()
			door.ServeHTTP(w, r)
			got := answer{t, w.Code, w.Header(), w.Body.String()}
			checkDescribed(t, r, got)
			if got.status != 200 {
				continue
			}
			values, err := url.ParseQuery(query)
			if err != nil {
				t.Fatalf("%q was read", query)
			}
			if resource := values.Get("resource"); resource != "" && resource != "held" && strings.Contains(got.body, `"held"`) {
				t.Errorf("%q: %s", query, got.body)
			}
		}
	})
}
