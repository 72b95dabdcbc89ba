package listen

import (
	"bytes"
	"io"
	"net"
	"net/http"
	"net/url"
	"time"

	"github.com/leasehold/leasehold"
)

const (
	// maxTurningAway is how many are told at a time; beyond it they are cut off.
	maxTurningAway = 64
	turnAwayTime   = time.Second
)

// errFull is what a connection is told for which there is no room.
var errFull = unavailable("the server has as many connections as it can: try again in a moment, or on another server")

func unavailable(message string) error {
	return &Fault{&leasehold.Error{Code: leasehold.Unavailable, Message: message}, http.StatusServiceUnavailable}
}

// turnAwayLater turns a connection away for which there is no room. It gets a short answer
// rather than silence: a caller that hangs cannot go elsewhere.
func (h *Host) turnAwayLater(accepted net.Conn) {
	if h.config.TLS != nil {
		_ = accepted.Close() // nothing can be said before a handshake, but that it ends at once
		return
	}
	select {
	case h.away <- struct{}{}:
		go h.turnAway(accepted)
	default:
		_ = accepted.Close()
	}
}

func (h *Host) turnAway(conn net.Conn) {
	defer func() { <-h.away }()
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(turnAwayTime))
	// An answer that comes before the question looks to some clients like rubbish
	// on a connection that they had not used yet.
	_ = conn.SetReadDeadline(time.Now().Add(turnAwayTime / 2))
	first := make([]byte, 4<<10)
	n, _ := conn.Read(first)
	if p := h.protocolOf(first[:n]); p != nil {
		p.refuse(conn, errFull)
	} else if _, err := io.WriteString(conn, h.full()); err == nil {
		takeRest(conn)
	}
}

// takeRest takes what still comes on a connection that was answered, until its deadline. To close
// it meanwhile would reset it, and the client would lose the answer.
func takeRest(conn net.Conn) {
	if c, ok := conn.(interface{ CloseWrite() error }); ok && c.CloseWrite() == nil {
		_, _ = io.Copy(io.Discard, conn)
	}
}

// fullAnswer returns, as the bytes of HTTP/1.1, how a door refuses a connection for which there
// is no room.
func fullAnswer(refuse refuse) string {
	said := &recorder{header: http.Header{}, status: http.StatusOK}
	request := &http.Request{Method: http.MethodGet, URL: &url.URL{Path: "/"}, Header: http.Header{}, Body: http.NoBody}
	refuse(said, request, errFull)
	response := http.Response{
		StatusCode: said.status, ProtoMajor: 1, ProtoMinor: 1, Header: said.header, Close: true,
		Body: io.NopCloser(&said.body), ContentLength: int64(said.body.Len()),
	}
	var text bytes.Buffer
	_ = response.Write(&text)
	return text.String()
}

// A recorder keeps an answer.
type recorder struct {
	header http.Header
	status int
	body   bytes.Buffer
}

func (r *recorder) Header() http.Header         { return r.header }
func (r *recorder) WriteHeader(status int)      { r.status = status }
func (r *recorder) Write(b []byte) (int, error) { return r.body.Write(b) }
