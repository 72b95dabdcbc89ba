package consul

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/leasehold/leasehold"
	"github.com/leasehold/leasehold/internal/core"
)

// op writes an operation: "cas a 7 value", with a session or an index after the key.
func op(text string) string {
	f := strings.SplitN(text, " ", 4)
	o := map[string]any{"Verb": f[0], "Key": f[1]}
	if len(f) > 2 && f[2] != "" {
		if strings.HasSuffix(f[0], "lock") || f[0] == verbCheckSession {
			o["Session"] = f[2]
		} else {
			o["Index"] = json.Number(f[2])
		}
	}
	if len(f) > 3 {
		o["Value"] = base64.StdEncoding.EncodeToString([]byte(f[3]))
	}
	out, _ := json.Marshal(map[string]any{"KV": o})
	return string(out)
}

func (b *bench) txn(ops ...string) told {
	b.t.Helper()
	list := make([]string, len(ops))
	for i := range ops {
		list[i] = op(ops[i])
	}
	return b.ask("PUT /v1/txn", "["+strings.Join(list, ",")+"]")
}

// refused expects that an operation fails, and nothing was done.
func (a told) refused(i int, what string) {
	a.t.Helper()
	want := fmt.Sprintf(`{"Results":null,"Errors":[{"OpIndex":%d,"What":%q}]`, i, what)
	if a.status != 409 || !strings.HasPrefix(a.body, want) {
		a.t.Errorf("the answer is %d %s, want %s", a.status, a.body, want)
	}
}

func (a told) results() (list []entry) {
	a.t.Helper()
	var answer struct{ Results []struct{ KV entry } }
	if err := json.Unmarshal([]byte(a.expect(200).body), &answer); err != nil {
		a.t.Fatal(err, a.body)
	}
	for _, r := range answer.Results {
		list = append(list, r.KV)
	}
	return list
}

func TestTransactions(t *testing.T) {
	b := newBench(t, Config{})
	s := b.open(short)
	got := b.txn("set a  1", "set b  2", "lock c "+s+" 3", "get a", "get-tree a", "get-tree b", "get-tree c").results()
	if len(got) != 7 || got[0].Value != nil || string(got[3].Value) != "1" || got[4].Key != "a" || got[6].Session != s {
		t.Fatalf("the results are %+v", got)
	}
	for _, e := range got {
		if now := b.get(e.Key); e.ModifyIndex != now.ModifyIndex || e.CreateIndex != now.CreateIndex || e.LockIndex != now.LockIndex {
			t.Errorf("%+v is shown as %+v", now, e)
		}
	}
	a := b.get("a").ModifyIndex
	b.txn("set b  x", fmt.Sprintf("cas a %d y", a+7)).refused(1, `failed to set key "a", index is stale`)
	b.txn("set b  x", "cas a 0 y").refused(1, `failed to set key "a", index is stale`)
	b.txn("set b  x", "cas none 3 y").refused(1, `failed to set key "none", index is stale`)
	b.txn("set b  x", "check-index a 99").refused(1, fmt.Sprintf(`failed index check for key "a", current modify index %d != 99`, a))
	b.txn("set b  x", "check-index none 3").refused(1, `failed to check index, key "none" doesn't exist`)
	b.txn("set b  x", "check-session a "+s).refused(1, fmt.Sprintf(`failed session check for key "a", current session "" != %q`, s))
	b.txn("set b  x", "check-session none "+s).refused(1, `failed to check session, key "none" doesn't exist`)
	b.txn("set b  x", "check-not-exists a").refused(1, `key "a" exists`)
	b.txn("set b  x", "get none").refused(1, `key "none" doesn't exist`)
	b.txn("set b  x", "lock a deadbeef").refused(1, `invalid session "deadbeef"`)
	b.txn("set b  x", "lock c "+b.open("")).refused(1, `failed to lock key "c", lock is already held`)
	b.txn("set b  x", "unlock a "+s).refused(1, `failed to unlock key "a", lock isn't held, or is held by another session`)
	b.txn("set b  x", "delete-cas a 99").refused(1, `failed to delete key "a", index is stale`)
	if string(b.get("b").Value) != "2" {
		t.Error("a transaction that failed has written")
	}
	b.txn(fmt.Sprintf("check-index a %d", a), fmt.Sprintf("cas a %d z", a), "check-session c "+s, "check-not-exists none",
		"unlock c "+s+" free", "delete b", "delete-cas none 7", "get-or-empty none").expect(200)
	if b.get("c").Session != "" || string(b.get("c").Value) != "free" || string(b.get("a").Value) != "z" {
		t.Error("the transaction did something else")
	}
	b.ask("GET /v1/kv/b", "").expect(404)
	b.txn("delete-tree ").expect(200)
	b.ask("GET /v1/kv/?keys", "").is("[]")
	b.txn("delete none").is(`{"Results":[],"Errors":null}`)
}

