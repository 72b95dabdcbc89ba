package native

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"time"

	"github.com/leasehold/leasehold/internal/listen"
)

// maxHeader is the most bytes of a request's headers.
const maxHeader = 16 << 10

// maxShared is how many requests can be under way on one connection, where they can share
// one: a client may watch and wait for a thousand things.
const maxShared = 1024

// Serve answers requests that come in at a listener until ctx ends, and then
// drains: it is not ready any more, those who wait are sent elsewhere, watches end,
// new requests are refused for a while, what is under way is finished. It closes the
// listener. The error is nil after a drain in which everything was finished. A door
// serves once.
func (d *Door) Serve(ctx context.Context, l net.Listener) error {
	gate := d.gate(l)
	server := d.server(gate)
	drain := listen.Drain{
		Linger: d.config.Linger, Timeout: d.config.DrainTimeout, Begin: d.stop, Open: gate.Open,
	}
	err := drain.Until(ctx, server, func() error {
		if gate.secure {
			return server.ServeTLS(gate, "", "")
		}
		return server.Serve(gate)
	})
	if errors.Is(err, context.DeadlineExceeded) {
		return fmt.Errorf("some requests were not finished within %v", d.config.DrainTimeout)
	}
	return err
}

func (d *Door) server(gate *gate) *http.Server {
	return &http.Server{
		Handler:           listen.Greeted(d),
		TLSConfig:         d.config.TLS,
		HTTP2:             &http.HTTP2Config{MaxConcurrentStreams: maxShared, SendPingTimeout: idleTime / 4, WriteByteTimeout: writeTime},
		MaxHeaderBytes:    maxHeader,
		ReadHeaderTimeout: headerTime,
		ReadTimeout:       readTime,
		WriteTimeout:      writeTime,
		IdleTimeout:       idleTime,
		ConnState:         gate.state,
		ConnContext:       withConn,
		ErrorLog:          slog.NewLogLogger(d.config.Log.Handler(), slog.LevelWarn),
	}
}

// A gate makes of what a listen.Gate lets in connections of this door. One for which there
// is no room gets a short answer rather than silence: a caller that hangs can not go
// elsewhere.
type gate struct {
	*listen.Gate
	turningAway chan struct{}
	secure      bool // it speaks TLS, in which nothing can be said before a handshake
}

func (d *Door) gate(l net.Listener) *gate {
	g := &gate{turningAway: make(chan struct{}, maxTurningAway), secure: d.config.TLS != nil}
	g.Gate = listen.NewGate(l, listen.Limits{
		Name: "clients", Most: d.config.MaxConnections, Mutual: d.config.Mutual, Refuse: g.refuse, Log: d.config.Log,
	})
	d.config.Gates.Add(g.Gate)
	return g
}

const (
	// maxTurningAway is how many are told at a time; beyond it they are cut off.
	maxTurningAway = 64
	turnAwayTime   = time.Second
)

// Accept returns the next connection that may come in.
func (g *gate) Accept() (net.Conn, error) {
	accepted, err := g.Gate.Accept()
	if err != nil {
		return nil, err
	}
	c := &conn{Conn: accepted, away: g.turningAway}
	c.strange.Store(g.secure)
	return c, nil
}

// refuse turns a connection away.
func (g *gate) refuse(accepted net.Conn) {
	if g.secure {
		_ = accepted.Close() // which says nothing, but says it at once
		return
	}
	select {
	case g.turningAway <- struct{}{}:
		go g.turnAway(accepted)
	default:
		_ = accepted.Close()
	}
}

// state notes who came through a handshake.
func (g *gate) state(c net.Conn, state http.ConnState) {
	if secure, ok := c.(*tls.Conn); ok && state == http.StateActive {
		if inner, ok := secure.NetConn().(*conn); ok {
			inner.strange.Store(false)
		}
	}
}

// full is what a connection is told for which there is no room.
var full = func() string {
	const body = `{"type":"urn:leasehold:problem:unavailable","title":"nothing happened, try again","status":503,"code":"unavailable",` +
		`"detail":"the server has as many connections as it can: try again in a moment, or on another server"}` + "\n"
	return fmt.Sprintf("HTTP/1.1 503 Service Unavailable\r\nContent-Type: application/problem+json\r\nRetry-After: 1\r\n"+
		"Cache-Control: no-store\r\nConnection: close\r\nContent-Length: %d\r\n\r\n%s", len(body), body)
}()

func (g *gate) turnAway(conn net.Conn) {
	defer func() { <-g.turningAway }()
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(turnAwayTime))
	// An answer that comes before the question looks to some clients like rubbish
	// on a connection that they had not used yet.
	_ = conn.SetReadDeadline(time.Now().Add(turnAwayTime / 2))
	_, _ = conn.Read(make([]byte, 4<<10))
	if _, err := io.WriteString(conn, full); err != nil {
		return
	}
	// To close while the request is still coming in would reset the connection,
	// and the caller would lose the answer.
	if c, ok := conn.(interface{ CloseWrite() error }); ok {
		_ = c.CloseWrite()
		_, _ = io.Copy(io.Discard, conn)
	}
}
