package listen

import (
	"net/http"
	"sync"
	"sync/atomic"

	"github.com/leasehold/leasehold"
	"github.com/leasehold/leasehold/internal/limit"
)

const (
	// strangersMemory is how many bytes are kept for all clients together that have not shown who they are, at all
	// ports, beyond a few KiB for each connection.
	strangersMemory = 64 << 20
	// strangeCost is what a request by HTTP/2 counts there: one that has only begun costs the server many times what it
	// costs its client, and a connection can carry a thousand. One of each connection is free: over HTTP/1.1 each has a
	// connection of its own.
	strangeCost = 16 << 10
)

// NewStrangers returns the memory that connections share on which nothing was proven. Clients are networks of
// addresses.
func NewStrangers() *limit.Budget {
	return &limit.Budget{Most: strangersMemory, Alone: strangersMemory / 4 * alone}
}

// A stranger is what a connection has under way, until something is proven on it.
type stranger struct {
	known atomic.Bool

	mu       sync.Mutex // guards what follows
	requests int        // of which all but one count
}

// ask counts a request that begins on a connection, if it has to be, and reports whether there is room for it. answered
// has to follow.
func (h *Host) ask(c *Conn) bool {
	if c.stranger.known.Load() {
		return true
	}
	c.stranger.mu.Lock()
	defer c.stranger.mu.Unlock()
	if c.stranger.known.Load() {
		return true
	}
	if c.stranger.requests > 0 && !h.config.Strangers.Take(c.from.String(), strangeCost) {
		return false
	}
	c.stranger.requests++
	return true
}

// answered gives back what a request had, unless that was done before.
func (h *Host) answered(c *Conn) {
	c.stranger.mu.Lock()
	defer c.stranger.mu.Unlock()
	if c.stranger.requests == 0 {
		return
	}
	if c.stranger.requests--; c.stranger.requests > 0 {
		h.config.Strangers.Give(c.from.String(), strangeCost)
	}
}

// refuseStranger tells a client that there is no room for its request. For that there is a quarter more; if too many do
// not take it, the stream is reset.
func (h *Host) refuseStranger(w http.ResponseWriter, r *http.Request, c *Conn) {
	from, shared := c.from.String(), h.config.Strangers
	shared.Add(from, strangeCost)
	defer shared.Give(from, strangeCost)
	if shared.Over(from, shared.Most/4) {
		panic(http.ErrAbortHandler)
	}
	h.refuse(w, r, errStrangers)
	awaitTaken(w, r)
}

// awaitTaken waits until the client has taken an answer: net/http has a goroutine and buffers for it until then, but
// nothing of the body any more. An answer of gRPC that is its header alone has nothing to be taken, and must not look
// as if more came.
func awaitTaken(w http.ResponseWriter, r *http.Request) {
	_ = r.Body.Close()
	if w.Header().Get("Grpc-Status") == "" {
		_ = http.NewResponseController(w).Flush()
	}
}

// introduced gives back all that a connection has: something was proven on it.
func (c *Conn) introduced() {
	if c.stranger.known.Load() || c.host == nil {
		return
	}
	c.stranger.mu.Lock()
	defer c.stranger.mu.Unlock()
	c.stranger.known.Store(true)
	if n := c.stranger.requests - 1; n > 0 {
		c.host.config.Strangers.Give(c.from.String(), n*strangeCost)
	}
	c.stranger.requests = 0
}

// errStrangers is what a request is told for which there is no room.
var errStrangers = &Fault{ErrStrangers, http.StatusTooManyRequests}

// ErrStrangers is the error of a request for which Strangers has no room.
var ErrStrangers = &leasehold.Error{Code: leasehold.Limited, Message: "clients that have not shown who they are have " +
	"as much under way as they can, or those of one network of them: try again in a moment"}
