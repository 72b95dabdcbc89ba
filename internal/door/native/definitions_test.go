package native

import (
	"strings"
	"testing"
	"testing/synctest"

	v1 "github.com/leasehold/leasehold/api/v1"
)

func TestDefinitions(t *testing.T) {
	door := newDoor(t, Config{})
	ask(t, door, "GET", "/v1/definitions/gpu/a", "").expect(404, "nothing is defined for gpu/a")
	ask(t, door, "PUT", "/v1/definitions/gpu/", `{"units":["gpu0","gpu1"],"largest_ttl":"1m"}`).expect(200, `"path":"gpu/"`, `"unclean":"allow"`, `"revision":1`)
	ask(t, door, "PUT", "/v1/definitions/gpu%2F", `{"units":["gpu0","gpu1"],"largest_ttl":"1m"}`).expect(200, `"revision":1`)
	ask(t, door, "PUT", "/v1/definitions/%2F", `{"unclean":"warn"}`).expect(200, `"path":"/"`)
	ask(t, door, "PUT", "/v1/definitions/db/main", `{"capacity":3,"unclean":"acknowledge"}`).expect(200, `"path":"db/main"`)
	ask(t, door, "GET", "/v1/definitions/gpu/a/b", "").expect(200, `"path":"gpu/"`, `"units":["gpu0","gpu1"]`)
	ask(t, door, "GET", "/v1/definitions/elsewhere", "").expect(200, `"path":"/"`)
	list := read[v1.List[v1.Definition]](ask(t, door, "GET", "/v1/definitions?limit=2", "").expect(200))
	if len(list.Items) != 2 || list.Items[0].Path != "/" || list.Items[1].Path != "db/main" || list.Next == "" {
		t.Errorf("the first page is %+v", list)
	}
	ask(t, door, "GET", "/v1/definitions?limit=2&after="+list.Next, "").expect(200, `"path":"gpu/"`).without("next")
	ask(t, door, "DELETE", "/v1/definitions/gpu/?by=ann&reason=gone", "").expect(200)
	ask(t, door, "DELETE", "/v1/definitions/gpu/", "").expect(404, "has no definition of its own")
	ask(t, door, "GET", "/v1/history", "").expect(200, `"kind":"undefined"`, `"by":"ann"`)

	for body, said := range map[string]string{
		`{"capacity":65537}`:                      "capacity 65537 is out of range",
		`{"units":["a","a"]}`:                     `unit \"a\" is named twice`,
		`{"units":[""]}`:                          "unit is missing",
		`{"units":["a"],"capacity":2}`:            "1 units make a capacity of 1, not 2",
		`{"unclean":"perhaps"}`:                   "it is allow, warn or acknowledge",
		`{"default_ttl":"1ms"}`:                   "1ms",
		`{"grace":"400d"}`:                        "out of range",
		`{"default_ttl":"2m","largest_ttl":"1m"}`: "the default ttl 2m0s is longer than the largest, 1m0s",
	} {
		ask(t, door, "PUT", "/v1/definitions/x", body).expect(400, said)
	}
	ask(t, door, "PUT", "/v1/definitions/", `{}`).expect(400, "path is missing")
}

