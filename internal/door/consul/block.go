package consul

import (
	"context"
	"errors"
	"math/rand/v2"
	"net/http"
	"strconv"
	"time"

	"github.com/leasehold/leasehold"
	"github.com/leasehold/leasehold/internal/door"
	"github.com/leasehold/leasehold/internal/engine"
)

// How long a request waits for a change: what it asks for within the largest, and up to a sixteenth more, so that not
// all come back together.
const (
	defaultStay = 5 * time.Minute
	maxStay     = 10 * time.Minute
	jitter      = 16
)

// A result is what a request shows of the state.
type result struct {
	index uint64 // when it was so

	// exact says that the index is the one that changed it last. Then a larger one than the client has seen is news,
	// whatever history still knows.
	exact   bool
	missing bool // there is nothing to show
	value   any
	send    func() error // instead of value
}

// show answers with what is read. If the client has seen an index, it waits for something that came after it: something
// that the filter wants.
func (c *call) show(filter engine.Filter, read func() (result, error)) error {
	seen, stay, err := c.readWait()
	if err != nil {
		return err
	}
	r, err := read()
	if err != nil {
		return err
	}
	if seen != 0 && !(r.exact && r.index > seen) {
		if r, err = c.wait(seen, stay, filter, read); err != nil {
			return err
		}
	}
	return c.sendResult(r)
}

// showList is show for what has to be read as a whole to be shown: a request that waits reads it after that, and asks
// before it only whether it may.
func (c *call) showList(filter engine.Filter, may func() error, read func() (result, error)) error {
	seen, stay, err := c.readWait()
	if err != nil {
		return err
	}
	var r result
	if seen == 0 {
		r, err = read()
	} else if err = may(); err == nil {
		r, err = c.wait(seen, stay, filter, read)
	}
	if err != nil {
		return err
	}
	return c.sendResult(r)
}

func (c *call) sendResult(r result) error {
	c.setMeta(r.index)
	c.door.showed(revisionOf(r.index))
	switch {
	case r.missing:
		c.sendBytes(http.StatusNotFound, nil)
		return nil
	case r.send != nil:
		return r.send()
	}
	return c.send(r.value)
}

// readWait reads which index the client has seen, 0 if it does not wait, and how long it waits.
func (c *call) readWait() (seen uint64, stay time.Duration, err error) {
	if text := c.query.Get("wait"); text != "" {
		if stay, err = time.ParseDuration(text); err != nil {
			return 0, 0, badRequest("Invalid wait time")
		}
	}
	if text := c.query.Get("index"); text != "" {
		if seen, err = strconv.ParseUint(text, 10, 64); err != nil {
			return 0, 0, badRequest("Invalid index")
		}
	}
	if stay <= 0 {
		stay = defaultStay
	}
	return seen, min(stay, maxStay), nil
}

// stay lets a request wait, until leave is called. A body that it announced is taken first: net/http waits for it
// before it answers, and nothing limits that time any more.
func (c *call) stay() (leave func(), err error) {
	if _, err := c.readValue(); err != nil {
		return nil, err
	}
	leave, err = c.door.backend.StayAs(c.ctx, c.door.backend.Metrics().Watches)
	if err == nil {
		c.waited = true
		door.Unhurried(c.w)
	}
	return leave, err
}

// wait waits for something that came after an index, and returns what there is then. If nothing came, the index stays
// the one that the client has seen: it is told apart from news by that.
//
// The watch goes on where the client was, on whichever server, so that nothing is missed between two requests. If
// history no longer knows what followed, what is there is shown at once, with an index from which it does.
func (c *call) wait(
	seen uint64, stay time.Duration, filter engine.Filter, read func() (result, error),
) (result, error) {
	backend := c.door.backend
	leave, err := c.stay()
	if err != nil {
		return result{}, err
	}
	defer leave()
	ctx, cancel := backend.Staying(c.ctx, c.proof)
	defer cancel()
	ctx, stop := context.WithTimeout(ctx, stay+rand.N(stay/jitter+1))
	defer stop()
	filter.Namespace = c.namespace()
	err = c.follow(ctx, filter, after(seen))
	var gone *engine.GoneError
	if errors.As(err, &gone) {
		return c.waitAnew(ctx, seen, filter, read)
	}
	return c.woken(ctx, seen, err, read)
}

// How long a request that waits stays at a server that hears of no leader, as at Consul's servers, and how often it
// looks whether there is one again.
const (
	electionTime  = 7 * time.Second
	electionPause = 250 * time.Millisecond
)

// follow waits for something that a filter wants, after a position. Where access is on, a watch ends while there is no
// leader, since nobody knows who may watch. An election is waited out, in which nothing is shown: clients take an error
// for the loss of their lock.
func (c *call) follow(ctx context.Context, filter engine.Filter, from engine.Position) error {
	backend := c.door.backend
	var since time.Time // there is no leader; zero: there is one
	// The request has read already, so that the server it asks has all that was there when it came.
	for stale := true; ; stale = false {
		began, err := c.followOnce(ctx, stale, filter, from)
		if !errors.Is(err, leasehold.ErrUnavailable) {
			return err
		}
		if began || since.IsZero() {
			since = time.Now()
		}
		if time.Since(since) >= electionTime || !backend.Pause(ctx, electionPause+rand.N(electionPause)) {
			return err
		}
	}
}

// followOnce is follow while there is a leader. It reports whether there was one when it began.
func (c *call) followOnce(
	ctx context.Context, stale bool, filter engine.Filter, from engine.Position,
) (began bool, err error) {
	ctx, end := context.WithCancel(ctx) // a watch counts until then
	defer end()
	if stale {
		ctx = engine.WithStale(ctx)
	}
	watcher, err := engine.Watch(ctx, c.door.backend.Engine(), filter, &from)
	if err != nil {
		return false, err
	}
	_, err = watcher.Next(ctx)
	return true, err
}

// waitAnew waits where history no longer knows what followed an index. What tells by its own index whether it has
// changed is watched from now on; else there may be news.
func (c *call) waitAnew(
	ctx context.Context, seen uint64, filter engine.Filter, read func() (result, error),
) (result, error) {
	watcher, err := engine.Watch(ctx, c.door.backend.Engine(), filter, nil)
	if err != nil {
		return c.woken(ctx, seen, err, read)
	}
	r, err := read() // only now, so that nothing is missed in between
	if err != nil || !r.exact || r.index != seen {
		return r, err
	}
	_, err = watcher.Next(ctx)
	return c.woken(ctx, seen, err, read)
}

// woken reads what there is after a wait, which ended with news, or with an error. A wait that ends because its time is
// over, or because the server drains, is answered like one without news: clients take an error for the loss of their
// lock.
func (c *call) woken(ctx context.Context, seen uint64, err error, read func() (result, error)) (result, error) {
	backend := c.door.backend
	var gone *engine.GoneError
	switch {
	case err == nil:
		// The news is known to this server, and so is all that was there when the request came.
		c.ctx = engine.WithStale(c.ctx)
		return read()
	case errors.As(err, &gone):
		return read()
	case c.r.Context().Err() != nil:
		return result{}, engine.Unavailable("the client left while it waited")
	}
	if ended := backend.Ended(ctx, c.proof, err); ended != nil {
		return result{}, ended
	}
	if ctx.Err() == nil && backend.Stopping().Err() == nil {
		return result{}, err
	}
	r, err := read()
	if !r.exact {
		r.index = max(1, seen)
	}
	return r, err
}
