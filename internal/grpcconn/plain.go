package grpcconn

import (
	"cmp"
	"errors"
	"io"
	"net/http"
	"net/url"
	"os"
	"strconv"
	"strings"
	"time"

	"golang.org/x/net/http2/hpack"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

const (
	// plainHeader is how large the header of a plain request may be, as over HTTP/1.1.
	plainHeader = 16 << 10
	// plainCost is what a plain request costs beyond another call: it has a handler from its beginning.
	plainCost = 12 << 10
)

// A plain is a request that is not gRPC, and the answer to it: it is the http.ResponseWriter.
type plain struct {
	stream *Stream
	head   request
	length int64 // that the client says its body has; -1: it does not say

	// Of the handler.
	header http.Header
	sent   http.Header // the header, when the answer began
	status int         // 0: the answer has not begun
	buffer []byte      // written, but not put yet
	failed error       // why the answer is cut off

	// The connection's mu guards what follows.
	came   int64 // bytes of the body
	asks   bool  // the client waits for a word before it sends the body
	puts   bool  // a part of the answer is put
	late   bool  // the time for writing is over
	reads  *time.Timer
	writes *time.Timer
}

// beginPlain makes a stream that of a plain request, if what is asked is not gRPC of some kind.
func (s *Stream) beginPlain(r *request) {
	if strings.Contains(strings.ToLower(r.contentType), "application/grpc") {
		return
	}
	if r.timeout, r.refused = 0, nil; r.size > plainHeader {
		r.refused = status.Errorf(codes.ResourceExhausted, "the header of the request has %d bytes, of at most %d",
			r.size, plainHeader)
	}
	s.plain = &plain{stream: s, head: *r, length: -1, header: http.Header{}}
	if n, err := strconv.ParseUint(r.fields.get("content-length"), 10, 63); err == nil {
		s.plain.length = int64(n)
	}
	s.plain.asks = strings.EqualFold(r.fields.get("expect"), "100-continue")
	s.cost += plainCost
}

// serve answers the request.
func (p *plain) serve() {
	defer p.end()
	defer func() {
		if said := recover(); said == http.ErrAbortHandler {
			p.failed = http.ErrAbortHandler
		} else if said != nil {
			panic(said)
		}
	}()
	if err := p.stream.refused; err != nil {
		http.Error(p, status.Convert(err).Message(), p.refusal())
		return
	}
	r, err := p.request()
	if err != nil {
		http.Error(p, err.Error(), http.StatusBadRequest)
		return
	}
	server := p.stream.conn.server
	_ = p.SetReadDeadline(time.Now().Add(server.ReadTime))
	_ = p.SetWriteDeadline(time.Now().Add(server.WriteTime))
	server.Plain(p.stream, p, r)
}

// refusal is the status of HTTP for what refuses the request.
func (p *plain) refusal() int {
	if p.head.size > plainHeader {
		return http.StatusRequestHeaderFieldsTooLarge
	}
	return http.StatusTooManyRequests
}

// request returns the request as net/http would have it.
func (p *plain) request() (*http.Request, error) {
	at, err := url.ParseRequestURI(p.head.path)
	if err != nil || p.head.path[0] != '/' && p.head.path != "*" {
		return nil, errors.New("the path of the request is malformed")
	}
	s := p.stream
	r := &http.Request{
		Method: p.head.method, URL: at, RequestURI: p.head.path, Proto: "HTTP/2.0", ProtoMajor: 2,
		Header: http.Header{}, Host: p.head.authority, RemoteAddr: s.conn.from, ContentLength: p.length,
		Body: plainBody{p},
	}
	for _, f := range p.head.fields {
		if f.Name != "host" {
			r.Header.Add(f.Name, f.Value)
		}
	}
	r.Host = cmp.Or(r.Host, p.head.fields.get("host"))
	if p.head.contentType != "" {
		r.Header.Set("Content-Type", p.head.contentType)
	}
	s.conn.mu.Lock()
	defer s.conn.mu.Unlock()
	if s.ended && p.came == 0 && p.length <= 0 {
		r.ContentLength, r.Body = 0, http.NoBody
	}
	return r.WithContext(s.Context), nil // not with s: the call would look like one of gRPC
}

// arrived counts a part of the body, and says what is wrong with it. The connection's mu is held.
func (p *plain) arrived(n int) error {
	if err := p.stream.conn.tooMuch(); err != nil {
		return errors.New(status.Convert(err).Message())
	}
	p.came += int64(n)
	if p.length >= 0 && (p.came > p.length || p.stream.ended && p.came < p.length) {
		return errors.New("the body has another length than its header says")
	}
	return nil
}

// plainBody is what the client sends in a plain request.
type plainBody struct{ *plain }

// Read waits for the next part of the body.
func (b plainBody) Read(p []byte) (int, error) {
	s := b.stream
	c := s.conn
	c.mu.Lock()
	defer c.mu.Unlock()
	if b.asks && !s.headed && !s.ended && !s.gone {
		c.putHeader(s.id, false, hpack.HeaderField{Name: ":status", Value: "100"})
		c.flush()
	}
	b.asks = false
	for {
		switch {
		case s.gone:
			return 0, cmp.Or(s.Err(), errGone)
		case s.broken != nil:
			return 0, s.broken
		case len(s.in) > 0:
			n := copy(p, s.in)
			if s.in = s.in[n:]; len(s.in) == 0 {
				s.in = nil
			}
			c.hold(-n)
			s.taken += n
			s.allow()
			return n, nil
		case s.ended:
			return 0, io.EOF
		}
		c.mu.Unlock()
		select {
		case <-s.more:
		case <-s.Done():
		}
		c.mu.Lock()
		if err := s.Err(); err != nil {
			return 0, err
		}
	}
}

// Close lets what comes of the body be dropped.
func (b plainBody) Close() error {
	b.stop(http.ErrBodyReadAfterClose)
	return nil
}

// stop ends the reading of the body, also one that is under way.
func (p *plain) stop(err error) {
	s := p.stream
	s.conn.mu.Lock()
	defer s.conn.mu.Unlock()
	if s.broken == nil && !s.gone {
		s.broken = err
		s.dropBroken()
		s.signal()
		s.allow()
	}
}

// SetReadDeadline limits the time in which the body has to come.
func (p *plain) SetReadDeadline(t time.Time) error {
	p.stream.conn.mu.Lock()
	defer p.stream.conn.mu.Unlock()
	arm(&p.reads, t, func() { p.stop(os.ErrDeadlineExceeded) })
	return nil
}

// SetWriteDeadline limits the time in which the client has to take what is written. As over HTTP/1.1, nothing
// happens when it ends while nothing is written.
func (p *plain) SetWriteDeadline(t time.Time) error {
	p.stream.conn.mu.Lock()
	defer p.stream.conn.mu.Unlock()
	p.late = false
	arm(&p.writes, t, p.tooLate)
	return nil
}

// arm sets what happens at a time, instead of what was set before; zero: nothing does.
func arm(timer **time.Timer, t time.Time, do func()) {
	if *timer != nil {
		(*timer).Stop()
		*timer = nil
	}
	if !t.IsZero() {
		*timer = time.AfterFunc(time.Until(t), do)
	}
}
