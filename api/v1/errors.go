package v1

import (
	"cmp"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net"
	"net/http"
	"net/url"
	"strings"

	"github.com/leasehold/leasehold"
)

// The errors here are read by people at a terminal, so each says what failed, where, and what to do
// next; and by programs, which look only at the code.

// A failure is a *leasehold.Error with its cause, an error of the network or of several servers.
type failure struct {
	err   *leasehold.Error
	cause error
}

func (f *failure) Error() string   { return f.err.Error() }
func (f *failure) Unwrap() []error { return []error{f.err, f.cause} }

// askWhether begins the part of a message that is written once, however many servers there are.
const askWhether = ": is it running?"

// unreached returns the error of a request that no server received.
func unreached(server string, cause error) error {
	if err := certificateError(server, cause); err != nil {
		return err
	}
	message := fmt.Sprintf("cannot reach the server at %s: %v%s start one with `leasehold serve`, "+
		"or set LEASEHOLD_SERVER", server, bare(cause), askWhether)
	return &failure{&leasehold.Error{Code: leasehold.Unavailable, Message: message}, cause}
}

// unanswered returns the error of a request that was sent and not answered. A request that only
// reads changed nothing, so it is Unavailable and not Undecided.
func unanswered(server, method string, cause error) error {
	if err := certificateError(server, cause); err != nil {
		return err
	}
	if method == http.MethodGet {
		message := fmt.Sprintf("the server at %s did not answer: %v: try again", server, bare(cause))
		return &failure{&leasehold.Error{Code: leasehold.Unavailable, Message: message}, cause}
	}
	message := fmt.Sprintf("the server at %s did not answer: %v: "+
		"the request may have been carried out; ask again with the same id", server, bare(cause))
	return &failure{&leasehold.Error{Code: leasehold.Undecided, Message: message}, cause}
}

// certificateError returns the error of a connection that failed because of a certificate, or because
// the server has none, before any request was sent; nil if it failed for another reason.
func certificateError(server string, cause error) error {
	if errors.Is(cause, http.ErrSchemeMismatch) {
		message := fmt.Sprintf("the server at %s does not use TLS: write it as http%s", server,
			strings.TrimPrefix(server, "https"))
		return &failure{&leasehold.Error{Code: leasehold.Unavailable, Message: message}, cause}
	}
	var theirs *tls.CertificateVerificationError
	if errors.As(cause, &theirs) {
		message := fmt.Sprintf("the server at %s has a certificate that is not trusted: %v: %s",
			server, theirs.Err, trustAdvice(theirs.Err))
		return &failure{&leasehold.Error{Code: leasehold.Unavailable, Message: message}, cause}
	}
	var ours *net.OpError
	if errors.As(cause, &ours) && ours.Op == "remote error" && strings.Contains(ours.Err.Error(), "certificate") {
		message := fmt.Sprintf("the server at %s requires a client certificate that it trusts: %v: "+
			"give one with --cert and --key", server, ours.Err)
		return &failure{&leasehold.Error{Code: leasehold.Denied, Message: message}, cause}
	}
	if strings.Contains(cause.Error(), "http2: client conn could not be established") {
		// With HTTP/2, a refused client certificate looks like this.
		message := fmt.Sprintf("the server at %s closed the new connection: "+
			"it is stopping, or it requires a client certificate: give one with --cert and --key", server)
		return &failure{&leasehold.Error{Code: leasehold.Unavailable, Message: message}, cause}
	}
	return nil
}

// trustAdvice returns what to do about a server's certificate.
func trustAdvice(err error) string {
	var invalid x509.CertificateInvalidError
	var host x509.HostnameError
	switch {
	case errors.As(err, &invalid) && invalid.Reason == x509.Expired:
		return "renew it where the server runs (leasehold cert server), or set this machine's clock right"
	case errors.As(err, &host):
		return "use a name that the certificate has, or make a certificate with this name (leasehold cert server)"
	}
	return "name the authority that made it with --ca or LEASEHOLD_CA"
}

// bare removes what net/http writes around an error.
func bare(err error) error {
	var u *url.Error
	if errors.As(err, &u) {
		return u.Err
	}
	return err
}

// refusal returns the error that an answer other than 200 means.
func (c *Caller) refusal(server, method string, response *http.Response) error {
	body, err := io.ReadAll(io.LimitReader(response.Body, 1<<20))
	kind, _, _ := mime.ParseMediaType(response.Header.Get("Content-Type"))
	var p Problem
	if err == nil && kind == "application/problem+json" && json.Unmarshal(body, &p) == nil {
		if code := leasehold.CodeOf(p.Code); code != 0 {
			return unproven(p.err(code, cmp.Or(c.namespace, leasehold.DefaultNamespace)), response.StatusCode)
		}
	}
	// Go's server answers so in plain text before any door sees the request.
	if strings.Contains(string(body), "HTTP request to an HTTPS server") {
		host := strings.TrimPrefix(server, "http://")
		message := fmt.Sprintf("the server at %s requires TLS: write it as https://%s", server, host)
		return &leasehold.Error{Code: leasehold.Refused, Message: message}
	}
	return unproven(notLeasehold(server, method, response.StatusCode), response.StatusCode)
}

// unproven marks the error of a request whose sender the server does not know.
func unproven(err *leasehold.Error, status int) error {
	if status != http.StatusUnauthorized {
		return err
	}
	return &failure{err, ErrUnauthenticated}
}

// notLeasehold returns the error of an answer that no Leasehold server gives.
func notLeasehold(server, method string, status int) *leasehold.Error {
	code := leasehold.Refused
	// A proxy that could not reach the server (502, 503), or that refused by itself (429), has not
	// passed the request on. After any other 5xx nobody knows.
	switch {
	case status == http.StatusBadGateway, status == http.StatusServiceUnavailable, status == http.StatusTooManyRequests:
		code = leasehold.Unavailable
	case status >= 500 && method == http.MethodGet:
		code = leasehold.Unavailable
	case status >= 500:
		code = leasehold.Undecided
	case status == http.StatusUnauthorized || status == http.StatusForbidden:
		code = leasehold.Denied
	}
	message := fmt.Sprintf("%s is not a Leasehold server, or a proxy before one answered: %d %s; check the address",
		server, status, http.StatusText(status))
	return &leasehold.Error{Code: code, Message: message}
}
