package listen

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"sync"
	"time"

	"github.com/leasehold/leasehold/internal/limit"
)

// Config is what a Host can be told. The zero value is good for tests.
type Config struct {
	Name  string                  // of the port, in logs and metrics; empty: "clients"
	State *State                  // of the server; nil: open until the host drains
	Log   *slog.Logger            // nil: nothing is written
	Quiet bool                    // a failed handshake is no warning: anybody can cause one
	Gates *Gates                  // where its connections are counted; nil: nowhere
	Hosts *Hosts                  // names that it answers to; nil: all of them
	TLS   *tls.Config             // nil: plain
	Wrap  func(net.Conn) net.Conn // makes a door's own connection, above TLS; it has NetConn. Only with HTTP/1

	// Strangers is the memory that connections share on which nothing was proven. Nil: those of the port have their
	// own.
	Strangers *limit.Budget

	Mutual         bool // clients show certificates
	MaxConnections int  // 0: 10,000
	OnlyHTTP1      bool // HTTP/2 is not offered
	MaxHeader      int  // bytes of a request's headers; 0: 16 KiB

	HeaderTime time.Duration // for a request's headers to come; 0: 5s
	ReadTime   time.Duration // for all of a request; 0: the handlers see to it
	WriteTime  time.Duration // for all of an answer; 0: the handlers see to it

	Linger       time.Duration // how long a server that stops still takes requests, and refuses them
	DrainTimeout time.Duration // how long it then waits for what is under way; 0: 10s
	EndRequests  bool          // requests end when the server drains: their context does

	HTTP      []HTTP
	Protocols []*Protocol // told by ALPN or their first bytes; what none of them knows is HTTP
}

const (
	// maxShared is how many requests can be under way on one connection, where they can share
	// one: a client may watch and wait for a thousand things.
	maxShared = 1024
	idleTime  = 2 * time.Minute
	pingTime  = idleTime / 4
	// byteTime is how long HTTP/2 waits for a reader that takes nothing.
	byteTime = 30 * time.Second
)

// A Host is one port of a server. It says who may come in and when, and finds out what a
// connection speaks; answering is for doors.
type Host struct {
	config  Config
	state   *State
	handler http.Handler
	refuse  refuse
	away    chan struct{} // has room while one more may be turned away slowly
	full    func() string // what a connection is told for which there is no room

	after    sync.Map // of *http.Request: what to wait for after its handler
	underWay *underWay

	intake *intake // for the HTTP server; nil: it takes connections from the gate
}

// NewHost returns a port.
func NewHost(c Config) *Host {
	setDefault(&c.Name, "clients")
	setDefault(&c.MaxConnections, 10000)
	setDefault(&c.MaxHeader, 16<<10)
	setDefault(&c.HeaderTime, 5*time.Second)
	setDefault(&c.DrainTimeout, 10*time.Second)
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	if c.State == nil {
		c.State = NewState()
		c.State.Open()
	}
	if c.Strangers == nil {
		c.Strangers = NewStrangers()
	}
	h := &Host{config: c, state: c.State, away: make(chan struct{}, maxTurningAway)}
	h.underWay = newUnderWay()
	h.refuse = h.firstRefuse()
	h.handler = h.mount()
	// Not before it is needed: the door may count and log what it refuses.
	h.full = sync.OnceValue(func() string { return fullAnswer(h.refuse) })
	return h
}

func setDefault[T comparable](at *T, value T) {
	var zero T
	if *at == zero {
		*at = value
	}
}

// Serve answers what comes in at a listener until ctx ends, and then drains: those who wait
// are sent elsewhere, new requests are refused for a while, what is under way is finished. It
// closes the listener. The error is nil after a drain in which everything was finished. A host
// serves once.
func (h *Host) Serve(ctx context.Context, l net.Listener) error {
	gate := NewGate(l, Limits{
		Name: h.config.Name, Most: h.config.MaxConnections, Mutual: h.config.Mutual,
		Refuse: h.turnAwayLater, Log: h.config.Log,
	})
	h.config.Gates.Add(gate)
	server := h.server()
	drain := Drain{Linger: h.config.Linger, Timeout: h.config.DrainTimeout, Begin: h.state.Stop, Open: gate.Open,
		Finish: h.underWay.finish}
	defer gate.closeAll() // those on which nothing is under way
	entrance := &entrance{gate, h}
	serve := func() error { return h.serveHTTP(server, entrance) }
	if len(h.config.Protocols) > 0 || h.config.TLS == nil && h.config.Wrap == nil {
		h.intake = newIntake(entrance)
	}
	if len(h.config.Protocols) > 0 {
		serve = func() error { return newSorter(h, entrance).serve(server) }
	}
	err := drain.Until(ctx, server, serve)
	if errors.Is(err, context.DeadlineExceeded) {
		return fmt.Errorf("some requests were not finished within %v", h.config.DrainTimeout)
	}
	return err
}

