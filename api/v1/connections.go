package v1

import (
	"context"
	"crypto/tls"
	"net"
	"net/http"
	"time"

	"github.com/leasehold/leasehold/internal/redial"
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
			MaxIdleConnsPerHost: 64, IdleConnTimeout: redial.IdleTimeout,
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
