package native

import "testing"

func TestLimits(t *testing.T) {
	door := newDoor(t, Config{})
	ask(t, door, "GET", "/v1/cluster/limits", "").expect(200, `"leases":{"used":0,"allowed":4000000}`, `"namespaces":{"used":0,"allowed":4096}`)
	ask(t, door, "POST", "/v1/cluster/limits", `{"leases":1,"sessions":1,"by":"ops","reason":"too much"}`).
		expect(200, `"leases":{"used":0,"allowed":1}`, `"waiters":{"used":0,"allowed":1000000}`)
	ask(t, door, "POST", "/v1/acquire", `{"resource":"a","holder":"ann","id":"a"}`).expect(200)
	ask(t, door, "POST", "/v1/acquire", `{"resource":"b","holder":"ann","id":"b"}`).
		expect(429, "the cluster has 1 leases, and its cap is 1: release some, or raise the cap with leasehold cluster limits set")
	ask(t, door, "POST", "/v1/acquire", `{"resource":"a","holder":"ann","id":"a"}`).expect(200)
	ask(t, door, "POST", "/v1/renew", `{"id":"a"}`).expect(200)
	ask(t, door, "POST", "/v1/sessions", `{"id":"s1"}`).expect(200)
	ask(t, door, "POST", "/v1/sessions", `{"id":"s2"}`).expect(429, "the cluster has 1 sessions")
	ask(t, door, "GET", "/v1/cluster/limits", "").expect(200, `"leases":{"used":1,"allowed":1}`, `"sessions":{"used":1,"allowed":1}`)
	ask(t, door, "GET", "/v1/audit?verb=set-limits", "").
		expect(200, `"verb":"set-limits"`, `"outcome":"ok"`, `"by":"ops"`, `"reason":"1 leases, 1 sessions: too much"`)

	for body, said := range map[string]string{
		`{}`:                    "no cap is given",
		`{"leases":-1}`:         "a cap of -1 leases is out of range: 1 to 100000000 are allowed",
		`{"namespaces":4097}`:   "1 to 4096 are allowed",
		`{"waiters":100000001}`: "1 to 100000000 are allowed",
	} {
		ask(t, door, "POST", "/v1/cluster/limits", body).expect(400, said)
	}
}
