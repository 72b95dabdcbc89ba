package client

import (
	"maps"
	"slices"
	"time"
)

// A Stall is a pause of the process that was long enough to endanger a lease.
type Stall struct {
	Paused time.Duration
	TTL    time.Duration // the shortest that was held
	Lost   bool          // something expired during the pause, or since the last one
}

// shortestTTL returns the smallest TTL of the open sessions; 0 if there are none.
func (c *Client) shortestTTL() (ttl time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for d := range c.ttls {
		if ttl == 0 || d < ttl {
			ttl = d
		}
	}
	return ttl
}

// reportStall logs a pause that endangered a lease, and calls Config.OnStall.
func (c *Client) reportStall(paused, ttl time.Duration) {
	stall := Stall{Paused: paused, TTL: ttl, Lost: c.expireSessions()}
	c.log.Warn("the process was paused", "paused", paused, "ttl", ttl, "lost", stall.Lost)
	if c.config.OnStall != nil {
		c.spawn(func() { c.config.OnStall(stall) })
	}
}

// expireSessions ends sessions whose deadline has passed, and reports whether any expired since
// the last call.
func (c *Client) expireSessions() bool {
	c.mu.Lock()
	open := slices.Collect(maps.Values(c.sessions))
	c.mu.Unlock()
	for _, s := range open {
		if s.deadline.Load() != 0 { // else it is still being opened
			s.alive()
		}
	}
	return c.expired.Swap(0) > 0
}
