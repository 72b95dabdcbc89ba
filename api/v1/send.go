package v1

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptrace"
	"sync/atomic"
	"time"

	"github.com/leasehold/leasehold"
)

func send[T any](ctx context.Context, c *Caller, r request) (answer T, err error) {
	_, err = c.do(ctx, r, &answer)
	return answer, err
}

// do sends a request and reads its answer.
func (c *Caller) do(ctx context.Context, r request, answer any) (header http.Header, err error) {
	err = c.somewhere(ctx, r, func(server string) error {
		ctx := ctx
		if r.stream == nil { // how long a stream takes is for its reader to say
			limited, cancel := context.WithTimeout(ctx, c.within(r))
			defer cancel()
			ctx = limited
		}
		header, err = c.doAt(ctx, server, r, answer)
		return err
	})
	return header, err
}

// enough is how long one of several servers may take for what any of them could say.
const enough = 5 * time.Second

// within is how long one server may take for a request.
func (c *Caller) within(r request) time.Duration {
	if len(c.servers) > 1 && r.method == http.MethodGet && r.wait == 0 {
		return min(c.timeout, enough)
	}
	return c.timeout + r.wait
}

func (c *Caller) doAt(ctx context.Context, server string, r request, answer any) (http.Header, error) {
	response, err := c.openAt(ctx, server, r)
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	body, err := io.ReadAll(io.LimitReader(response.Body, maxAnswer))
	if err == nil {
		err = json.Unmarshal(body, answer)
	}
	if err != nil {
		return nil, unanswered(server, r.method, err)
	}
	return response.Header, nil
}

// maxAnswer is more than the largest page can have.
const maxAnswer = 64 << 20

// open sends a request and returns the answer if it is a yes.
func (c *Caller) open(ctx context.Context, r request) (response *http.Response, err error) {
	err = c.somewhere(ctx, r, func(server string) error {
		response, err = c.openAt(ctx, server, r)
		return err
	})
	return response, err
}

// openAt asks one server.
func (c *Caller) openAt(ctx context.Context, server string, r request) (*http.Response, error) {
	var sent atomic.Bool
	ctx = httptrace.WithClientTrace(ctx, noteSent(&sent, r))
	hr, err := c.build(ctx, server, r)
	if err != nil {
		return nil, &leasehold.Error{Code: leasehold.Invalid, Message: err.Error()}
	}
	response, err := c.client.Do(hr)
	if err == nil {
		c.noteLevel(response)
	}
	switch {
	case err != nil && sent.Load():
		return nil, unanswered(server, r.method, err)
	case err != nil:
		return nil, unreached(server, err)
	case response.StatusCode == http.StatusOK:
		response.Request = hr
		return response, nil
	}
	defer response.Body.Close()
	return nil, c.refusal(server, r.method, response)
}

// noteSent notes whether any of a request may have left. The transport may begin
// anew on another connection when nothing of it had, or when it has a name.
func noteSent(sent *atomic.Bool, r request) *httptrace.ClientTrace {
	trace := &httptrace.ClientTrace{WroteHeaders: func() { sent.Store(true) }}
	if len(r.options) == 0 {
		trace.GetConn = func(string) { sent.Store(false) }
	}
	return trace
}
