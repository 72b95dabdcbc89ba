package grpcconn

import (
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"strings"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
)

// prefix is what comes before each message: whether it is compressed, and its length.
const prefix = 5

// largeRequest is the size above which requests are not decoded all at once.
const largeRequest = 64 << 10

// A Stream is one call. It is the context of what answers it, too.
type Stream struct {
	context.Context
	cancel context.CancelFunc

	conn       *conn
	id         uint32
	method     *method
	plain      *plain // what it is instead of a call of gRPC; nil: it is one
	fields     fields
	refused    error  // why the call is not carried out
	httpStatus string // of one that is no gRPC; empty: 200
	headed     bool   // the header of the answer is out

	// The connection's mu guards what follows.
	in      []byte // messages, and parts of one, that came and were not taken
	cost    int    // of the call itself, as it is held
	ended   bool   // the client has nothing more to say
	started bool   // it is carried out, or was
	late    bool   // it was there at the last look
	large   bool   // its request is, if it has one
	gone    bool   // the client wants no answer
	broken  error  // what is wrong with what the client sent
	window  int    // that the client may still send
	taken   int    // bytes that it may send again
	room    int    // that it has for data, beside what it has on every stream
	place   place
	more    chan struct{} // has room while nobody was told that something came; nil: it is a unary call
}

type streamKey struct{}

// FromContext returns the call that a context belongs to; nil if another server has it.
func FromContext(ctx context.Context) *Stream {
	s, _ := ctx.Value(streamKey{}).(*Stream)
	return s
}

// Value finds the stream in the contexts that are made from it.
func (s *Stream) Value(key any) any {
	if _, ok := key.(streamKey); ok {
		return s
	}
	return s.Context.Value(key)
}

// Sent returns what the client sent under a key; empty: nothing.
func (s *Stream) Sent(key string) string { return s.fields.get(key) }

// Conn returns the connection of the call.
func (s *Stream) Conn() net.Conn { return s.conn.nc }

// From returns the address of the client.
func (s *Stream) From() string { return s.conn.from }

// grpcContent reports whether a content type is that of gRPC, with messages as protocol buffers.
func grpcContent(t string) bool {
	rest, ok := strings.CutPrefix(strings.ToLower(t), "application/grpc")
	return ok && (rest == "" || rest == "+proto" || rest[0] == ';')
}

// arrived takes what the client sent. The connection's mu is held.
func (s *Stream) arrived(data []byte, end bool) {
	c := s.conn
	s.in = append(s.in, data...)
	c.hold(len(data))
	s.ended = s.ended || end
	if s.broken == nil {
		s.broken = s.check(len(data))
	}
	if s.broken != nil {
		s.dropBroken()
	}
	switch {
	case s.refused != nil:
		return // its answer is on the way
	case s.plain != nil:
		s.signal()
		s.allow()
		return
	}
	whole := s.ended || s.broken != nil || s.more != nil && s.whole()
	if s.more != nil && whole {
		s.signal()
	}
	if !s.started && whole {
		s.start()
	}
	s.allow()
}

// dropBroken forgets what came, since nobody can use it.
func (s *Stream) dropBroken() {
	s.conn.hold(-len(s.in))
	s.taken += len(s.in)
	s.in = nil
}

// check looks at the beginning of what came, of which so many bytes are new.
func (s *Stream) check(came int) error {
	c := s.conn
	if s.plain != nil {
		return s.plain.arrived(came)
	}
	if err := c.tooMuch(); err != nil {
		return err
	}
	if len(s.in) < prefix {
		return nil
	}
	if n := s.length(); s.in[0] != 0 {
		return status.Error(codes.Internal, "grpc: compressed flag set with identity or empty encoding")
	} else if n > c.server.MaxRequest {
		return status.Errorf(codes.ResourceExhausted, "grpc: received message larger than max (%d vs. %d)",
			n, c.server.MaxRequest)
	}
	return nil
}

// length is that of the message that came first.
func (s *Stream) length() int { return int(binary.BigEndian.Uint32(s.in[1:])) }

// whole reports whether all of the message that came first is there.
func (s *Stream) whole() bool { return len(s.in) >= prefix && len(s.in) >= prefix+s.length() }

// allow lets the client send as much as was taken, and at least the rest of a message that has begun.
func (s *Stream) allow() {
	if s.ended || s.gone {
		return
	}
	more := 0
	if s.taken >= windowSize/2 {
		more = s.taken
	}
	if s.plain == nil && len(s.in) >= prefix {
		more = max(more, prefix+s.length()-len(s.in)-s.window)
	}
	if more > 0 {
		s.taken = max(0, s.taken-more)
		s.window += more
		s.conn.putWindow(s.id, more)
		s.conn.flushSoon()
	}
}

// signal wakes who waits for a message.
func (s *Stream) signal() {
	select {
	case s.more <- struct{}{}:
	default:
	}
}

