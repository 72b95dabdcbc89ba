package server_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/leasehold/leasehold"
	v1 "github.com/leasehold/leasehold/api/v1"
	"github.com/leasehold/leasehold/store"
	"github.com/leasehold/leasehold/store/server"
)

// A server that does not know watches of interventions is asked for a watch of everything.
func TestWatchAnOlderServer(t *testing.T) {
	older := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case r.URL.Path != "/v1/watch":
			fmt.Fprint(w, "{}")
			return
		case r.URL.Query().Has("interventions"):
			w.Header().Set("Content-Type", "application/problem+json")
			w.WriteHeader(http.StatusBadRequest)
			fmt.Fprint(w, `{"code":"invalid","detail":"parameter \"interventions\" is unknown"}`)
			return
		}
		w.Header().Set("Content-Type", "text/event-stream")
		fmt.Fprint(w, "event: hello\nid: 1\ndata: {}\n\nid: 2.0\ndata: {\"kind\":\"breaking\",\"id\":\"a\"}\n\n")
	}))
	defer older.Close()
	s, err := server.Open(t.Context(), v1.CallerConfig{Servers: []string{older.URL}, Client: older.Client()})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	for e, err := range s.Watch(t.Context(), store.WatchQuery{Session: "me", Interventions: true}) {
		if err != nil || e.Kind != leasehold.BreakSet || e.ID != "a" {
			t.Errorf("it yields %+v, %v", e, err)
		}
		return
	}
}
