package etcd

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"time"

	"google.golang.org/genproto/googleapis/api/annotations"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/peer"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"

	"github.com/leasehold/leasehold"
	"github.com/leasehold/leasehold/internal/door"
	"github.com/leasehold/leasehold/internal/grpcconn"
)

// The gateway answers the same calls as JSON over HTTP: POST /v3/kv/range and so on. Which path is which call, the
// protocol's own definition says. Bytes are in base64, and long numbers in quotes.

// jsonCall is a call as the gateway makes it.
type jsonCall struct {
	door   *Door
	impl   any
	method string             // as gRPC names it
	unary  grpc.MethodHandler // nil: it is a stream
	stream *grpc.StreamDesc
}

// gatewayRoutes returns a route for each path of the gateway, and one for what is none.
func (d *Door) gatewayRoutes() (routes []door.Route) {
	for _, s := range d.services {
		for i := range s.Desc.Methods {
			m := &s.Desc.Methods[i]
			method := "/" + s.Desc.ServiceName + "/" + m.MethodName
			routes = append(routes, jsonCall{door: d, impl: s.Impl, method: method, unary: m.Handler}.routes()...)
		}
		for i := range s.Desc.Streams {
			m := &s.Desc.Streams[i]
			method := "/" + s.Desc.ServiceName + "/" + m.StreamName
			routes = append(routes, jsonCall{door: d, impl: s.Impl, method: method, stream: m}.routes()...)
		}
	}
	unknown := func(w http.ResponseWriter, _ *http.Request) {
		writeFailure(w, status.Error(codes.NotFound, "Not Found"))
	}
	return append(routes, door.Route{Pattern: "/v3/", Handler: http.HandlerFunc(unknown)})
}

// routes are the paths of a call.
func (c jsonCall) routes() (routes []door.Route) {
	name := protoreflect.FullName(strings.ReplaceAll(c.method[1:], "/", "."))
	found, err := protoregistry.GlobalFiles.FindDescriptorByName(name)
	if err != nil {
		return nil
	}
	rule, ok := proto.GetExtension(found.Options(), annotations.E_Http).(*annotations.HttpRule)
	if !ok || rule == nil {
		return nil
	}
	for _, r := range append([]*annotations.HttpRule{rule}, rule.AdditionalBindings...) {
		if path := r.GetPost(); path != "" {
			routes = append(routes, door.Route{Pattern: path, Handler: c})
		}
	}
	return routes
}

// ServeHTTP answers one request.
func (c jsonCall) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodPost {
		w.Header().Set("Allow", http.MethodPost)
		writeStatus(w, http.StatusNotImplemented, status.New(codes.Unimplemented, "Method Not Allowed"))
		return
	}
	if c.stream != nil {
		c.serveStream(w, r)
		return
	}
	ctx := incoming(r, "Authorization")
	// Before the body is read, which the call needs first: nobody shall hold memory who has not said who it is.
	if _, err := c.door.admit(ctx, c.method); err != nil {
		writeFailure(w, err)
		return
	}
	decode := func(m any) error {
		body, err := c.wholeBody(w, r)
		if err != nil {
			return err
		}
		return decodeJSON(body, m.(proto.Message))
	}
	unhurriedWrites(w) // a lock may be waited for; over HTTP/2 the limit also counts while nothing is written
	answer, err := c.unary(c.impl, ctx, decode, c.door.unary)
	door.WriteWithin(w, slowTime)
	if err != nil {
		writeFailure(w, err)
		return
	}
	text, err := encoding.Marshal(answer.(proto.Message))
	if err != nil {
		writeFailure(w, err)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	_, _ = w.Write(text) // whether it arrives is not for us to know
}

// wholeBody reads a body to its end. Before that, net/http does not notice that the client has left.
func (c jsonCall) wholeBody(w http.ResponseWriter, r *http.Request) (body []byte, err error) {
	if anonymous[c.method] {
		body, err = c.door.backend.ReadStranger(w, r, maxAnonymous)
	} else {
		body, err = io.ReadAll(http.MaxBytesReader(w, r.Body, maxJSON))
	}
	switch {
	case errors.Is(err, leasehold.ErrLimited):
		return nil, status.Error(codes.ResourceExhausted, err.Error())
	case err != nil:
		return nil, status.Errorf(codes.InvalidArgument, "the body cannot be read: %v", err)
	}
	return body, nil
}

