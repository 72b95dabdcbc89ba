// Package redial is an HTTP transport to one server whose connections can be given up for new ones.
package redial

import (
	"cmp"
	"net/http"
	"sync"
	"time"
)

// A Transport has the connections to one server. A connection can be dead without an error: a
// router forgot it, or a machine moved. HTTP/2 would go on to use it for every request,
// so they can be redialled: later requests use new connections, whatever became of the
// old ones.
type Transport struct {
	pattern http.RoundTripper

	mu         sync.Mutex // guards what follows
	ttl        time.Duration
	current    http.RoundTripper
	generation int               // counts redials
	retired    []*http.Transport // of former generations
}

// maxRetired is how many former transports are remembered, to close their idle
// connections. Others close theirs after IdleTimeout.
const maxRetired = 4

// IdleTimeout is after which time connections without requests are closed.
const IdleTimeout = time.Minute

// New returns connections that are made as the pattern makes them. With a TTL they are
// pinged; without one, and until the first redial, they are the pattern's own, so that callers with
// one http.Client share them. A command makes one request and needs no pings; a client with leases
// does.
func New(pattern http.RoundTripper, ttl time.Duration) *Transport {
	c := &Transport{pattern: cmp.Or[http.RoundTripper](pattern, http.DefaultTransport), ttl: ttl}
	c.current = c.pattern
	if ttl > 0 {
		c.current = c.transport()
	}
	return c
}

// transport returns the transport of the next generation. A pattern that is not the
// standard library's cannot be cloned, and is used as it is.
func (c *Transport) transport() http.RoundTripper {
	pattern, ok := c.pattern.(*http.Transport)
	if !ok {
		return c.pattern
	}
	// A clone has no connections yet: that is what makes a redial use new ones.
	t := pattern.Clone()
	if t.IdleConnTimeout == 0 {
		t.IdleConnTimeout = IdleTimeout
	}
	if c.ttl == 0 {
		return t
	}
	if t.HTTP2 == nil {
		t.HTTP2 = &http.HTTP2Config{}
	}
	// A program that set its own pings knows better.
	if t.HTTP2.SendPingTimeout == 0 {
		t.HTTP2.SendPingTimeout, t.HTTP2.PingTimeout = Pings(c.ttl)
	}
	return t
}

// Pings returns after which silence an HTTP/2 connection is pinged, and how long the
// answer may take. Together they are an eighth of the TTL: a dead connection is closed
// before an attempt over it has used up its limit, a fifth of the TTL.
func Pings(ttl time.Duration) (after, within time.Duration) {
	const least = 100 * time.Millisecond // below it a busy machine would lose good connections
	return max(ttl/12, least), max(ttl/24, least)
}

// RoundTrip sends a request over the newest connections.
func (c *Transport) RoundTrip(r *http.Request) (*http.Response, error) {
	c.mu.Lock()
	current := c.current
	c.mu.Unlock()
	return current.RoundTrip(r)
}

// Dialled returns the generation in use, for Redial.
func (c *Transport) Dialled() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.generation
}

// Redial abandons the connections of a generation, unless somebody did already. Requests that are
// under way over them go on. Closing them would turn one slow answer into many failed requests. It
// reports whether it did.
func (c *Transport) Redial(generation int) (did bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.generation != generation {
		return false
	}
	c.renewLocked()
	return true
}

// PingWithin makes pings frequent enough for a TTL. It only ever shortens the interval, since the
// client's shortest lease decides.
func (c *Transport) PingWithin(ttl time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.ttl != 0 && ttl >= c.ttl {
		return
	}
	c.ttl = ttl
	c.renewLocked()
}

func (c *Transport) renewLocked() {
	if t, ok := c.current.(*http.Transport); ok {
		c.retired = append(c.retired, t)
		c.retired = c.retired[max(0, len(c.retired)-maxRetired):]
	}
	c.closeIdleLocked()
	c.current = c.transport()
	c.generation++
}

// CloseIdleConnections closes connections that are not in use.
func (c *Transport) CloseIdleConnections() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.closeIdleLocked()
}

func (c *Transport) closeIdleLocked() {
	for _, t := range c.retired {
		t.CloseIdleConnections()
	}
	if current, ok := c.current.(interface{ CloseIdleConnections() }); ok {
		current.CloseIdleConnections()
	}
}