// All operations that fail are told, those after the first too, and what those that do not fail would have left is seen
// by the ones after them.
func TestTransactionsTellAllThatFails(t *testing.T) {
	inTime(t, func(t *testing.T, b *bench) {
		ann, bob := b.open(short), b.open("")
		b.txn("set a  1", "lock late "+ann).expect(200)
		b.ask("PUT /v1/session/destroy/"+ann, "").is("true")
		b.do(&core.Acquire{Namespace: leasehold.DefaultNamespace, Resource: "n", ID: "native", Holder: "worker", TTL: time.Hour})
		got := b.txn("lock n "+bob, "set new  1", "cas a 99 2", "check-not-exists new", "lock late "+bob, "get none", "get a",
			"lock free "+bob)
		want := `{"Results":null,"Errors":[{"OpIndex":0,"What":"failed to lock key \"n\", lock is already held"},` +
			`{"OpIndex":2,"What":"failed to set key \"a\", index is stale"},{"OpIndex":3,"What":"key \"new\" exists"},` +
			`{"OpIndex":4,"What":"failed to lock key \"late\" due to lock delay"},` +
			`{"OpIndex":5,"What":"key \"none\" doesn't exist"}]}`
		if got.status != 409 || strings.TrimSpace(got.body) != want {
			t.Errorf("the answer is %d %s, want\n%s", got.status, got.body, want)
		}
		b.ask("GET /v1/kv/new", "").expect(404)
		got = b.txn("lock late "+bob, "lock free "+bob, "lock n "+bob)
		if want := `"Errors":[{"OpIndex":0,`; got.status != 409 || !strings.Contains(got.body, want) ||
			!strings.Contains(got.body, `{"OpIndex":2,"What":"failed to lock key \"n\", lock is already held"}`) {
			t.Errorf("of three locks the answer is %d %s", got.status, got.body)
		}
	})
}

// Each operation sees what those before it left.
func TestTransactionsDoOneAfterTheOther(t *testing.T) {
	b := newBench(t, Config{})
	ann, bob := b.open(short), b.open(short)
	b.txn("set t/a  1", "set t/b  1", "set u  1", "lock l "+ann).expect(200)
	before := b.get("l")
	got := b.txn("set t/a  2", "get t/a", "delete-tree t/", "check-not-exists t/b", "set t/c  3", "get-tree t/",
		"set u  2", "set u  3", "get u", "delete u", "set u  4", "unlock l "+ann, "lock l "+bob).results()
	var keys []string
	for _, e := range got {
		keys = append(keys, e.Key+"="+string(e.Value))
	}
	if want := "t/a= t/a=2 t/c= t/c=3 u= u= u=3 u= l= l="; strings.Join(keys, " ") != want {
		t.Errorf("the results are %v, want %s", keys, want)
	}
	b.ask("GET /v1/kv/?keys", "").is(`["l","t/c","u"]`)
	if e := b.get("l"); e.Session != bob || e.LockIndex <= before.LockIndex {
		t.Errorf("handed over, the lock is %+v", e)
	}
	if s := b.status("l"); s.Holding != 1 || s.Holders[0].Session != bob {
		t.Errorf("the core has %+v", s.Holders)
	}
	// An index that the transaction itself has moved on is stale.
	b.txn("set u  5", fmt.Sprintf("cas u %d 6", b.get("u").ModifyIndex)).refused(1, `failed to set key "u", index is stale`)
}

