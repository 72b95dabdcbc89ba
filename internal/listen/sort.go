package listen

import (
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"net/http"
	"runtime/debug"
	"slices"
	"sync"
	"time"
)

// A sorter finds out what connections speak, serves those that speak a protocol of their own,
// and is the listener from which the HTTP server takes the rest. A port that speaks HTTP alone
// has none.
//
// Each connection is sorted in a goroutine of its own: one that sends nothing must not keep the
// next from being accepted.
type sorter struct {
	host     *Host
	entrance *entrance
	tls      *tls.Config
	need     int // bytes that tell all protocols apart

	http   chan accepted // for the HTTP server
	closed chan struct{}
	once   sync.Once

	mu    sync.Mutex // guards what follows
	open  map[net.Conn]bool
	empty *sync.Cond // open may be empty
}

type accepted struct {
	conn net.Conn
	err  error
}

func newSorter(h *Host, e *entrance) *sorter {
	s := &sorter{
		host: h, entrance: e, need: 1,
		http: make(chan accepted), closed: make(chan struct{}), open: map[net.Conn]bool{},
	}
	s.empty = sync.NewCond(&s.mu)
	var names []string
	for _, p := range h.config.Protocols {
		s.need = max(s.need, p.First)
		if p.ALPN != "" {
			names = append(names, p.ALPN)
		}
	}
	if h.config.TLS != nil {
		s.tls = offering(h.config.TLS, append(names, "h2", "http/1.1")...)
	}
	return s
}

func (s *sorter) serve(server *http.Server) error {
	server.TLSConfig = s.tls // from which it learns that it has to know HTTP/2
	go s.acceptAll()
	return server.Serve(s)
}

// acceptAll hands errors to the HTTP server as well, which knows after which of them to go on,
// and when.
func (s *sorter) acceptAll() {
	for {
		c, err := s.entrance.Accept()
		if err != nil {
			s.give(nil, err)
			if errors.Is(err, net.ErrClosed) {
				return
			}
			continue
		}
		go s.sort(c.(*Conn))
	}
}

func (s *sorter) give(c net.Conn, err error) {
	select {
	case s.http <- accepted{c, err}:
	case <-s.closed:
		if c != nil {
			_ = c.Close()
		}
	}
}

// sort finds out what one connection speaks. Until that is known it has as much time as the
// headers of a request have.
func (s *sorter) sort(conn *Conn) {
	_ = conn.SetDeadline(time.Now().Add(s.host.config.HeaderTime))
	var c net.Conn = conn
	name := ""
	if s.tls != nil {
		secure := tls.Server(conn, s.tls)
		if err := secure.Handshake(); err != nil {
			s.refuseHandshake(conn, err)
			return
		}
		conn.handshaking.Store(false)
		c, name = secure, secure.ConnectionState().NegotiatedProtocol
	}
	p, c, err := s.protocol(c, name)
	if err != nil {
		_ = c.Close()
		return
	}
	// From here on the protocol, or the HTTP server, sets its own deadlines.
	_ = conn.SetDeadline(time.Time{})
	if p == nil {
		s.give(c, nil)
		return
	}
	s.answer(p, c)
}

// protocol returns what a connection speaks, nil for HTTP, and the connection with all its
// bytes. A name that was negotiated in TLS decides; without one, the first bytes do.
func (s *sorter) protocol(c net.Conn, name string) (*Protocol, net.Conn, error) {
	for _, p := range s.host.config.Protocols {
		if name != "" && p.ALPN == name || p.Matches == nil {
			return p, c, nil
		}
	}
	if name == "h2" || name == "http/1.1" {
		return nil, c, nil
	}
	first := make([]byte, 512)
	for n := 0; ; {
		read, err := c.Read(first[n:])
		if n += read; n == 0 && err != nil {
			return nil, c, err
		}
		// A protocol may be known before there are enough bytes for all of them, and its client
		// may send no more until it is answered.
		if p := s.host.protocolOf(first[:n]); p != nil || err != nil || n >= s.need {
			return p, &replayed{c, first[:n]}, nil
		}
	}
}

// protocolOf returns the protocol that begins with these bytes; nil: it is HTTP, or nothing at
// all.
func (h *Host) protocolOf(first []byte) *Protocol {
	i := slices.IndexFunc(h.config.Protocols, func(p *Protocol) bool {
		return p.Matches == nil || len(first) >= max(1, p.First) && p.Matches(first)
	})
	if i < 0 {
		return nil
	}
	return h.config.Protocols[i]
}

