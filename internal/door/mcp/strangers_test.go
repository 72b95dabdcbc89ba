package mcp

import (
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/leasehold/leasehold/internal/core"
	"github.com/leasehold/leasehold/internal/core/access"
	"github.com/leasehold/leasehold/internal/door"
	"github.com/leasehold/leasehold/internal/engine"
	"github.com/leasehold/leasehold/internal/engine/memory"
)

// Nobody holds memory for a body who has not said who it is: the request is refused before it is read.
func TestStrangersAreRefusedBeforeTheBody(t *testing.T) {
	e := memory.Start(engine.NewGoClock())
	defer e.Close()
	on := access.Items{Tokens: []*access.Token{{ID: "t", Hash: strings.Repeat("h", 32), Principal: "root"}},
		Bindings: []*access.Binding{{Name: "b", Role: "admin", Principal: "root", Namespace: access.AllNamespaces}}}
	if _, err := e.Do(t.Context(), &core.ChangeAccess{Put: on}); err != nil {
		t.Fatal(err)
	}
	body, w := strings.NewReader(`{"method":"tools/call"}`), httptest.NewRecorder()
	left := body.Len()
	New(door.NewBackend(e, door.Options{}), Config{}).ServeHTTP(w, httptest.NewRequest("POST", "/mcp", body))
	if w.Code != 401 || body.Len() != left {
		t.Errorf("%d after %d bytes: %s", w.Code, left-body.Len(), w.Body)
	}
}
