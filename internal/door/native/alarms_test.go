package native

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	v1 "github.com/leasehold/leasehold/api/v1"
)

// TestLearnedTimes: what was learned is in the resource, in its queue, in a refusal and
// in the advice, and "auto" takes the advice.
func TestLearnedTimes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		door := newDoor(t, Config{})
		acquire := func(body string) answer { t.Helper(); return ask(t, door, "POST", "/v1/acquire", body) }
		acquire(`{"resource":"r","holder":"h","id":"0","ttl":"auto"}`).expect(200, `"ttl":"30s"`)
		ask(t, door, "GET", "/v1/advice/r", "").expect(200, `"ttl":"30s","learned":false`, `"reasons":["too little is known: 0 leases`).without("least")
		ask(t, door, "GET", "/v1/resources/r", "").expect(200).without("usual")
		ask(t, door, "POST", "/v1/release", `{"id":"0"}`).expect(200)
		for i := range 8 {
			acquire(fmt.Sprintf(`{"resource":"r","holder":"h","id":"a%d","ttl":"1h"}`, i)).expect(200)
			time.Sleep(4 * time.Minute)
			ask(t, door, "POST", "/v1/release", fmt.Sprintf(`{"id":"a%d"}`, i)).expect(200)
		}
		r := read[v1.Resource](ask(t, door, "GET", "/v1/resources/r", "").expect(200, `"usual":{"holds":9,"hold_p50":"4m","hold_p95":"4m","unclean":0,"waits":0}`))
		if r.Usual == nil || time.Duration(r.Usual.HoldP50) != 4*time.Minute {
			t.Errorf("%+v", r.Usual)
		}

		a := read[v1.Advice](ask(t, door, "GET", "/v1/advice/r", "").expect(200, `"learned":true`, `"most":"10m"`))
		if a.TTL != a.Cheapest || a.Least >= a.TTL || a.Renewals != 3 || len(a.Reasons) < 6 || a.Usual.Holds != 9 {
			t.Errorf("%+v", a)
		}
		acquire(`{"resource":"r","holder":"h","id":"b","ttl":"auto"}`).expect(200, fmt.Sprintf(`"ttl":"%v"`, a.TTL))
		time.Sleep(time.Minute)
		acquire(`{"resource":"r","holder":"x"}`).expect(409, `usually free in about 3m`, `"forecast":"3m"`)
		go acquire(`{"resource":"r","holder":"x","wait":"5s"}`)
		synctest.Wait()
		ask(t, door, "GET", "/v1/resources/r", "").expect(200, `"queue":[{"position":1,`, `"forecast":"3m"`)
		time.Sleep(10 * time.Second)
	})
}

// TestAlarms: they stand, in pages, by kind and by prefix, and are events.
func TestAlarms(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		door := newDoor(t, Config{})
		alarms := func(query string) answer { t.Helper(); return ask(t, door, "GET", "/v1/alarms?"+query, "") }
		alarms("").expect(200, `{"items":[]}`)
		ask(t, door, "PUT", "/v1/definitions/slow", `{"expected":"30m"}`).expect(200)
		ask(t, door, "POST", "/v1/acquire", `{"resource":"slow","holder":"ann","id":"s","ttl":null}`).expect(200)
		for i := range 3 {
			ask(t, door, "POST", "/v1/acquire", fmt.Sprintf(`{"resource":"jobs/%d","holder":"bob","id":"j%d","ttl":"10s"}`, i, i)).expect(200)
		}
		time.Sleep(31 * time.Minute)
		synctest.Wait()
		page := read[v1.List[v1.Alarm]](alarms("limit=3").expect(200, `"kind":"held-long"`, `ann has held slow for 30m: at most 30m were expected`))
		if len(page.Items) != 3 || page.Items[0].Kind != "held-long" || page.Items[2].Resource != "jobs/1" || page.Next == "" {
			t.Errorf("the first page is %+v", page)
		}
		alarms("after="+page.Next).expect(200, `"resource":"jobs/0"`).without("next")
		alarms("prefix=jobs/2").expect(200, `"kind":"unclean-end","resource":"jobs/2","id":"j2","holder":"bob","token":4`, `"count":1`).without("slow")
		alarms("kind=held-long").expect(200).without("jobs")
		alarms("namespace=elsewhere").expect(200, `{"items":[]}`)
		alarms("kind=fire").expect(400, `unknown kind \"fire\": use held-long, long-queue, unclean-end, flapping, late-renewal, quarantine`)
		alarms("kind=").expect(400, "unknown kind")
		alarms("after=x").expect(400, "leave it out to begin again")
		ask(t, door, "GET", "/v1/advice/", "").expect(400, "resource is missing")

		ask(t, door, "GET", "/v1/history", "").expect(200, `"kind":"alarmed"`, `"alarm":"held-long"`)
		ask(t, door, "GET", "/metrics", "").expect(200, `leasehold_alarms{kind="held-long"} 1`, `leasehold_alarms_total{kind="unclean-end"} 3`, `leasehold_alarms{kind="flapping"} 0`)
		ask(t, door, "POST", "/v1/release", `{"id":"s"}`).expect(200)
		ask(t, door, "GET", "/v1/history", "").expect(200, `"kind":"alarm cleared"`)
		time.Sleep(time.Hour)
		ask(t, door, "POST", "/v1/sessions", `{}`).expect(200) // lets the log's time go on
		alarms("").expect(200, `{"items":[]}`)
		ask(t, door, "GET", "/metrics", "").expect(200, `leasehold_alarms{kind="unclean-end"} 0`, `leasehold_alarms_total{kind="unclean-end"} 3`)
	})
}

