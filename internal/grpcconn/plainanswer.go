package grpcconn

import (
	"net/http"
	"strconv"
	"strings"
	"time"

	"golang.org/x/net/http/httpguts"
	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"
)

// plainBuffer is how much of an answer is kept until there is more of it, or the handler ends or flushes.
const plainBuffer = 4 << 10

// Header is what the answer will have as its header.
func (p *plain) Header() http.Header { return p.header }

// WriteHeader begins the answer.
func (p *plain) WriteHeader(code int) {
	if p.status != 0 || code < 200 {
		return // what comes before an answer is not sent
	}
	p.status, p.sent = code, p.header.Clone()
	for _, name := range []string{"Connection", "Keep-Alive", "Proxy-Connection", "Transfer-Encoding", "Upgrade"} {
		p.sent.Del(name)
	}
	if p.sent.Get("Date") == "" {
		p.sent.Set("Date", time.Now().UTC().Format(http.TimeFormat))
	}
	size := 0
	for name, values := range p.sent {
		for _, value := range values {
			size += len(name) + len(value) + 32
		}
	}
	if size > leastFrame-100 { // it has to fit in one frame
		p.status, p.sent = http.StatusInternalServerError, http.Header{}
	}
}

// Write writes a part of the answer.
func (p *plain) Write(b []byte) (int, error) {
	if p.status == 0 {
		p.WriteHeader(http.StatusOK)
	}
	switch {
	case p.failed != nil:
		return 0, p.failed
	case p.status == http.StatusNoContent, p.status == http.StatusNotModified:
		return 0, http.ErrBodyNotAllowed
	case p.head.method == http.MethodHead:
		return len(b), nil
	case len(p.buffer)+len(b) <= plainBuffer:
		p.buffer = append(p.buffer, b...)
		return len(b), nil
	}
	c := p.stream.conn
	c.mu.Lock()
	defer c.mu.Unlock()
	p.put(p.buffer)
	p.put(b)
	p.buffer = p.buffer[:0]
	c.flush()
	if p.failed != nil {
		return 0, p.failed
	}
	return len(b), nil
}

// FlushError sends what was written.
func (p *plain) FlushError() error {
	if p.status == 0 {
		p.WriteHeader(http.StatusOK)
	}
	s := p.stream
	c := s.conn
	c.mu.Lock()
	defer c.mu.Unlock()
	p.put(p.buffer)
	p.buffer = p.buffer[:0]
	if p.failed == nil && !s.headed {
		if p.wait(); !s.gone {
			p.putHead(false)
		}
	}
	c.flush()
	return p.failed
}

// put puts a part of the body. The connection's mu is held, but not while it waits.
func (p *plain) put(b []byte) {
	if p.failed != nil || len(b) == 0 {
		return
	}
	p.puts = true
	if p.late {
		p.cut()
	}
	p.failed = p.stream.put(b)
	p.puts = false
}

// wait waits until a header, or the end of the answer, can be put.
func (p *plain) wait() {
	p.puts = true
	if p.late {
		p.cut()
	}
	p.stream.wait(false)
	p.puts = false
	if p.stream.gone && p.failed == nil {
		p.failed = errGone
	}
}

// putHead puts the header of the answer. The connection's mu is held.
func (p *plain) putHead(last bool) {
	p.stream.headed = true
	fields := []hpack.HeaderField{{Name: ":status", Value: strconv.Itoa(p.status)}}
	for name, values := range p.sent {
		for _, value := range values {
			if httpguts.ValidHeaderFieldName(name) && httpguts.ValidHeaderFieldValue(value) {
				fields = append(fields, hpack.HeaderField{Name: strings.ToLower(name), Value: value})
			}
		}
	}
	p.stream.conn.putHeader(p.stream.id, last, fields...)
}

// end ends the answer, and the stream.
func (p *plain) end() {
	if p.status == 0 {
		p.WriteHeader(http.StatusOK)
	}
	s := p.stream
	c := s.conn
	c.mu.Lock()
	defer c.mu.Unlock()
	if !s.headed && p.failed == nil && len(p.buffer) > 0 && p.sent.Get("Content-Length") == "" {
		p.sent.Set("Content-Length", strconv.Itoa(len(p.buffer)))
	}
	p.put(p.buffer)
	p.wait()
	switch {
	case s.gone:
	case p.failed != nil && s.headed, p.failed == http.ErrAbortHandler:
		c.putReset(s.id, http2.ErrCodeInternal)
	case p.failed != nil: // there is no room for the body: see put
		p.status, p.sent = http.StatusTooManyRequests, http.Header{"Retry-After": {"1"}}
		p.finish()
	default:
		p.finish()
	}
	arm(&p.reads, time.Time{}, nil)
	arm(&p.writes, time.Time{}, nil)
	s.abandon()
	c.running--
	c.drop(s)
	c.flush()
}

// finish puts the end of the answer.
func (p *plain) finish() {
	s := p.stream
	if s.headed {
		s.conn.putFrame(http2.FrameData, http2.FlagDataEndStream, s.id, 0)
	} else {
		p.putHead(true)
	}
	if !s.ended {
		s.conn.putReset(s.id, http2.ErrCodeNo) // what the client still has to say, nobody hears
	}
}

// tooLate ends the answer if the client is too slow for it.
func (p *plain) tooLate() {
	c := p.stream.conn
	c.mu.Lock()
	defer c.mu.Unlock()
	if p.late = true; p.puts {
		p.cut()
		c.flush()
	}
}

// cut cuts the answer off. The connection's mu is held.
func (p *plain) cut() {
	if s := p.stream; !s.gone {
		s.abandon()
		s.conn.putReset(s.id, http2.ErrCodeInternal)
		s.conn.drop(s)
	}
}
