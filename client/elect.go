package client

import (
	"context"
	"errors"
	"iter"
	"slices"
	"time"

	"github.com/leasehold/leasehold"
	"github.com/leasehold/leasehold/store"
)

// A Leader is the winner of an election, with the value it published.
type Leader struct {
	Holder string
	Token  leasehold.Token // 0: nobody leads
	Value  []byte          // nil: not published yet
	Since  time.Time
}

// Elect campaigns for a resource. As leader it publishes value, for Leader and Observe to see,
// and calls fn. The context of fn ends when the lead is lost or when ctx ends. If fn returns
// while it leads, Elect resigns and returns fn's error. If the lead was lost, Elect waits for fn
// to return and campaigns again.
//
// The value is a record with the name of the resource. It is fenced by the lease, so a former
// leader cannot overwrite it, and it ends with the lead.
func (c *Client) Elect(
	ctx context.Context, resource string, value []byte, fn func(ctx context.Context, h *Hold) error, options ...Option,
) error {
	// Where there are no records, the value stands in the lease.
	if _, ok := c.store.(store.Records); !ok && len(value) > 0 {
		options = append(slices.Clip(options), withValue(value))
	}
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

// lead runs fn as leader. It reports whether to campaign again because the lead was lost.
func (c *Client) lead(
	ctx context.Context, h *Hold, value []byte, fn func(context.Context, *Hold) error,
) (again bool, err error) {
	defer h.releaseOrLog()
	under := h.contextUnder(ctx)
	err = h.publish(under, value)
	switch {
	// The lead was lost while it was published: fn never ran, so campaigning again is safe.
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

// publish writes the leader's value. It retries for as long as the lead lasts: while no server
// can be reached nobody else can lead either.
func (h *Hold) publish(ctx context.Context, value []byte) error {
	if _, ok := h.session.client.store.(store.Records); !ok {
		return nil
	}
	for {
		err := h.put(ctx, store.PutRequest{Path: h.Resource(), Value: value, Session: h.session.id})
		if !store.Transient(err) || ctx.Err() != nil {
			return err
		}
	}
}

// unpublish deletes the value before the lead is given up. In between, others see a leader
// without a value.
func (c *Client) unpublish(h *Hold) {
	records, ok := c.store.(store.Records)
	if !ok {
		return
	}
	ctx, cancel := context.WithTimeout(h.values, callTimeout/3)
	defer cancel()
	err := c.retry(ctx, h.session.attemptLimit(), func(ctx context.Context) error {
		return records.Delete(ctx, h.Resource(), h.fence())
	})
	if err != nil && !isGone(err) {
		c.log.Warn("the leader's value could not be deleted", "resource", h.Resource(), "err", err)
	}
}

// Leader returns who leads. If nobody does, the Leader has the token 0.
func (c *Client) Leader(ctx context.Context, resource string) (Leader, error) {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	var (
		seen   store.Resource
		record store.Record
	)
	read := c.store.Read
	if s, ok := c.store.(interface {
		ReadHolders(ctx context.Context, resource string) (store.Resource, error)
	}); ok {
		read = s.ReadHolders // Observe reads at each event, also those of many waiters
	}
	err := c.retry(ctx, callTimeout/3, func(ctx context.Context) (err error) {
		if seen, err = read(ctx, resource); err != nil {
			return err
		}
		record, err = c.leaderRecord(ctx, seen)
		return err
	})
	if err != nil || len(seen.Holders) == 0 {
		return Leader{}, err
	}
	lease := seen.Holders[0]
	l := Leader{Holder: lease.Holder, Token: lease.Token, Since: lease.Acquired}
	// The record may be that of a former leader, with another token.
	if record.Token == lease.Token {
		l.Value = append([]byte{}, record.Value...)
	}
	return l, nil
}

// leaderRecord returns the value of the leader of a resource: from its record or, where there are no
// records, from its lease.
func (c *Client) leaderRecord(ctx context.Context, seen store.Resource) (store.Record, error) {
	records, ok := c.store.(store.Records)
	if !ok && len(seen.Holders) > 0 {
		return store.Record{Value: seen.Value, Token: seen.Holders[0].Token}, nil
	}
	if !ok || len(seen.Holders) == 0 {
		return store.Record{}, nil
	}
	record, err := records.Get(ctx, seen.Resource)
	if errors.Is(err, leasehold.ErrNotFound) {
		return store.Record{}, nil
	}
	return record, err
}

func (l Leader) equal(other Leader) bool {
	return l.Token == other.Token && (l.Value == nil) == (other.Value == nil) && string(l.Value) == string(other.Value)
}

// Observe yields who leads, at first and then whenever it changes. If leaders follow each other
// quickly, only the last may be seen. It ends with an error when ctx ends or the watch cannot go
// on.
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
			// Lost means that the watch fell too far behind; a fresh one begins with the present
			// leader.
			case !store.Transient(err) && !errors.Is(err, leasehold.ErrLost):
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
	over     bool // the consumer has stopped
}

// watch reads the leader once the watch has begun, and again at each event, so that no change is
// missed.
func (o *observer) watch(ctx context.Context) (failure error) {
	watcher, ok := o.client.store.(store.Watcher)
	if !ok {
		return o.poll(ctx)
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	// The leader is read after the watch has begun: read before it, a change in between would be
	// missed.
	started := func() {
		if err := o.update(ctx); err != nil || o.over {
			cancel(err)
		}
	}
	for e, err := range watcher.Watch(ctx, store.WatchQuery{Prefix: o.resource, Started: started}) {
		if err == nil && e.Resource == o.resource {
			err = o.update(ctx)
		}
		if o.over {
			return nil
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// observeEvery is how often the leader is read where the store has no watch.
const observeEvery = time.Second

// poll reads the leader at intervals, until the consumer stops or a reading fails.
func (o *observer) poll(ctx context.Context) error {
	every := time.NewTicker(observeEvery)
	defer every.Stop()
	for {
		if err := o.update(ctx); err != nil || o.over {
			return err
		}
		select {
		case <-every.C:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// update yields the leader if it is another than before.
func (o *observer) update(ctx context.Context) error {
	l, err := o.client.Leader(ctx, o.resource)
	if err != nil || o.begun && l.equal(o.last) {
		return err
	}
	o.last, o.begun = l, true
	o.over = !o.yield(l, nil)
	return nil
}
