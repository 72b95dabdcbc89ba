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

// A failure is an error of the network in our own words, with what lies behind it.
type failure struct {
	err   *leasehold.Error
	cause error
}

func (f *failure) Error() string   { return f.err.Error() }
func (f *failure) Unwrap() []error { return []error{f.err, f.cause} }

// askWhether begins the part of a message that is said once, however many servers there are.
const askWhether = ": is it running?"

// unreached is the error of a request that nobody got.
func unreached(server string, cause error) error {
	if err := badPapers(server, cause); err != nil {
		return err
	}
	message := fmt.Sprintf("cannot reach the server at %s: %v%s start one with `leasehold serve`, or set LEASEHOLD_SERVER", server, bare(cause), askWhether)
	return &failure{&leasehold.Error{Code: leasehold.Unavailable, Message: message}, cause}
}

// unanswered is the error of a request that was sent. What only reads did nothing,
// whatever became of it.
func unanswered(server, method string, cause error) error {
	if err := badPapers(server, cause); err != nil {
		return err
	}
	if method == http.MethodGet {
		return &failure{&leasehold.Error{Code: leasehold.Unavailable, Message: fmt.Sprintf("the server at %s gave no answer: %v: try again", server, bare(cause))}, cause}
	}
	message := fmt.Sprintf("the server at %s gave no answer: %v: it may have done what was asked; ask again with the same id", server, bare(cause))
	return &failure{&leasehold.Error{Code: leasehold.Undecided, Message: message}, cause}
}

// badPapers is the error of a connection that failed for its certificates, on which nothing
// was asked; nil if it is another one.
func badPapers(server string, cause error) error {
	var theirs *tls.CertificateVerificationError
	if errors.As(cause, &theirs) {
		message := fmt.Sprintf("the server at %s has a certificate that is not trusted: %v: %s", server, theirs.Err, trustAdvice(theirs.Err))
		return &failure{&leasehold.Error{Code: leasehold.Unavailable, Message: message}, cause}
	}
	var ours *net.OpError
	if errors.As(cause, &ours) && ours.Op == "remote error" && strings.Contains(ours.Err.Error(), "certificate") {
		message := fmt.Sprintf("the server at %s did not accept the certificate of this client, or there was none: %v: give one that it trusts with --cert and --key", server, ours.Err)
		return &failure{&leasehold.Error{Code: leasehold.Denied, Message: message}, cause}
	}
	if strings.Contains(cause.Error(), "http2: client conn could not be established") {
		// Which is all that HTTP/2 tells of the same.
		message := fmt.Sprintf("the server at %s ended the connection as it began: it stops, or it wants a certificate of this client: give one with --cert and --key", server)
		return &failure{&leasehold.Error{Code: leasehold.Unavailable, Message: message}, cause}
	}
	return nil
}

// trustAdvice says what to do about a server's certificate.
func trustAdvice(err error) string {
	var invalid x509.CertificateInvalidError
	var host x509.HostnameError
	switch {
	case errors.As(err, &invalid) && invalid.Reason == x509.Expired:
		return "renew it where the server runs (leasehold cert server), or set this machine's clock right"
	case errors.As(err, &host):
		return "ask it by a name that the certificate has, or make one that has this name (leasehold cert server)"
	}
	return "name the authority that made it with --ca or LEASEHOLD_CA"
}

// bare drops the words that net/http puts around an error.
func bare(err error) error {
	var u *url.Error
	if errors.As(err, &u) {
		return u.Err
	}
	return err
}

// refusal reads why the answer is not a yes.
func (c *Caller) refusal(server, method string, response *http.Response) error {
	body, err := io.ReadAll(io.LimitReader(response.Body, 1<<20))
	kind, _, _ := mime.ParseMediaType(response.Header.Get("Content-Type"))
	var p Problem
	if err == nil && kind == "application/problem+json" && json.Unmarshal(body, &p) == nil {
		if code := leasehold.CodeOf(p.Code); code != 0 {
			return p.err(code, cmp.Or(c.namespace, leasehold.DefaultNamespace))
		}
	}
	if strings.Contains(string(body), "HTTP request to an HTTPS server") {
		return &leasehold.Error{Code: leasehold.Refused, Message: fmt.Sprintf("the server at %s speaks TLS: write it as https://%s", server, strings.TrimPrefix(server, "http://"))}
	}
	return strange(server, method, response.StatusCode)
}

// strange is the error of an answer that no Leasehold server gives.
func strange(server, method string, status int) error {
	code := leasehold.Refused
	switch {
	case status == http.StatusBadGateway || status == http.StatusServiceUnavailable || status == http.StatusTooManyRequests:
		code = leasehold.Unavailable
	case status >= 500 && method == http.MethodGet:
		code = leasehold.Unavailable
	case status >= 500:
		code = leasehold.Undecided
	case status == http.StatusUnauthorized || status == http.StatusForbidden:
		code = leasehold.Denied
	}
	return &leasehold.Error{Code: code, Message: fmt.Sprintf(
		"what answers at %s is not a Leasehold server, or stands before one: it said %d %s; check the address", server, status, http.StatusText(status))}
}
