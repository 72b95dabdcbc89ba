package grpcconn

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"runtime"
	"strings"
	"sync/atomic"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/leasehold/leasehold/internal/limit"
)

// Config is what a Server answers, and how long it waits for clients.
type Config struct {
	Services []Service
	Unary    grpc.UnaryServerInterceptor
	Stream   grpc.StreamServerInterceptor

	// Admit refuses a call before a large message of it is decoded; nil: Unary and Stream judge alone. Unary judges a
	// call that was admitted again.
	Admit func(ctx context.Context, method string) (context.Context, error)

	// Plain answers requests that are not gRPC, as an http.Handler does. A panic other than http.ErrAbortHandler ends
	// the program.
	Plain     func(s *Stream, w http.ResponseWriter, r *http.Request)
	ReadTime  time.Duration // for all of such a request
	WriteTime time.Duration // for all of the answer to one; as ReadTime, handlers can change it

	// Strangers is the memory that connections share on which nothing was proven (see Stream.Proven), beyond what each
	// has of its own. Clients are networks of addresses.
	Strangers *limit.Budget

	MaxRequest int // bytes of one message
	MaxStreams int // calls that are under way on one connection
	MaxUnsent  int // bytes of answers on one connection that its client has not taken; one answer may have more

	// PingTime is how long a client may be quiet before it is asked whether it is there. After as long again its
	// connection is closed.
	PingTime  time.Duration
	SlowTime  time.Duration // that a client may take for what it is sent, before its connection is closed
	DrainTime time.Duration // between the end of the context and the moment when clients are told to go elsewhere

	Greeted func(net.Conn) // is called when a client has shown that it speaks the protocol
}

// A Service is one service, and what answers it.
type Service struct {
	Desc *grpc.ServiceDesc
	Impl any
}

// A Server answers gRPC on any number of connections.
type Server struct {
	Config
	methods map[string]*method
	crew    crew
	lent    atomic.Int64 // bytes that connections hold beyond what each may, if something was proven on them

	// decoders has room for those that decode large requests: they take their memory again for it, and not all can have
	// theirs at once.
	decoders chan struct{}
}

// A method is one call that can be made.
type method struct {
	name   string // as in its path
	impl   any
	unary  grpc.MethodHandler // nil: it is a stream
	stream grpc.StreamHandler
	info   *grpc.StreamServerInfo // of a stream
}

// NewServer returns a server.
func NewServer(config Config) *Server {
	s := &Server{Config: config, methods: map[string]*method{}}
	s.decoders = make(chan struct{}, runtime.GOMAXPROCS(0))
	for _, service := range config.Services {
		prefix := "/" + service.Desc.ServiceName + "/"
		for _, m := range service.Desc.Methods {
			s.methods[prefix+m.MethodName] = &method{name: prefix + m.MethodName, impl: service.Impl, unary: m.Handler}
		}
		for _, m := range service.Desc.Streams {
			name := prefix + m.StreamName
			info := grpc.StreamServerInfo{
				FullMethod: name, IsClientStream: m.ClientStreams, IsServerStream: m.ServerStreams,
			}
			s.methods[name] = &method{name: name, impl: service.Impl, stream: m.Handler, info: &info}
		}
	}
	return s
}

// Serve answers on a connection until that ends, and with it all calls. When the context does, the client is told to
// go elsewhere, and the connection ends with its last call.
func (s *Server) Serve(ctx context.Context, nc net.Conn) {
	c := newConn(s, nc)
	c.work = s.crew.join()
	defer s.crew.leave()
	drain := time.AfterFunc(time.Hour, c.goAway)
	drain.Stop()
	defer drain.Stop()
	defer context.AfterFunc(ctx, func() { drain.Reset(s.DrainTime) })()
	c.end(c.serve())
	c.calls.Wait()
}

// unknown is what a client is told that calls what is not there.
func (s *Server) unknown(path string) error {
	service, name, ok := strings.Cut(strings.TrimPrefix(path, "/"), "/")
	if !ok || !strings.HasPrefix(path, "/") {
		return status.Error(codes.Unimplemented, fmt.Sprintf("malformed method name: %q", brief(path)))
	}
	for _, known := range s.Services {
		if known.Desc.ServiceName == service {
			return status.Errorf(codes.Unimplemented, "unknown method %v for service %v", brief(name), service)
		}
	}
	return status.Errorf(codes.Unimplemented, "unknown service %v", brief(service))
}

// brief shortens what a client sent, for an answer.
func brief(s string) string {
	const most = 128
	if len(s) <= most {
		return s
	}
	return s[:most] + "…"
}