// maxJSON is how long a body can be: bytes take a third more in base64.
const maxJSON = maxRequest * 3 / 2

// maxAnonymous is how long a body can be that says who somebody is: a JWT is the longest in it.
const maxAnonymous = 32 << 10

// maxFields is how many fields and items of lists a body can have: no part has more than 13.
const maxFields = 16 * grpcconn.MaxParts

var encoding = protojson.MarshalOptions{UseProtoNames: true}

// decodeJSON reads a request. Fields that nobody knows are passed over, as etcd does.
func decodeJSON(body []byte, m proto.Message) error {
	if len(bytes.TrimSpace(body)) == 0 {
		return nil
	}
	switch { // in texts there are no such characters: they are in base64
	case bytes.Count(body, []byte("{")) > grpcconn.MaxParts:
		return status.Errorf(codes.InvalidArgument, "the request has more than %d parts", grpcconn.MaxParts)
	case bytes.Count(body, []byte(",")) > maxFields:
		return status.Errorf(codes.InvalidArgument, "the request has more than %d fields and items of lists", maxFields)
	}
	if err := (protojson.UnmarshalOptions{DiscardUnknown: true}).Unmarshal(body, m); err != nil {
		return status.Errorf(codes.InvalidArgument, "%v", err)
	}
	return nil
}

// incoming returns the context of a request as gRPC would have it, with some of its headers.
func incoming(r *http.Request, headers ...string) context.Context {
	meta := metadata.MD{}
	for _, name := range headers {
		if all := r.Header.Values(name); len(all) > 0 {
			meta.Set(name, all...)
		}
	}
	p := &peer.Peer{Addr: remote(r.RemoteAddr)}
	if r.TLS != nil {
		p.AuthInfo = credentials.TLSInfo{State: *r.TLS}
	}
	return metadata.NewIncomingContext(peer.NewContext(r.Context(), p), meta)
}

// remote is an address as net/http has it.
type remote string

// Network is the network of the address.
func (remote) Network() string { return "tcp" }

func (r remote) String() string { return string(r) }

// serveStream answers one request with as many lines as there are answers. A call by which a client sends many values
// reads the body while it answers: by default, net/http closes the body of a request over HTTP/1.1 with the first byte
// of the answer, and whether the call has seen its end by then is chance.
func (c jsonCall) serveStream(w http.ResponseWriter, r *http.Request) {
	s := &jsonStream{ctx: incoming(r, "Authorization"), w: w}
	if c.stream.ClientStreams {
		door.Unhurried(w)
		s.body = json.NewDecoder(io.LimitReader(r.Body, maxJSON))
		_ = http.NewResponseController(w).EnableFullDuplex() // HTTP/2 has it always
		defer s.hangUp()
	} else {
		_, err := c.door.admit(s.ctx, c.method)
		var body []byte
		if err == nil {
			body, err = c.wholeBody(w, r)
		}
		if err != nil {
			writeFailure(w, err)
			return
		}
		door.Unhurried(w)
		s.body = json.NewDecoder(bytes.NewReader(body))
	}
	w.Header().Set("Content-Type", "application/json")
	info := &grpc.StreamServerInfo{FullMethod: c.method, IsClientStream: c.stream.ClientStreams,
		IsServerStream: c.stream.ServerStreams}
	err := c.door.streaming(c.impl, s, info, c.stream.Handler)
	switch {
	case err == nil:
	case !s.begun:
		writeFailure(w, err)
	default:
		_ = s.line("error", failureOf(status.Convert(err)))
	}
}

// A jsonStream is a stream of gRPC over a request of HTTP: the values in its body are what the client sends.
type jsonStream struct {
	ctx   context.Context
	w     http.ResponseWriter
	body  *json.Decoder
	ended atomic.Bool // the body: nothing more is read of it
	begun bool
}

