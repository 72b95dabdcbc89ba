//go:build linux

package consul

import (
	"encoding/json"
	"fmt"
	"net/url"
	"strings"
	"testing"
	"time"
)

// open creates a session.
func (w *world) open(body string) string {
	w.Helper()
	var made struct{ ID string }
	w.must(json.Unmarshal([]byte(w.ask("PUT /v1/session/create", body).body), &made))
	return made.ID
}

// modified is the index at which a key was changed last.
func (w *world) modified(key string) uint64 {
	w.Helper()
	pair, _, err := w.client().KV().Get(key, nil)
	w.must(err)
	return pair.ModifyIndex
}

func (w *world) lockIndex(key string) uint64 {
	w.Helper()
	pair, _, err := w.client().KV().Get(key, nil)
	w.must(err)
	return pair.LockIndex
}

// TestKeys compares what is answered about keys, byte for byte but for indexes.
func TestKeys(t *testing.T) {
	compare(t, func(w *world) {
		w.ask("GET /v1/kv/a", "")
		w.ask("PUT /v1/kv/a", "hello")
		w.ask("GET /v1/kv/a", "")
		w.ask("GET /v1/kv/a?raw", "")
		w.ask("GET /v1/kv/a?consistent", "")
		w.ask("GET /v1/kv/a?stale&consistent", "")
		w.ask("GET /v1/kv/a?pretty", "")
		w.ask("PUT /v1/kv/a?flags=18446744073709551615", "")
		w.ask("GET /v1/kv/a", "")
		w.ask("PUT /v1/kv/dir/b", "\x00\xff bytes")
		w.ask("PUT /v1/kv/dir/sub/c", "3")
		w.ask("PUT /v1/kv/dir/sub/d", "4")
		w.ask("PUT /v1/kv/dir/", "5")
		w.ask("GET /v1/kv/dir?recurse", "")
		w.ask("GET /v1/kv/dir/?keys", "")
		w.ask("GET /v1/kv/dir/?keys&separator=/", "")
		w.ask("GET /v1/kv/?keys&separator=/", "")
		w.ask("GET /v1/kv/d?keys&separator=r", "")
		w.ask("GET /v1/kv/none?recurse", "")
		w.ask("GET /v1/kv/none?keys", "")
		w.ask("GET /v1/kv/dir//sub/../b", "")
		w.ask("PUT /v1/kv/a%20b", "with a space")
		w.ask("GET /v1/kv/a%20b?raw", "")
		w.ask("PUT /v1/kv/sl%2Fash", "escaped")
		w.ask("GET /v1/kv/sl/ash?raw", "")
		for _, wrong := range []string{
			"GET /v1/kv/", "PUT /v1/kv/", "DELETE /v1/kv/", "POST /v1/kv/a", "GET /v1/kv/a?index=x", "GET /v1/kv/a?wait=x",
			"PUT /v1/kv/a?flags=x", "PUT /v1/kv/a?cas=x", "PUT /v1/kv/a?cas=1&release=x", "DELETE /v1/kv/a?cas=1&recurse",
			"DELETE /v1/kv/a?cas=x", "PUT /v1/kv/a?release=none",
			"PUT /v1/kv/none?release=none", "GET /v1/kv/a?dc=other", "GET /v1/kv/%20a", "GET /v1/kv/..%2Fa", "POST /v1/session/create",
			"GET /v1/session/destroy/x", "OPTIONS /v1/kv/a",
		} {
			w.ask(wrong, "")
		}
		w.differs("text of an unknown session", "%s", w.send("PUT /v1/kv/a?acquire=none", "").body)
		w.differs("text of an unknown session", "%s", w.send("PUT /v1/kv/a?acquire=", "").body)
		w.differs("text of an unknown session", "%s", w.send("PUT /v1/kv/a?release=", "").body)
		w.differs("text of a body too large", "%s", w.send("PUT /v1/kv/a", strings.Repeat("x", 512<<10+1)).body)
		w.ask("PUT /v1/kv/large", strings.Repeat("y", 512<<10))
		if got := w.send("GET /v1/kv/large?raw", "").body; got != strings.Repeat("y", 512<<10) {
			t.Errorf("%s: a large value came back with %d bytes", w.name, len(got))
		}
		w.ask("DELETE /v1/kv/large", "")
		for _, index := range []uint64{0, w.modified("a") + 1000, w.modified("a")} {
			w.say("cas %s", w.send(fmt.Sprintf("PUT /v1/kv/a?cas=%d", index), "x").body)
			w.say("cas on nothing %s", w.send(fmt.Sprintf("PUT /v1/kv/none-%d?cas=%d", index, index), "x").body)
		}
		for _, index := range []uint64{0, w.modified("a") + 1000, w.modified("a")} {
			w.say("delete cas %s", w.send(fmt.Sprintf("DELETE /v1/kv/a?cas=%d", index), "").body)
			w.say("delete cas on nothing %s", w.send(fmt.Sprintf("DELETE /v1/kv/none?cas=%d", index), "").body)
		}
		w.ask("GET /v1/kv/a", "")
		w.ask("DELETE /v1/kv/dir/?recurse", "")
		w.ask("DELETE /v1/kv/none", "")
		w.ask("GET /v1/kv/dir?keys", "")
		w.ask("DELETE /v1/kv/?recurse", "")
		w.ask("GET /v1/kv/?keys", "")
		w.ask("GET /v1/none", "")
	})
}

