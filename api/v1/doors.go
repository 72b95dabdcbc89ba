package v1

import (
	"context"
	"net/http"
	"net/url"
)

// A DoorRequest is a request to another door of the same server, in its protocol.
type DoorRequest struct {
	Method string
	Path   string // escaped
	Query  url.Values
	Header http.Header
	Body   []byte // nil: none
}

// Door sends a request to another door, and returns the answer if it is a 200. The caller must
// close its body. Only ctx limits the time, because answers may be large.
func (c *Caller) Door(ctx context.Context, r DoorRequest) (*http.Response, error) {
	send := request{
		method: r.Method, path: r.Path, query: r.Query,
		header: http.Header{"Accept": {"application/json, application/problem+json"}},
	}
	if r.Body != nil {
		send.value = &r.Body
	}
	for name, values := range r.Header {
		send.header[name] = values
	}
	return c.open(ctx, send)
}