// start lets the call be carried out.
func (s *Stream) start() {
	s.started = true
	s.large = len(s.in) > largeRequest
	c := s.conn
	c.running++
	c.calls.Add(1)
	c.server.crew.do(s, c.work)
}

// abandon ends a call whose client wants no answer, or is gone. The connection's mu is held.
func (s *Stream) abandon() {
	s.gone = true
	s.cancel()
	s.conn.hold(-len(s.in) - s.cost)
	s.in, s.cost = nil, 0
	s.wake()
}

// run carries out the call.
func (s *Stream) run() {
	defer s.conn.calls.Done()
	var (
		answer any
		err    = s.refused
	)
	switch server := s.conn.server; {
	case s.plain != nil:
		s.plain.serve()
		return
	case err != nil:
	case s.method.unary != nil:
		answer, err = s.method.unary(s.method.impl, s, s.decode, server.Unary)
	default:
		err = server.Stream(s.method.impl, serverStream{s}, s.method.info, s.method.stream)
	}
	s.finish(answer, err)
}

// finish sends what the call came to.
func (s *Stream) finish(answer any, err error) {
	b := buffer()
	defer giveBack(b)
	if err == nil && answer != nil {
		*b, err = encode(*b, answer)
	}
	c := s.conn
	c.mu.Lock()
	defer c.mu.Unlock()
	if err == nil && answer != nil {
		err = s.put(*b)
	}
	s.wait(false)
	if !s.gone {
		s.putStatus(err)
	}
	s.abandon()
	c.running--
	c.drop(s)
	c.flush()
}

// decode reads the message of a call that has one.
func (s *Stream) decode(m any) error {
	if s.large {
		if admit := s.conn.server.Admit; admit != nil {
			if _, err := admit(s, s.method.name); err != nil {
				return err
			}
		}
		decoders := s.conn.server.decoders
		decoders <- struct{}{}
		defer func() { <-decoders }()
	}
	message, err := s.take()
	if err == io.EOF {
		return status.Error(codes.Internal, "the call has no message")
	}
	if err == nil {
		err = unmarshal(message, m)
	}
	return err
}

// take returns the next message. At the end of all it is io.EOF.
func (s *Stream) take() ([]byte, error) {
	c := s.conn
	c.mu.Lock()
	defer c.mu.Unlock()
	for {
		if s.broken != nil {
			return nil, s.broken
		}
		if s.whole() {
			n := prefix + s.length()
			message := s.in[prefix:n:n]
			if s.in = s.in[n:]; len(s.in) == 0 {
				s.in = nil
			}
			c.hold(-n)
			s.taken += n
			s.broken = s.check(0) // of what follows
			s.allow()
			return message, nil
		}
		switch {
		case s.gone:
			return nil, s.Err()
		case s.ended && len(s.in) > 0:
			return nil, status.Error(codes.Internal, io.ErrUnexpectedEOF.Error())
		case s.ended:
			return nil, io.EOF
		}
		c.mu.Unlock()
		select {
		case <-s.more:
		case <-s.Done():
		}
		c.mu.Lock()
		if err := s.Err(); err != nil {
			return nil, err
		}
	}
}

func unmarshal(b []byte, m any) error {
	message, ok := m.(proto.Message)
	if !ok {
		return status.Errorf(codes.Internal, "%T is no message", m)
	}
	return Unmarshal(b, message)
}

func appendMessage(b []byte, m any) ([]byte, error) {
	message, ok := m.(proto.Message)
	if !ok {
		return nil, status.Errorf(codes.Internal, "%T is no message", m)
	}
	b, err := proto.MarshalOptions{}.MarshalAppend(b, message)
	if err != nil {
		return nil, status.Error(codes.Internal, fmt.Sprintf("grpc: error while marshaling: %v", err))
	}
	return b, nil
}

// A serverStream is a call of many messages, as generated code wants it.
type serverStream struct{ *Stream }

var _ grpc.ServerStream = serverStream{}

// Context returns the context of the call.
func (s serverStream) Context() context.Context { return s.Stream }

// SetHeader does nothing: answers have no metadata.
func (serverStream) SetHeader(metadata.MD) error { return nil }

// SendHeader does nothing: the header goes out with the first message.
func (serverStream) SendHeader(metadata.MD) error { return nil }

// SetTrailer does nothing.
func (serverStream) SetTrailer(metadata.MD) {}

// RecvMsg waits for the next message.
func (s serverStream) RecvMsg(m any) error {
	b, err := s.take()
	if err != nil {
		return err
	}
	return unmarshal(b, m)
}

// SendMsg sends a message.
func (s serverStream) SendMsg(m any) error {
	b := buffer()
	defer giveBack(b)
	var err error
	if *b, err = encode(*b, m); err != nil {
		return err
	}
	c := s.conn
	c.mu.Lock()
	defer c.mu.Unlock()
	err = s.put(*b)
	c.flush()
	return err
}