// TestSessions compares what is answered about sessions.
func TestSessions(t *testing.T) {
	compare(t, func(w *world) {
		w.ask("GET /v1/session/list", "")
		bodies := []string{
			"", `{}`, `{"Name":"web","TTL":"15s","LockDelay":"7s","Behavior":"delete"}`, `{"LockDelay":20}`,
			`{"LockDelay":5000000000}`, `{"TTL":"0s"}`, `{"TTL":"24h"}`, `{"Checks":[]}`, `{"NodeChecks":[]}`,
			`{"NodeChecks":["serfHealth"]}`, `{"Behavior":""}`, `{"Name":"ünï"}`,
		}
		for _, body := range bodies {
			id := w.open(body)
			w.ask("GET /v1/session/info/"+id, "")
			w.ask("PUT /v1/session/renew/"+id, "")
			w.ask("PUT /v1/session/destroy/"+id, "")
			w.ask("GET /v1/session/info/"+id, "")
			w.ask("PUT /v1/session/renew/"+id, "")
			w.ask("PUT /v1/session/destroy/"+id, "")
		}
		for _, body := range []string{
			`{"TTL":"5s"}`, `{"TTL":"25h"}`, `{"TTL":"x"}`, `{"TTL":"-10s"}`, `{"Behavior":"keep"}`, `{"Node":"other"}`, `{"NodeChecks":["mine"]}`,
			`{"LockDelay":"x"}`,
		} {
			w.say("create %s: %s", body, strings.TrimPrefix(w.send("PUT /v1/session/create", body).body, "apply failed: "))
		}
		for _, body := range []string{`[]`, `{"Name":1}`} {
			w.differs("text of a wrong body", "%s", w.send("PUT /v1/session/create", body).body)
		}
		id := w.open(`{"Unknown":1}`)
		w.ask("GET /v1/session/list", "")
		w.say("of the node: %s", w.send("GET /v1/session/node/"+url.PathEscape(w.node), "").body)
		w.ask("GET /v1/session/node/none", "")
		w.ask("GET /v1/session/info/", "")
		w.ask("PUT /v1/session/renew/", "")
		w.ask("PUT /v1/session/destroy/", "")
		w.ask("GET /v1/session/node/", "")
		w.ask("PUT /v1/session/destroy/"+id, "")
	})
}

