package native

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/leasehold/leasehold/internal/core"
	"github.com/leasehold/leasehold/internal/engine"
	"github.com/leasehold/leasehold/internal/engine/memory"
)

// After a restore nothing is granted, and everything that an operator looks at says so, and how to end it.
func TestQuarantineIsShownAndEnded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := memory.Start(engine.NewGoClock())
		defer e.Close()
		door := open(e, Config{})
		ask(t, door, "GET", "/v1/cluster/quarantine", "").expect(200, `{"active":false}`)
		if err := e.Restore(core.Restoration{Quarantine: time.Hour}); err != nil {
			t.Fatal(err)
		}
		time.Sleep(10 * time.Minute)
		ask(t, door, "GET", "/v1/cluster/quarantine", "").
			expect(200, `"active":true`, `"remaining":"50m"`, `"ends":"`, `"tokens_above":1099511627776`)
		ask(t, door, "GET", "/readyz", "").
			expect(200, "ok\n[!]quarantine: nothing is granted for another 50m0s", "leasehold cluster end-quarantine")
		ask(t, door, "GET", "/readyz?verbose", "").expect(200, "[!]quarantine: ", "readyz check passed")
		ask(t, door, "GET", "/v1/alarms?limit=1", "").
			expect(200, `"kind":"quarantine"`, "leases granted after that may still be held")
		ask(t, door, "GET", "/v1/alarms?kind=held-long", "").expect(200, `{"items":[]}`)
		ask(t, door, "POST", "/v1/acquire", `{"resource":"a","holder":"ann"}`).expect(409, "a is free, but nothing is granted "+
			"for another 50m", `end this quarantine: leasehold cluster end-quarantine --reason \"all holders were stopped\"`)

		const end = "/v1/cluster/quarantine/end"
		ask(t, door, "POST", end, `{}`).expect(400, "reason is empty")
		ask(t, door, "POST", end, `{"reason":"gone","tokens_above":5}`).expect(422, "another restore than the one you looked at")
		for range 2 { // a retry changes nothing, and is answered alike
			ask(t, door, "POST", end, `{"reason":"gone","by":"ops","tokens_above":1099511627776}`).expect(200, `{"active":false}`)
		}
		ask(t, door, "GET", "/v1/audit?verb=end-quarantine", "").expect(200, `"outcome":"ok"`, `"by":"ops"`, `"reason":"gone"`)
		ask(t, door, "GET", "/readyz", "").expect(200, "ok")
		ask(t, door, "POST", "/v1/acquire", `{"resource":"a","holder":"ann"}`).expect(200, `"token":1099511627777`)
	})
}