// TestChangeDefinition: one flag more erased the units of a live pool, since a definition could only
// be replaced as a whole.
func TestChangeDefinition(t *testing.T) {
	door := newDoor(t, Config{})
	patch := func(path, body string, headers ...string) answer {
		t.Helper()
		return ask(t, door, "PATCH", "/v1/definitions/"+path, body, headers...)
	}
	patch("gpu", `{"units":["0","1","2","3"],"hold_limit":"12h"}`).expect(200, `"revision":1`)
	patch("gpu", `{"grace":"10s"}`).expect(200, `"units":["0","1","2","3"]`, `"hold_limit":"12h"`, `"grace":"10s"`)
	patch("gpu", `{"grace":"10s"}`).expect(200, `"revision":2`)
	patch("gpu", `{"hold_limit":null}`).expect(200, `"units":["0","1","2","3"]`).without("hold_limit")
	ask(t, door, "POST", "/v1/acquire", `{"resource":"gpu","holder":"ann","id":"a","slots":2}`).expect(200)

	dropped := `this would drop units 1 (held by ann), 2, 3 of gpu`
	patch("gpu", `{"units":["0"]}`).expect(422, dropped, "add --replace", `"code":"refused"`)
	patch("gpu", `{"capacity":8}`).expect(422, "this would drop units 0 (held by ann), 1 (held by ann), 2, 3 of gpu")
	patch("gpu", `{"units":null}`).expect(422, "this would drop units 0")
	ask(t, door, "PUT", "/v1/definitions/gpu", `{"grace":"10s"}`).expect(422, "this would drop units 0")
	patch("gpu", `{"units":["0"],"replace":true,"if_revision":2}`).expect(422, "its revision is 3, not 2")
	patch("gpu", `{"units":["0"],"replace":true,"if_revision":3}`, v1.KeyHeader, "k").expect(200, `"units":["0"]`, `"revision":5`)
	patch("gpu", `{"units":["0"],"replace":true,"if_revision":3}`, v1.KeyHeader, "k").expect(200, `"revision":5`)
	patch("gpu", `{"units":["0"],"replace":true,"if_revision":3}`).expect(200, `"revision":5`)
	ask(t, door, "GET", "/v1/resources/gpu", "").expect(200, `"used":2`, `"capacity":1`)
	ask(t, door, "PUT", "/v1/definitions/gpu", `{"capacity":5,"replace":true}`).expect(200, `"capacity":5`).without("grace")

	for body, said := range map[string]string{
		`{}`:                      "nothing to change: name at least one field",
		`{"by":"ann"}`:            "nothing to change",
		`{"units":"0,1"}`:         "units: it is a JSON string: it has to be a list",
		`{"capacity":"8"}`:        "capacity: it is a JSON string: it has to be a number",
		`{"units":["0",""]}`:      "unit is missing",
		`{"unclean":"perhaps"}`:   "it is allow, warn or acknowledge",
		`{"hold_limit":"soon"}`:   "hold_limit: ",
		`{"hold_limits":"12h"}`:   "field \\\"hold_limits\\\" is unknown; known are: capacity, units",
		`{"default_ttl":"1000h"}`: "out of range",
	} {
		patch("gpu", body).expect(400, said)
	}
}

func TestSlots(t *testing.T) {
	door := newDoor(t, Config{})
	acquire := func(body string) answer { t.Helper(); return ask(t, door, "POST", "/v1/acquire", body) }
	acquire(`{"resource":"r","holder":"ann","id":"a","slots":2,"capacity":3}`).expect(200, `"slots":2`, `"token":1`, `"floor":1`)
	acquire(`{"resource":"r","holder":"bob","id":"b","shared":true}`).expect(200, `"slots":1`, `"token":2`, `"floor":1`)
	acquire(`{"resource":"r","holder":"cyd","shared":true}`).expect(409, "r has 3 of 3 slots taken, by ann", "and 1 more")
	acquire(`{"resource":"r","holder":"cyd","slots":1,"capacity":4}`).expect(422, "r has 3 slots, and this request says that it has 4")
	acquire(`{"resource":"r","holder":"cyd","shared":true,"slots":2}`).expect(400, "leave one of them out")
	acquire(`{"resource":"r","holder":"cyd","capacity":3}`).expect(400, "capacity is for those who share")
	ask(t, door, "POST", "/v1/release", `{"id":"a"}`).expect(200)
	ask(t, door, "POST", "/v1/renew", `{"id":"b"}`).expect(200, `"token":2`, `"floor":2`)
	ask(t, door, "GET", "/v1/resources/r", "").expect(200, `"capacity":3`, `"used":1`)
}

// TestNoSlots: "slots": 0 took all of them, and so did a request that merely forgot to say.
func TestNoSlots(t *testing.T) {
	door := newDoor(t, Config{})
	acquire := func(body string) answer { t.Helper(); return ask(t, door, "POST", "/v1/acquire", body) }
	ask(t, door, "PUT", "/v1/definitions/gpu", `{"units":["0","1"]}`).expect(200)
	for _, slots := range []string{`0`, `-1`, `1.5`, `"some"`, `true`} {
		acquire(`{"resource":"gpu","holder":"ann","slots":`+slots+`}`).expect(400, "slots: ", `is not a number of slots: write 1 or more, or \"all\"`)
		acquire(`{"resource":"r","holder":"ann","also":[{"resource":"gpu","slots":`+slots+`}]}`).expect(400, "is not a number of slots")
		ask(t, door, "POST", "/v1/txn", `{"then":[{"do":"acquire","acquire":{"resource":"gpu","holder":"ann","slots":`+slots+`}}]}`).expect(400, "is not a number of slots")
	}
	acquire(`{"resource":"gpu","holder":"ann","shared":true,"slots":"all"}`).expect(400, "leave one of them out")
	acquire(`{"resource":"gpu","holder":"ann","id":"a","slots":"all"}`).expect(200, `"units":["0","1"]`).without("warning")
	ask(t, door, "POST", "/v1/release", `{"id":"a"}`).expect(200)
	acquire(`{"resource":"gpu","holder":"ann","id":"b"}`).expect(200, `"units":["0","1"]`,
		`"warning":"this lease takes all 2 units of gpu, since the request does not say how many: for one of them send \"slots\": 1`)
	ask(t, door, "POST", "/v1/release", `{"id":"b"}`).expect(200)
	acquire(`{"resource":"gpu","holder":"ann","slots":1}`).expect(200, `"units":["0"]`).without("warning")
}

