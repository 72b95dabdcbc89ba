package consul

import (
	"fmt"
	"net/http"

	"github.com/leasehold/leasehold"
	"github.com/leasehold/leasehold/internal/door"
)

// Clients of Consul know errors by a status and a line of text: consul/api tries again what failed with 500, and
// Patroni looks how a text begins. So what Consul has a text for is said in it, word for word.

// badRequest is the error of a request that is wrong in itself.
func badRequest(format string, args ...any) error {
	return door.Invalidly(http.StatusBadRequest, format, args...)
}

// failed is the error of a request for which Consul has a text and the status 500.
func failed(code leasehold.Code, format string, args ...any) error {
	return &door.Fault{Err: &leasehold.Error{Code: code, Message: fmt.Sprintf(format, args...)},
		Status: http.StatusInternalServerError}
}

// unparsable is the error of a number that is none. Consul takes that for a mistake of its own.
func unparsable(err error) error { return failed(leasehold.Invalid, "%v", err) }

// noSession is the error of an acquire by a session that is not there.
func noSession(id string) error { return failed(leasehold.Lost, "invalid session %q", id) }

// tooLarge is the error of a body that is too long. Terraform looks for "too large".
func tooLarge(size, most int64) error {
	if size <= most {
		return door.Invalidly(http.StatusRequestEntityTooLarge, "Request body too large. Max allowed is %d bytes.",
			most)
	}
	return door.Invalidly(http.StatusRequestEntityTooLarge, "Request body(%d bytes) too large, max size: %d bytes.",
		size, most)
}

// busy is the error of a request that others were always faster than.
func busy(key string) error {
	return failed(leasehold.Unavailable, "%s is changed by others again and again: try again", key)
}

// standing returns the status and the text for an error.
func standing(err error) (status int, text string) {
	e := door.Coded(err)
	switch e.Code {
	case leasehold.Invalid:
		status, text = http.StatusBadRequest, e.Message
	case leasehold.Denied:
		status, text = http.StatusForbidden, "Permission denied: "+e.Message
	case leasehold.Limited:
		status, text = http.StatusTooManyRequests, e.Message
	case leasehold.Unavailable:
		status, text = http.StatusInternalServerError, "No cluster leader: "+e.Message
	case leasehold.Undecided:
		status, text = http.StatusInternalServerError, "leadership lost while committing log: "+e.Message
	case leasehold.Held, leasehold.Lost, leasehold.NotFound, leasehold.Refused:
		status, text = http.StatusInternalServerError, e.Message
	}
	switch own := door.StatusOf(err, status); {
	case own == http.StatusUnauthorized && door.Anonymous(err):
		return http.StatusForbidden, "Permission denied: " + e.Message + "; set CONSUL_HTTP_TOKEN to a token of " +
			"Leasehold, or send it as X-Consul-Token"
	case own == http.StatusUnauthorized:
		return http.StatusForbidden, "ACL not found: " + e.Message
	case own != http.StatusServiceUnavailable: // which clients do not try again
		status = own
	}
	return status, text
}

// tell answers with an error.
func (c *call) tell(err error) {
	status, text := standing(err)
	if status == http.StatusTooManyRequests {
		c.w.Header().Set("Retry-After", "1")
	}
	c.sendText(status, text)
}
