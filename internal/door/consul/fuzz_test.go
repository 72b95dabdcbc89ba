package consul

import (
	"bytes"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/leasehold/leasehold"
	"github.com/leasehold/leasehold/internal/core"
)

// FuzzRequest sends whatever it likes. Every answer has a status of Consul's, and the state stays sound.
func FuzzRequest(f *testing.F) {
	for _, seed := range [][3]string{
		{"GET", "kv/a?index=18446744073709551615&wait=1ns", ""}, {"GET", "kv/a?recurse&wait=-1s", ""},
		{"GET", "kv/?keys&separator=/", ""}, {"PUT", "kv/a?cas=1&flags=9", "v"}, {"PUT", "kv/a?acquire=s", "v"},
		{"PUT", "kv/a?release=s", ""}, {"DELETE", "kv/a?cas=0", ""}, {"DELETE", "kv/?recurse", ""},
		{"PUT", "session/create", `{"TTL":"10s","LockDelay":1e999,"Behavior":"delete"}`},
		{"PUT", "session/create", `{"LockDelay":"1h","Checks":[],"NodeChecks":null}`},
		{"PUT", "session/renew/s", ""}, {"PUT", "session/destroy/s", ""}, {"GET", "session/info/s?index=2&wait=1ns", ""},
		{"PUT", "txn", `[{"KV":{"Verb":"set","Key":"a","Value":"MQ=="}},{"KV":{"Verb":"delete-tree","Key":""}},{"KV":{"Verb":"get-tree","Key":"a"}}]`},
		{"PUT", "txn", `[{"KV":{"Verb":"lock","Key":"a","Session":"s"}},{"KV":{"Verb":"unlock","Key":"a","Session":"s"}},{"KV":{"Verb":"cas","Key":"a","Index":18446744073709551615}}]`},
		{"GET", "agent/self?pretty", ""}, {"OPTIONS", "kv/a", ""}, {"GET", "kv/../../x", ""},
	} {
		f.Add(seed[0], seed[1], seed[2])
	}
	f.Fuzz(func(t *testing.T, method, target, body string) {
		r, err := http.NewRequest(method, "http://x/v1/"+target, strings.NewReader(body))
		if err != nil || r.URL.Query().Has("index") && r.URL.Query().Get("wait") != "1ns" {
			return // no client can send it, or it would wait
		}
		r.RemoteAddr = "1.2.3.4:5"
		b := newBench(t, Config{})
		b.do(&core.OpenSession{Namespace: leasehold.DefaultNamespace, ID: "s", TTL: time.Hour})
		b.ask("PUT /v1/kv/a?acquire=s", "held").is("true")
		w := httptest.NewRecorder()
		b.door.ServeHTTP(w, r)
		switch w.Code {
		case 200, 400, 403, 404, 405, 409, 413, 429, 500:
		default:
			t.Errorf("the status is %d: %s", w.Code, w.Body)
		}
		if strings.HasPrefix(w.Header().Get("Content-Type"), "application/json") && w.Body.Len() > 0 && !json.Valid(w.Body.Bytes()) {
			t.Errorf("the answer is no JSON: %s", w.Body)
		}
	})
}

// FuzzPack: what is packed comes back, whatever it looks like.
func FuzzPack(f *testing.F) {
	f.Add([]byte(nil), uint64(0))
	f.Add([]byte(flagged), uint64(0))
	f.Add([]byte(flagged+"\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff"), uint64(1<<63))
	f.Fuzz(func(t *testing.T, value []byte, flags uint64) {
		got, back := unpack(pack(value, flags))
		if !bytes.Equal(got, value) || back != flags {
			t.Errorf("%q with %d came back as %q with %d", value, flags, got, back)
		}
		unpack(value)
	})
}
