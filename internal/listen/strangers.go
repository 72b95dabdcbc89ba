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

// maxRefused is how many more may be told that there is no place.
const maxRefused = maxStrange / 4

// newStrangers returns so many places of such requests. Clients are networks of addresses.
func newStrangers(most int) limit.Budget { return limit.Budget{Most: most, Alone: most / 4 * alone} }

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

// refuseStranger tells a client that there is no place for its request. If too many do not take that, its stream is
// reset.
func (h *Host) refuseStranger(w http.ResponseWriter, r *http.Request, c *Conn) {
	from := c.from.String()
	if !h.refused.Take(from, 1) {
		panic(http.ErrAbortHandler)
	}
	defer h.refused.Give(from, 1)
	h.refuse(w, r, errStrangers)
	awaitTaken(w)
}

// awaitTaken waits until the client has taken an answer: net/http has a goroutine and buffers for it until then. An
// answer of gRPC that is its header alone has nothing to be taken, and must not look as if more came.
func awaitTaken(w http.ResponseWriter) {
	if w.Header().Get("Grpc-Status") == "" {
		_ = http.NewResponseController(w).Flush()
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
