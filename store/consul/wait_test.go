//go:build linux

package consul_test

import (
	"errors"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/leasehold/leasehold"
	"github.com/leasehold/leasehold/internal/peer"
	"github.com/leasehold/leasehold/store"
)

// A waiter costs Consul one blocking query, and no session for each time it asks.
func TestWhatAWaiterCosts(t *testing.T) {
	address := peer.StartConsul(t, short).Members[0].Address
	holder := open(t, address)
	acquire(t, holder, store.Request{Resource: "r", ID: "a", TTL: time.Minute})
	var mu sync.Mutex
	sessions, queries := 0, 0
	s := openHooked(t, address, hooked{before: func(r *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		switch {
		case strings.Contains(r.URL.Path, "/session/create"):
			sessions++
		case r.URL.Query().Has("index"):
			queries++
		}
	}})
	const ttl = time.Second // it asks three times a second
	acquire(t, s, store.Request{Resource: "other", ID: "o", TTL: ttl})
	release(t, s, "other", "o") // its session is idle, and the waiter's now
	mu.Lock()
	sessions = 0
	mu.Unlock()
	_, err := s.Acquire(t.Context(), store.Request{Resource: "r", ID: "b", TTL: ttl, Wait: 3 * time.Second})
	if !errors.Is(err, leasehold.ErrHeld) {
		t.Fatalf("it waited: %v", err)
	}
	mu.Lock()
	defer mu.Unlock()
	if sessions > 0 || queries != 1 {
		t.Errorf("a waiter made %d sessions and %d blocking queries", sessions, queries)
	}
}
