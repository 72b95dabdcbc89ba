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

	"github.com/leasehold/leasehold/internal/door"
	"github.com/leasehold/leasehold/internal/listen"
)

// Times of one request on its connection. A body may take as long as it likes, as long
// as something of it comes.
const (
	headerTime = 10 * time.Second
	idleTime   = 2 * time.Minute
	pieceTime  = 30 * time.Second // for the next piece of a body, in either direction
)

// pace is how fast a body has to pass, in either direction, however steadily it drips.
var pace = door.Pace{Time: pieceTime, Whole: time.Hour}

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
		Handler:           listen.Greeted(d),
		MaxHeaderBytes:    maxHeader,
		ReadHeaderTimeout: headerTime,
		IdleTimeout:       idleTime,
		ConnContext:       withConn,
		Protocols:         new(http.Protocols),
		ErrorLog:          slog.NewLogLogger(d.config.Log.Handler(), slog.LevelDebug),
	}
	server.Protocols.SetHTTP1(true)
	gate := listen.NewGate(l, listen.Limits{Name: "azure", Most: d.config.MaxConnections, Log: d.config.Log})
	d.config.Gates.Add(gate)
	drain := listen.Drain{
		Linger: d.config.Linger, Timeout: d.config.DrainTimeout,
		Begin: func() { d.stopping.Store(true) }, Open: gate.Open,
	}
	err := drain.Until(ctx, server, func() error {
		return server.Serve(phrases{tls.NewListener(gate, onlyHTTP1(certificates))})
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

// phrases gives each connection of a listener a reason phrase. Handshakes happen with the
// first byte that is read, not here, so that a slow one keeps nobody waiting.
type phrases struct{ net.Listener }

// Accept returns the next connection.
func (p phrases) Accept() (net.Conn, error) {
	accepted, err := p.Listener.Accept()
	if err != nil {
		return nil, err
	}
	return &conn{Conn: accepted}, nil
}
