package redis

import (
	"context"
	"testing"
	"time"

	"github.com/leasehold/leasehold/internal/peer"
	"github.com/leasehold/leasehold/store"
)

// What is between us and Redis may lose a connection without a word. A lease with a usual TTL survives it.
func TestAConnectionThatIsLostWithoutAWord(t *testing.T) {
	t.Parallel()
	link := peer.StartProxy(t, peer.StartRedis(t, peer.RedisConfig{}).Address)
	s := openAt(t, link.Address)
	const ttl = 8 * time.Second
	if _, err := s.Acquire(t.Context(), store.Request{Resource: "r", ID: "a", TTL: ttl}); err != nil {
		t.Fatal(err)
	}
	// The driver changes to another mode when calls come without a deadline.
	if _, err := s.Read(context.WithoutCancel(t.Context()), "r"); err != nil {
		t.Fatal(err)
	}
	link.Forget()
	for began := time.Now(); ; {
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		r, err := s.Renew(ctx, store.Ref{Resource: "r", ID: "a"})
		cancel()
		if err == nil && r[0].Ended != nil {
			t.Fatalf("the lease was lost: %+v", r[0].Ended)
		}
		if err == nil {
			break
		}
		if time.Since(began) > 2*ttl {
			t.Fatal(err)
		}
	}
}
