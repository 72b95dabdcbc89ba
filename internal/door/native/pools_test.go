package native

import (
	"testing"

	v1 "github.com/leasehold/leasehold/api/v1"
	"github.com/leasehold/leasehold/api/v1/pools"
)

func TestPools(t *testing.T) {
	door := newDoor(t, Config{})
	ask(t, door, "GET", "/v1/pools/gpu", "").expect(404, "gpu is no pool")
	ask(t, door, "PUT", "/v1/pools/gpu", `{"host":"a","units":[{"name":"a0","labels":{"model":"H100"}},{"name":"a1","labels":{"model":"H100"}}]}`).expect(200)
	ask(t, door, "PUT", "/v1/pools/gpu", `{"host":"b","units":[{"name":"b0","labels":{"model":"A100"}},{"name":"b1","unfit":"vanished"}]}`).expect(200)
	ask(t, door, "PATCH", "/v1/definitions/gpu", `{"limits":["holder=2"]}`).expect(200, `"limits":["holder=2"]`)
	ask(t, door, "PATCH", "/v1/definitions/gpu", `{"limits":["two"]}`).expect(400, "is no limit of units")

	acquire := func(body string) answer {
		t.Helper()
		return ask(t, door, "POST", "/v1/acquire", `{"resource":"gpu",`+body+`}`)
	}
	acquire(`"holder":"ann","id":"1","slots":2,"where":"model=H100"`).expect(200, `"units":["a0","a1"]`)
	acquire(`"holder":"ann","id":"2","slots":1`).expect(429, "over the limit holder=2", "ann has 2 units")
	acquire(`"holder":"bob","id":"3","slots":1,"where":"model=H100"`).expect(409, "needs 1 unit with model=H100")
	acquire(`"holder":"bob","id":"4","slots":3,"where":"model=H100"`).expect(422, "over the limit holder=2")
	acquire(`"holder":"bob","id":"4","slots":2,"where":"model=A100"`).expect(422, "asks for 2 units on one host with model=A100: there are at most 1")
	acquire(`"holder":"bob","id":"5","slots":1,"where":"model"`).expect(400, "where", "is no condition")
	acquire(`"holder":"bob","id":"6","slots":1,"units":["b0"],"reason":"a demo"`).expect(200, `"units":["b0"]`)
	ask(t, door, "POST", "/v1/sessions", `{"id":"s"}`).expect(200)
	acquire(`"holder":"cyd","id":"7","slots":2,"spread":true,"wait":"1ms","session":"s"`)

	ask(t, door, "PATCH", "/v1/pools/gpu", `{"units":["a0"],"why":"repair","by":"ops"}`).expect(200)
	got := read[pools.Pool](ask(t, door, "GET", "/v1/pools/gpu?limit=3", "").expect(200, `"state":"held"`, `"why":"repair"`))
	if got.Total != 4 || got.Held != 3 || got.Out != 1 || len(got.Units) != 3 || got.Next == "" || got.Limits[0] != "holder=2" {
		t.Errorf("the first page is %+v", got)
	}
	rest := read[pools.Pool](ask(t, door, "GET", "/v1/pools/gpu?limit=3&after="+got.Next, "").expect(200, `"state":"unfit"`))
	if len(rest.Units) != 1 || rest.Units[0].Name != "b1" || rest.Next != "" {
		t.Errorf("the second page is %+v", rest)
	}
	if u := got.Units[2]; u.Holder != "bob" || u.Reason != "a demo" || u.Since.IsZero() || !u.Until.After(u.Since.Time) {
		t.Errorf("the unit that bob has is %+v", u)
	}
	ask(t, door, "PUT", "/v1/pools/phones", `{"host":"a","units":[{"name":"pixel"}]}`).expect(200)
	list := ask(t, door, "GET", "/v1/pools?limit=1", "").expect(200,
		`{"namespace":"default","resource":"gpu","hosts":2,"total":4,"free":0,"held":3,"out":1,"waiting":0}`)
	ask(t, door, "GET", "/v1/pools?after="+read[v1.List[pools.Counts]](list).Next, "").expect(200,
		`{"items":[{"namespace":"default","resource":"phones","hosts":1,"total":1,"free":1,"held":0,"out":0,"waiting":0}]}`)
	ask(t, door, "GET", "/v1/pools?prefix=ph", "").expect(200, `{"items":[{"namespace":"default","resource":"phones"`)
	report := `{"host":"a","units":[{"name":"a0","percent":97,"memory_mib":900,"processes":[{"pid":17,"user":"bob","name":"python"}]},` +
		`{"name":"a1","processes":[{"pid":18,"lease":"1"}]}]}`
	ask(t, door, "POST", "/v1/pools/gpu", report).expect(200)
	ask(t, door, "POST", "/v1/pools/gpu", `{"host":"a","units":[{"name":"b0"}]}`).expect(404, "has no unit")
	ask(t, door, "POST", "/v1/pools/gpu", `{"host":"a","units":[{"name":"a0","percent":101}]}`).expect(400, "0 to 100")
	ask(t, door, "PATCH", "/v1/definitions/gpu", `{"idle":"20m","idle_release":"10m"}`).expect(200, `"idle":"20m","idle_release":"10m"`)
	used := read[pools.Pool](ask(t, door, "GET", "/v1/pools/gpu", "").expect(200, `"idle":"20m"`))
	if a0, a1 := used.Units[0].Use, used.Units[1].Use; a0 == nil || a1 == nil || *a0.Percent != 97 || a0.Memory != 900 || len(a0.Strangers) != 1 ||
		a0.Strangers[0] != (pools.Process{PID: 17, User: "bob", Name: "python"}) || a1.Percent != nil || a1.Strangers != nil {
		t.Errorf("units are used as %+v and %+v", a0, a1)
	}
	for body, said := range map[string]string{
		`{"units":[{"name":""}]}`:                           "unit is missing",
		`{"units":[{"name":"x"},{"name":"x"}]}`:             "named twice",
		`{"units":[{"name":"x","labels":{"host":"here"}}]}`: "has the label host",
	} {
		ask(t, door, "PUT", "/v1/pools/gpu", body).expect(400, said)
	}
	ask(t, door, "PUT", "/v1/pools/gpu", `{"host":"c","units":[{"name":"a0"}]}`).expect(422, "remove it there first")
	ask(t, door, "PATCH", "/v1/pools/gpu", `{"units":["z"]}`).expect(404, "has no unit")
}
