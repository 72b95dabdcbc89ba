package etcd

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"time"

	"golang.org/x/net/http2"
	"google.golang.org/grpc"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"github.com/leasehold/leasehold/internal/door"
	"github.com/leasehold/leasehold/internal/grpcconn"
)

// newShared returns a server of gRPC for the port that doors share, where net/http has the connections.
func (d *Door) newShared() *grpc.Server {
	s := grpc.NewServer(grpc.UnaryInterceptor(d.unary), grpc.StreamInterceptor(d.streaming),
		grpc.MaxRecvMsgSize(maxRequest), grpc.MaxSendMsgSize(math.MaxInt32), grpc.ForceServerCodec(codec{}))
	for _, service := range d.services {
		s.RegisterService(service.Desc, service.Impl)
	}
	return s
}

// A codec reads messages as the door's own port does.
type codec struct{}

// Name is that of the form of gRPC's messages.
func (codec) Name() string { return "proto" }

// Marshal writes an answer.
func (codec) Marshal(m any) ([]byte, error) { return proto.Marshal(m.(proto.Message)) }

// Unmarshal reads a request.
func (codec) Unmarshal(b []byte, m any) error { return grpcconn.Unmarshal(b, m.(proto.Message)) }

// overHTTP answers gRPC on the port that doors share, by way of net/http.
type overHTTP struct{ *Door }

// ServeHTTP answers one call. The library keeps whatever comes of a call, before it knows who sends it, and whether or
// not anybody takes it. So who asks is judged before, and the body is read only as far as it is wanted.
func (h overHTTP) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if !isGRPC(r) {
		h.gatewayRefuse(w, door.Invalidly(http.StatusUnsupportedMediaType,
			"%s is called by gRPC, over HTTP/2 and with the content type application/grpc; or as JSON, below /v3/",
			door.Brief(r.URL.Path)))
		return
	}
	ctx, err := h.admit(incoming(r, "Authorization", "Token"), r.URL.Path)
	if err != nil {
		refuseCall(w, status.Convert(err))
		return
	}
	if h.talks[r.URL.Path] {
		door.Unhurried(w)
	} else {
		unhurriedWrites(w) // the request itself has to come in the time of the port
	}
	m := &messages{in: r.Body, most: maxRequest}
	m.take = func(bytes int) (func(), error) { return h.coming.EnterWith(ctx, bytes) }
	m.taken.L = &m.mu
	if anonymous[r.URL.Path] {
		m.most, m.one = maxAnonymous, true
		m.take = func(bytes int) (func(), error) { return h.backend.LendStranger(r.RemoteAddr, bytes) }
	}
	r = r.WithContext(context.WithValue(r.Context(), messagesKey{}, m))
	r.Body = m
	h.shared.ServeHTTP(&paced{ResponseWriter: w}, r)
}

func isGRPC(r *http.Request) bool {
	return r.ProtoMajor == 2 && strings.HasPrefix(r.Header.Get("Content-Type"), "application/grpc")
}

// refuseCall answers a call of gRPC that is not carried out.
func refuseCall(w http.ResponseWriter, s *status.Status) {
	h := w.Header()
	h["Content-Type"] = []string{"application/grpc"}
	h["Grpc-Status"] = []string{strconv.Itoa(int(s.Code()))}
	h["Grpc-Message"] = []string{url.PathEscape(s.Message())}
}

// unhurriedWrites lifts the limit on writing.
func unhurriedWrites(w http.ResponseWriter) {
	_ = http.NewResponseController(w).SetWriteDeadline(time.Time{})
}

// paced is a writer that waits for a client only for so long.
type paced struct{ http.ResponseWriter }

// Write writes some bytes.
func (p *paced) Write(b []byte) (int, error) {
	door.WriteWithin(p.ResponseWriter, slowTime)
	defer unhurriedWrites(p.ResponseWriter)
	return p.ResponseWriter.Write(b)
}

// Flush sends what was written.
func (p *paced) Flush() {
	door.WriteWithin(p.ResponseWriter, slowTime)
	defer unhurriedWrites(p.ResponseWriter)
	_ = http.NewResponseController(p.ResponseWriter).Flush()
}

