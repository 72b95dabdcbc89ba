package redial

import (
	"net/http"
	"testing"
	"time"
)

// Many requests time out over the same connections: they are replaced once.
func TestAGenerationIsRedialledOnce(t *testing.T) {
	c := New(&http.Transport{}, 30*time.Second)
	before := c.current
	for range 10 {
		c.Redial(0)
	}
	if c.Dialled() != 1 || c.current == before {
		t.Errorf("generation %d", c.Dialled())
	}
	for n := range 10 {
		c.Redial(n + 1)
	}
	if len(c.retired) != maxRetired {
		t.Errorf("%d former transports are remembered", len(c.retired))
	}
}

// Connections are pinged for the shortest TTL; without one they are the pattern's own.
func TestPings(t *testing.T) {
	pattern := &http.Transport{}
	c := New(pattern, 0)
	if c.current != http.RoundTripper(pattern) {
		t.Error("the pattern's connections are not shared")
	}
	for _, ttl := range []time.Duration{30 * time.Second, 12 * time.Second, time.Minute} {
		c.PingWithin(ttl)
	}
	h2 := c.current.(*http.Transport).HTTP2
	if h2.SendPingTimeout != time.Second || h2.PingTimeout != 500*time.Millisecond {
		t.Errorf("pings after %v, within %v", h2.SendPingTimeout, h2.PingTimeout)
	}
	if pattern.HTTP2 != nil {
		t.Error("the pattern was changed")
	}
}