// TestLocks compares how keys are acquired and released.
func TestLocks(t *testing.T) {
	compare(t, func(w *world) {
		ann, bob := w.open(`{"LockDelay":"2s"}`), w.open(`{"Behavior":"delete","LockDelay":"2s"}`)
		w.ask("PUT /v1/kv/a?acquire="+ann+"&flags=9", "1")
		w.ask("GET /v1/kv/a", "")
		w.ask("PUT /v1/kv/a?acquire="+bob, "2")
		w.ask("PUT /v1/kv/a?acquire="+ann, "3")
		w.ask("GET /v1/kv/a", "")
		w.ask("PUT /v1/kv/a?release="+bob, "4")
		w.ask("PUT /v1/kv/a?release="+ann, "5")
		w.ask("GET /v1/kv/a", "")
		w.ask("PUT /v1/kv/a?acquire="+bob, "6")
		w.ask("GET /v1/kv/a", "")
		before := w.lockIndex("a")
		w.ask("PUT /v1/kv/a?cas="+fmt.Sprint(w.modified("a")), "7")
		w.ask("DELETE /v1/kv/a", "")
		w.ask("PUT /v1/kv/a?acquire="+ann, "")
		w.differs("lock index after a delete", "it grows: %v", w.lockIndex("a") > before)
		w.ask("PUT /v1/kv/b?acquire="+ann, "held")
		w.ask("PUT /v1/kv/b", "plain")
		w.differs("lock index after a plain put", "%s", w.send("GET /v1/kv/b", "").body)
		w.ask("PUT /v1/kv/c?acquire="+bob, "deleted with its session")
		w.ask("PUT /v1/session/destroy/"+ann, "")
		w.ask("PUT /v1/session/destroy/"+bob, "")
		w.say("after the sessions: %v", !strings.Contains(w.send("GET /v1/kv/b", "").body, "Session"))
		w.ask("GET /v1/kv/c", "")
		cyd := w.open("")
		for _, key := range []string{"b", "c"} {
			w.ask("PUT /v1/kv/"+key+"?acquire="+cyd, "within the lock-delay")
		}
		for began := time.Now(); w.send("PUT /v1/kv/b?acquire="+cyd, "").body != "true"; time.Sleep(100 * time.Millisecond) {
			if time.Since(began) > patience {
				t.Fatalf("%s: the lock-delay does not end", w.name)
			}
		}
		w.say("held by %v", strings.Contains(w.send("GET /v1/kv/b", "").body, cyd))
	})
}

// TestTransactions compares transactions.
func TestTransactions(t *testing.T) {
	compare(t, func(w *world) {
		ann, bob := w.open(""), w.open("")
		txn := func(ops ...string) { w.ask("PUT /v1/txn", `[{"KV":`+strings.Join(ops, `},{"KV":`)+`}]`) }
		txn(`{"Verb":"set","Key":"a","Value":"MQ==","Flags":3}`, `{"Verb":"get","Key":"a"}`, `{"Verb":"get-tree","Key":"a"}`)
		txn(`{"Verb":"set","Key":"no"}`, `{"Verb":"get-tree","Key":""}`, `{"Verb":"set","Key":""}`, `{"Verb":"jump","Key":"a"}`)
		txn(`{"Verb":"get","Key":"a"}`)
		txn(`{"Verb":"get","Key":"none"}`)
		txn(`{"Verb":"get-or-empty","Key":"none"}`)
		txn(`{"Verb":"get-tree","Key":"none"}`)
		txn(`{"Verb":"set","Key":"b","Value":"Mg=="}`, `{"Verb":"cas","Key":"a","Index":99999,"Value":"Mg=="}`)
		txn(`{"Verb":"cas","Key":"a","Index":0,"Value":"Mg=="}`)
		txn(`{"Verb":"cas","Key":"none","Index":7,"Value":"Mg=="}`)
		txn(`{"Verb":"cas","Key":"new","Index":0,"Value":"Mg=="}`)
		txn(`{"Verb":"check-index","Key":"a","Index":` + fmt.Sprint(w.modified("a")) + `}`)
		txn(`{"Verb":"check-index","Key":"none","Index":1}`)
		txn(`{"Verb":"check-session","Key":"a","Session":"`+ann+`"}`, `{"Verb":"set","Key":"x"}`)
		txn(`{"Verb":"check-session","Key":"none","Session":"` + ann + `"}`)
		txn(`{"Verb":"check-not-exists","Key":"a"}`, `{"Verb":"set","Key":"x"}`)
		txn(`{"Verb":"check-not-exists","Key":"none"}`, `{"Verb":"set","Key":"x"}`)
		txn(`{"Verb":"lock","Key":"l","Value":"MQ==","Session":"` + ann + `"}`)
		txn(`{"Verb":"lock","Key":"l","Value":"Mg==","Session":"` + bob + `"}`)
		txn(`{"Verb":"lock","Key":"l","Value":"Mw==","Session":"` + ann + `"}`)
		txn(`{"Verb":"lock","Key":"l2","Session":"none"}`)
		txn(`{"Verb":"lock","Key":"l2"}`)
		txn(`{"Verb":"check-session","Key":"l","Session":"` + ann + `"}`)
		txn(`{"Verb":"unlock","Key":"l","Session":"` + bob + `"}`)
		txn(`{"Verb":"unlock","Key":"l","Session":"`+ann+`"}`, `{"Verb":"lock","Key":"l","Session":"`+bob+`"}`, `{"Verb":"get","Key":"l"}`)
		txn(`{"Verb":"delete","Key":"l"}`, `{"Verb":"check-not-exists","Key":"l"}`)
		txn(`{"Verb":"set","Key":"t/a","Value":"MQ=="}`, `{"Verb":"set","Key":"t/b","Value":"MQ=="}`)
		txn(`{"Verb":"delete-tree","Key":"t/"}`, `{"Verb":"set","Key":"t/c","Value":"MQ=="}`, `{"Verb":"get-tree","Key":"t/"}`)
		txn(`{"Verb":"delete-cas","Key":"t/c","Index":1}`)
		txn(`{"Verb":"delete-cas","Key":"t/none","Index":1}`)
		txn(`{"Verb":"delete-cas","Key":"t/c","Index":` + fmt.Sprint(w.modified("t/c")) + `}`)
		txn(`{"Verb":"set","Key":"s","Value":"MQ=="}`, `{"Verb":"set","Key":"s","Value":"Mg=="}`, `{"Verb":"get","Key":"s"}`)
		w.ask("PUT /v1/txn", "[]")
		w.ask("PUT /v1/txn", `[{}]`)
		w.ask("GET /v1/txn", "")
		many := strings.TrimSuffix(strings.Repeat(`{"KV":{"Verb":"set","Key":"a"}},`, 129), ",")
		r := w.send("PUT /v1/txn", "["+many+"]")
		w.say("too many: %d %s", r.status, r.body)
		w.differs("text of a body too large", "%s", w.send("PUT /v1/txn", `[{"KV":{"Verb":"set","Key":"a","Value":"`+strings.Repeat("A", 600<<10)+`"}}]`).body)
		w.ask("GET /v1/kv/?keys", "")
	})
}

