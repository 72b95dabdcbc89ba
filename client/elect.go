package client

import (
	"context"
	"errors"
	"iter"
	"time"

	"github.com/leasehold/leasehold"
	v1 "github.com/leasehold/leasehold/api/v1"
)

// A Leader is who leads an election, and what it published.
type Leader struct {
	Holder string
	Token  leasehold.Token // 0: nobody leads
	Value  []byte          // nil: it has not published it yet
	Since  time.Time
}

// Elect campaigns for a resource. When it leads it publishes value, for Leader and
// Observe to see, and calls fn; fn's context ends when it does not lead any more, or
// when ctx ends. If fn returns while it leads, it resigns, and Elect returns fn's error.
// If the lead was lost, Elect waits for fn to return and campaigns again.
//
// The value is a record of the same name as the resource. It is fenced by the lease, so
// a leader of yesterday can not overwrite it, and it ends with the leader.
func (c *Client) Elect(ctx context.Context, resource string, value []byte, fn func(ctx context.Context, h *Hold) error, options ...Option) error {
	for {
		h, err := c.Acquire(ctx, resource, options...)
		if err != nil {
			return err
		}
		again, err := c.lead(ctx, h, value, fn)
		if !again || ctx.Err() != nil {
			return err
		}
		c.log.Warn("the lead was lost", "resource", resource, "err", err)
	}
}

// lead runs fn and tells whether it is to be tried again, since the lead was lost.
func (c *Client) lead(ctx context.Context, h *Hold, value []byte, fn func(context.Context, *Hold) error) (again bool, err error) {
	defer h.releaseOrLog()
	under := h.contextUnder(ctx)
	err = h.publish(under, value)
	switch {
	case h.Err() != nil:
		return true, h.Err()
	case err != nil:
		return false, err
	}
	err = fn(under, h)
	if lost := h.Err(); lost != nil {
		return true, errors.Join(err, lost)
	}
	c.unpublish(h)
	return false, err
}

// publish writes what the leader has to say. While no server can be reached nobody else can
// lead either: it goes on trying for as long as the lead lasts.
func (h *Hold) publish(ctx context.Context, value []byte) error {
	for {
		err := h.put(ctx, v1.PutRequest{Path: h.resource, Value: value, Session: h.session.id})
		if !v1.Transient(err) || ctx.Err() != nil {
			return err
		}
	}
}

// unpublish takes the value back before the lead is given up. Who reads in between sees
// a leader without a value.
func (c *Client) unpublish(h *Hold) {
	ctx, cancel := context.WithTimeout(h.values, callTimeout/3)
	defer cancel()
	fence := v1.Fence{Lease: h.ID(), Token: h.token.Load()}
	err := c.servers.Retry(ctx, h.session.attemptLimit(), func(ctx context.Context, w *v1.Caller) error {
		_, err := w.DeleteRecord(ctx, v1.DeleteRequest{Path: h.resource, Fence: fence})
		return err
	})
	if err != nil && !isGone(err) {
		c.log.Warn("what was published could not be taken back", "resource", h.resource, "err", err)
	}
}

// Leader says who leads. If nobody does, the Leader has the token 0.
func (c *Client) Leader(ctx context.Context, resource string) (Leader, error) {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	var (
		seen   v1.Resource
		record v1.Record
	)
	err := c.servers.Retry(ctx, callTimeout/3, func(ctx context.Context, w *v1.Caller) (err error) {
		if seen, err = w.Resource(ctx, resource, 1); err != nil {
			return err
		}
		record, err = w.Record(ctx, resource, 0)
		if errors.Is(err, leasehold.ErrNotFound) {
			record, err = v1.Record{}, nil
		}
		return err
	})
	if errors.Is(err, leasehold.ErrNotFound) {
		return Leader{}, nil
	}
	if err != nil || len(seen.Holders) == 0 {
		return Leader{}, err
	}
	lease := seen.Holders[0]
	l := Leader{Holder: lease.Holder, Token: leasehold.Token(lease.Token)}
	if lease.Acquired != nil {
		l.Since = lease.Acquired.Time
	}
	// The value of another leader has another token.
	if record.Token == lease.Token {
		l.Value = append([]byte{}, record.Value...)
	}
	return l, nil
}

func (l Leader) equal(other Leader) bool {
	return l.Token == other.Token && (l.Value == nil) == (other.Value == nil) && string(l.Value) == string(other.Value)
}

// Observe shows who leads, at first and then whenever that changes. A leader that
// follows another quickly may be all that is seen of the two. It ends with an error when
// ctx ends, or when it can not go on.
func (c *Client) Observe(ctx context.Context, resource string) iter.Seq2[Leader, error] {
	return func(yield func(Leader, error) bool) {
		o := &observer{client: c, resource: resource, yield: yield}
		for tries := 1; ; tries++ {
			err := o.watch(ctx)
			switch {
			case o.over:
				return
			case ctx.Err() != nil:
				yield(Leader{}, context.Cause(ctx))
				return
			case !v1.Transient(err) && !errors.Is(err, leasehold.ErrLost):
				yield(Leader{}, err)
				return
			}
			backoff.Sleep(ctx, tries)
		}
	}
}

type observer struct {
	client   *Client
	resource string
	yield    func(Leader, error) bool
	last     Leader
	begun    bool
	over     bool // the reader wants no more
}

// watch looks once the watch has begun, and again at each event: nothing is missed then.
func (o *observer) watch(ctx context.Context) (failure error) {
	chosen := o.client.servers.Choose()
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	started := func(v1.Hello) {
		if err := o.update(ctx); err != nil || o.over {
			cancel(err)
		}
	}
	for e, err := range chosen.Watch(ctx, v1.WatchQuery{Prefix: o.resource, Once: true, Started: started}) {
		if err == nil && e.Resource == o.resource {
			err = o.update(ctx)
		}
		if o.over {
			return nil
		}
		if err != nil {
			o.client.servers.Leave(chosen)
			return err
		}
	}
	return nil
}

func (o *observer) update(ctx context.Context) error {
	l, err := o.client.Leader(ctx, o.resource)
	if err != nil || o.begun && l.equal(o.last) {
		return err
	}
	o.last, o.begun = l, true
	o.over = !o.yield(l, nil)
	return nil
}
