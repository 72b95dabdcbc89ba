package v1

import (
	"context"
	"errors"
	"net/http"
	"strconv"
	"sync"
	"sync/atomic"

	"github.com/leasehold/leasehold"
	"github.com/leasehold/leasehold/internal/resp"
	"github.com/leasehold/leasehold/internal/resp/pipeline"
)

// An exchange is one command and its answer over RESP.
type exchange struct {
	encoder
	decoder
	answer any
}

var exchanges = sync.Pool{New: func() any { return new(exchange) }}

// tags counts the waits, whose pushes have to find their way back.
var tags atomic.Uint64

// overRESP makes one attempt at this server over RESP. errHTTP means that HTTP has to be used: nothing was sent.
func (c *Caller) overRESP(ctx context.Context, r request, answer any) error {
	w := c.endpoint.wire
	token, err := c.proof.show(ctx, w.url)
	if err != nil {
		return err
	}
	x := exchanges.Get().(*exchange)
	defer exchanges.Put(x)
	command, err := x.write(r)
	if err != nil {
		return err
	}
	x.answer = answer
	err = w.do(ctx, r, token, pipeline.Request{Command: command, Answer: x, Tag: x.Tag})
	if next, is := c.another(ctx, token, err); is {
		err = w.do(ctx, r, next, pipeline.Request{Command: command, Answer: x, Tag: x.Tag})
	}
	x.answer = nil
	return err
}

// write encodes a request.
func (x *exchange) write(r request) ([]byte, error) {
	x.Key, x.Tag = "", ""
	if len(r.options) > 0 && !x.options(r.options) {
		return nil, errHTTP
	}
	if r.wait > 0 {
		x.Tag = strconv.FormatUint(tags.Add(1), 36)
	}
	if !r.command.resp(&x.encoder) {
		return nil, errHTTP
	}
	command, err := x.End()
	if err != nil {
		return nil, &leasehold.Error{Code: leasehold.Invalid, Message: err.Error()}
	}
	return command, nil
}

// options reports whether it knows all that options add to a request. A number within a session is left to HTTP.
func (x *exchange) options(options []Option) bool {
	header := http.Header{}
	for _, option := range options {
		option(header)
	}
	x.Key = header.Get(KeyHeader)
	header.Del(KeyHeader)
	return len(header) == 0
}

// do sends a command. A connection that ends before the command was sent is replaced: nothing happened.
func (w *wire) do(ctx context.Context, r request, token string, command pipeline.Request) error {
	var err error
	for range 3 {
		conn, failed := w.get(ctx, token, r.command.lane())
		if failed != nil {
			return failed
		}
		if err = conn.Do(ctx, command); err == nil {
			return nil
		}
		var lost *pipeline.LostError // here, since it is allocated
		if !errors.As(err, &lost) || lost.Sent || ctx.Err() != nil {
			return w.outcome(r, err)
		}
	}
	return unreached(w.endpoint.address, err)
}

// outcome returns the error of a command.
func (w *wire) outcome(r request, err error) error {
	var refused *resp.Failure
	var lost *pipeline.LostError
	switch {
	case errors.As(err, &refused):
		return w.refusal(refused)
	case errors.As(err, &lost) && !lost.Sent:
		return unreached(w.endpoint.address, lost.Err)
	case lost != nil:
		err = lost.Err
	}
	return unanswered(w.endpoint.address, r.method, err)
}
