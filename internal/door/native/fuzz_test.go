package native

import (
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"testing"

	"github.com/leasehold/leasehold"
	v1 "github.com/leasehold/leasehold/api/v1"
	"github.com/leasehold/leasehold/internal/engine"
	"github.com/leasehold/leasehold/internal/engine/memory"
	"github.com/leasehold/leasehold/internal/telemetry"
)

// shared are metrics for doors that are made by the thousand.
var shared = sync.OnceValue(telemetry.NewMetrics)

// tryBody sends a body to a door behind which something is held, and checks what
// holds for every answer: it is JSON, it is one of those that are documented, and a
// request that is wrong changes nothing.
func tryBody(t *testing.T, path string, body []byte) answer {
	t.Helper()
	e := memory.Start(engine.NewGoClock())
	defer e.Close()
	door := open(e, Config{Metrics: shared()})
	record(door, "POST", "/v1/acquire", `{"resource":"held","holder":"ann","id":"a","ttl":null}`)
	record(door, "POST", "/v1/sessions", `{"id":"s"}`)
	before := record(door, "GET", "/v1/history", "").Body.String()

	// Waiting would take as long as the body says: the caller leaves at once.
	ctx, leave := context.WithCancel(t.Context())
	leave()
	r := httptest.NewRequestWithContext(ctx, "POST", path, strings.NewReader(string(body)))
	w := httptest.NewRecorder()
	door.ServeHTTP(w, r)
	got := answer{t, w.Code, w.Header(), w.Body.String()}
	checkAnswer(t, got)
	if got.status == http.StatusBadRequest {
		if after := record(door, "GET", "/v1/history", "").Body.String(); after != before {
			t.Errorf("%q is wrong, but something happened: %s", body, after)
		}
		if json.Valid(body) && strings.Contains(got.body, "not valid JSON") && !strings.Contains(got.body, "max depth") {
			t.Errorf("%q is JSON: %s", body, got.body)
		}
	}
	if err := e.Check(); err != nil {
		t.Errorf("after %q the state contradicts itself: %v", body, err)
	}
	return got
}

// checkAnswer checks the outside of an answer.
func checkAnswer(t *testing.T, a answer) {
	t.Helper()
	var p v1.Problem
	if err := json.Unmarshal([]byte(a.body), &p); err != nil {
		t.Fatalf("the answer is not JSON: %v: %s", err, a.body)
	}
	if a.status == http.StatusOK {
		return
	}
	if leasehold.CodeOf(p.Code) == 0 || p.Status != a.status || p.Detail == "" || len(p.Detail) > 2500 || a.header.Get("Content-Type") != "application/problem+json" {
		t.Errorf("not a problem: %d %s", a.status, a.body)
	}
}

func FuzzAcquire(f *testing.F) {
	f.Add([]byte(`{"resource":"r","holder":"h"}`))
	f.Add([]byte(`{"resource":"held","holder":"bob","wait":"5s"}`))
	f.Add([]byte(`{"resource":"reports/nightly","holder":"w","id":"i","ttl":"1m","grace":"1s","hold_limit":"2h","labels":{"a":"b"},"reason":"x"}`))
	f.Add([]byte(`{"resource":"r","holder":"h","session":"s","ttl":null}`))
	f.Add([]byte(`{"resource":"\ud83d\ude00","holder":"\u00e9"}`))
	f.Add([]byte(`{"ttl":"auto"} {}`))
	f.Fuzz(func(t *testing.T, body []byte) {
		got := tryBody(t, "/v1/acquire", body)
		if got.status != http.StatusOK {
			return
		}
		l := read[v1.Lease](got)
		if checkPath("resource", l.Resource) != nil || checkName("holder", l.Holder) != nil || checkName("id", l.ID) != nil || l.Token == 0 {
			t.Errorf("%q was granted as %+v", body, l)
		}
	})
}

func FuzzRenew(f *testing.F) {
	f.Add([]byte(`{"id":"a"}`))
	f.Add([]byte(`{"id":""}`))
	f.Fuzz(func(t *testing.T, body []byte) { tryBody(t, "/v1/renew", body) })
}

