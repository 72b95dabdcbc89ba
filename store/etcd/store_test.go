//go:build linux

package etcd_test

import (
	"testing"
	"time"

	"github.com/leasehold/leasehold/internal/peer"
	"github.com/leasehold/leasehold/store"
	"github.com/leasehold/leasehold/store/storetest"
)

// The whole suite, on one real server, and one that is killed.
func TestStore(t *testing.T) {
	server, killed := peer.StartEtcd(t, peer.EtcdConfig{}), peer.StartEtcd(t, peer.EtcdConfig{})
	member := killed.Members[0]
	storetest.Run(t, storetest.Config{
		Open:  func(t testing.TB) store.Store { return open(t, server.Endpoints()...) },
		Apart: func(t testing.TB) store.Store { return open(t, killed.Endpoints()...) },
		Full:  *full,
		TTL:   2 * time.Second,
		Late:  time.Second, MassLate: 2 * time.Second,
		Omit: map[string]string{
			"tokens/floor": "etcd refuses a floor above its revision: TestARestoredCopyGrantsNothing",
		},
		Restart: func(testing.TB) { member.Stop(); member.Restart() },
		Kill:    func(testing.TB) { member.Kill(); member.Restart() },
		Hang: func(testing.TB) func() {
			member.Pause()
			return member.Resume
		},
		Denied: func(t testing.TB) store.Store { return protected(t)("stranger") },
	})
}
