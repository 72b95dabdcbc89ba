package v1

import (
	"crypto/tls"
	"net"
	"net/http"
	"time"
)

// NewClient returns a client without a limit on the whole of a request: some wait, and
// watches never end. It shows and trusts what config says, where that is not nil.
func NewClient(config *tls.Config) *http.Client {
	dialer := &net.Dialer{Timeout: 5 * time.Second, KeepAlive: 15 * time.Second}
	return &http.Client{
		Transport: &http.Transport{
			Proxy: http.ProxyFromEnvironment, DialContext: dialer.DialContext, TLSHandshakeTimeout: 5 * time.Second, TLSClientConfig: config,
			MaxIdleConnsPerHost: 64, IdleConnTimeout: time.Minute, ForceAttemptHTTP2: true,
		},
		// To follow a redirect would be to send a command to a server that nobody named.
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}
