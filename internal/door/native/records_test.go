package native

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/leasehold/leasehold"
	v1 "github.com/leasehold/leasehold/api/v1"
	"github.com/leasehold/leasehold/internal/door/native/encode"
)

func TestRecords(t *testing.T) {
	door := newDoor(t, Config{})
	const at = "/v1/records/config/a"
	ask(t, door, "GET", at, "").expect(404, "no record config/a")
	a := ask(t, door, "PUT", at, "one\x00\xff", "Content-Type", "image/png").expect(200).without("value")
	r := read[v1.Record](a)
	if r.Path != "config/a" || r.Create != 1 || r.Mod != 1 || r.Version != 1 || a.header.Get("ETag") != `"1"` {
		t.Errorf("the record is %+v, its tag %s", r, a.header.Get("ETag"))
	}
	a = ask(t, door, "GET", at, "").expect(200)
	if r := read[v1.Record](a); string(r.Value) != "one\x00\xff" || a.header.Get("ETag") != `"1"` || a.header.Get("Leasehold-Revision") != "1" {
		t.Errorf("the record is %+v", r)
	}
	a = ask(t, door, "GET", at, "", "Accept", "application/octet-stream").expect(200)
	if a.body != "one\x00\xff" || a.header.Get("Content-Type") != "application/octet-stream" || a.header.Get("ETag") != `"1"` {
		t.Errorf("the bytes are %q", a.body)
	}

	// Conditions have a status of their own.
	ask(t, door, "PUT", at, "x", "If-None-Match", "*").expect(412, `"code":"refused"`, "is there already")
	ask(t, door, "PUT", at, "two", "If-Match", `"1"`).expect(200, `"version":2`)
	ask(t, door, "PUT", at, "x", "If-Match", `"1"`).expect(412, "is at revision 2, and was expected at 1")
	ask(t, door, "PUT", at, "three", "If-Match", `2`).expect(200, `"version":3`)
	ask(t, door, "DELETE", at, "", "If-Match", `"1"`).expect(412)
	ask(t, door, "GET", at+"?revision=2", "").expect(200, `"value":"dHdv"`)
	ask(t, door, "GET", at+"?revision=9", "").expect(422, "3 is the newest")
	ask(t, door, "DELETE", at, "", "If-Match", `"3"`).expect(200, `{"deleted":1,"revision":4}`)
	ask(t, door, "DELETE", at, "").expect(200, `{"deleted":0,"revision":4}`)

	// Bytes of any kind, up to so many; and none.
	ask(t, door, "PUT", at, "").expect(200)
	ask(t, door, "GET", at, "").expect(200, `"value":""`)
	ask(t, door, "PUT", at, strings.Repeat("x", leasehold.MaxValue)).expect(200)
	ask(t, door, "PUT", at, strings.Repeat("x", leasehold.MaxValue+1)).expect(200, `"large":{"sha256":`, `"size":65537}`)
	ask(t, door, "PUT", at, "small again").expect(200).without("large")

	for _, headers := range [][]string{
		{"If-Match", "*"}, {"If-Match", `"0"`}, {"If-Match", `"1", "2"`}, {"If-Match", "1", "If-Match", "2"}, {"If-Match", ""},
		{"If-None-Match", `"1"`}, {"If-None-Match", "*", "If-Match", "1"},
		{v1.TokenHeader, "0"}, {v1.TokenHeader, "-1"}, {v1.TokenHeader, "x"}, {v1.LeaseHeader, "a\x01"},
	} {
		ask(t, door, "PUT", at, "x", headers...).expect(400, `"code":"invalid"`)
	}
	ask(t, door, "GET", at+"?revision=0", "").expect(400)
	ask(t, door, "DELETE", at, "", "If-None-Match", "*").expect(400, "means nothing here")
	ask(t, door, "PUT", "/v1/records/", "x").expect(400, "path is missing")
	ask(t, door, "PUT", at, "x", v1.KeyHeader, "k").expect(200, `"version":5`)
	ask(t, door, "PUT", at, "x", v1.KeyHeader, "k").expect(200, `"version":5`)
}

