package client

import (
	"maps"
	"slices"
	"time"
)

// A Stall is a pause in which nothing of this process ran.
type Stall struct {
	Paused time.Duration
	TTL    time.Duration // of the session that it was a danger to
	Lost   bool          // something expired in it, or since the last one
}

// shortest is the smallest TTL of the sessions.
func (c *Client) shortest() (ttl time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for d := range c.ttls {
		if ttl == 0 || d < ttl {
			ttl = d
		}
	}
	return ttl
}

// stalled tells of a pause that was a danger to what had a TTL.
func (c *Client) stalled(paused, ttl time.Duration) {
	stall := Stall{Paused: paused, TTL: ttl, Lost: c.lookForLosses()}
	c.log.Warn("nothing of this process ran for a while", "paused", paused, "ttl", ttl, "lost", stall.Lost)
	if c.config.OnStall != nil {
		c.spawn(func() { c.config.OnStall(stall) })
	}
}

// lookForLosses ends what the clock has ended, and tells whether anything expired since
// it was called last.
func (c *Client) lookForLosses() bool {
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
