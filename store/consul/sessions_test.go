package consul

import (
	"testing"
	"time"
)

type tickingClock struct{ now time.Duration }

func (c *tickingClock) Now() time.Duration { return c.now }

// A program may use another TTL for each lease. What is too old to be used is forgotten.
func TestIdleSessionsAreForgotten(t *testing.T) {
	clock := &tickingClock{}
	s := newSessions(nil, clock)
	for i := range 10_000 {
		clock.now += 100 * time.Millisecond
		s.put(session{id: "s", ttl: 10*time.Second + time.Duration(i), born: clock.now})
	}
	if n := len(s.idle); n > 100 {
		t.Errorf("%d lists of idle sessions are kept", n)
	}
	for range 100 {
		s.put(session{id: "s", ttl: time.Minute, born: clock.now})
	}
	clock.now += time.Minute
	if _, ok := s.take(time.Minute); ok || len(s.idle[time.Minute]) > 0 {
		t.Errorf("%d sessions are kept that are too old", len(s.idle[time.Minute]))
	}
}
