package etcd

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"net"
	"net/http"
	"runtime/debug"
	"sync"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/leasehold/leasehold"
	"github.com/leasehold/leasehold/internal/audit"
	"github.com/leasehold/leasehold/internal/door"
	"github.com/leasehold/leasehold/internal/grpcconn"
)

const (
	// maxRequest is as in etcd: what is below it and more than a command can carry is refused in etcd's words.
	maxRequest = 1536<<10 + 512<<10
	maxStreams = 8192           // calls that are under way on one connection
	maxUnsent  = door.MaxAnswer // bytes of answers on one connection that its client has not taken
	pingTime   = 30 * time.Second
	// slowTime is how long a client may take for one write. The connection of a slower one is closed: it can come back
	// and go on where it was.
	slowTime = 30 * time.Second
	// drainTime is how long clients are answered that the server stops, before they are told to go elsewhere: one that
	// is sent away at once would never learn why.
	drainTime = time.Second
)

// newOwn returns a server of gRPC for a port of the door's own.
func (d *Door) newOwn() *grpcconn.Server {
	return grpcconn.NewServer(grpcconn.Config{
		Services: d.services, Unary: d.unary, Stream: d.streaming, Admit: d.admit,
		Strangers: d.backend.Strangers(), Plain: d.plain, ReadTime: door.ReadTime, WriteTime: door.WriteTime,
		MaxRequest: maxRequest, MaxStreams: maxStreams, MaxUnsent: maxUnsent,
		PingTime: pingTime, SlowTime: slowTime, DrainTime: drainTime, Greeted: door.Greeted,
	})
}

// refuse tells why the port does not let a call in: as gRPC does, or as the gateway.
func (d *Door) refuse(w http.ResponseWriter, r *http.Request, err error) {
	d.noteRefused(r, err)
	if !isGRPC(r) {
		d.gatewayRefuse(w, err)
		return
	}
	code := codes.Unavailable
	if errors.Is(err, leasehold.ErrDenied) {
		code = codes.PermissionDenied
	} else if errors.Is(err, leasehold.ErrInvalid) {
		code = codes.InvalidArgument
	}
	refuseCall(w, status.New(code, err.Error()))
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

// Port returns a port of the door's own, where gRPC has a transport that was made for small calls, and so have other
// requests over HTTP/2. What begins otherwise is HTTP/1.1.
func (d *Door) Port(address string) *door.Port {
	d.own = d.newOwn()
	preface := []byte("PRI * HTTP/2.0")
	return &door.Port{
		Name: doorName, Clients: "etcd clients", Setting: listenSetting, Address: address, SharedTLS: true,
		ReadTime: door.ReadTime, WriteTime: door.WriteTime,
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

// plainKey is where the context of a request has the stream that it came on.
type plainKey struct{}

// plain answers what is not gRPC on a connection of the door's own port.
func (d *Door) plain(s *grpcconn.Stream, w http.ResponseWriter, r *http.Request) {
	defer func() {
		if said := recover(); said != nil {
			if said != http.ErrAbortHandler {
				d.backend.Log().Error("serving a request panicked", "path", door.Brief(r.URL.Path),
					"from", r.RemoteAddr, "panic", said, "stack", string(debug.Stack()))
			}
			panic(http.ErrAbortHandler)
		}
	}()
	conn := s.Conn().(*ownConn)
	if conn.refused != nil {
		d.refuse(w, r, conn.refused)
		return
	}
	door.ServeHTTP(conn, w, r.WithContext(context.WithValue(r.Context(), plainKey{}, s)))
}

// serveConn serves a connection until that has ended. With an error all calls on it are refused.
func (d *Door) serveConn(ctx context.Context, c net.Conn, refused error) {
	d.own.Serve(ctx, &ownConn{Conn: c, refused: refused, state: door.TLSOf(c)})
}

// An ownConn is a connection at the port of the door's own.
type ownConn struct {
	net.Conn
	refused error                // why no call on it is answered; nil: they are
	state   *tls.ConnectionState // what its handshake proved; nil: it is plain
	met     sync.Once            // its client has said what it is
}

// NetConn is the connection below this one.
func (c *ownConn) NetConn() net.Conn { return c.Conn }
