package v1

import (
	"cmp"
	"context"
	"crypto/tls"
	"net"
	"net/http"
	"time"

	"github.com/leasehold/leasehold/internal/redial"
)

// A Caller sends requests to a server, or to one of several. Each method is one request,
// which goes to each server at most once: only the program knows whether it still wants
// it. The next server is asked when one cannot be reached or cannot do it. A request that
// may have been carried out is sent to another one only if it is idempotent, such as an
// acquire with an id.
//
// An error is always a *leasehold.Error, possibly wrapped. Unavailable means that
// nothing happened; Undecided that the request was sent and the answer never came.
//
// Methods may be called from any goroutine.
type Caller struct {
	namespace string
	timeout   time.Duration
	proof     credentials
	servers   *Servers  // several, with failover; or
	endpoint  *endpoint // one, whose failover is somebody else's
}

// CallerConfig configures a Caller. The zero value is the server on this machine and the
// default namespace.
type CallerConfig struct {
	Server     string        // its URL; empty: DefaultServer
	Servers    []string      // several, instead of Server
	Namespace  string        // empty: the server's default
	Timeout    time.Duration // of one request to one server, besides what it waits; 0: 30s
	PingWithin time.Duration // the TTL that a dead connection must not cost; 0: connections are not pinged
	TLS        *tls.Config   // for servers with https; nil: what this machine trusts
	Client     *http.Client  // nil: one of its own. It must configure TLS itself, and turns WireAuto into WireHTTP
	Wire       Wire          // zero: HTTP, which is simplest for a request or two

	// Dial makes connections; nil: a net.Dialer does. TLS is added to them where it is needed.
	Dial func(ctx context.Context, network, address string) (net.Conn, error)

	// Token proves who asks; nil: nothing does. A token is sent only over TLS or to this machine, unless Insecure is
	// set, and never along a redirect.
	Token    TokenFunc
	Insecure bool
}

// NewClient returns an HTTP client without a limit on the whole of a request: some
// requests wait, and watches never end. config may be nil.
func NewClient(config *tls.Config) *http.Client { return redial.NewClient(config, nil) }

// NewCaller returns a caller. It does not connect.
func NewCaller(config CallerConfig) (*Caller, error) {
	servers, err := NewServers(config)
	if err != nil {
		return nil, err
	}
	c := newCaller(config)
	c.servers = servers
	return c, nil
}

func newCaller(config CallerConfig) *Caller {
	return &Caller{namespace: config.Namespace, timeout: cmp.Or(config.Timeout, 30*time.Second),
		proof: credentials{config.Token, config.Insecure}}
}

// one returns a caller of the server to ask now, and of no other.
func (c *Caller) one() *Caller {
	if c.servers != nil {
		return c.servers.Choose().Caller
	}
	return c
}

// Asked returns the URL of the server that requests go to now: the first, or the next that
// could be asked when others could not.
func (c *Caller) Asked() string { return c.one().endpoint.address }

// Level returns the feature level that the server's last answer named; 0 if none did.
func (c *Caller) Level() int { return int(c.one().endpoint.level.Load()) }

// CloseIdle closes connections that are not in use.
func (c *Caller) CloseIdle() {
	if c.servers != nil {
		c.servers.CloseIdle()
		return
	}
	c.endpoint.closeIdle()
}