func FuzzRelease(f *testing.F) {
	f.Add([]byte(`{"id":"a"}`))
	f.Add([]byte(`{"id":"\u0000"}`))
	f.Fuzz(func(t *testing.T, body []byte) { tryBody(t, "/v1/release", body) })
}

func FuzzChange(f *testing.F) {
	f.Add([]byte(`{"id":"a","holder":"bob"}`))
	f.Add([]byte(`{"id":"a","new_id":"b","holder":""}`))
	f.Fuzz(func(t *testing.T, body []byte) { tryBody(t, "/v1/change", body) })
}

func FuzzBreak(f *testing.F) {
	f.Add([]byte(`{"id":"a","period":"0s","by":"op","reason":"r"}`))
	f.Add([]byte(`{"resource":"held","token":1,"period":"1d"}`))
	f.Add([]byte(`{"resource":"held","token":1e3}`))
	f.Fuzz(func(t *testing.T, body []byte) { tryBody(t, "/v1/break", body) })
}

func FuzzMove(f *testing.F) {
	f.Add([]byte(`{"id":"a","priority":5,"by":"op","reason":"late"}`))
	f.Add([]byte(`{"id":"a","priority":-1e3}`))
	f.Fuzz(func(t *testing.T, body []byte) { tryBody(t, "/v1/move", body) })
}

func FuzzAsk(f *testing.F) {
	f.Add([]byte(`{"resource":"held","message":"please release","by":"bob"}`))
	f.Add([]byte(`{"resource":"held","message":""}`))
	f.Fuzz(func(t *testing.T, body []byte) { tryBody(t, "/v1/ask", body) })
}

func FuzzAcknowledge(f *testing.F) {
	f.Add([]byte(`{"resource":"held","token":1,"by":"op","reason":"looked at"}`))
	f.Add([]byte(`{"resource":"held","token":-1}`))
	f.Fuzz(func(t *testing.T, body []byte) { tryBody(t, "/v1/acknowledge", body) })
}

func FuzzAcknowledgeAlarm(f *testing.F) {
	f.Add([]byte(`{"kind":"unclean-end","resource":"held","occurrence":1,"by":"op","reason":"looked at"}`))
	f.Add([]byte(`{"kind":"quarantine","occurrence":-1}`))
	f.Fuzz(func(t *testing.T, body []byte) { tryBody(t, "/v1/alarms/acknowledge", body) })
}

func FuzzRaiseTokens(f *testing.F) {
	f.Add([]byte(`{"above":1700,"by":"op","reason":"seen in Redis"}`))
	f.Add([]byte(`{"above":4503599627370497,"reason":""}`))
	f.Fuzz(func(t *testing.T, body []byte) { tryBody(t, "/v1/tokens/raise", body) })
}

func FuzzSession(f *testing.F) {
	f.Add([]byte(`{"id":"s","ttl":"20s","labels":{"a":"b"}}`))
	f.Add([]byte(`{"ttl":null}`))
	f.Fuzz(func(t *testing.T, body []byte) {
		tryBody(t, "/v1/sessions", body)
		tryBody(t, "/v1/sessions/s/renew", body)
	})
}

func FuzzTxn(f *testing.F) {
	f.Add([]byte(`{"if":[{"record":"a","field":"version","number":0},{"resource":"held","field":"id","text":"a","is":"="}],"then":[{"do":"put","path":"a","value":"eA==","session":"s"}],"else":[{"do":"get","prefix":"a","limit":3,"keys":true,"count":true}]}`))
	f.Add([]byte(`{"then":[{"do":"delete","from":"a","to":"b"},{"do":"put","path":"a"}]}`))
	f.Add([]byte(`{"if":[{"record":"a","resource":"b","field":"value","value":"?"}]}`))
	f.Add([]byte(`{"then":{}}`))
	f.Fuzz(func(t *testing.T, body []byte) {
		got := tryBody(t, "/v1/txn", body)
		if got.status == http.StatusOK {
			read[v1.Txn](got)
		}
	})
}

