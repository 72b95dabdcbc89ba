//go:build linux

package consul_test

import (
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/leasehold/leasehold"
	"github.com/leasehold/leasehold/internal/peer"
	"github.com/leasehold/leasehold/store"
)

// A renewal is answered after the release of its lease. Its session is that of the next lease then, which a
// second release of the first must not end.
func TestASecondReleaseEndsNothingElse(t *testing.T) {
	address := peer.StartConsul(t, short).Members[0].Address
	released, renewed := make(chan struct{}), make(chan struct{})
	s := openHooked(t, address, hooked{after: func(r *http.Request) {
		if strings.Contains(r.URL.Path, "/session/renew/") {
			close(renewed)
			<-released
		}
	}})
	acquire(t, s, store.Request{Resource: "r", ID: "a", TTL: time.Minute})
	done := make(chan struct{})
	go func() {
		defer close(done)
		_, _ = s.Renew(t.Context(), store.Ref{Resource: "r", ID: "a"})
	}()
	<-renewed
	release(t, s, "r", "a")
	acquire(t, s, store.Request{Resource: "r", ID: "b", TTL: time.Minute})
	close(released)
	<-done
	release(t, s, "r", "a")
	_, err := open(t, address).Acquire(t.Context(), store.Request{Resource: "r", ID: "c", TTL: time.Minute})
	if !errors.Is(err, leasehold.ErrHeld) {
		t.Errorf("b holds it: %v", err)
	}
}
