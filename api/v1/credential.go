package v1

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/netip"
	"net/url"
	"strings"

	"github.com/leasehold/leasehold"
	"github.com/leasehold/leasehold/internal/tokenfile"
)

// A TokenFunc returns the token that a request carries: one of Leasehold's own, or a JWT. It is called for each
// request, so it keeps what is expensive to get, and from any goroutine. An empty token sends the request without one.
//
// When a server refused a token, the function is called once more, and Rejected returns that token: a function that
// keeps one has to get another.
type TokenFunc func(ctx context.Context) (string, error)

// ErrUnauthenticated is the cause of an error because the server does not know who asks: there was no token, or it
// was wrong, revoked or expired.
var ErrUnauthenticated = errors.New("the server does not know who asks")

type rejectedKey struct{}

// Rejected returns the token that a server has just refused; empty if none was.
func Rejected(ctx context.Context) string {
	token, _ := ctx.Value(rejectedKey{}).(string)
	return token
}

// credentials are what a caller proves with who it is.
type credentials struct {
	token    TokenFunc
	insecure bool // also without TLS, to another machine
}

// authorize adds the token to a request, and returns it.
func (c *credentials) authorize(hr *http.Request) (string, error) {
	token, err := c.show(hr.Context(), hr.URL)
	if err == nil && token != "" {
		hr.Header.Set("Authorization", "Bearer "+token)
	}
	return token, err
}

// show returns the token for a server; empty if there is none.
func (c *credentials) show(ctx context.Context, server *url.URL) (string, error) {
	if c.token == nil {
		return "", nil
	}
	token, err := c.token(ctx)
	var coded *leasehold.Error
	switch {
	case err != nil && !errors.As(err, &coded):
		// Where tokens come from may be back soon: what renews leases tries again.
		return "", &failure{&leasehold.Error{Code: leasehold.Unavailable,
			Message: fmt.Sprintf("there is no token to prove who asks: %v", err)}, err}
	case err != nil:
		return "", err
	case token == "":
		return "", nil
	case !c.insecure && !private(server):
		return "", &leasehold.Error{Code: leasehold.Refused, Message: fmt.Sprintf("the token is not sent to %s://%s "+
			"without TLS, because others on the way could read it: write the server as https://%s, or say --insecure",
			server.Scheme, server.Host, server.Host)}
	case !plainToken(token):
		return "", &leasehold.Error{Code: leasehold.Invalid, Message: "the token has characters that no token has: " +
			"check the file or variable that it comes from"}
	}
	return token, nil
}

// private reports whether nobody on the way can read what is sent to a URL.
func private(u *url.URL) bool {
	if u.Scheme == "https" || u.Hostname() == "localhost" {
		return true
	}
	ip, err := netip.ParseAddr(u.Hostname())
	return err == nil && ip.Unmap().IsLoopback()
}

// plainToken reports whether a token can stand in a header.
func plainToken(token string) bool {
	return strings.IndexFunc(token, func(r rune) bool { return r <= ' ' || r > '~' }) < 0
}

// TokenFile returns a function that reads a token from a file, and again when the file changed.
func TokenFile(path string) TokenFunc {
	f := tokenfile.New(path)
	return func(ctx context.Context) (string, error) { return f.Read(Rejected(ctx)) }
}

// EnvironToken returns a function for the token that the environment names, and nil if it names none:
// LEASEHOLD_TOKEN, or the file that LEASEHOLD_TOKEN_FILE names. Below "leasehold run", LEASEHOLD_TOKEN is the
// fencing token of the lease, a number, and LEASEHOLD_ACCESS_TOKEN has what it was before.
func EnvironToken(getenv func(string) string) TokenFunc {
	if name := TokenVariable(getenv); name != "" {
		token := strings.TrimSpace(getenv(name))
		return func(context.Context) (string, error) { return token, nil }
	}
	if path := getenv("LEASEHOLD_TOKEN_FILE"); path != "" {
		return TokenFile(path)
	}
	return nil
}

// TokenVariable returns the name of the variable that has the token which EnvironToken sends, and an empty one if none
// has.
func TokenVariable(getenv func(string) string) string {
	for _, name := range []string{"LEASEHOLD_TOKEN", "LEASEHOLD_ACCESS_TOKEN"} {
		if token := strings.TrimSpace(getenv(name)); token != "" && !FencingToken(token) {
			return name
		}
	}
	return ""
}

// FencingToken reports whether a text is the token of a lease, or those of several on a line each, and not one that
// proves who asks.
func FencingToken(text string) bool {
	return text != "" && strings.Trim(text, "0123456789\n") == ""
}
