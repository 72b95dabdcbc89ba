package redis

import (
	"context"
	"testing"
	"time"

	"github.com/leasehold/leasehold/internal/peer"
	"github.com/leasehold/leasehold/store"
)

// A call ends with its context, also while another one that has more time waits for the connection.
func TestCallsEndWhileAConnectionHangs(t *testing.T) {
	t.Parallel()
	for name, strict := range map[string]bool{"usual": false, "strict": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			args := []string{"--appendonly", "yes", "--appendfsync", "always"}
			link := peer.StartProxy(t, peer.StartRedis(t, peer.RedisConfig{Args: args}).Address)
			c := config(link.Address)
			c.Strict = strict
			s := openWith(t, c)
			mustAcquire(t, s, "r", "a")
			link.Cut()
			renewWithin(t, s, time.Second) // notices it
			link.Hang()
			long := make(chan time.Duration)
			go func() { long <- renewWithin(t, s, 3*time.Second) }()
			time.Sleep(100 * time.Millisecond) // it connects now
			if took := renewWithin(t, s, 300*time.Millisecond); took > 2*time.Second {
				t.Errorf("a call with 0.3 s has ended after %v", took)
			}
			<-long
		})
	}
}

// renewWithin returns how long a renewal took that has no answer.
func renewWithin(t testing.TB, s *Store, limit time.Duration) time.Duration {
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	defer cancel()
	began := time.Now()
	if _, err := s.Renew(ctx, store.Ref{Resource: "r", ID: "a"}); err == nil {
		t.Error("an answer came through")
	}
	return time.Since(began)
}
