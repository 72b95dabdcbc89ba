package v1

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strings"

	"github.com/leasehold/leasehold"
	"github.com/leasehold/leasehold/internal/resp/pipeline"
)

// A Version says which program a server runs.
type Version struct {
	Version string `json:"version"`
	Commit  string `json:"commit"`
	Go      string `json:"go"`
}

// Version returns which program the server runs.
func (c *Caller) Version(ctx context.Context) (Version, error) {
	return send[Version](ctx, c, request{method: "GET", path: "/version", global: true})
}

// Connect returns once the server has answered: by RESP with the greeting of a connection that later requests use, by
// HTTP with its version.
func (c *Caller) Connect(ctx context.Context) error {
	if w := c.one().endpoint.wire; w != nil {
		token, err := c.proof.show(ctx, w.url)
		if err != nil {
			return err
		}
		_, err = w.get(ctx, token, pipeline.Commands)
		if errors.Is(err, ErrUnauthenticated) {
			return nil // the first request says so, unless there is another token by then
		}
		if err != errHTTP {
			return err
		}
	}
	_, err := c.Version(ctx)
	return err
}

// ReadyWarning begins a line of Ready that is no check, but something to look at.
const ReadyWarning = "warning: "

// Ready asks whether the server is ready for requests, and returns its checks, a line each. If
// the server answers that it is not ready, the error is a leasehold.ErrUnavailable that says
// why, and the checks come with it. What a server that is ready warns of is a line too, which begins
// with ReadyWarning.
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
	// Warnings are for those who may monitor the cluster. A credential that cannot be shown changes nothing else.
	_, _ = c.proof.authorize(hr)
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
		return nil, notLeasehold(server, r.method, response.StatusCode)
	}
	checks, failed := readyLines(string(body))
	if len(failed) > 0 || response.StatusCode != http.StatusOK {
		message := "the server at " + server + " is not ready: " + strings.Join(failed, "; ")
		return checks, &leasehold.Error{Code: leasehold.Unavailable, Message: message}
	}
	return checks, nil
}

// readyLines returns the checks of a report, and those that failed.
func readyLines(report string) (checks, failed []string) {
	for line := range strings.Lines(report) {
		line = strings.TrimSpace(line)
		if passed, ok := strings.CutPrefix(line, "[+]"); ok {
			checks = append(checks, passed)
		}
		if not, ok := strings.CutPrefix(line, "[-]"); ok {
			checks, failed = append(checks, not), append(failed, not)
		}
		if warning, ok := strings.CutPrefix(line, "[!]"); ok {
			checks = append(checks, ReadyWarning+warning)
		}
	}
	return checks, failed
}