func TestTransactionsRespectLockDelayAndOtherDoors(t *testing.T) {
	inTime(t, func(t *testing.T, b *bench) {
		ann, bob := b.open(short), b.open("")
		b.txn("lock a "+ann, "set x").expect(200)
		b.ask("PUT /v1/session/destroy/"+ann, "").is("true")
		b.txn("set x", "lock a "+bob).refused(1, `failed to lock key "a" due to lock delay`)
		time.Sleep(5*time.Second + time.Millisecond)
		b.txn("lock a " + bob).expect(200)
		b.do(&core.Acquire{Namespace: leasehold.DefaultNamespace, Resource: "n", ID: "native", Holder: "worker", TTL: time.Hour})
		b.txn("set x", "lock n "+bob).refused(1, `failed to lock key "n", lock is already held`)
	})
}

func TestWrongTransactions(t *testing.T) {
	b := newBench(t, Config{})
	many := "[" + strings.TrimSuffix(strings.Repeat(op("set a")+",", 129), ",") + "]"
	for body, want := range map[string]string{
		``: "400 Failed to parse body: EOF", `{`: "400 Request decode failed: ", `[{"KV":{"Verb":"jump","Key":"a"}}]`: `409 {"Results":null,"Errors":[{"OpIndex":0,"What":"unknown KV operation: jump"}]`,
		`[{"KV":{"Verb":"set"}}]`: `409 {"Results":null,"Errors":[{"OpIndex":0,"What":"Must provide key"}]}`, `[{"KV":{"Verb":"set","Key":"a","Value":"%"}}]`: "400 Request decode failed",
		`[{"Node":{"Verb":"set"}}]`: "400 operation 0 is not about a key", many: "413 Transaction contains too many operations (129 > 128)",
		`[{}]`: `200 {"Results":[],"Errors":null,"Index":1,`, `[{"KV":{"Verb":"set","Key":"a","Index":-1}}]`: "400 ",
		`[{"KV":{"Verb":"set","Key":"a","Value":"` + strings.Repeat("A", 600<<10) + `"}}]`: "413 Request body(",
		`[{"KV":{"Verb":"get","Key":"` + strings.Repeat("k", 2000) + `"}}]`:                "400 ",
		`[{"KV":{"Verb":"set","Key":"a","Namespace":"team"}}]`:                             "400 ",
	} {
		got := b.ask("PUT /v1/txn", body)
		if text := fmt.Sprint(got.status, " ", got.body); !strings.HasPrefix(text, want) {
			t.Errorf("%.70s is answered %.200s, want %s", body, text, want)
		}
	}
	b.ask("GET /v1/txn", "").expect(405)
}

// Transactions that read and write the same keys happen one after the other.
func TestTransactionsAreAtomic(t *testing.T) {
	b := newBench(t, Config{})
	b.txn("set n/a  0", "set n/b  0").expect(200)
	var all sync.WaitGroup
	for range 4 {
		all.Go(func() {
			for done := 0; done < 10; {
				now := b.txn("get n/a", "get n/b").results()
				if string(now[0].Value) != string(now[1].Value) {
					t.Errorf("a transaction saw %s and %s", now[0].Value, now[1].Value)
					return
				}
				next := string(now[0].Value) + "1"
				got := b.txn(fmt.Sprintf("cas n/a %d %s", now[0].ModifyIndex, next), "set n/b  "+next, "get-tree n/")
				if got.status == 200 {
					done++
				}
			}
		})
	}
	all.Wait()
	if n := len(b.get("n/a").Value); n != 41 {
		t.Errorf("%d increments of 40 are there", n-1)
	}
}