func TestRecordFences(t *testing.T) {
	door := newDoor(t, Config{})
	put := func(value string, headers ...string) answer {
		t.Helper()
		return ask(t, door, "PUT", "/v1/records/state", value, headers...)
	}
	post := func(path, body string) { t.Helper(); ask(t, door, "POST", path, body).expect(200) }
	post("/v1/acquire", `{"resource":"r","holder":"ann","id":"a"}`)
	put("1", v1.LeaseHeader, "a", v1.TokenHeader, "1").expect(200, `"token":1`)
	post("/v1/release", `{"id":"a"}`)
	post("/v1/acquire", `{"resource":"r","holder":"bob","id":"b"}`)
	put("2", v1.LeaseHeader, "a", v1.TokenHeader, "1").expect(410, "with token 1", "bob holds it with token 2")
	put("2", v1.LeaseHeader, "b").expect(200, `"token":2`)
	put("3", v1.TokenHeader, "1").expect(410, "token 1 is too old for state, which was written under token 2")
	ask(t, door, "DELETE", "/v1/records/state", "", v1.TokenHeader, "1").expect(410)
	ask(t, door, "DELETE", "/v1/records?prefix=s", "", v1.LeaseHeader, "a").expect(410)
	put("3", v1.TokenHeader, "9").expect(422, "was never granted")

	post("/v1/sessions", `{"id":"s"}`)
	ask(t, door, "PUT", "/v1/records/alive?session=s", "yes").expect(200, `"session":"s"`)
	ask(t, door, "GET", "/v1/sessions/s", "").expect(200, `"claims":1`)
	ask(t, door, "DELETE", "/v1/sessions/s", "").expect(200)
	ask(t, door, "GET", "/v1/records/alive", "").expect(404)
	ask(t, door, "PUT", "/v1/records/alive?session=s", "yes").expect(410)
}

func TestRecordPages(t *testing.T) {
	door := newDoor(t, Config{})
	for i := range 25 {
		ask(t, door, "PUT", fmt.Sprintf("/v1/records/a/%02d", i), fmt.Sprint(i)).expect(200)
	}
	ask(t, door, "PUT", "/v1/records/b", "b").expect(200)
	list := func(query string) v1.RecordPage {
		t.Helper()
		return read[v1.RecordPage](ask(t, door, "GET", "/v1/records?"+query, "").expect(200))
	}
	page := list("prefix=a/&limit=10&count")
	if len(page.Items) != 10 || page.Count != 25 || page.Revision != 26 || string(page.Items[9].Value) != "9" {
		t.Errorf("the page is %+v", page)
	}
	ask(t, door, "DELETE", "/v1/records?from=a/05&to=a/15", "").expect(200, `{"deleted":10,"revision":27}`)
	seen := 0
	for after := ""; ; after = page.Next {
		page = list(fmt.Sprintf("prefix=a/&limit=10&revision=26&keys&after=%s", after))
		if seen += len(page.Items); page.Next == "" {
			break
		}
	}
	if seen != 25 || page.Items[0].Value != nil {
		t.Errorf("at an older revision there are %d", seen)
	}
	if page := list("from=a/04&to=a/16"); len(page.Items) != 2 || page.Next != "" {
		t.Errorf("the range is %+v", page)
	}
	if page := list("namespace=green"); page.Items == nil || len(page.Items) != 0 {
		t.Errorf("nothing is %+v", page)
	}
	ask(t, door, "GET", "/v1/records?prefix=a&from=a", "").expect(400, "two ranges")
	ask(t, door, "DELETE", "/v1/records", "").expect(400, "nothing says what to delete")
	ask(t, door, "DELETE", "/v1/records?prefix=a", "", "If-Match", "1").expect(400)
	ask(t, door, "POST", "/v1/records", "").expect(405)
}

