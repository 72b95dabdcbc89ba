package server_test

import (
	"testing"
	"time"

	v1 "github.com/leasehold/leasehold/api/v1"
	"github.com/leasehold/leasehold/leasetest"
	"github.com/leasehold/leasehold/store"
	"github.com/leasehold/leasehold/store/server"
	"github.com/leasehold/leasehold/store/storetest"
)

// A handle is a store on a server in the same bubble.
type handle struct {
	*server.Store
	server *leasetest.Server
}

// another opens a handle on a server, with connections of its own.
func another(t testing.TB, s *leasetest.Server) store.Store {
	opened, err := server.Open(t.Context(), v1.CallerConfig{
		Servers: []string{"http://leasetest"}, Client: s.HTTP(), Timeout: 10 * time.Second,
	})
	if err != nil {
		t.Fatal(err)
	}
	return handle{opened, s}
}

func TestStore(t *testing.T) {
	storetest.Run(t, storetest.Config{
		Open:       func(t testing.TB) store.Store { return another(t, leasetest.Start(t)) },
		Second:     func(t testing.TB, first store.Store) store.Store { return another(t, first.(handle).server) },
		Virtual:    true,
		TTL:        10 * time.Second,
		WaiterLife: 15 * time.Second, // whatever the TTL
		ForgetsHow: "the history knows",
		Omit:       map[string]string{"tokens/floor": "a server does not forget its tokens, and asks nobody for them"},
	})
}
