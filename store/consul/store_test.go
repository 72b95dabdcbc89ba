//go:build linux

package consul_test

import (
	"flag"
	"testing"
	"time"

	"github.com/hashicorp/consul/api"

	"github.com/leasehold/leasehold/internal/peer"
	"github.com/leasehold/leasehold/store"
	"github.com/leasehold/leasehold/store/consul"
	"github.com/leasehold/leasehold/store/storetest"
)

var full = flag.Bool("full", false, "run the long tests, too")

// short lets tests use TTLs of a second, and more connections than Consul allows by default: each case of
// the suite has clients of its own.
var short = peer.ConsulConfig{Settings: map[string]any{
	"session_ttl_min": "1s", "limits": map[string]any{"http_max_conns_per_client": 10000},
}}

// The whole suite, on one real server, and one that is killed.
func TestStore(t *testing.T) {
	server, killed := peer.StartConsul(t, short), peer.StartConsul(t, short)
	member := killed.Members[0]
	storetest.Run(t, storetest.Config{
		Open:  func(t testing.TB) store.Store { return open(t, server.Members[0].Address) },
		Apart: func(t testing.TB) store.Store { return open(t, member.Address) },
		Full:  *full,
		TTL:   2 * time.Second,
		Late:  3 * time.Second, MassLate: 4 * time.Second, // freed after twice the TTL
		Omit: map[string]string{
			"tokens/floor": "Consul refuses a floor above its index: TestTheFloor",
		},
		Restart: func(testing.TB) { member.Stop(); member.Restart() },
		Kill:    func(testing.TB) { member.Kill(); member.Restart() },
		Denied:  func(t testing.TB) store.Store { return protected(t)("") },
		Hang: func(testing.TB) func() {
			member.Pause()
			return member.Resume
		},
	})
}

// driver returns a client of Consul's own.
func driver(t testing.TB, address, token string) *api.Client {
	t.Helper()
	c, err := api.NewClient(&api.Config{Address: address, Token: token})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func open(t testing.TB, address string) *consul.Store { return openAs(t, address, "") }

func openAs(t testing.TB, address, token string) *consul.Store {
	t.Helper()
	s, err := consul.Open(t.Context(), consul.Config{Client: driver(t, address, token), MinTTL: time.Second})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return s
}
