//go:build linux

package kubernetes

import (
	"context"
	"flag"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/leasehold/leasehold/internal/peer"
	"github.com/leasehold/leasehold/store"
	"github.com/leasehold/leasehold/store/storetest"
)

var full = flag.Bool("full", false, "run the long tests, too")

// tokenFile writes a token as a pod would find it.
func tokenFile(t testing.TB, token string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "token")
	if err := os.WriteFile(file, []byte(token+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

// configOf returns how to reach a server as its administrator.
func configOf(t testing.TB, k *peer.Kubernetes) Config {
	return Config{Server: k.URL(), CAFile: k.CAFile(), TokenFile: tokenFile(t, k.AdminToken)}
}

func openWith(t testing.TB, c Config) *Store {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	s, err := Open(ctx, c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return s
}

// The whole suite, on a real server. Each handle watches from its first look on, and the one that acquired
// a lease looks at once, so in the suite leases end in time. TestADeadHoldersLease is about those who come
// later.
func TestStore(t *testing.T) {
	k := peer.StartKubernetes(t)
	config := configOf(t, k)
	c := storetest.Config{
		Open:    func(t testing.TB) store.Store { return openWith(t, config) },
		Full:    *full,
		TTL:     3 * time.Second,
		Slack:   time.Second,
		Restart: func(testing.TB) { k.Stop(); k.Restart() },
		Kill:    func(testing.TB) { k.Kill(); k.Restart() },
		Hang:    func(testing.TB) func() { k.Pause(); return k.Resume },
		Denied: func(t testing.TB) store.Store {
			c := config
			c.TokenFile = tokenFile(t, k.UserToken)
			return openWith(t, c)
		},
	}
	storetest.Run(t, c)
}
