//go:build linux

package consul_test

import (
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/leasehold/leasehold/internal/peer"
	"github.com/leasehold/leasehold/store"
)

// Callers that need a session for their marks at the same moment share one: it lives for an hour.
func TestMarksShareASession(t *testing.T) {
	address := peer.StartConsul(t, short).Members[0].Address
	s := open(t, address)
	var all sync.WaitGroup
	for i := range 64 {
		name := fmt.Sprint("r", i)
		all.Go(func() { acquire(t, s, store.Request{Resource: name, ID: name, TTL: 10 * time.Second}) })
	}
	all.Wait()
	sessions, _, err := driver(t, address, "").Session().List(nil)
	if err != nil {
		t.Fatal(err)
	}
	marks := 0
	for _, one := range sessions {
		if one.Name == "leasehold marks" {
			marks++
		}
	}
	if marks != 1 {
		t.Errorf("64 leases have %d sessions for their marks", marks)
	}
}
