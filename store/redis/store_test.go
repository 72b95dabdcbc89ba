package redis

import (
	"context"
	"testing"
	"time"

	"github.com/leasehold/leasehold/store"
	"github.com/redis/rueidis"
)

// testTTL is the TTL of leases in tests, and also their largest: so a quiet time is short.
const testTTL = time.Second

// config is that of a store at an address, which is used for the first time.
func config(address string) Config {
	return Config{
		Options: rueidis.ClientOption{InitAddress: []string{address}, ForceSingleClient: true},
		MaxTTL:  10 * testTTL, Init: true,
	}
}

func openWith(t testing.TB, c Config) *Store {
	t.Helper()
	s, err := Open(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return s
}

func openAt(t testing.TB, address string) *Store {
	t.Helper()
	return openWith(t, config(address))
}

// acquire asks for a lease without waiting.
func acquire(t testing.TB, s *Store, resource, id string) (store.Grant, error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	return s.Acquire(ctx, store.Request{Resource: resource, ID: id, Holder: id, TTL: testTTL})
}

func mustAcquire(t testing.TB, s *Store, resource, id string) store.Grant {
	t.Helper()
	grant, err := acquire(t, s, resource, id)
	if err != nil {
		t.Fatalf("%s was not granted to %s: %v", resource, id, err)
	}
	return grant
}
