package v1

import (
	"cmp"
	"crypto/tls"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/leasehold/leasehold"
)

// A Caller sends requests to a server, or to one of several. Each method is one request:
// nothing is tried twice at a server, for only the caller knows whether it still wants it.
// The next server is asked when one can't be reached or can do nothing; what may have
// happened already is only sent to another one if that can't make it happen twice, such as
// an acquire with an id.
//
// An error is always a *leasehold.Error, possibly wrapped. Unavailable means that
// nothing happened; Undecided that the request was sent and the answer never came.
//
// Methods may be called from any goroutine.
type Caller struct {
	servers   []string     // without slashes at their ends
	current   atomic.Int64 // which of them is asked, counted on and on
	namespace string
	client    *http.Client
	timeout   time.Duration
	level     atomic.Int64 // as the last answer had it
}

// CallerConfig is what a Caller can be told. The zero value is the server on this
// machine and the default namespace.
type CallerConfig struct {
	Server    string        // its URL; empty: DefaultServer
	Servers   []string      // several, instead of Server
	Namespace string        // empty: the server's default
	Timeout   time.Duration // of one request to one server, besides what it waits; 0: 30s
	TLS       *tls.Config   // for servers with https; nil: what this machine trusts
	Client    *http.Client  // nil: one of its own. It must see to TLS itself
}

// NewCaller returns a caller. It does not connect.
func NewCaller(config CallerConfig) (*Caller, error) {
	servers := config.Servers
	if len(servers) == 0 {
		servers = []string{cmp.Or(config.Server, DefaultServer)}
	}
	c := &Caller{namespace: config.Namespace, client: config.Client, timeout: cmp.Or(config.Timeout, 30*time.Second)}
	for _, server := range servers {
		if err := checkAddress(server); err != nil {
			return nil, err
		}
		c.servers = append(c.servers, strings.TrimRight(server, "/"))
	}
	if c.client == nil {
		c.client = NewClient(config.TLS)
	}
	return c, nil
}

func checkAddress(server string) error {
	u, err := url.Parse(server)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" {
		return &leasehold.Error{Code: leasehold.Invalid, Message: fmt.Sprintf("server %q is not an address: write it as %s", server, DefaultServer)}
	}
	if u.RawQuery != "" || u.Fragment != "" || u.User != nil {
		return &leasehold.Error{Code: leasehold.Invalid, Message: fmt.Sprintf("server %q has more than scheme, host and path: write it as %s", u.Redacted(), DefaultServer)}
	}
	return nil
}

// Level is the feature level that the last answer named; 0 if none did.
func (c *Caller) Level() int { return int(c.level.Load()) }

// noteLevel notes the level that an answer names.
func (c *Caller) noteLevel(response *http.Response) {
	if level, err := strconv.Atoi(response.Header.Get(LevelHeader)); err == nil {
		c.level.Store(int64(level))
	}
}

// CloseIdle closes connections that are not in use.
func (c *Caller) CloseIdle() { c.client.CloseIdleConnections() }

func (f *failure) Error() string   { return f.err.Error() }
func (f *failure) Unwrap() []error { return []error{f.err, f.cause} }
