package grpcconn

import (
	"encoding/base64"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/net/http/httpguts"
	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
)

// maxHeader is how large the header of a request may be, with tokens in it.
const maxHeader = 64 << 10

// fields are what a client sent in the header of a call, but for what the protocol itself needs. Calls that send the
// same share them.
type fields []hpack.HeaderField

// get returns the first value of a field; empty: there is none.
func (f fields) get(name string) string {
	for i := range f {
		if f[i].Name == name {
			return f[i].Value
		}
	}
	return ""
}

// A request is the header of a call.
type request struct {
	path, method, scheme, authority, contentType, encoding string

	timeout time.Duration // 0: there is none
	fields  fields
	size    int // of all fields, also those above

	refused error // why it is not carried out
}

// A headerReader puts headers together, which can come in several frames.
type headerReader struct {
	decoder *hpack.Decoder
	block   []byte // of the frames so far; used only if there are several
	size    int    // of all fields
	all     []hpack.HeaderField
	last    fields // of the last call
}

func newHeaderReader() *headerReader {
	h := &headerReader{}
	h.decoder = hpack.NewDecoder(4096, h.field)
	h.decoder.SetMaxStringLength(maxHeader)
	return h
}

// field takes one field.
func (h *headerReader) field(f hpack.HeaderField) {
	if h.size += int(f.Size()); h.size <= maxHeader {
		h.all = append(h.all, f)
	}
}

// add takes a part of a block. The error says that there is too much of it.
func (h *headerReader) add(part []byte) error {
	if h.block = append(h.block, part...); len(h.block) > maxHeader {
		return http2.ConnectionError(http2.ErrCodeEnhanceYourCalm)
	}
	return nil
}

// decode reads the last part of a block. It has to be done for every block: the next ones depend on it.
func (h *headerReader) decode(part []byte) error {
	h.all, h.size = h.all[:0], 0
	if len(h.block) > 0 {
		if err := h.add(part); err != nil {
			return err
		}
		part = h.block
	}
	_, err := h.decoder.Write(part)
	if err == nil {
		err = h.decoder.Close()
	}
	h.block = nil
	if err != nil {
		return http2.ConnectionError(http2.ErrCodeCompression)
	}
	return nil
}

// request reads the header that was decoded. It is not whole if HTTP/2 does not allow it so.
func (h *headerReader) request() (r request, whole bool) {
	if h.size > maxHeader {
		r.refused = status.Errorf(codes.ResourceExhausted, "the header of the call has %d bytes, of at most %d",
			h.size, maxHeader)
		r.size = h.size
		for _, f := range h.all {
			if f.Name == "content-type" {
				r.contentType = f.Value
			}
		}
		return r, true
	}
	begun := false // what is not about HTTP/2 itself
	rest := h.all[:0]
	for _, f := range h.all {
		if strings.HasPrefix(f.Name, ":") {
			if begun || !r.pseudo(f.Name, f.Value) {
				return r, false
			}
			continue
		}
		begun = true
		switch f.Name {
		case "connection", "proxy-connection", "keep-alive", "upgrade", "transfer-encoding":
			return r, false
		case "te":
			if f.Value != "trailers" {
				return r, false
			}
		case "grpc-accept-encoding":
		case "content-type":
			r.contentType = f.Value
		case "grpc-encoding":
			r.encoding = f.Value
		case "grpc-timeout":
			var err error
			if r.timeout, err = parseTimeout(f.Value); err != nil {
				r.refused = status.Error(codes.Internal, err.Error())
			}
		default:
			if !lower(f.Name) {
				return r, false
			}
			rest = append(rest, f)
		}
	}
	if !slices.Equal(rest, h.last) {
		for _, f := range rest {
			if !httpguts.ValidHeaderFieldValue(f.Value) {
				return r, false
			}
		}
		h.last = slices.Clone(rest)
	}
	r.fields, r.size = h.last, h.size
	return r, r.path != "" && r.method != "" && r.scheme != ""
}

// pseudo takes a field of HTTP/2 itself. Each comes once.
func (r *request) pseudo(name, value string) bool {
	var field *string
	switch name {
	case ":path":
		field = &r.path
	case ":method":
		field = &r.method
	case ":scheme":
		field = &r.scheme
	case ":authority":
		field = &r.authority
	default:
		return false
	}
	was := *field
	*field = value
	return was == ""
}

// lower reports whether a name can be that of a field.
func lower(name string) bool {
	bad := func(r rune) bool { return r <= ' ' || r >= 'A' && r <= 'Z' || r >= 0x7f }
	return name != "" && strings.IndexFunc(name, bad) < 0
}

var units = map[byte]time.Duration{'H': time.Hour, 'M': time.Minute, 'S': time.Second,
	'm': time.Millisecond, 'u': time.Microsecond, 'n': time.Nanosecond}

// parseTimeout reads how long a client waits for a call: up to eight digits and a unit.
func parseTimeout(s string) (time.Duration, error) {
	if len(s) >= 2 && len(s) <= 9 {
		if n, err := strconv.ParseUint(s[:len(s)-1], 10, 32); err == nil && units[s[len(s)-1]] > 0 {
			const most = time.Duration(1<<63 - 1)
			if unit := units[s[len(s)-1]]; time.Duration(n) < most/unit {
				return max(time.Duration(n)*unit, 1), nil
			}
			return most, nil
		}
	}
	return 0, fmt.Errorf("malformed grpc-timeout %q: it is up to eight digits and one of H, M, S, m, u, n", brief(s))
}

// maxMessage is how long the text of an error can be: with it all of a header is in one frame.
const maxMessage = 4 << 10

// statusOf returns what an error says to a client.
func statusOf(err error) *status.Status {
	s, ok := status.FromError(err)
	if !ok {
		s = status.FromContextError(err)
	}
	return s
}

// detailsOf returns what a status has beside code and text, as it is sent; empty: nothing.
func detailsOf(s *status.Status) string {
	if len(s.Proto().GetDetails()) == 0 {
		return ""
	}
	if b, err := proto.Marshal(s.Proto()); err == nil && len(b) <= maxMessage/2 {
		return base64.RawStdEncoding.EncodeToString(b)
	}
	return ""
}

// percent writes a text so that a header can carry it.
func percent(s string) string {
	s = s[:min(len(s), maxMessage)]
	plain := func(b byte) bool { return b >= ' ' && b <= '~' && b != '%' }
	n := 0
	for i := range len(s) {
		if !plain(s[i]) {
			n++
		}
	}
	if n == 0 {
		return s
	}
	b := make([]byte, 0, len(s)+2*n)
	for i := range len(s) {
		if plain(s[i]) {
			b = append(b, s[i])
		} else {
			b = fmt.Appendf(b, "%%%02X", s[i])
		}
	}
	return string(b)
}
