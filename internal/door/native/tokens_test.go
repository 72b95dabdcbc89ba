package native

import (
	"testing"

	"github.com/leasehold/leasehold/internal/core"
	"github.com/leasehold/leasehold/internal/engine"
	"github.com/leasehold/leasehold/internal/engine/memory"
)

const raisePath = "/v1/tokens/raise"

// TestRaiseTokens: grants go on above what was seen elsewhere, the audit keeps who said so and why, and a
// retry or a smaller number changes nothing.
func TestRaiseTokens(t *testing.T) {
	door := newDoor(t, Config{})
	raise := func(body string) answer { t.Helper(); return ask(t, door, "POST", raisePath, body) }
	raise(`{"above":1700,"reason":"seen in Redis","by":"ops"}`).expect(200, `{"namespace":"default","newest":1700,"raised":true}`)
	raise(`{"above":1700,"reason":"seen in Redis","by":"ops"}`).expect(200, `{"namespace":"default","newest":1700,"raised":false}`)
	ask(t, door, "POST", "/v1/acquire", `{"resource":"r","holder":"ann"}`).expect(200, `"token":1701`)
	raise(`{"above":3,"reason":"a slip"}`).expect(200, `{"namespace":"default","newest":1701,"raised":false}`)
	ask(t, door, "POST", raisePath+"?namespace=green", `{"above":9000,"reason":"etcd"}`).
		expect(200, `{"namespace":"green","newest":9000,"raised":true}`)
	ask(t, door, "POST", "/v1/acquire", `{"resource":"s","holder":"ann"}`).expect(200, `"token":1702`)
	ask(t, door, "GET", "/v1/audit?verb=raise-tokens", "").
		expect(200, `"outcome":"ok"`, `"by":"ops"`, `"reason":"seen in Redis"`, `"token":1700`)
}

func TestRaiseTokensRefusesMistakes(t *testing.T) {
	door := newDoor(t, Config{})
	for body, want := range map[string]string{
		`{"above":1700}`:                            "reason is empty",
		`{"reason":"why"}`:                          "above is missing",
		`{"above":-1,"reason":"why"}`:               "above",
		`{"above":1.5,"reason":"why"}`:              "above",
		`{"above":4503599627370497,"reason":"why"}`: "tokens can be raised to 4503599627370496 at most",
		`{"above":17,"reason":"a\u0000"}`:           "reason",
	} {
		ask(t, door, "POST", raisePath, body).expect(400, want)
	}
}

// TestRaiseTokensBelowLevel4: the log of an older cluster has no such command.
func TestRaiseTokensBelowLevel4(t *testing.T) {
	e := memory.StartAt(core.Level3, engine.NewGoClock())
	t.Cleanup(func() { _ = e.Close() })
	ask(t, open(e, Config{}), "POST", raisePath, `{"above":1700,"reason":"seen"}`).
		expect(422, "needs feature level 4, and the cluster is at 3", "leasehold cluster upgrade")
}