// hangUp ends a read of the body that is under way when the call ends. Whoever closes the body would wait for it, as
// long as the client sends nothing.
func (s *jsonStream) hangUp() {
	if !s.ended.Load() {
		_ = http.NewResponseController(s.w).SetReadDeadline(time.Unix(1, 0))
	}
}

// Context returns the context of the stream.
func (s *jsonStream) Context() context.Context { return s.ctx }

// SetHeader is not part of the gateway.
func (s *jsonStream) SetHeader(metadata.MD) error { return nil }

// SendHeader is not part of the gateway.
func (s *jsonStream) SendHeader(metadata.MD) error { return nil }

// SetTrailer is not part of the gateway.
func (s *jsonStream) SetTrailer(metadata.MD) {}

// RecvMsg reads the next value of the body.
func (s *jsonStream) RecvMsg(m any) error {
	var text json.RawMessage
	err := s.body.Decode(&text)
	if err == nil {
		return decodeJSON(text, m.(proto.Message))
	}
	s.ended.Store(true)
	switch wrong := (*json.SyntaxError)(nil); {
	case errors.Is(err, io.EOF):
		return io.EOF
	case errors.As(err, &wrong), errors.Is(err, io.ErrUnexpectedEOF):
		return status.Errorf(codes.InvalidArgument, "%v", err)
	}
	return status.Errorf(codes.Canceled, "the body cannot be read: %v", err)
}

// SendMsg writes the next line.
func (s *jsonStream) SendMsg(m any) error {
	text, err := encoding.Marshal(m.(proto.Message))
	if err != nil {
		return err
	}
	return s.line("result", json.RawMessage(text))
}

func (s *jsonStream) line(key string, value any) error {
	s.begun = true
	text, err := json.Marshal(map[string]any{key: value})
	if err != nil {
		return err
	}
	door.WriteWithin(s.w, slowTime)
	defer door.Unhurried(s.w)
	if _, err := s.w.Write(append(text, '\n')); err != nil {
		return err
	}
	return http.NewResponseController(s.w).Flush()
}

// A failure is an error as the gateway of etcd writes it.
type failure struct {
	Code    codes.Code `json:"code"`
	Message string     `json:"message"`
}

func failureOf(s *status.Status) failure {
	return failure{Code: s.Code(), Message: s.Message()}
}

func writeFailure(w http.ResponseWriter, err error) {
	s := status.Convert(err)
	writeStatus(w, httpStatus(s.Code()), s)
}

func writeStatus(w http.ResponseWriter, code int, s *status.Status) {
	text, _ := json.Marshal(failureOf(s))
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	_, _ = w.Write(text) // whether it arrives is not for us to know
}

// gatewayRefuse tells why the port does not let a request in.
func (d *Door) gatewayRefuse(w http.ResponseWriter, err error) {
	writeStatus(w, door.StatusOf(err, http.StatusServiceUnavailable),
		status.New(codes.Unavailable, err.Error()))
}

// httpStatus is what HTTP has for a code of gRPC, as grpc-gateway translates it.
func httpStatus(code codes.Code) int {
	switch code {
	case codes.OK:
		return http.StatusOK
	case codes.Canceled:
		return 499
	case codes.InvalidArgument, codes.FailedPrecondition, codes.OutOfRange:
		return http.StatusBadRequest
	case codes.DeadlineExceeded:
		return http.StatusGatewayTimeout
	case codes.NotFound:
		return http.StatusNotFound
	case codes.AlreadyExists, codes.Aborted:
		return http.StatusConflict
	case codes.PermissionDenied:
		return http.StatusForbidden
	case codes.Unauthenticated:
		return http.StatusUnauthorized
	case codes.ResourceExhausted:
		return http.StatusTooManyRequests
	case codes.Unimplemented:
		return http.StatusNotImplemented
	case codes.Unavailable:
		return http.StatusServiceUnavailable
	}
	return http.StatusInternalServerError
}