// Whatever bytes are put come back, under the path they were put to.
func FuzzRecord(f *testing.F) {
	f.Add("a", []byte("v"), `"1"`, "", "", "")
	f.Add("a/b", []byte{0, 255}, "", "*", "", "")
	f.Add("a", []byte(""), "", "", "a", "1")
	f.Add("held", []byte("x"), "*", "x", "b", "-1")
	f.Fuzz(func(t *testing.T, path string, value []byte, match, none, lease, token string) {
		r := request(t, "/v1/records/"+path)
		if r == nil {
			return
		}
		e := memory.Start(engine.NewGoClock())
		defer e.Close()
		door := open(e, Config{Metrics: shared()})
		record(door, "POST", "/v1/acquire", `{"resource":"held","holder":"ann","id":"a","ttl":null}`)
		put := httptest.NewRequest("PUT", "/", strings.NewReader(string(value)))
		put.URL = r.URL
		for name, text := range map[string]string{"If-Match": match, "If-None-Match": none, v1.LeaseHeader: lease, v1.TokenHeader: token} {
			if text != "" {
				put.Header.Set(name, text)
			}
		}
		w := httptest.NewRecorder()
		door.ServeHTTP(w, put)
		checkAnswer(t, answer{t, w.Code, w.Header(), w.Body.String()})
		if w.Code != http.StatusOK {
			return
		}
		r.Header.Set("Accept", "application/octet-stream")
		r = r.WithContext(t.Context())
		got := httptest.NewRecorder()
		door.ServeHTTP(got, r)
		if got.Code != http.StatusOK || got.Body.String() != string(value) || got.Header().Get("ETag") != w.Header().Get("ETag") {
			t.Errorf("%q was put to %q, and %d %q came back", value, path, got.Code, got.Body.String())
		}
		if err := e.Check(); err != nil {
			t.Error(err)
		}
	})
}

// request makes a request of what a client might write behind a path; nil if no
// client could.
func request(t *testing.T, target string) *http.Request {
	u, err := url.ParseRequestURI(target)
	if err != nil {
		return nil
	}
	ctx, leave := context.WithCancel(t.Context())
	leave()
	r := httptest.NewRequestWithContext(ctx, "GET", "/", nil)
	r.URL = u
	return r
}

func FuzzPath(f *testing.F) {
	for _, s := range []string{"a", "a/b", "a%2Fb", "a//b", "%2E%2E", "../x", "%00", "%ff", "日本", "a%20b?queue=1000", ""} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, path string) {
		e := memory.Start(engine.NewGoClock())
		defer e.Close()
		r := request(t, "/v1/resources/"+path)
		if r == nil {
			return
		}
		w := httptest.NewRecorder()
		open(e, Config{Metrics: shared()}).ServeHTTP(w, r)
		a := answer{t, w.Code, w.Header(), w.Body.String()}
		checkAnswer(t, a)
		if a.status != http.StatusOK {
			return
		}
		got := read[v1.Resource](a)
		want, err := url.PathUnescape(strings.TrimPrefix(r.URL.EscapedPath(), "/v1/resources/"))
		if err != nil || got.Resource != want || checkPath("resource", got.Resource) != nil {
			t.Errorf("%q is read as %q, %v", path, got.Resource, err)
		}
	})
}

func FuzzQuery(f *testing.F) {
	for _, s := range []string{"", "prefix=a/&limit=10&all", "after=YQ", "namespace=x", "namespace=%ff", "a;b", "limit=-1", "resource=r&before=3.1", "since=1&prefix=a", "kind=flapping&after=7", "kind=", "after=0"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, query string) {
		e := memory.Start(engine.NewGoClock())
		defer e.Close()
		door := open(e, Config{Metrics: shared()})
		for _, path := range []string{"/v1/resources", "/v1/resources/r", "/v1/history", "/v1/sessions/s", "/v1/records", "/v1/records/r", "/v1/alarms", "/v1/advice/r"} {
			r := request(t, path)
			r.URL.RawQuery = query
			w := httptest.NewRecorder()
			door.ServeHTTP(w, r)
			checkAnswer(t, answer{t, w.Code, w.Header(), w.Body.String()})
		}
	})
}

