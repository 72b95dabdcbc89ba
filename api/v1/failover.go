package v1

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/leasehold/leasehold"
)

// Asked is the server that requests go to now: the first, or the next one that could be
// asked when others could not.
func (c *Caller) Asked() string {
	server, _ := c.server()
	return server
}

// server is the one that is asked now, and the number by which to leave it.
func (c *Caller) server() (string, int64) {
	n := c.current.Load()
	return c.servers[int(n%int64(len(c.servers)))], n
}

// somewhere tries one server after another, each once, until one gives an answer that
// another could not better.
func (c *Caller) somewhere(ctx context.Context, r request, try func(server string) error) error {
	var failures []answered
	for range c.servers {
		server, n := c.server()
		err := try(server)
		if !r.elsewhere(err) {
			return err
		}
		// Unless somebody else left it already.
		c.current.CompareAndSwap(n, n+1)
		failures = append(failures, answered{server, err})
		if ctx.Err() != nil {
			break
		}
	}
	return allOf(failures)
}

// elsewhere tells whether another server should be asked.
func (r *request) elsewhere(err error) bool {
	switch {
	case r.stream != nil:
		return false // some of it may have been read
	case errors.Is(err, leasehold.ErrUnavailable):
		return true
	case errors.Is(err, leasehold.ErrUndecided):
		return r.again || len(r.options) > 0
	}
	return false
}

// answered is what became of a request at one server of several.
type answered struct {
	server string
	err    error
}

// allOf is what several servers said. If any of them may have done it, so it is.
func allOf(failures []answered) error {
	if len(failures) == 1 {
		return failures[0].err
	}
	code, texts := leasehold.Unavailable, []string(nil)
	for _, f := range failures {
		if errors.Is(f.err, leasehold.ErrUndecided) {
			code = leasehold.Undecided
		}
		text, _, _ := strings.Cut(f.err.Error(), askWhether)
		if !strings.Contains(text, f.server) {
			text = f.server + " says: " + text // what a server says itself does not tell which one it is
		}
		texts = append(texts, text)
	}
	message := fmt.Sprintf("%d servers were asked, in vain:\n  %s", len(failures), strings.Join(texts, "\n  "))
	return &failure{&leasehold.Error{Code: code, Message: message}, failures[len(failures)-1].err}
}
