package main

import (
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/leasehold/leasehold/internal/peer"
)

// TestStores runs the scripts of testdata/stores on other stores than a server, each started for it.
func TestStores(t *testing.T) {
	stores := map[string]func(t *testing.T) string{
		"redis": func(t *testing.T) string {
			return "redis://:hunter2@" + startRedis(t) + "?init=true"
		},
		"postgres": func(t *testing.T) string {
			return peer.StartPostgres(t, peer.PostgresConfig{}).URL() + "&migrate=yes"
		},
		"etcd": func(t *testing.T) string {
			return "etcd://" + peer.StartEtcd(t, peer.EtcdConfig{}).Members[0].Address
		},
		"consul": func(t *testing.T) string {
			short := peer.ConsulConfig{Settings: map[string]any{"session_ttl_min": "1s"}}
			return "consul://" + peer.StartConsul(t, short).Members[0].Address + "?min_ttl=1s"
		},
	}
	for name, start := range stores {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			address := start(t)
			testscript.Run(t, testscript.Params{
				Dir: "testdata/stores", Cmds: words,
				Setup: func(env *testscript.Env) error {
					env.Setenv("LEASEHOLD_SERVER", address)
					env.Setenv("STORE", name)
					env.Setenv("TZ", "UTC")
					env.Setenv("GORACE", "atexit_sleep_ms=0")
					return nil
				},
			})
		})
	}
}

// startRedis starts a Redis with a password, which must never be shown.
func startRedis(t *testing.T) string {
	t.Helper()
	r := peer.StartRedis(t, peer.RedisConfig{})
	r.Do("CONFIG", "SET", "requirepass", "hunter2")
	return r.Address
}