// Unwrap lets http.ResponseController find the writer below.
func (p *paced) Unwrap() http.ResponseWriter { return p.ResponseWriter }

// What may be on its way of messages of more than smallMessage bytes, on the port that doors share. One client can have
// half of it.
const (
	smallMessage = 4 << 10
	maxComing    = 512 << 20
)

// messages are what a client sends in a call, as the body of a request. They are read as long as no more than one waits
// to be taken: the library would read on without end.
type messages struct {
	in   io.ReadCloser
	most int                             // bytes of one
	one  bool                            // no more than one is read: nobody knows who sends it
	take func(bytes int) (func(), error) // of what may be on its way

	// Of the reader.
	head  [5]byte  // of the message that comes: whether it is compressed, and its length
	known int      // bytes of head that are there
	rest  int      // bytes of the message that are missing
	large bool     // it is larger than it may be: nothing is read behind its head
	share int      // bytes that were taken
	read  int      // messages
	leave []func() // gives them back; guarded by mu

	mu    sync.Mutex // guards what follows
	taken sync.Cond  // or ended
	ahead int        // messages that came and were not taken
	ended bool       // the call is
}

type messagesKey struct{}

// took says that the call of a context has taken a message.
func took(ctx context.Context) {
	if m, ok := ctx.Value(messagesKey{}).(*messages); ok {
		m.mu.Lock()
		defer m.mu.Unlock()
		m.ahead--
		m.taken.Broadcast()
	}
}

var errCallEnded = errors.New("the call has ended")

// Read reads until a message is whole, or there is no more room: the library keeps a large buffer for each piece that
// it is given, however small.
func (m *messages) Read(b []byte) (n int, err error) {
	if err := m.wait(); err != nil {
		return 0, err
	}
	if m.one && m.read > 0 {
		_ = m.in.Close() // else net/http keeps what comes for as long as the call lasts
		return 0, io.EOF
	}
	for whole := 0; n < len(b) && whole == 0 && !m.large && err == nil; {
		var read int
		read, err = m.in.Read(b[n:])
		var refused error
		if whole, refused = m.came(b[n : n+read]); refused != nil {
			return 0, refused
		}
		n += read
		m.read += whole
	}
	return n, err
}

// wait waits until more is wanted.
func (m *messages) wait() error {
	m.mu.Lock()
	defer m.mu.Unlock()
	for !m.ended && m.ahead > 1 {
		m.taken.Wait()
	}
	switch {
	case m.ended:
		return errCallEnded
	case m.large: // of most calls the library has refused it by now
		return tooMuch(fmt.Errorf("the message has %d bytes: at most %d are allowed", m.rest, m.most))
	}
	return nil
}

// tooMuch is the error of a body that the library tells as ResourceExhausted.
func tooMuch(why error) error {
	return http2.StreamError{Code: http2.ErrCodeEnhanceYourCalm, Cause: why}
}

// came looks at what was read, and returns how many messages are whole now.
func (m *messages) came(b []byte) (whole int, err error) {
	for len(b) > 0 && !m.large {
		if m.known < len(m.head) {
			n := copy(m.head[m.known:], b)
			b = b[n:]
			if m.known += n; m.known < len(m.head) {
				break
			}
			m.rest = int(binary.BigEndian.Uint32(m.head[1:]))
			if err := m.begins(); err != nil {
				return 0, err
			}
		}
		n := min(len(b), m.rest)
		b, m.rest = b[n:], m.rest-n
		if m.rest == 0 {
			m.known = 0
			whole++
		}
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.ahead += whole
	return whole, nil
}

// begins takes room for a message of which the head has come. The call keeps it to its end.
func (m *messages) begins() error {
	if m.large = m.rest > m.most; m.large || m.rest <= max(m.share, smallMessage) {
		return nil
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.ended {
		return errCallEnded
	}
	leave, err := m.take(m.rest - m.share)
	if err != nil {
		return tooMuch(err)
	}
	m.share, m.leave = m.rest, append(m.leave, leave)
	return nil
}

// Close ends the reading.
func (m *messages) Close() error {
	m.mu.Lock()
	m.ended = true
	for _, leave := range m.leave {
		leave()
	}
	m.leave = nil
	m.taken.Broadcast()
	m.mu.Unlock()
	return m.in.Close()
}