func TestTxn(t *testing.T) {
	door := newDoor(t, Config{})
	txn := func(body string, headers ...string) answer {
		t.Helper()
		return ask(t, door, "POST", "/v1/txn", body, headers...)
	}
	ask(t, door, "POST", "/v1/acquire", `{"resource":"r","holder":"ann","id":"a"}`).expect(200)
	body := `{"if":[{"record":"x","field":"version"},{"resource":"r","field":"token","number":1},{"resource":"r","field":"id","text":"a"}],
		"then":[{"do":"put","path":"x","value":"AP8="},{"do":"get","path":"x"},{"do":"put","path":"y/1"}],"else":[{"do":"get","prefix":"x","count":true}]}`
	got := read[v1.Txn](txn(body).expect(200))
	if !got.Succeeded || got.Revision != 2 || len(got.Results) != 3 || got.Results[0].Record.Path != "x" || string(got.Results[1].Items[0].Value) != "\x00\xff" {
		t.Errorf("it came to %+v", got)
	}
	got = read[v1.Txn](txn(body).expect(200))
	if got.Succeeded || len(got.Results) != 1 || got.Results[0].Count != 1 || got.Results[0].Items[0].Version != 1 {
		t.Errorf("it came to %+v", got)
	}
	txn(`{"if":[{"record":"x","field":"value","value":"AP8="},{"record":"x","field":"mod_revision","is":">","number":1}],"then":[{"do":"delete","from":"x"}]}`).
		expect(200, `"results":[{"deleted":2}]`)
	txn(`{"then":[{"do":"put","path":"x"}]}`, v1.KeyHeader, "k").expect(200, `"version":1`)
	txn(`{"then":[{"do":"put","path":"x"}]}`, v1.KeyHeader, "k").expect(200, `"version":1`)
	txn(`{}`).expect(200, `"results":[]`)
	txn(`{"then":[{"do":"get","prefix":"nothing"}]}`).expect(200, `{"items":[]}`)

	for body, says := range map[string]string{
		`{"then":[{"do":"put"}]}`:                                     "then 1: an operation needs a path",
		`{"then":[{"do":"get","path":"a","from":"b"}]}`:               "a path, a prefix or a range",
		`{"else":[{"do":"get","path":"a"},{"do":"jump","path":"a"}]}`: "else 2: do \\\"jump\\\" is unknown",
		`{"if":[{"record":"a","field":"token"}]}`:                     "known are create_revision",
		`{"if":[{"resource":"a","field":"value"}]}`:                   "known are id, token and floor",
		`{"if":[{"field":"value"}]}`:                                  "names a record or a resource",
		`{"if":[{"record":"a","field":"value","is":"~"}]}`:            "known are =, !=",
		`{"if":[{"record":"a","field":"value","text":"x"}]}`:          "in base64",
		`{"if":[{"record":"a","field":"value","value":"x"}]}`:         "base64",
		`{"if":[{"record":"a//b","field":"version"}]}`:                "segment",
		`{"then":[{"do":"put","path":"a"},{"do":"put","path":"a"}]}`:  "writes a twice",
		`{"then":[{"do":"put","path":"a","valu":""}]}`:                "unknown",
		`{"then":[{"do":"put","path":"a","value":7}]}`:                "base64",
		`{"then":7}`: "it has to be a list",
		`{"then":[{"do":"get","path":"a","limit":1001}]}`: "0 to 1000",
	} {
		txn(body).expect(400, says)
	}
	large := fmt.Sprintf(`{"then":[%s]}`, strings.TrimSuffix(strings.Repeat(fmt.Sprintf(`{"do":"get","path":%q},`, strings.Repeat("x", 1000)), 1400), ","))
	txn(large).expect(413, "more than 1310720 bytes")
}

