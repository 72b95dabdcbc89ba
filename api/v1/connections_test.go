package v1

import (
	"context"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/leasehold/leasehold"
)

// A limit that was reached is the only sign of a dead connection: only then is the server
// dialled again.
func TestATimedOutAttemptRedials(t *testing.T) {
	for name, c := range map[string]struct {
		takes    time.Duration
		err      error
		redialed int
	}{
		"an answer":             {0, nil, 0},
		"a quick failure":       {0, leasehold.ErrUnavailable, 0},
		"the limit was reached": {2 * time.Second, leasehold.ErrUndecided, 1},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s, err := NewServers(CallerConfig{})
				if err != nil {
					t.Fatal(err)
				}
				used := s.all[0].endpoint.connections
				before := used.current
				_ = s.Once(t.Context(), time.Second, func(context.Context, *Caller) error {
					time.Sleep(c.takes)
					return c.err
				})
				if used.dialled() != c.redialed || (used.current != before) != (c.redialed > 0) {
					t.Errorf("generation %d", used.dialled())
				}
			})
		})
	}
}

// Many requests time out over the same connections: they are replaced once.
func TestAGenerationIsRedialledOnce(t *testing.T) {
	c := newConnections(&http.Transport{}, 30*time.Second)
	for range 10 {
		c.redial(0)
	}
	if c.dialled() != 1 {
		t.Errorf("generation %d", c.dialled())
	}
	for n := range 10 {
		c.redial(n + 1)
	}
	if len(c.retired) != maxRetired {
		t.Errorf("%d former transports are remembered", len(c.retired))
	}
}

// Connections are pinged for the shortest TTL; without one they are the pattern's own.
func TestPings(t *testing.T) {
	pattern := &http.Transport{}
	c := newConnections(pattern, 0)
	if c.current != http.RoundTripper(pattern) {
		t.Error("the pattern's connections are not shared")
	}
	for _, ttl := range []time.Duration{30 * time.Second, 12 * time.Second, time.Minute} {
		c.pingWithin(ttl)
	}
	h2 := c.current.(*http.Transport).HTTP2
	if h2.SendPingTimeout != time.Second || h2.PingTimeout != 500*time.Millisecond {
		t.Errorf("pings after %v, within %v", h2.SendPingTimeout, h2.PingTimeout)
	}
	if pattern.HTTP2 != nil {
		t.Error("the pattern was changed")
	}
}
