package listen

import (
	"crypto/tls"
	"errors"
	"io"
	"net"
	"net/http"
	"runtime/debug"
	"slices"
	"time"
)

// A sorter finds out what connections speak, serves those that speak a protocol of their own, and
// hands the rest to the HTTP server. A port that speaks HTTP alone has none.
//
// Each connection is sorted in a goroutine of its own: one that sends nothing must not keep the
// next from being accepted.
type sorter struct {
	host     *Host
	entrance *entrance
	tls      *tls.Config
	need     int // bytes that tell all protocols apart
	intake   *intake
}

func newSorter(h *Host, e *entrance) *sorter {
	s := &sorter{host: h, entrance: e, need: 1, intake: h.intake}
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
	return server.Serve(s.intake)
}

// acceptAll sorts what comes in at the entrance.
func (s *sorter) acceptAll() {
	for {
		c, err := s.entrance.Accept()
		if err != nil {
			s.intake.give(nil, err)
			if errors.Is(err, net.ErrClosed) {
				return
			}
			continue
		}
		go s.sort(c.(*Conn))
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
		s.intake.give(c, nil)
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
	s.host.underWay.add(c)
	defer s.host.underWay.remove(c)
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
