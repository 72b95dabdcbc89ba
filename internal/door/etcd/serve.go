package etcd

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"math"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/keepalive"

	"github.com/leasehold/leasehold"
	"github.com/leasehold/leasehold/internal/audit"
	"github.com/leasehold/leasehold/internal/door"
)

const (
	// maxRequest is as in etcd: what is below it and more than a command can carry is refused in etcd's words.
	maxRequest = 1536<<10 + 512<<10
	maxStreams = 8192 // calls that are under way on one connection
	pingTime   = 30 * time.Second
	leastPing  = 5 * time.Second // between two pings of a client
	// slowTime is how long a client may take for one write. The connection of a slower one is closed: it can come back
	// and go on where it was.
	slowTime = 30 * time.Second

	// windowSize is how much of a request may be under way. A size that is said keeps gRPC from measuring the network,
	// with a ping for each request.
	windowSize = 1 << 20
	// readBuffer is what each connection has, for as long as it lives. Requests are small.
	readBuffer = 4 << 10
)

// newServer returns a server of gRPC for all services.
func (d *Door) newServer(more ...grpc.ServerOption) *grpc.Server {
	s := grpc.NewServer(append(more,
		grpc.UnaryInterceptor(d.unary), grpc.StreamInterceptor(d.streaming), grpc.MaxRecvMsgSize(maxRequest),
		grpc.MaxSendMsgSize(math.MaxInt32), grpc.MaxConcurrentStreams(maxStreams),
		grpc.InitialWindowSize(windowSize), grpc.InitialConnWindowSize(windowSize),
		grpc.ReadBufferSize(readBuffer), grpc.SharedWriteBuffer(true),
		grpc.KeepaliveParams(keepalive.ServerParameters{Time: pingTime, Timeout: pingTime}),
		grpc.KeepaliveEnforcementPolicy(keepalive.EnforcementPolicy{MinTime: leastPing, PermitWithoutStream: true}),
	)...)
	for _, service := range d.services {
		s.RegisterService(service.desc, service.impl)
	}
	return s
}

// overHTTP answers gRPC on the port that doors share, by way of net/http.
type overHTTP struct{ *Door }

// ServeHTTP answers one call.
func (h overHTTP) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if !isGRPC(r) {
		h.gatewayRefuse(w, door.Invalidly(http.StatusUnsupportedMediaType,
			"%s is called by gRPC, over HTTP/2 and with the content type application/grpc; or as JSON, below /v3/",
			door.Brief(r.URL.Path)))
		return
	}
	door.Unhurried(w)
	h.shared.ServeHTTP(&paced{ResponseWriter: w}, r)
}

func isGRPC(r *http.Request) bool {
	return r.ProtoMajor == 2 && strings.HasPrefix(r.Header.Get("Content-Type"), "application/grpc")
}

// paced is a writer that waits for a client only for so long.
type paced struct{ http.ResponseWriter }

// Write writes some bytes.
func (p *paced) Write(b []byte) (int, error) {
	door.WriteWithin(p.ResponseWriter, slowTime)
	defer door.Unhurried(p.ResponseWriter)
	return p.ResponseWriter.Write(b)
}

// Flush sends what was written.
func (p *paced) Flush() {
	door.WriteWithin(p.ResponseWriter, slowTime)
	defer door.Unhurried(p.ResponseWriter)
	_ = http.NewResponseController(p.ResponseWriter).Flush()
}

// Unwrap lets http.ResponseController find the writer below.
func (p *paced) Unwrap() http.ResponseWriter { return p.ResponseWriter }

// refuse tells why the port does not let a call in: as gRPC does, or as the gateway.
func (d *Door) refuse(w http.ResponseWriter, r *http.Request, err error) {
	d.noteRefused(r, err)
	if !isGRPC(r) {
		d.gatewayRefuse(w, err)
		return
	}
	h := w.Header()
	h["Content-Type"] = []string{"application/grpc"}
	code := codes.Unavailable
	if errors.Is(err, leasehold.ErrDenied) {
		code = codes.PermissionDenied
	} else if errors.Is(err, leasehold.ErrInvalid) {
		code = codes.InvalidArgument
	}
	h["Grpc-Status"] = []string{strconv.Itoa(int(code))}
	h["Grpc-Message"] = []string{url.PathEscape(err.Error())}
}

// noteRefused puts in the journal that somebody may not come in.
func (d *Door) noteRefused(r *http.Request, err error) {
	if d.backend.Starting() {
		return
	}
	d.backend.Denied(err, audit.Refusal{
		Origin: leasehold.Origin{Address: r.RemoteAddr, Door: doorName}, Namespace: d.config.Namespace, Verb: "txn",
	})
}

