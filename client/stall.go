package client

import (
	"maps"
	"slices"
	"time"
)

// A process that is paused (by a debugger, a laptop's lid, a starved virtual machine) cannot notice
// while it is paused. It notices afterwards, and the program should hear of it even if it was
// lucky: the next pause may be longer than its TTL.

// A Stall is a pause of the process that was long enough to endanger a lease.
type Stall struct {
	Paused time.Duration
	TTL    time.Duration // the shortest that was held
	Lost   bool          // something expired during the pause, or since the last one
}

// shortestTTL returns the smallest TTL of the open sessions; 0 if there are none. That is the first
// session that a pause would cost.
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
		// On a goroutine of its own: the program's code must not block the scheduler, least of all
		// now.
		c.spawn(func() { c.config.OnStall(stall) })
	}
}

// expireSessions ends sessions whose deadline has passed, and reports whether any expired since the
// last call. After a pause their timers may not have fired yet, and the report must not miss them.
func (c *Client) expireSessions() bool {
	c.mu.Lock()
	open := slices.Collect(maps.Values(c.sessions))
	c.mu.Unlock()
	for _, s := range open {
		switch {
		case s.deadline.Load() == 0: // it is still being opened
		case s.local:
			for _, h := range s.granted() {
				h.check()
			}
		default:
			s.alive()
		}
	}
	return c.expired.Swap(0) > 0
}
