//go:build linux

package consul_test

import (
	"fmt"
	"net/netip"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/leasehold/leasehold/internal/peer"
	"github.com/leasehold/leasehold/store"
)

// Close ends the connections of a store that made its own client.
func TestCloseEndsConnections(t *testing.T) {
	member := peer.StartConsul(t, short).Members[0]
	s, err := store.Open(t.Context(), "consul://"+member.Address+"?min_ttl=1s", store.Settings{})
	if err != nil {
		t.Fatal(err)
	}
	acquire(t, s, store.Request{Resource: "r", ID: "a", TTL: time.Minute})
	if n := connections(t, member.Address); n == 0 {
		t.Fatal("there is no connection")
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	for began := time.Now(); connections(t, member.Address) > 0; time.Sleep(10 * time.Millisecond) {
		if time.Since(began) > 5*time.Second {
			t.Fatal("the connections are still open")
		}
	}
}

// connections returns how many connections this process has to an address.
func connections(t testing.TB, address string) (n int) {
	t.Helper()
	table, err := os.ReadFile("/proc/self/net/tcp")
	if err != nil {
		t.Skipf("left out: the connections are counted in /proc: %v", err)
	}
	at := netip.MustParseAddrPort(address)
	b := at.Addr().As4()
	remote := fmt.Sprintf("%02X%02X%02X%02X:%04X", b[3], b[2], b[1], b[0], at.Port())
	for line := range strings.Lines(string(table)) {
		if f := strings.Fields(line); len(f) > 3 && f[2] == remote && f[3] == "01" {
			n++
		}
	}
	return n
}