// TestBlocking compares when blocking queries end, and with which index.
func TestBlocking(t *testing.T) {
	compare(t, func(w *world) {
		later := func(what, index string) <-chan reply {
			done, was := make(chan reply, 1), w.send(what, "")
			go func() { done <- w.news(what, index, was) }()
			return done
		}
		woken := func(name string, wait <-chan reply, index string) reply {
			select {
			case r := <-wait:
				w.say("%s: %d, a new index: %v", name, r.status, r.index() != index)
				return r
			case <-time.After(patience):
				t.Fatalf("%s: %s is not woken", w.name, name)
				return reply{}
			}
		}
		w.ask("PUT /v1/kv/p/a", "1")
		w.ask("PUT /v1/kv/p/b", "1")
		key, tree := w.send("GET /v1/kv/p/a", "").index(), w.send("GET /v1/kv/p/?recurse", "").index()
		for name, what := range map[string]string{"key": "GET /v1/kv/p/a?wait=1s&index=" + key, "tree": "GET /v1/kv/p/?recurse&wait=1s&index=" + tree} {
			began := time.Now()
			r := w.send(what, "")
			if took := time.Since(began); took < time.Second {
				t.Errorf("%s: %s waited %v", w.name, name, took)
			}
			if r.index() != map[string]string{"key": key, "tree": tree}[name] {
				t.Errorf("%s: the index of %s went on without news", w.name, name)
			}
		}
		wait := later("GET /v1/kv/p/a", key)
		w.ask("PUT /v1/kv/p/b", "2")
		w.ask("PUT /v1/kv/p/a", "2")
		r := woken("a change of the key", wait, key)
		if seen := w.send("GET /v1/kv/p/a", "").index(); r.index() != seen {
			t.Errorf("%s: the index is %s, and was told as %s", w.name, seen, r.index())
		}
		wait = later("GET /v1/kv/p/a", r.index())
		w.ask("DELETE /v1/kv/p/a", "")
		gone := woken("a delete of the key", wait, r.index())
		wait = later("GET /v1/kv/p/a", gone.index())
		w.ask("PUT /v1/kv/q", "x")
		w.ask("PUT /v1/kv/p/a", "3")
		woken("a key that comes", wait, gone.index())
		tree = w.send("GET /v1/kv/p/?recurse", "").index()
		wait = later("GET /v1/kv/p/?recurse", tree)
		w.ask("DELETE /v1/kv/p/b", "")
		woken("a delete in the tree", wait, tree)
		list := w.send("GET /v1/session/list", "").index()
		wait = later("GET /v1/session/list", list)
		s := w.open("")
		opened := woken("a new session", wait, list)
		wait = later("GET /v1/session/info/"+s, opened.index())
		w.ask("PUT /v1/session/destroy/"+s, "")
		woken("the end of a session", wait, opened.index())
	})
}