func TestSeveralAtOnce(t *testing.T) {
	door := newDoor(t, Config{})
	acquire := func(body string) answer { t.Helper(); return ask(t, door, "POST", "/v1/acquire", body) }
	both := `{"resource":"x","holder":"ann","id":"a1","also":[{"resource":"y","id":"a2"}]}`
	a := read[v1.Lease](acquire(both).expect(200))
	if a.Token != 1 || len(a.Also) != 1 || a.Also[0].Token != 2 || a.Also[0].Resource != "y" {
		t.Fatalf("granted were %+v", a)
	}
	acquire(both).expect(200, `"token":1`, `"token":2`)
	acquire(`{"resource":"z","holder":"bob","also":[{"resource":"y"}]}`).expect(409, "y is held by ann")
	ask(t, door, "GET", "/v1/resources/z", "").expect(200, `"state":"available"`)
	acquire(`{"resource":"z","holder":"bob","id":"b","also":[{"resource":"w"}]}`).expect(400, "propose all ids or none")
	acquire(`{"resource":"z","holder":"bob","also":[{"resource":"z"}]}`).expect(400, "asked for twice")
	many := strings.Repeat(`{"resource":"q"},`, 64)
	acquire(`{"resource":"z","holder":"bob","also":[`+many[:len(many)-1]+`]}`).expect(400, "at most 64 are allowed")
	ask(t, door, "POST", "/v1/release", `{"id":"a1"}`).expect(200)
	acquire(both).expect(410, `lease \"a1\" on x has ended`)
}

// TestSeveralAreWaitedFor: all come at the moment when the last of them is free.
func TestSeveralAreWaitedFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		door := newDoor(t, Config{})
		acquire := func(body string) answer { t.Helper(); return ask(t, door, "POST", "/v1/acquire", body) }
		acquire(`{"resource":"x","holder":"ann","id":"a","ttl":"1h"}`).expect(200)
		answered := make(chan answer)
		go func() {
			answered <- acquire(`{"resource":"x","holder":"bob","wait":"1m","also":[{"resource":"y"},{"resource":"z"}]}`)
		}()
		synctest.Wait()
		acquire(`{"resource":"y","holder":"cyd"}`).expect(409, "y is free, but not for those behind the first in its queue")
		ask(t, door, "POST", "/v1/release", `{"id":"a"}`).expect(200)
		got := read[v1.Lease]((<-answered).expect(200, `"waited_ms"`))
		if len(got.Also) != 2 || got.Also[1].Resource != "z" || got.Also[1].WaitedMS == 0 {
			t.Errorf("granted were %+v", got)
		}
	})
}

// TestCircle: the wait that would close a circle is refused, and the circle is named.
func TestCircle(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		door := newDoor(t, Config{})
		acquire := func(body string) answer { t.Helper(); return ask(t, door, "POST", "/v1/acquire", body) }
		acquire(`{"resource":"x","holder":"ann"}`).expect(200)
		acquire(`{"resource":"y","holder":"bob"}`).expect(200)
		go func() { acquire(`{"resource":"y","holder":"ann","wait":"5s"}`) }()
		synctest.Wait()
		acquire(`{"resource":"x","holder":"bob","wait":"5s"}`).expect(422, "this wait would never end",
			`"cycle":[{"holder":"bob","resource":"x"},{"holder":"ann","resource":"y"}]`)
		acquire(`{"resource":"x","holder":"bob","party":"another","wait":"1s"}`).expect(409)
		synctest.Wait()
	})
}

