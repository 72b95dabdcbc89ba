package v1

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptrace"
	"net/url"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/leasehold/leasehold"
	"github.com/leasehold/leasehold/internal/limit"
)

// A request that fails is sorted here into one of three: it never left this machine (Unavailable),
// it left and nobody knows (Undecided), or a server answered. Whether it may be sent again, and to
// whom, depends on which of them it is.

func send[T any](ctx context.Context, c *Caller, r request) (answer T, err error) {
	_, err = c.do(ctx, r, &answer)
	return answer, err
}

// Send asks for an operation whose types are in a package of their own, such as pools. The path is escaped, and the
// body may be nil.
func (c *Caller) Send(ctx context.Context, method, path string, query url.Values, body, answer any,
	options ...Option) error {
	r := request{method: method, path: path, query: query, body: body, options: options,
		global: strings.HasPrefix(path, "/v1/cluster/")}
	_, err := c.do(ctx, r, answer)
	return err
}

// do sends a request and reads its answer.
func (c *Caller) do(ctx context.Context, r request, answer any) (header http.Header, err error) {
	if c.servers == nil {
		ctx, cancel := limit.Within(ctx, c.limit(r))
		defer cancel()
		return c.doHere(ctx, r, answer)
	}
	err = c.anywhere(ctx, c.limit(r), r, func(ctx context.Context, server *Caller) error {
		header, err = server.doHere(ctx, r, answer)
		return err
	})
	return header, err
}

// open sends a request and returns the answer if it is a yes. It has no time limit: the
// answer may be a watch.
func (c *Caller) open(ctx context.Context, r request) (response *http.Response, err error) {
	err = c.anywhere(ctx, 0, r, func(ctx context.Context, server *Caller) error {
		response, err = server.openHere(ctx, r)
		return err
	})
	return response, err
}

// readLimit is how long one of several servers may take for what any of them could say. A read is
// safe to repeat, so it need not wait for the whole timeout before another server is asked.
const readLimit = 5 * time.Second

// limit returns how long one server may take for a request; 0: as long as it needs.
func (c *Caller) limit(r request) time.Duration {
	switch {
	case r.stream != nil:
		return 0 // the reader of the stream decides how long it takes
	case c.servers != nil && len(c.servers.all) > 1 && r.method == http.MethodGet && r.wait == 0:
		return min(c.timeout, readLimit)
	}
	return c.timeout + r.wait
}

// anywhere sends a request to the servers that it may go to.
func (c *Caller) anywhere(ctx context.Context, within time.Duration, r request, send Send) error {
	switch {
	case c.servers == nil:
		ctx, cancel := limit.Within(ctx, within)
		defer cancel()
		return send(ctx, c)
	case r.stream != nil:
		return c.servers.Once(ctx, within, send) // some of it may have been read: no other can have it
	}
	// Options carry an idempotency key, which makes any request safe to repeat.
	return c.servers.Each(ctx, Attempts{within, r.idempotent || len(r.options) > 0}, send)
}

// doHere asks this one server and reads its answer.
func (c *Caller) doHere(ctx context.Context, r request, answer any) (http.Header, error) {
	if r.command != nil {
		if c.endpoint.wire != nil {
			if err := c.overRESP(ctx, r, answer); err != errHTTP {
				return nil, err
			}
		}
		inHTTP := r // a copy, since it is allocated
		r.command.http(&inHTTP)
		r = inHTTP
	}
	response, err := c.openHere(ctx, r)
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	if err := readAnswer(response, answer); err != nil {
		return nil, unanswered(c.endpoint.address, r.method, err)
	}
	return response.Header, nil
}

// openHere asks this one server. A token that it refuses may have ended just now: if there is another, the request,
// of which nothing was done, is sent once more.
func (c *Caller) openHere(ctx context.Context, r request) (*http.Response, error) {
	response, token, err := c.attempt(ctx, r)
	if r.stream != nil {
		return response, err
	}
	if _, is := c.another(ctx, token, err); is {
		response, _, err = c.attempt(ctx, r)
	}
	return response, err
}

// another returns the token to try next, if a server refused one and there is another.
func (c *Caller) another(ctx context.Context, token string, err error) (string, bool) {
	if token == "" || !errors.Is(err, ErrUnauthenticated) {
		return "", false
	}
	next, failed := c.proof.token(context.WithValue(ctx, rejectedKey{}, token))
	return next, failed == nil && next != token && next != "" && plainToken(next)
}

// attempt sends a request once. It also returns the token that was sent.
func (c *Caller) attempt(ctx context.Context, r request) (*http.Response, string, error) {
	var sent atomic.Bool
	ctx = httptrace.WithClientTrace(ctx, noteSent(&sent, r))
	hr, err := c.build(ctx, r)
	if err != nil {
		return nil, "", &leasehold.Error{Code: leasehold.Invalid, Message: err.Error()}
	}
	token, err := c.proof.authorize(hr)
	if err != nil {
		return nil, "", err
	}
	response, err := c.deliver(hr, &sent)
	return response, token, err
}

// deliver sends a request that is complete.
func (c *Caller) deliver(hr *http.Request, sent *atomic.Bool) (*http.Response, error) {
	response, err := c.endpoint.client.Do(hr)
	if err == nil {
		c.endpoint.noteLevel(response)
	}
	switch {
	case err != nil && sent.Load():
		return nil, unanswered(c.endpoint.address, hr.Method, err)
	case err != nil:
		return nil, unreached(c.endpoint.address, err)
	case response.StatusCode == http.StatusOK:
		response.Request = hr
		return response, nil
	}
	defer response.Body.Close()
	return nil, c.refusal(c.endpoint.address, hr.Method, response)
}

// noteLevel remembers the feature level that an answer names.
func (e *endpoint) noteLevel(response *http.Response) {
	if level, err := strconv.Atoi(response.Header.Get(LevelHeader)); err == nil {
		e.level.Store(int64(level))
	}
}

// noteSent notes whether any of a request may have left this machine. The transport itself starts
// again on another connection if nothing was written, or if the request has an idempotency key; a
// new connection then makes it unsent again, except with a key, when the first attempt may have
// arrived.
func noteSent(sent *atomic.Bool, r request) *httptrace.ClientTrace {
	trace := &httptrace.ClientTrace{WroteHeaders: func() { sent.Store(true) }}
	if len(r.options) == 0 {
		trace.GetConn = func(string) { sent.Store(false) }
	}
	return trace
}