// Port returns a port of the door's own, where gRPC has the transport that was made for it. What begins otherwise is
// HTTP/1.1, for the gateway.
func (d *Door) Port(address string) *door.Port {
	d.own = d.newServer(grpc.Creds(shaken{}))
	preface := []byte("PRI * HTTP/2.0")
	return &door.Port{
		Name: doorName, Clients: "etcd clients", Setting: listenSetting, Address: address, SharedTLS: true,
		HTTP: door.HTTP{Routes: append(d.gatewayRoutes(), d.pageRoutes()...), Refuse: d.refuse},
		Protocol: &door.Protocol{
			Name: "grpc", ALPN: "h2", First: len(preface), Early: true,
			Matches: func(first []byte) bool { return bytes.HasPrefix(first, preface) },
			Serve:   func(ctx context.Context, c net.Conn) { d.serveConn(ctx, c, nil) },
			// It is told in an answer to its first call, for which it has the moment that the port gives it.
			Refuse: func(c net.Conn, err error) { d.serveConn(d.backend.Stopping(), c, err) },
		},
		Opened: func(address string) { d.backend.Log().Info("etcd clients are served", "address", address) },
	}
}

// drainTime is how long clients are answered that the server stops, before their connections end with what is under
// way: one that is sent away at once would never learn why.
const drainTime = time.Second

// serveConn lets gRPC serve a connection, and returns when that has ended. With an error all calls on it are refused.
func (d *Door) serveConn(ctx context.Context, c net.Conn, refused error) {
	door.Greeted(c)
	own := &ownConn{Conn: c, refused: refused, ended: make(chan struct{})}
	_ = d.own.Serve(&single{conn: own, drain: func() { d.drain(ctx, own) }}) // it has ended, one way or the other
}

// drain waits until a connection has ended, or the server drains and its time is over. Then all of them end, each when
// it has no call under way.
func (d *Door) drain(ctx context.Context, c *ownConn) {
	select {
	case <-c.ended:
		return
	case <-ctx.Done():
	}
	timer := time.NewTimer(drainTime)
	defer timer.Stop()
	select {
	case <-c.ended:
		return
	case <-timer.C:
	}
	go d.own.GracefulStop()
	<-c.ended
}

// A single is a listener of one connection, which a port has let in.
type single struct {
	conn  *ownConn
	drain func() // waits until the connection has ended
	given bool
}

// Accept returns the connection, and when that has ended that there is no other.
func (s *single) Accept() (net.Conn, error) {
	if !s.given {
		s.given = true
		return s.conn, nil
	}
	s.drain()
	return nil, net.ErrClosed
}

// Close does nothing: the connection ends by itself.
func (s *single) Close() error { return nil }

// Addr returns the address of the port.
func (s *single) Addr() net.Addr { return s.conn.LocalAddr() }

// An ownConn is a connection that gRPC serves.
type ownConn struct {
	net.Conn
	refused error         // why no call on it is answered; nil: they are
	ended   chan struct{} // closed with the connection
	once    sync.Once
	met     sync.Once // its client has said what it is
}

// Close ends the connection.
func (c *ownConn) Close() error {
	defer c.once.Do(func() { close(c.ended) })
	return c.Conn.Close()
}

// NetConn is the connection below this one.
func (c *ownConn) NetConn() net.Conn { return c.Conn }

// shaken are the credentials of connections whose handshake the port has made.
type shaken struct{}

// ServerHandshake returns what the handshake proved.
func (shaken) ServerHandshake(c net.Conn) (net.Conn, credentials.AuthInfo, error) {
	own, _ := c.(*ownConn)
	return c, &carried{own, door.TLSOf(c)}, nil
}

// ClientHandshake is for the other end.
func (shaken) ClientHandshake(context.Context, string, net.Conn) (net.Conn, credentials.AuthInfo, error) {
	return nil, nil, errors.New("a server does not dial")
}

// Info says what kind of credentials these are.
func (shaken) Info() credentials.ProtocolInfo {
	return credentials.ProtocolInfo{SecurityProtocol: "leasehold"}
}

// Clone returns a copy.
func (s shaken) Clone() credentials.TransportCredentials { return s }

// OverrideServerName is for the other end.
func (shaken) OverrideServerName(string) error { return nil }

// carried is the connection that carries a call, and what its handshake proved.
type carried struct {
	conn  *ownConn
	state *tls.ConnectionState // nil: it is plain
}

// AuthType names it.
func (*carried) AuthType() string { return "leasehold" }
