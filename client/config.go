package client

import (
	"cmp"
	"context"
	"crypto/tls"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"os/user"
	"strings"
	"time"

	"github.com/leasehold/leasehold"
	v1 "github.com/leasehold/leasehold/api/v1"
	"github.com/leasehold/leasehold/store"
)

// A Clock measures the time by which a client judges its leases; see store.Clock.
type Clock = store.Clock

// Config configures a client. The zero value takes server, namespace and holder from the
// environment; without that, the server on this machine.
type Config struct {
	// Servers are the URLs of one or more servers. When one does not answer, the next is asked.
	// Or the URL of one other store, such as redis://localhost; see Dial.
	// Empty: LEASEHOLD_SERVER, separated by commas; then http://127.0.0.1:4653.
	Servers []string

	Namespace string // empty: LEASEHOLD_NAMESPACE, then "default"
	Holder    string // who holds, as others will see it; empty: LEASEHOLD_HOLDER, then user@host:pid

	// TTL is how long leases last without a renewal, unless an acquire says otherwise. 0: 30 s.
	// It is how long others wait for a holder that died.
	TTL time.Duration

	// OnStall is called, in a goroutine of its own, when the process was paused for a third of
	// the TTL of something it holds: it came close to losing it.
	OnStall func(Stall)

	// OnSession is called with the id of each session before it is opened. A process that outlives
	// this one can then end the session of a holder that died, by v1.Caller.AbandonSession.
	OnSession func(id string)

	Log   *slog.Logger // for failures that are retried; nil: no log
	TLS   *tls.Config  // for servers with https; nil: by LEASEHOLD_CA, LEASEHOLD_CERT and LEASEHOLD_KEY
	Clock Clock        // nil: the machine's; for tests

	// Token returns the token that proves who asks; nil: by LEASEHOLD_TOKEN or LEASEHOLD_TOKEN_FILE, if they are set.
	// It is called for each request, and once more when a server refused a token; see v1.TokenFunc. It is sent only
	// over TLS or to this machine, unless Insecure is set.
	Token    func(ctx context.Context) (string, error)
	Insecure bool

	// Wire is how requests are written. Empty: HTTP if HTTP is set, else LEASEHOLD_WIRE, then v1.WireAuto: RESP, which
	// costs less, where the server speaks it, and HTTP where it or a proxy before it does not.
	Wire v1.Wire

	// Dial makes connections; nil: a net.Dialer does. TLS is added to them for servers with https.
	Dial func(ctx context.Context, network, address string) (net.Conn, error)

	// HTTP sends the requests, all of them unless Wire is v1.WireRESP; nil: a client of its own. It must have no
	// Timeout, because some requests wait, and must configure TLS itself. If its Transport is an *http.Transport,
	// connections are made with its settings, but are not shared with it.
	HTTP *http.Client
}

// complete fills in the defaults.
func (c Config) complete() Config {
	if len(c.Servers) == 0 {
		given := cmp.Or(strings.TrimSpace(os.Getenv("LEASEHOLD_SERVER")), v1.DefaultServer)
		c.Servers = strings.Split(given, ",")
		if store.Names(given) {
			c.Servers = []string{given} // one URL: it may have commas
		}
		for i, s := range c.Servers {
			c.Servers[i] = strings.TrimSpace(s)
		}
	}
	c.Namespace = cmp.Or(c.Namespace, os.Getenv("LEASEHOLD_NAMESPACE"))
	c.Holder = cmp.Or(c.Holder, os.Getenv("LEASEHOLD_HOLDER"), thisProcess())
	c.TTL = cmp.Or(c.TTL, leasehold.DefaultTTL)
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	if c.Clock == nil {
		c.Clock = store.SystemClock()
	}
	if c.HTTP == nil {
		c.Wire = cmp.Or(c.Wire, v1.Wire(os.Getenv("LEASEHOLD_WIRE")), v1.WireAuto)
	}
	if c.Token == nil {
		c.Token = v1.EnvironToken(os.Getenv)
	}
	return c
}

// thisProcess returns user@host:pid.
func thisProcess() string {
	name, host := cmp.Or(os.Getenv("USER"), "unknown"), "unknown"
	if u, err := user.Current(); err == nil {
		name = u.Username
	}
	if h, err := os.Hostname(); err == nil {
		host, _, _ = strings.Cut(h, ".")
	}
	return fmt.Sprintf("%s@%s:%d", name, host, os.Getpid())
}
