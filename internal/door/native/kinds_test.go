package native

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/leasehold/leasehold/api/v1/kinds"
)

// What is learned of a kind decides TTLs and forecasts, and is shown.
func TestKinds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		door := newDoor(t, Config{})
		acquire := func(body string) answer { return ask(t, door, "POST", "/v1/acquire", body) }
		labels := `"labels":{"command":"python train.py"}`
		acquire(`{"resource":"gpu","holder":"trainer-0","id":"x","ttl":"unattended",`+labels+`}`).expect(200, `"ttl":"24h"`)
		ask(t, door, "POST", "/v1/change", `{"id":"x","holder":"other"}`) // so that nothing is learned of it
		ask(t, door, "POST", "/v1/release", `{"id":"x"}`)
		for i := range 8 {
			acquire(fmt.Sprintf(`{"resource":"gpu","holder":"trainer-%d","id":"%d","ttl":"1d",%s}`, i, i, labels)).expect(200)
			time.Sleep(time.Hour)
			ask(t, door, "POST", "/v1/release", fmt.Sprintf(`{"id":"%d"}`, i)).expect(200)
		}
		all := read[kinds.Kinds](ask(t, door, "GET", "/v1/kinds/gpu", "").expect(200))
		if len(all.Items) != 1 || all.Items[0].Name != "python train.py|trainer" || time.Duration(all.Items[0].Unattended) != 2*time.Hour ||
			time.Duration(all.Items[0].TTL) > 2*time.Minute || time.Duration(all.Items[0].Usual.HoldP95) != time.Hour {
			t.Errorf("%+v", all)
		}
		ask(t, door, "GET", "/v1/kinds/gpu?command=python+train.py&holder=trainer-99", "").expect(200, `"hold_p50":"1h"`)
		ask(t, door, "GET", "/v1/kinds/gpu?kind=unknown", "").expect(200, `"name":"unknown","ttl":"2m","unattended":"24h"}`)
		ask(t, door, "GET", "/v1/kinds/", "").expect(400, "resource is missing")
		acquire(`{"resource":"gpu","holder":"trainer-9","id":"a","ttl":"unattended",`+labels+`}`).expect(200, `"ttl":"2h"`)
		time.Sleep(45 * time.Minute)
		acquire(`{"resource":"gpu","holder":"eve","id":"b"}`).expect(409, `"forecast":"15m"`, "usually free in about 15m")
	})
}
