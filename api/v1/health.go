package v1

import (
	"context"
	"io"
	"net/http"
	"strings"

	"github.com/leasehold/leasehold"
)

// A Version says what the server is.
type Version struct {
	Version string `json:"version"`
	Commit  string `json:"commit"`
	Go      string `json:"go"`
}

// Version tells what the server is.
func (c *Caller) Version(ctx context.Context) (Version, error) {
	return send[Version](ctx, c, request{method: "GET", path: "/version", global: true})
}

// Ready tells whether requests can be sent to the server, and what it looked at, a
// line each. A server that is reached and not ready is a leasehold.ErrUnavailable
// whose message says what is wrong with it; the lines come with it.
func (c *Caller) Ready(ctx context.Context) (checks []string, err error) {
	ctx, cancel := context.WithTimeout(ctx, c.timeout)
	defer cancel()
	r := request{method: http.MethodGet, path: "/readyz?verbose", global: true}
	one := c.one()
	server := one.endpoint.address
	hr, err := one.build(ctx, r)
	if err != nil {
		return nil, &leasehold.Error{Code: leasehold.Invalid, Message: err.Error()}
	}
	response, err := one.endpoint.client.Do(hr)
	if err != nil {
		return nil, unreached(server, err)
	}
	defer response.Body.Close()
	body, err := io.ReadAll(io.LimitReader(response.Body, 1<<20))
	switch {
	case err != nil:
		return nil, unanswered(server, r.method, err)
	case response.StatusCode != http.StatusOK && response.StatusCode != http.StatusServiceUnavailable:
		return nil, strange(server, r.method, response.StatusCode)
	}
	checks, failed := readyLines(string(body))
	if len(failed) > 0 || response.StatusCode != http.StatusOK {
		return checks, &leasehold.Error{Code: leasehold.Unavailable, Message: "the server at " + server + " is not ready: " + strings.Join(failed, "; ")}
	}
	return checks, nil
}

// readyLines takes the checks out of a report, and those that failed.
func readyLines(report string) (checks, failed []string) {
	for line := range strings.Lines(report) {
		line = strings.TrimSpace(line)
		if passed, ok := strings.CutPrefix(line, "[+]"); ok {
			checks = append(checks, passed)
		}
		if not, ok := strings.CutPrefix(line, "[-]"); ok {
			checks, failed = append(checks, not), append(failed, not)
		}
	}
	return checks, failed
}
