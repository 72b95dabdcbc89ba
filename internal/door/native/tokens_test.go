package native

import (
	"testing"
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
