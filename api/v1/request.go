package v1

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"net/url"
	"time"

	"github.com/leasehold/leasehold/internal/redial"
)

// A request is what becomes one HTTP request at each server that it is sent to. It is built again
// for each attempt, since a body can be read only once and each server has its own address; a
// stream cannot be built again, so it is sent once.
type request struct {
	command    command // says the rest, but for method, wait and options, in either wire's words; nil: HTTP alone
	method     string
	path       string // escaped
	query      url.Values
	body       any
	value      *[]byte // instead of body: bytes, as they are
	stream     io.Reader
	header     http.Header
	wait       time.Duration
	options    []Option
	global     bool // it concerns no namespace
	idempotent bool // sent twice, it is carried out once
}

// build returns the HTTP request for the caller's one server.
func (c *Caller) build(ctx context.Context, r request) (*http.Request, error) {
	var body io.Reader
	if r.body != nil {
		b, err := encode(r.body)
		if err != nil {
			return nil, err
		}
		body = bytes.NewReader(b)
	}
	if r.value != nil {
		body = bytes.NewReader(*r.value)
	}
	if r.stream != nil {
		body = r.stream
	}
	hr, err := http.NewRequestWithContext(ctx, r.method, c.address(r), body)
	if err != nil {
		return nil, err
	}
	switch {
	case r.value != nil || r.stream != nil:
		hr.Header.Set("Content-Type", "application/octet-stream")
	case body != nil:
		hr.Header.Set("Content-Type", "application/json")
	}
	hr.Header.Set("User-Agent", redial.Agent())
	// The options come last: they are the caller's own.
	for name, values := range r.header {
		hr.Header[name] = values
	}
	for _, option := range r.options {
		option(hr.Header)
	}
	return hr, nil
}

// address returns the URL of a request.
func (c *Caller) address(r request) string {
	address := c.endpoint.address + r.path
	switch {
	case len(r.query) == 0 && (c.namespace == "" || r.global):
		return address
	case len(r.query) == 0:
		return address + "?namespace=" + url.QueryEscape(c.namespace)
	case c.namespace != "" && !r.global:
		r.query.Set("namespace", c.namespace)
	}
	return address + "?" + r.query.Encode()
}