// TestPatterns: who is refused a path, or looks at it, learns which pattern overlaps it, and whose that is.
func TestPatterns(t *testing.T) {
	door := newDoor(t, Config{})
	ask(t, door, "POST", "/v1/acquire", `{"resource":"repo/web:src/**","holder":"ann","id":"a"}`).expect(200)
	ask(t, door, "POST", "/v1/acquire", `{"resource":"repo/web:src/a.go","holder":"bob"}`).
		expect(409, "repo/web:src/** is held by ann", "this request for repo/web:src/a.go overlaps it")
	ask(t, door, "GET", "/v1/resources/repo%2Fweb:src%2Fa.go", "").
		expect(200, `"state":"available"`, `"overlapping":[{`, `"resource":"repo/web:src/**"`)
	ask(t, door, "POST", "/v1/acquire", `{"resource":"repo/web:src/**x","holder":"bob"}`).expect(400, "a segment of its own")
	ask(t, door, "POST", "/v1/acquire", `{"resource":"repo/web:docs","holder":"bob"}`).expect(200)
}

func TestAcknowledge(t *testing.T) {
	door := newDoor(t, Config{})
	ask(t, door, "PUT", "/v1/definitions/r", `{"unclean":"acknowledge"}`).expect(200)
	ask(t, door, "POST", "/v1/acquire", `{"resource":"r","holder":"ann","id":"a"}`).expect(200)
	ask(t, door, "POST", "/v1/break", `{"id":"a","period":"0s"}`).expect(200)
	ask(t, door, "POST", "/v1/acquire", `{"resource":"r","holder":"bob"}`).expect(409, "acknowledge the unclean end of ann")
	ask(t, door, "GET", "/v1/resources/r", "").expect(200, `"unacknowledged":{"id":"a"`)
	ask(t, door, "POST", "/v1/acknowledge", `{"resource":"r"}`).expect(400, "names the token")
	ask(t, door, "POST", "/v1/acknowledge", `{"resource":"r","token":1}`).expect(200)
	ask(t, door, "POST", "/v1/acknowledge", `{"resource":"r","token":1}`).expect(200)
	ask(t, door, "POST", "/v1/acquire", `{"resource":"r","holder":"bob"}`).expect(200)
	ask(t, door, "POST", "/v1/acknowledge", `{"resource":"nowhere","token":1}`).expect(404)
}

// TestLeasesInTransactions: a record and a lease change hands at one revision, or
// neither does.
func TestLeasesInTransactions(t *testing.T) {
	door := newDoor(t, Config{})
	txn := func(body string, headers ...string) answer {
		t.Helper()
		return ask(t, door, "POST", "/v1/txn", body, headers...)
	}
	both := `{"if":[{"record":"done","field":"version","number":0}],"then":[{"do":"put","path":"done","value":""},
		{"do":"acquire","acquire":{"resource":"x","holder":"ann","id":"a","ttl":"1m"}}],"else":[{"do":"release","id":"a"}]}`
	txn(both, v1.KeyHeader, "k").expect(200, `"succeeded":true,"revision":1`, `"lease":{`, `"token":1`)
	txn(both, v1.KeyHeader, "k").expect(200, `"succeeded":true`, `"token":1`)
	txn(`{"then":[{"do":"put","path":"other","value":""},{"do":"acquire","acquire":{"resource":"x","holder":"bob"}}]}`).expect(409, "x is held by ann")
	ask(t, door, "GET", "/v1/records/other", "").expect(404)
	txn(both).expect(200, `"succeeded":false`, `"results":[{}]`)
	txn(both, v1.KeyHeader, "k").expect(410, "has ended (released)")
	ask(t, door, "GET", "/v1/resources/x", "").expect(200, `"state":"available"`)
	for body, said := range map[string]string{
		`{"then":[{"do":"acquire"}]}`: "then 1: to acquire takes acquire",
		`{"then":[{"do":"acquire","acquire":{"resource":"x","holder":"a","wait":"1s"}}]}`:                                              "does not wait",
		`{"then":[{"do":"acquire","path":"x","acquire":{"resource":"x","holder":"a"}}]}`:                                               "leave out the rest",
		`{"then":[{"do":"release","id":"q"},{"do":"acquire","acquire":{"resource":"x","holder":"a"}}]}`:                                "put the acquire first",
		`{"then":[{"do":"acquire","acquire":{"resource":"x","holder":"a"}},{"do":"acquire","acquire":{"resource":"y","holder":"a"}}]}`: "acquires twice",
		`{"then":[{"do":"put","path":"p","value":"","id":"q"}]}`:                                                                       "id to release",
		`{"then":[{"do":"release"}]}`: "id is missing",
	} {
		txn(body).expect(400, said)
	}
	txn(`{"then":[{"do":"release","id":"nobody"}]}`).expect(404)
}