// A watch begins at each position that can be read, and at no other.
func FuzzSince(f *testing.F) {
	for _, s := range []string{"", "0", "1", "1.0", "1.4294967295", "18446744073709551615", "-1", "1.", ".1", "1.1.1", " 1", "１"} {
		f.Add(s, "")
		f.Add("", s)
	}
	f.Fuzz(func(t *testing.T, since, last string) {
		e := memory.Start(engine.NewGoClock())
		defer e.Close()
		door := open(e, Config{Metrics: shared()})
		record(door, "POST", "/v1/acquire", `{"resource":"r","holder":"h"}`)
		r := request(t, "/v1/watch")
		r.URL.RawQuery = url.Values{"since": {since}}.Encode()
		r.Header.Set("Last-Event-ID", last)
		w := httptest.NewRecorder()
		door.ServeHTTP(w, r)

		asked := last
		if asked == "" {
			asked = since
		}
		at, err := v1.ParsePosition(asked)
		body := w.Body.String()
		switch {
		case asked != "" && err != nil:
			checkAnswer(t, answer{t, w.Code, w.Header(), body})
			if w.Code != http.StatusBadRequest {
				t.Errorf("%q begins a watch: %s", asked, body)
			}
		case w.Code != http.StatusOK:
			t.Errorf("%q begins no watch: %s", asked, body)
		case asked != "" && at.Revision > 1:
			if !strings.HasPrefix(body, "event: gone\nid: 1\n") {
				t.Errorf("%q is ahead: %s", asked, body)
			}
		default:
			wants := asked != "" && (at.Revision == 0)
			if got := strings.Contains(body, "id: 1.0\ndata: {\"namespace\":\"default\",\"revision\":1,"); got != wants {
				t.Errorf("since %q there is an event: %v, want %v: %s", asked, got, wants, body)
			}
		}
	})
}

// Whatever a watch is asked for, it shows that and nothing else, or says what is
// wrong.
func FuzzWatchQuery(f *testing.F) {
	for _, s := range []string{"", "since=0", "since=0&prefix=a/", "since=0&resource=a/1&values&previous", "since=0.0&resource=a", "resource=a&prefix=", "values=no", "prefix=%ff", "since=1&since=2"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, query string) {
		e := memory.Start(engine.NewGoClock())
		defer e.Close()
		door := open(e, Config{Metrics: shared()})
		for _, path := range []string{"a", "a/1", "a/2", "b"} {
			record(door, "PUT", "/v1/records/"+path, "one")
			record(door, "PUT", "/v1/records/"+path, "two")
		}
		record(door, "POST", "/v1/sessions", `{"id":"s"}`)
		r := request(t, "/v1/watch")
		r.URL.RawQuery = query
		w := httptest.NewRecorder()
		door.ServeHTTP(w, r)
		body := w.Body.String()
		if w.Code != http.StatusOK {
			checkAnswer(t, answer{t, w.Code, w.Header(), body})
			return
		}
		asked, err := url.ParseQuery(query)
		if err != nil || asked.Has("prefix") && asked.Has("resource") {
			t.Fatalf("%q begins a watch", query)
		}
		if body == "" || strings.HasPrefix(body, "event: gone\n") {
			return
		}
		blocks := strings.Split(strings.TrimSuffix(body, "\n\n"), "\n\n")
		for _, block := range blocks[1:] {
			_, data, _ := strings.Cut(block, "\ndata: ")
			var event v1.Event
			if err := json.Unmarshal([]byte(data), &event); err != nil {
				t.Fatalf("%q shows %q: %v", query, block, err)
			}
			if !strings.HasPrefix(event.Resource, asked.Get("prefix")) || asked.Has("resource") && event.Resource != asked.Get("resource") {
				t.Errorf("%q shows %q", query, block)
			}
			if event.Value != nil && !asked.Has("values") || event.Previous != nil && !asked.Has("previous") {
				t.Errorf("%q shows values: %q", query, block)
			}
		}
	})
}
