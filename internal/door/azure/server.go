package azure

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"time"

	"github.com/leasehold/leasehold/internal/port"
)

// Times of one request on its connection. A body may take as long as it likes, as long
// as something of it comes.
const (
	headerTime = 10 * time.Second
	idleTime   = 2 * time.Minute
	pieceTime  = 30 * time.Second // for the next piece of a body, in either direction
)

// wholeTime is how long all of a body may take, however steadily it drips.
const wholeTime = time.Hour

// hurry gives a body that nobody reads, and the end of an answer that nobody takes, some
// time: net/http waits for either, and of its own without end.
func (c *call) hurry() (atEnd func()) {
	control := http.NewResponseController(c.w) // in tests there may be nothing to control
	_ = control.SetWriteDeadline(time.Time{})
	if c.r.ContentLength != 0 {
		_ = control.SetReadDeadline(time.Now().Add(pieceTime))
	}
	return func() { _ = control.SetWriteDeadline(time.Now().Add(pieceTime)) }
}

const maxHeader = 64 << 10

// Serve answers requests that come in at a listener, with TLS, until ctx ends; then it
// refuses new ones for a while and finishes what is under way. It closes the listener. A door
// serves once.
func (d *Door) Serve(ctx context.Context, l net.Listener, certificates *tls.Config) error {
	server := &http.Server{
		Handler:           d,
		MaxHeaderBytes:    maxHeader,
		ReadHeaderTimeout: headerTime,
		IdleTimeout:       idleTime,
		ConnContext:       withConn,
		ConnState:         d.count,
		Protocols:         new(http.Protocols),
		ErrorLog:          slog.NewLogLogger(d.config.Log.Handler(), slog.LevelDebug),
	}
	server.Protocols.SetHTTP1(true)
	drain := port.Drain{
		Linger: d.config.Linger, Timeout: d.config.DrainTimeout,
		Begin: func() { d.stopping.Store(true) }, Open: func() int { return int(d.open.Load()) },
	}
	err := drain.Until(ctx, server, func() error {
		return server.Serve(&gate{tls.NewListener(l, onlyHTTP1(certificates)), d})
	})
	if errors.Is(err, context.DeadlineExceeded) {
		return fmt.Errorf("some requests of Azure's clients were not finished within %v", d.config.DrainTimeout)
	}
	return err
}

// onlyHTTP1 offers nothing newer: HTTP/2 has no reason phrase.
func onlyHTTP1(c *tls.Config) *tls.Config {
	own := c.Clone()
	own.NextProtos = []string{"http/1.1"}
	if ask := c.GetConfigForClient; ask != nil {
		own.GetConfigForClient = func(hello *tls.ClientHelloInfo) (*tls.Config, error) {
			given, err := ask(hello)
			if given == nil || err != nil {
				return given, err
			}
			return onlyHTTP1(given), nil
		}
	}
	return own
}

// A gate lets in so many connections, and gives each a reason phrase. Handshakes happen
// with the first byte that is read, not here, so that a slow one keeps nobody waiting.
type gate struct {
	net.Listener
	door *Door
}

// Accept returns the next connection that may come in.
func (g *gate) Accept() (net.Conn, error) {
	for {
		accepted, err := g.Listener.Accept()
		if err != nil {
			return nil, err
		}
		if g.door.open.Add(1) <= int64(g.door.config.MaxConnections) {
			return &conn{Conn: accepted}, nil
		}
		g.door.open.Add(-1)
		_ = accepted.Close()
	}
}

// count counts connections that end.
func (d *Door) count(_ net.Conn, state http.ConnState) {
	if state == http.StateClosed || state == http.StateHijacked {
		d.open.Add(-1)
	}
}