// answer lets a protocol serve a connection. The connection is tracked before the state is
// looked at: either a port that drains has seen the connection, or the connection sees that the
// port drains.
func (s *sorter) answer(p *Protocol, c net.Conn) {
	s.track(c, true)
	defer s.track(c, false)
	defer c.Close()
	defer s.survive(p, c)
	state := s.host.state
	switch {
	case state.Stopping().Err() != nil:
		p.refuse(c, unavailable(StoppingMessage))
	case state.Starting() && !p.Early:
		p.refuse(c, unavailable(StartingMessage))
	default:
		p.Serve(state.Stopping(), c)
	}
}

// survive ends one connection when its protocol panics, as net/http does, and not the server.
func (s *sorter) survive(p *Protocol, c net.Conn) {
	if said := recover(); said != nil {
		s.host.config.Log.Error("serving a connection panicked", "protocol", p.Name, "from", c.RemoteAddr(),
			"panic", said, "stack", string(debug.Stack()))
	}
}

// refuse says why a connection is not served, and reads for a moment what still comes: closing
// with unread bytes would reset the connection, and the client would not see the answer.
func (p *Protocol) refuse(c net.Conn, err error) {
	if p.Refuse == nil {
		return
	}
	_ = c.SetDeadline(time.Now().Add(turnAwayTime))
	p.Refuse(c, err)
	takeRest(c)
}

func (s *sorter) track(c net.Conn, open bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if open {
		s.open[c] = true
		return
	}
	delete(s.open, c)
	s.empty.Broadcast()
}

// finish waits until no connection of a protocol is left. When ctx ends, it closes the
// remaining ones.
func (s *sorter) finish(ctx context.Context) error {
	defer context.AfterFunc(ctx, func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.empty.Broadcast()
	})()
	s.mu.Lock()
	defer s.mu.Unlock()
	for len(s.open) > 0 && ctx.Err() == nil {
		s.empty.Wait()
	}
	if len(s.open) == 0 {
		return nil
	}
	for c := range s.open {
		// Not by way of TLS, which would wait for a peer that reads nothing in order to say
		// goodbye.
		_ = ConnOf(c).closeNow()
	}
	return ctx.Err()
}

// refuseHandshake does what net/http does with a failed handshake. A browser or curl that
// speaks plain HTTP to this port gets a sentence instead of garbage.
func (s *sorter) refuseHandshake(conn *Conn, err error) {
	defer conn.Close()
	var plain tls.RecordHeaderError
	if errors.As(err, &plain) && plain.Conn != nil && looksLikeHTTP(plain.RecordHeader) {
		conn.handshaking.Store(false)
		_, _ = io.WriteString(conn, "HTTP/1.0 400 Bad Request\r\n\r\nClient sent an HTTP request to an HTTPS server.\n")
		return
	}
	if s.host.config.Quiet {
		s.host.config.Log.Debug("TLS handshake error", "from", conn.RemoteAddr(), "err", err)
		return
	}
	s.host.config.Log.Warn("TLS handshake error", "from", conn.RemoteAddr(), "err", err)
}

func looksLikeHTTP(header [5]byte) bool {
	return slices.Contains([]string{"GET /", "HEAD ", "POST ", "PUT /", "OPTIO"}, string(header[:]))
}

// Accept returns the next connection that speaks HTTP.
func (s *sorter) Accept() (net.Conn, error) {
	select {
	case a := <-s.http:
		return a.conn, a.err
	case <-s.closed:
		return nil, net.ErrClosed
	}
}

// Close ends the listener.
func (s *sorter) Close() error {
	s.once.Do(func() { close(s.closed) })
	return s.entrance.Close()
}

// Addr returns the address of the port.
func (s *sorter) Addr() net.Addr { return s.entrance.Addr() }

// A replayed connection begins again with what was read of it.
type replayed struct {
	net.Conn
	first []byte
}

// Read reads what was read before, and then what comes.
func (r *replayed) Read(b []byte) (int, error) {
	if len(r.first) == 0 {
		return r.Conn.Read(b)
	}
	n := copy(b, r.first)
	if r.first = r.first[n:]; len(r.first) == 0 {
		r.first = nil
	}
	return n, nil
}

// NetConn is the connection below this one.
func (r *replayed) NetConn() net.Conn { return r.Conn }

// CloseWrite says that nothing more will be sent.
func (r *replayed) CloseWrite() error {
	if inner, ok := r.Conn.(interface{ CloseWrite() error }); ok {
		return inner.CloseWrite()
	}
	return errors.ErrUnsupported
}