// Serve serves at several ports until ctx ends. When one of them ends, so do all.
func Serve(ctx context.Context, ports map[*Host]net.Listener) error {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	ended := make(chan error, len(ports))
	for host, listener := range ports {
		go func() {
			defer stop()
			ended <- host.Serve(ctx, listener)
		}()
	}
	var errs []error
	for range ports {
		errs = append(errs, <-ended)
	}
	return errors.Join(errs...)
}

func (h *Host) serveHTTP(server *http.Server, l net.Listener) error {
	switch {
	case h.intake != nil:
		go h.intake.fill()
		return server.Serve(h.intake)
	case h.config.TLS == nil:
		return server.Serve(h.wrapped(l))
	case h.config.Wrap == nil && !h.config.OnlyHTTP1:
		return server.ServeTLS(l, "", "")
	}
	// Handshakes happen with the first byte that is read, not here, so that a slow one keeps
	// nobody waiting.
	return server.Serve(h.wrapped(tls.NewListener(l, offering(h.config.TLS, "http/1.1"))))
}

func (h *Host) server() *http.Server {
	level := slog.LevelWarn
	if h.config.Quiet {
		level = slog.LevelDebug
	}
	server := &http.Server{
		Handler:   h,
		TLSConfig: h.config.TLS,
		HTTP2: &http.HTTP2Config{
			MaxConcurrentStreams: maxShared, SendPingTimeout: pingTime, WriteByteTimeout: byteTime,
		},
		Protocols:         new(http.Protocols),
		MaxHeaderBytes:    h.config.MaxHeader,
		ReadHeaderTimeout: h.config.HeaderTime,
		ReadTimeout:       h.config.ReadTime,
		WriteTimeout:      h.config.WriteTime,
		IdleTimeout:       idleTime,
		ConnState:         noteHandshake,
		ConnContext:       withConn,
		ErrorLog:          slog.NewLogLogger(h.config.Log.Handler(), level),
	}
	server.Protocols.SetHTTP1(true)
	server.Protocols.SetHTTP2(!h.config.OnlyHTTP1)
	server.Protocols.SetUnencryptedHTTP2(!h.config.OnlyHTTP1 && h.config.TLS == nil)
	if h.config.EndRequests {
		server.BaseContext = func(net.Listener) context.Context { return h.state.Stopping() }
	}
	return server
}

// noteHandshake notes who came through a handshake.
func noteHandshake(c net.Conn, state http.ConnState) {
	if state == http.StateActive {
		if conn := ConnOf(c); conn != nil {
			conn.handshaking.Store(false)
		}
	}
}

// offering returns a configuration that offers these protocols and no others.
func offering(c *tls.Config, protocols ...string) *tls.Config {
	own := c.Clone()
	own.NextProtos = protocols
	if ask := c.GetConfigForClient; ask != nil {
		own.GetConfigForClient = func(hello *tls.ClientHelloInfo) (*tls.Config, error) {
			given, err := ask(hello)
			if given == nil || err != nil {
				return given, err
			}
			return offering(given, protocols...), nil
		}
	}
	return own
}

// An entrance is a gate whose connections may have a handshake before them.
type entrance struct {
	*Gate
	host *Host
}

// Accept returns the next connection that may come in: a *Conn.
func (e *entrance) Accept() (net.Conn, error) {
	accepted, err := e.Gate.Accept()
	if err != nil {
		return nil, err
	}
	c := accepted.(*Conn)
	c.host = e.host
	c.handshaking.Store(e.host.config.TLS != nil)
	return c, nil
}

// wrapped gives each connection what a door wants around it.
func (h *Host) wrapped(l net.Listener) net.Listener {
	if h.config.Wrap == nil {
		return l
	}
	return &wrapping{l, h.config.Wrap}
}

type wrapping struct {
	net.Listener
	wrap func(net.Conn) net.Conn
}

// Accept returns the next connection.
func (w *wrapping) Accept() (net.Conn, error) {
	accepted, err := w.Listener.Accept()
	if err != nil {
		return nil, err
	}
	return w.wrap(accepted), nil
}