// TestAcknowledgeAlarm: an alarm of each kind is cleared as it was listed, and stays
// cleared while what it tells of goes on.
func TestAcknowledgeAlarm(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		door := newDoor(t, Config{})
		looked := func(a v1.Alarm) answer {
			t.Helper()
			return ask(t, door, "POST", "/v1/alarms/acknowledge", fmt.Sprintf(`{"kind":%q,"resource":%q,"id":%q,"session":%q,"occurrence":%d,`+
				`"by":"root","reason":"looked"}`, a.Kind, a.Resource, a.ID, a.Session, a.Occurrence))
		}
		active := func() []v1.Alarm {
			t.Helper()
			return read[v1.List[v1.Alarm]](ask(t, door, "GET", "/v1/alarms", "").expect(200)).Items
		}
		ask(t, door, "PUT", "/v1/definitions/slow", `{"expected":"1m"}`).expect(200)
		ask(t, door, "POST", "/v1/acquire", `{"resource":"slow","holder":"ann","id":"s","ttl":null}`).expect(200)
		ask(t, door, "POST", "/v1/sessions", `{"id":"s1","ttl":"10s"}`).expect(200)
		ask(t, door, "POST", "/v1/acquire", `{"resource":"jobs/s","holder":"bob","id":"b","session":"s1"}`).expect(200)
		time.Sleep(9500 * time.Millisecond)
		ask(t, door, "POST", "/v1/sessions/s1/renew", "").expect(200)
		for i := range 11 {
			ask(t, door, "POST", "/v1/sessions", fmt.Sprintf(`{"id":"w%d","ttl":"1h"}`, i)).expect(200)
			go ask(t, door, "POST", "/v1/acquire", fmt.Sprintf(`{"resource":"slow","holder":"w","id":"w%d","session":"w%d","wait":"1h"}`, i, i))
		}
		for range 3 {
			ask(t, door, "POST", "/v1/acquire", `{"resource":"jobs/a","holder":"cyd","ttl":"10s"}`).expect(200)
			time.Sleep(20 * time.Second)
			synctest.Wait()
		}
		list := active()
		kinds := map[string]int{}
		for _, a := range list {
			kinds[a.Kind]++
		}
		if fmt.Sprint(kinds) != "map[flapping:1 held-long:1 late-renewal:1 long-queue:1 unclean-end:2]" {
			t.Fatalf("%v: %+v", kinds, list)
		}
		for _, a := range list {
			looked(a).expect(200)
			looked(a).expect(200) // a lost answer
		}
		if left := active(); len(left) > 0 {
			t.Errorf("still active: %+v", left)
		}
		ask(t, door, "GET", "/metrics", "").expect(200, `leasehold_alarms{kind="long-queue"} 0`, `leasehold_alarms{kind="held-long"} 0`)
		ask(t, door, "GET", "/v1/history?resource=slow", "").expect(200, `"kind":"alarm cleared"`, `"by":"root"`, `"reason":"looked"`)

		ask(t, door, "POST", "/v1/sessions", `{"id":"w11","ttl":"1h"}`).expect(200)
		go ask(t, door, "POST", "/v1/acquire", `{"resource":"slow","holder":"w","id":"w11","session":"w11","wait":"1h"}`)
		ask(t, door, "POST", "/v1/renew", `{"id":"s"}`).expect(200)
		time.Sleep(2 * time.Minute)
		synctest.Wait()
		if left := active(); len(left) > 0 {
			t.Errorf("active again: %+v", left)
		}

		// What happened after the look is not cleared.
		ask(t, door, "POST", "/v1/acquire", `{"resource":"jobs/b","holder":"cyd","ttl":"1s"}`).expect(200)
		time.Sleep(2 * time.Second)
		seen := active()[0]
		ask(t, door, "POST", "/v1/acquire", `{"resource":"jobs/b","holder":"dan","ttl":"1s"}`).expect(200)
		time.Sleep(2 * time.Second)
		looked(seen).expect(422, "it happened again since you looked (the lease of dan on jobs/b ended uncleanly (expired))")
		looked(active()[0]).expect(200)
		time.Sleep(2 * time.Hour) // those who wait leave
	})
}

func TestAcknowledgeNoAlarm(t *testing.T) {
	door := newDoor(t, Config{})
	for body, want := range map[string]string{
		`{"kind":"fire","resource":"r","occurrence":1}`:            `unknown kind \"fire\": use held-long, long-queue`,
		`{"resource":"r","occurrence":1}`:                          `unknown kind \"\": use held-long`,
		`{"kind":"quarantine","resource":"r","occurrence":1}`:      "leasehold cluster end-quarantine",
		`{"kind":"held-long","resource":"r"}`:                      "occurrence is missing",
		`{"kind":"held-long","occurrence":1}`:                      "resource and session are missing",
		`{"kind":"held-long","resource":"a\u0000","occurrence":1}`: "resource",
	} {
		ask(t, door, "POST", "/v1/alarms/acknowledge", body).expect(400, want)
	}
	ask(t, door, "POST", "/v1/alarms/acknowledge", `{"kind":"held-long","resource":"r","occurrence":1}`).expect(200) // it is gone, if it ever was
}
