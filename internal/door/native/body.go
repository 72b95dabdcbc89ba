package native

import (
	"bytes"
	"errors"
	"mime"
	"net/http"
	"os"
	"strings"

	v1 "github.com/leasehold/leasehold/api/v1"
	"github.com/leasehold/leasehold/internal/door"
)

// receive reads a body of at most that many bytes.
func (h *httpWire) receive(buffer *bytes.Buffer, most int) error {
	_, err := buffer.ReadFrom(http.MaxBytesReader(h.w, h.r.Body, int64(most)))
	var large *http.MaxBytesError
	switch {
	case err == nil:
		return nil
	case errors.As(err, &large):
		return door.Invalidly(http.StatusRequestEntityTooLarge,
			"the body has more than %d bytes, which is the most there can be", most)
	case errors.Is(err, os.ErrDeadlineExceeded):
		return door.Invalidly(http.StatusRequestTimeout, "the body did not arrive within %v", readTime)
	}
	return invalid("the body cannot be read: %v", err)
}

// skipBody takes the body of a request that has no use for one, before the request stays: net/http waits for it before
// the head of an answer, and nothing limits that time any more.
func (h *httpWire) skipBody() error {
	if h.r.ContentLength == 0 {
		return nil
	}
	return h.receive(new(bytes.Buffer), v1.MaxBody)
}

// checkType lets JSON pass. What does not say what it is is taken for JSON too, and so
// is what "curl -d" says without being asked. (A form on a page of another site says
// the same; that is refused for where it comes from.)
func checkType(values []string) error {
	if len(values) == 0 || len(values) == 1 && values[0] == "application/json" {
		return nil
	}
	kind, _, err := mime.ParseMediaType(values[0])
	if len(values) == 1 && err == nil && (kind == "application/json" || kind == "application/x-www-form-urlencoded") {
		return nil
	}
	return door.Invalidly(http.StatusUnsupportedMediaType,
		"the body is %s: send JSON, with the header Content-Type: application/json", brief(strings.Join(values, ", ")))
}