// A caller says all that can be said of records, and reads all that is answered.
func TestRecordCaller(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := build(t, Config{})
		defer h.close()
		ctx, c := t.Context(), h.caller
		must := func(err error) {
			t.Helper()
			if err != nil {
				t.Fatal(err)
			}
		}
		for i := range 30 {
			_, err := c.PutRecord(ctx, v1.PutRequest{Path: fmt.Sprintf("a/%02d %%", i), Value: []byte{byte(i)}, IfAbsent: true}, v1.WithKey(fmt.Sprint(i)))
			must(err)
		}
		_, err := c.PutRecord(ctx, v1.PutRequest{Path: "a/00 %", IfAbsent: true})
		if !errors.Is(err, leasehold.ErrRefused) {
			t.Errorf("one that is there was made: %v", err)
		}
		_, err = c.PutRecord(ctx, v1.PutRequest{Path: "a/00 %", IfRevision: 7})
		if !errors.Is(err, leasehold.ErrRefused) {
			t.Errorf("one that is another was changed: %v", err)
		}
		_, err = c.PutRecord(ctx, v1.PutRequest{Path: "a/00 %", Fence: v1.Fence{Lease: "gone", Token: 1}})
		if !errors.Is(err, leasehold.ErrLost) {
			t.Errorf("a late holder wrote: %v", err)
		}
		_, err = c.PutRecord(ctx, v1.PutRequest{Path: "a/00 %", Session: "none"})
		if !errors.Is(err, leasehold.ErrNotFound) {
			t.Errorf("it is bound to no session: %v", err)
		}
		seen := 0
		for r, err := range c.Records(ctx, v1.RecordQuery{Prefix: "a/", Limit: 7}) {
			must(err)
			if r.Path != fmt.Sprintf("a/%02d %%", seen) || string(r.Value) != string([]byte{byte(seen)}) {
				t.Errorf("%d is %+v", seen, r)
			}
			if seen++; seen == 10 { // pages are of one revision
				_, err := c.DeleteRecord(ctx, v1.DeleteRequest{From: "a/20", To: "a/29"})
				must(err)
			}
		}
		page, err := c.RecordPage(ctx, v1.RecordQuery{From: "a/", To: "b", Keys: true, Count: true})
		if must(err); seen != 30 || page.Count != 21 || page.Items[0].Value != nil {
			t.Errorf("%d were seen, %d are left: %+v", seen, page.Count, page)
		}
		if r, err := c.Record(ctx, "a/25 %", 30); err != nil || r.Mod != 26 {
			t.Errorf("it was %+v, %v", r, err)
		}
		if _, err := c.Record(ctx, "a/25 %", 0); !errors.Is(err, leasehold.ErrNotFound) {
			t.Errorf("what is deleted is there: %v", err)
		}
		done, err := c.Txn(ctx, v1.TxnRequest{
			If:   []v1.Compare{{Record: "a/00 %", Field: "value", Value: []byte{0}}},
			Then: []v1.Op{{Do: "delete", Prefix: "a/"}, {Do: "put", Path: "b", Value: []byte("b")}},
		})
		if must(err); !done.Succeeded || *done.Results[0].Deleted != 21 || done.Results[1].Record.Version != 1 {
			t.Errorf("it came to %+v", done)
		}
		if _, err := c.Txn(ctx, v1.TxnRequest{Then: []v1.Op{{Do: "put", Path: "\xff"}}}); !errors.Is(err, leasehold.ErrInvalid) || !strings.Contains(err.Error(), "then 1: path") {
			t.Errorf("a path that is not UTF-8 was sent: %v", err)
		}
	})
}

// A watch shows what happens to records, with their values if it is asked to.
func TestWatchRecords(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := build(t, Config{})
		defer h.close()
		put := func(path, value string) {
			if _, err := h.caller.PutRecord(t.Context(), v1.PutRequest{Path: path, Value: []byte(value)}); err != nil {
				t.Fatal(err)
			}
		}
		put("a/1", "one")
		put("a/1", "two\x00")
		put("b", "other")
		large := strings.Repeat("x", leasehold.MaxValue)
		for range 30 {
			put("a/2", large)
		}
		if _, err := h.caller.DeleteRecord(t.Context(), v1.DeleteRequest{Path: "a/1"}); err != nil {
			t.Fatal(err)
		}
		for with, want := range map[encode.Values]string{
			{}: ",,", {Now: true}: "two\x00,,", {Before: true}: ",one,two\x00", {Now: true, Before: true}: "two\x00,one,two\x00",
		} {
			var events []v1.Event
			for e, err := range h.caller.Watch(t.Context(), v1.WatchQuery{Prefix: "a/", Since: "0", Values: with.Now, Previous: with.Before}) {
				if err != nil {
					t.Fatal(err)
				}
				if events = append(events, e); len(events) == 33 {
					break
				}
			}
			second, last := events[1], events[32]
			if second.Kind != "put" || second.Version != 2 || last.Kind != "deleted" || last.Resource != "a/1" {
				t.Errorf("there are %+v and %+v", second, last)
			}
			if got := string(second.Value) + "," + string(second.Previous) + "," + string(last.Previous); got != want {
				t.Errorf("with %+v there are %q, want %q", with, got, want)
			}
			if got := string(events[20].Value) == large; got != with.Now {
				t.Errorf("with %+v a large value arrives: %v", with, got)
			}
			if events[0].Previous != nil {
				t.Errorf("before the first value there was %q", events[0].Previous)
			}
		}
		time.Sleep(time.Second)
	})
}
