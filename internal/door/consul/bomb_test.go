package consul

import (
	"bytes"
	"net/http/httptest"
	"testing"

	"github.com/leasehold/leasehold/internal/door/doortest"
)

// A body makes little, whatever it is made of.
func TestBombs(t *testing.T) {
	sent := func(body []byte) *call {
		return &call{w: httptest.NewRecorder(), r: httptest.NewRequest("PUT", "/", bytes.NewReader(body))}
	}
	t.Run("transactions", func(t *testing.T) {
		bombs := doortest.JSONBombs("KV", "Key")
		bombs["operations"] = [3]string{"[", `{"KV":{}},`, "{}]"}
		bombs["nothings"] = [3]string{"[", "null,", "null]"}
		bombs["operations in one"] = [3]string{"[{", `"KV":{},`, `"KV":{}}]`}
		bombs["what is of a catalog"] = [3]string{"[", `{"Node":0},`, "{}]"}
		doortest.Bombs(t, maxTxn, bombs, func(body []byte) { _, _ = sent(body).readTxn() })
	})
	t.Run("sessions", func(t *testing.T) {
		bombs := doortest.JSONBombs("ServiceChecks", "Name")
		bombs["delays"] = [3]string{`{"LockDelay":[`, "{},", "{}]}"}
		doortest.Bombs(t, maxBody, bombs, func(body []byte) { _ = sent(body).readJSON(new(sessionBody), maxBody, false) })
	})
}
