package client_test

import (
	"testing"
	"time"

	"github.com/leasehold/leasehold/client"
	"github.com/leasehold/leasehold/leasetest"
)

// A lease of a kind that nobody knows has the longest TTL that can be learned; one that was watched gets what suits it.
func TestTTLsAreLearned(t *testing.T) {
	bubble(t, func(t *testing.T, s *leasetest.Server) {
		c, caller := s.Dial(t), operator(t, s)
		ttlOf := func(options ...client.Option) time.Duration {
			h, err := c.Acquire(t.Context(), "gpu", options...)
			if err != nil {
				t.Fatal(err)
			}
			time.Sleep(10 * time.Minute)
			seen, err := caller.Resource(t.Context(), "gpu", 0)
			if err != nil || len(seen.Holders) != 1 {
				t.Fatalf("%+v, %v", seen, err)
			}
			session, err := caller.Session(t.Context(), seen.Holders[0].Session)
			if err != nil {
				t.Fatal(err)
			}
			if err := h.Release(t.Context()); err != nil {
				t.Fatal(err)
			}
			return time.Duration(session.TTL)
		}
		usual := ttlOf()
		if got := ttlOf(client.LearnedTTL()); got != 2*time.Minute {
			t.Errorf("of the program's kind nothing is known, and its TTL is %v", got)
		}
		kind := client.Label("kind", "evaluation")
		for range 10 {
			ttlOf(kind)
		}
		if got := ttlOf(client.LearnedTTL(), kind); got < time.Minute || got >= 2*time.Minute || got == usual {
			t.Errorf("of this kind much is known, and its TTL is %v", got)
		}
		session, err := c.OpenSession(t.Context(), client.TTL(30*time.Second))
		if err != nil {
			t.Fatal(err)
		}
		if got := ttlOf(client.LearnedTTL(), client.In(session)); got != 30*time.Second {
			t.Errorf("in a session the TTL is %v", got)
		}
	})
}
