package listen

import (
	"net/http"
	"sync"
	"sync/atomic"

	"github.com/leasehold/leasehold"
	"github.com/leasehold/leasehold/internal/limit"
)

// maxStrange is how many requests may be under way by HTTP/2 on all connections together on which nothing was proven. A
// connection can carry a thousand, and one that has only begun costs the server many times what it costs its client.
// Over HTTP/1.1 each has a connection of its own.
const maxStrange = 4096

// newStrangers returns the places of such requests. Clients are networks of addresses.
func newStrangers() limit.Budget {
	return limit.Budget{Most: maxStrange, Alone: maxStrange / 4 * alone}
}

// A stranger is what a connection has of these places, until something is proven on it.
type stranger struct {
	known atomic.Bool

	mu     sync.Mutex // guards what follows
	places int
}

// ask takes a place for a request that begins on a connection, if it needs one, and reports whether there was one.
// answered has to follow.
func (h *Host) ask(c *Conn) bool {
	if c.stranger.known.Load() {
		return true
	}
	c.stranger.mu.Lock()
	defer c.stranger.mu.Unlock()
	if c.stranger.known.Load() {
		return true
	}
	if !h.strangers.Take(c.from.String(), 1) {
		return false
	}
	c.stranger.places++
	return true
}

// answered gives back the place of a request, unless that was done before.
func (h *Host) answered(c *Conn) {
	c.stranger.mu.Lock()
	defer c.stranger.mu.Unlock()
	if c.stranger.places > 0 {
		c.stranger.places--
		h.strangers.Give(c.from.String(), 1)
	}
}

// introduced gives back all places of a connection: something was proven on it.
func (c *Conn) introduced() {
	if c.stranger.known.Load() || c.host == nil {
		return
	}
	c.stranger.mu.Lock()
	defer c.stranger.mu.Unlock()
	c.stranger.known.Store(true)
	if n := c.stranger.places; n > 0 {
		c.stranger.places = 0
		c.host.strangers.Give(c.from.String(), n)
	}
}

// errStrangers is what a request is told for which there is no place.
var errStrangers = &Fault{&leasehold.Error{Code: leasehold.Limited, Message: "as many requests are under way as can " +
	"be from clients that have not shown who they are, or from one network of them: try again in a moment"},
	http.StatusTooManyRequests}
