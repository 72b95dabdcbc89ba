package redial

import (
	"context"
	"crypto/tls"
	"net"
	"net/http"
	"time"
)

// A DialFunc makes a connection.
type DialFunc = func(ctx context.Context, network, address string) (net.Conn, error)

// NewClient returns an HTTP client without a limit on the whole of a request. Both arguments may be nil.
func NewClient(config *tls.Config, dial DialFunc) *http.Client {
	if dial == nil {
		dial = NewDialer().DialContext
	}
	return &http.Client{
		Transport: &http.Transport{
			Proxy: http.ProxyFromEnvironment, DialContext: dial,
			TLSHandshakeTimeout: 5 * time.Second, TLSClientConfig: config, ForceAttemptHTTP2: true,
			MaxIdleConnsPerHost: 64, IdleConnTimeout: IdleTimeout,
		},
		CheckRedirect: StayHere,
	}
}

// NewDialer returns a dialer whose limit, like that of the handshake, is far below the default TTL of 30 s, so that a
// server that is down leaves time for others.
func NewDialer() *net.Dialer {
	return &net.Dialer{Timeout: 5 * time.Second, KeepAlive: 15 * time.Second}
}

// StayHere refuses redirects: following one would send a command, and a token, to a server that nobody named.
func StayHere(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
