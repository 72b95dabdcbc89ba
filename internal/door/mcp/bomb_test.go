package mcp

import (
	"bytes"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/leasehold/leasehold/internal/door"
	"github.com/leasehold/leasehold/internal/door/doortest"
	"github.com/leasehold/leasehold/internal/engine"
	"github.com/leasehold/leasehold/internal/engine/memory"
)

// A request makes little, whatever it is made of, with all that the SDK makes of it.
func TestBombs(t *testing.T) {
	e := memory.Start(engine.NewGoClock())
	defer e.Close()
	d := New(door.NewBackend(e, door.Options{}), Config{})
	const call = `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"lease_acquire","arguments":`
	bombs := map[string][3]string{
		"requests": {"[", `{"jsonrpc":"2.0","id":1,"method":"ping"},`, "{}]"}, "empty requests": {"[", "{},", "{}]"},
		"metadata":            {`{"jsonrpc":"2.0","id":1,"method":"ping","params":{"_meta":{`, `"a":{},`, `"b":0}}}`},
		"lists of metadata":   {`{"jsonrpc":"2.0","id":1,"method":"ping","params":{"_meta":{"a":[`, `{},`, `{}]}}}`},
		"numbers of metadata": {`{"jsonrpc":"2.0","id":1,"method":"ping","params":{"_meta":{"a":[`, `0,`, `0]}}}`},
		"abilities":           {`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"capabilities":{"experimental":{"a":[`, `{},`, `{}]}}}}`},
	}
	for name, b := range doortest.JSONBombs("resources", "resource") {
		bombs["as arguments, "+name] = [3]string{call + b[0], b[1], b[2] + "}}"}
		bombs["as parameters, "+name] = [3]string{`{"jsonrpc":"2.0","id":1,"method":"initialize","params":` + b[0], b[1], b[2] + "}"}
		bombs["as it is, "+name] = b
	}
	send := func(body []byte) *httptest.ResponseRecorder {
		w, r := httptest.NewRecorder(), httptest.NewRequest("POST", "/mcp", bytes.NewReader(body))
		r.Header.Set("Content-Type", "application/json")
		r.Header.Set("Accept", "application/json, text/event-stream")
		d.ServeHTTP(w, r)
		return w
	}
	if w := send([]byte(` [{"jsonrpc":"2.0","id":1,"method":"ping"}]`)); w.Code != http.StatusBadRequest ||
		!strings.Contains(w.Body.String(), "send each by itself") {
		t.Errorf("a batch is answered %d %s", w.Code, w.Body)
	}
	doortest.Bombs(t, maxBody, bombs, func(body []byte) { send(body) })
}
