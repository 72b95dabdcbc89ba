package client

import (
	"cmp"
	"crypto/tls"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"os/user"
	"strings"
	"time"

	"github.com/leasehold/leasehold"
	v1 "github.com/leasehold/leasehold/api/v1"
)

// Config is what a client can be told. The zero value is the server, namespace and
// holder that the environment names, or the server on this machine.
type Config struct {
	// Servers are the URLs of one server or several. While one does not answer, the
	// next is asked. Empty: LEASEHOLD_SERVER, with commas between several; then
	// http://127.0.0.1:4653.
	Servers []string

	Namespace string // empty: LEASEHOLD_NAMESPACE, then "default"
	Holder    string // who holds, as others will see it; empty: LEASEHOLD_HOLDER, then user@host:pid

	// TTL is that of holds which are not given one. 0: 30 s. It is how long others wait
	// for a holder that died.
	TTL time.Duration

	// OnStall is called, in a goroutine of its own, when the process was paused for a
	// third of the TTL of something that it holds: it came close to losing it.
	OnStall func(Stall)

	Log   *slog.Logger // what went wrong and was tried again; nil: nothing is written
	TLS   *tls.Config  // for servers with https; nil: what LEASEHOLD_CA, LEASEHOLD_CERT and LEASEHOLD_KEY name, if anything
	Clock Clock        // nil: the machine's; for tests

	// HTTP is nil for a client of its own. It must have no Timeout: some requests wait. It
	// sees to TLS itself. If its Transport is an *http.Transport, connections are made as
	// that one makes them, but are not shared with it.
	HTTP *http.Client
}

// complete fills in what was left open.
func (c Config) complete() Config {
	if len(c.Servers) == 0 {
		for s := range strings.SplitSeq(cmp.Or(os.Getenv("LEASEHOLD_SERVER"), v1.DefaultServer), ",") {
			c.Servers = append(c.Servers, strings.TrimSpace(s))
		}
	}
	c.Namespace = cmp.Or(c.Namespace, os.Getenv("LEASEHOLD_NAMESPACE"))
	c.Holder = cmp.Or(c.Holder, os.Getenv("LEASEHOLD_HOLDER"), thisProcess())
	c.TTL = cmp.Or(c.TTL, leasehold.DefaultTTL)
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	if c.Clock == nil {
		c.Clock = systemClock()
	}
	return c
}

// thisProcess is user@host:pid.
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
