package v1

import (
	"cmp"
	"context"
	"crypto/tls"
	"net"
	"net/http"
	"sync"
	"time"
)

// NewClient returns an HTTP client without a limit on the whole of a request: some
// requests wait, and watches never end. config may be nil.
func NewClient(config *tls.Config) *http.Client { return newClient(config, nil) }

func newClient(config *tls.Config, dial dialFunc) *http.Client {
	if dial == nil {
		dial = newDialer().DialContext
	}
	return &http.Client{
		Transport: &http.Transport{
			Proxy: http.ProxyFromEnvironment, DialContext: dial,
			TLSHandshakeTimeout: 5 * time.Second, TLSClientConfig: config, ForceAttemptHTTP2: true,
			MaxIdleConnsPerHost: 64, IdleConnTimeout: idleTimeout,
		},
		CheckRedirect: stayHere,
	}
}

// newDialer and the handshake have limits far below the default TTL of 30 s, so that a server that is down leaves time
// for others.
func newDialer() *net.Dialer {
	return &net.Dialer{Timeout: 5 * time.Second, KeepAlive: 15 * time.Second}
}

// A dialFunc makes a connection.
type dialFunc = func(ctx context.Context, network, address string) (net.Conn, error)

// stayHere refuses redirects: following one would send a command, and a token, to a server that nobody named.
func stayHere(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }

// connections are those to one server. A connection can be dead without an error: a
// router forgot it, or a machine moved. HTTP/2 would go on to use it for every request,
// so they can be redialled: later requests use new connections, whatever became of the
// old ones.
type connections struct {
	pattern http.RoundTripper

	mu         sync.Mutex // guards what follows
	ttl        time.Duration
	current    http.RoundTripper
	generation int               // counts redials
	retired    []*http.Transport // of former generations
}

// maxRetired is how many former transports are remembered, to close their idle
// connections. Others close theirs after idleTimeout.
const maxRetired = 4

const idleTimeout = time.Minute

// newConnections returns connections that are made as the pattern makes them. With a TTL they are
// pinged; without one, and until the first redial, they are the pattern's own, so that callers with
// one http.Client share them. A command makes one request and needs no pings; a client with leases
// does.
func newConnections(pattern http.RoundTripper, ttl time.Duration) *connections {
	c := &connections{pattern: cmp.Or[http.RoundTripper](pattern, http.DefaultTransport), ttl: ttl}
	c.current = c.pattern
	if ttl > 0 {
		c.current = c.transport()
	}
	return c
}

// transport returns the transport of the next generation. A pattern that is not the
// standard library's cannot be cloned, and is used as it is.
func (c *connections) transport() http.RoundTripper {
	pattern, ok := c.pattern.(*http.Transport)
	if !ok {
		return c.pattern
	}
	// A clone has no connections yet: that is what makes a redial use new ones.
	t := pattern.Clone()
	if t.IdleConnTimeout == 0 {
		t.IdleConnTimeout = idleTimeout
	}
	if c.ttl == 0 {
		return t
	}
	if t.HTTP2 == nil {
		t.HTTP2 = &http.HTTP2Config{}
	}
	// A program that set its own pings knows better.
	if t.HTTP2.SendPingTimeout == 0 {
		t.HTTP2.SendPingTimeout, t.HTTP2.PingTimeout = pings(c.ttl)
	}
	return t
}

// pings returns after which silence an HTTP/2 connection is pinged, and how long the
// answer may take. Together they are an eighth of the TTL: a dead connection is closed
// before an attempt over it has used up its limit, a fifth of the TTL.
func pings(ttl time.Duration) (after, within time.Duration) {
	const least = 100 * time.Millisecond // below it a busy machine would lose good connections
	return max(ttl/12, least), max(ttl/24, least)
}

// RoundTrip sends a request over the newest connections.
func (c *connections) RoundTrip(r *http.Request) (*http.Response, error) {
	c.mu.Lock()
	current := c.current
	c.mu.Unlock()
	return current.RoundTrip(r)
}

// dialled returns the generation in use, for redial.
func (c *connections) dialled() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.generation
}

// redial abandons the connections of a generation, unless somebody did already. Requests that are
// under way over them go on. Closing them would turn one slow answer into many failed requests. It
// reports whether it did.
func (c *connections) redial(generation int) (did bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.generation != generation {
		return false
	}
	c.renewLocked()
	return true
}

// pingWithin makes pings frequent enough for a TTL. It only ever shortens the interval, since the
// client's shortest lease decides.
func (c *connections) pingWithin(ttl time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.ttl != 0 && ttl >= c.ttl {
		return
	}
	c.ttl = ttl
	c.renewLocked()
}

func (c *connections) renewLocked() {
	if t, ok := c.current.(*http.Transport); ok {
		c.retired = append(c.retired, t)
		c.retired = c.retired[max(0, len(c.retired)-maxRetired):]
	}
	c.closeIdleLocked()
	c.current = c.transport()
	c.generation++
}

// CloseIdleConnections closes connections that are not in use.
func (c *connections) CloseIdleConnections() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.closeIdleLocked()
}

func (c *connections) closeIdleLocked() {
	for _, t := range c.retired {
		t.CloseIdleConnections()
	}
	if current, ok := c.current.(interface{ CloseIdleConnections() }); ok {
		current.CloseIdleConnections()
	}
}
