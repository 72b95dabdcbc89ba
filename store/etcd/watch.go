package etcd

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"time"

	"go.etcd.io/etcd/api/v3/mvccpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/leasehold/leasehold"
	"github.com/leasehold/leasehold/store"
)

// Watch yields what happens to leases and waiters. A position is a revision of etcd and the number of
// the event within it.
func (s *Store) Watch(ctx context.Context, q store.WatchQuery) iter.Seq2[leasehold.Event, error] {
	return func(yield func(leasehold.Event, error) bool) {
		if q.Session != "" {
			yield(leasehold.Event{}, store.Require(s, store.SessionPower))
			return
		}
		ctx, cancel := context.WithCancel(ctx)
		defer cancel()
		w := &watching{s: s, q: q, yield: yield}
		if err := w.run(ctx); err != nil {
			yield(leasehold.Event{}, s.failure(err))
		}
	}
}

// errStopped says that nobody wants more events.
var errStopped = errors.New("stopped")

type watching struct {
	s     *Store
	q     store.WatchQuery
	yield func(leasehold.Event, error) bool

	revision int64 // the last one that was seen, and how many of its events
	seen     uint32
	skip     uint32 // events of the first revision that were yielded before
}

func (w *watching) run(ctx context.Context) error {
	options := []clientv3.OpOption{clientv3.WithPrefix(), clientv3.WithPrevKV(), clientv3.WithCreatedNotify()}
	if w.q.Since != "" {
		if _, err := fmt.Sscanf(w.q.Since, "%d.%d", &w.revision, &w.skip); err != nil || w.revision <= 0 {
			return invalid("%q is not a position of etcd", w.q.Since)
		}
		w.skip++
		options = append(options, clientv3.WithRev(w.revision))
	}
	for answer := range w.s.client.Watch(clientv3.WithRequireLeader(ctx), w.s.keys.prefixed(w.q.Prefix), options...) {
		if err := answer.Err(); err != nil {
			return watchFailure(err)
		}
		if answer.Created && w.q.Started != nil {
			w.q.Started()
		}
		err := w.all(ctx, answer.Events)
		if errors.Is(err, errStopped) {
			return nil
		}
		if err != nil {
			return err
		}
	}
	if err := context.Cause(ctx); err != nil {
		return err
	}
	return &leasehold.Error{Code: leasehold.Unavailable, Message: "etcd ended the watch"}
}

func watchFailure(err error) error {
	if is(err, rpctypes.ErrCompacted) {
		return &leasehold.Error{Code: leasehold.Lost,
			Message: "etcd has compacted the events since that position: read the state and watch from now on"}
	}
	return err
}

// all yields the events of one answer. It has all events of a revision.
func (w *watching) all(ctx context.Context, events []*clientv3.Event) error {
	for _, e := range events {
		if e.Kv.ModRevision != w.revision {
			w.revision, w.seen, w.skip = e.Kv.ModRevision, 0, 0
		}
		n := w.seen
		w.seen++
		if n < w.skip {
			continue
		}
		event, ok, err := w.event(ctx, e, events)
		if err != nil {
			return err
		}
		if !ok {
			continue
		}
		event.N = n
		if !w.yield(event, nil) {
			return errStopped
		}
		if w.q.Passed != nil {
			w.q.Passed(fmt.Sprintf("%d.%d", w.revision, n))
		}
	}
	return nil
}

// event translates one change of a key; ok is false if it is part of another.
func (w *watching) event(ctx context.Context, e *clientv3.Event, all []*clientv3.Event) (
	event leasehold.Event, ok bool, err error,
) {
	resource, waiter, err := w.s.keys.parse(string(e.Kv.Key))
	if err != nil {
		return event, false, nil
	}
	event = leasehold.Event{Namespace: w.s.namespace, Revision: leasehold.Revision(e.Kv.ModRevision),
		At: time.Now(), Resource: resource}
	if e.Type == clientv3.EventTypePut {
		return event, e.IsCreate(), w.began(ctx, e, waiter, &event)
	}
	if waiter != "" && granted(all, e.Kv.ModRevision, w.s.keys.holder(resource)) {
		return event, false, nil
	}
	return event, true, w.ended(ctx, e, waiter, &event)
}

// granted reports whether a lease was created by the same step.
func granted(all []*clientv3.Event, revision int64, key string) bool {
	for _, e := range all {
		if e.IsCreate() && e.Kv.ModRevision == revision && string(e.Kv.Key) == key {
			return true
		}
	}
	return false
}

// began completes the event of a new lease or waiter.
func (w *watching) began(ctx context.Context, e *clientv3.Event, waiter string, event *leasehold.Event) error {
	if waiter != "" {
		n := noteOf(e.Kv)
		event.Kind, event.ID, event.Holder, event.Reason = leasehold.Queued, n.ID, n.Holder, n.Reason
		return nil
	}
	about, err := w.at(ctx, w.s.keys.last(event.Resource), e.Kv.ModRevision)
	if err != nil {
		return err
	}
	c := w.s.heldBy(event.Resource, e.Kv, about)
	event.Kind, event.ID, event.Holder, event.Reason = leasehold.Acquired, c.ID, c.Holder, c.Reason
	event.Token = leasehold.Token(c.revision)
	event.Until = event.At.Add(time.Duration(c.TTL) * time.Second)
	return nil
}

// at returns a key as it was at a revision, or as it is now if etcd has forgotten that.
func (w *watching) at(ctx context.Context, key string, revision int64) (*mvccpb.KeyValue, error) {
	answer, err := w.s.client.Get(ctx, key, clientv3.WithRev(revision))
	if is(err, rpctypes.ErrCompacted) {
		answer, err = w.s.client.Get(ctx, key)
	}
	if err != nil {
		return nil, err
	}
	return first(answer.Kvs), nil
}

// ended completes the event of a lease or a wait that ended. How it ended is in the mark that the same
// step wrote; etcd itself writes none when a lease has expired.
func (w *watching) ended(ctx context.Context, e *clientv3.Event, waiter string, event *leasehold.Event) error {
	about, c := e.PrevKv, &claim{note: note{ID: waiter}}
	if waiter == "" {
		var err error
		if about, err = w.at(ctx, w.s.keys.last(event.Resource), e.Kv.ModRevision); err != nil {
			return err
		}
		if held := w.s.heldBy(event.Resource, e.PrevKv, about); held != nil {
			c = held
		}
	} else if n := noteOf(about); n.ID == waiter {
		c.note = n
	}
	kept, err := w.at(ctx, w.s.keys.mark(c.ID), e.Kv.ModRevision)
	if err != nil {
		return err
	}
	ending := markOf(kept).ending(c.ID)
	event.ID, event.Holder, event.By, event.Reason = c.ID, c.Holder, ending.By, ending.Reason
	if waiter != "" {
		event.Kind, event.How = leasehold.Left, left(ending.How)
		return nil
	}
	event.Kind, event.How, event.Token = leasehold.Ended, ending.How, leasehold.Token(c.revision)
	if event.How == 0 {
		event.How = leasehold.ByTTL
	}
	event.Hold = &leasehold.Hold{ID: c.ID, Holder: c.Holder, Token: event.Token, Since: c.Since, Until: event.At}
	return nil
}

// left returns how a wait ended, by the mark of its id.
func left(how leasehold.How) leasehold.How {
	switch how {
	case leasehold.Released:
		return leasehold.Withdrawn
	case leasehold.ByBreak:
		return leasehold.ByBreak
	}
	return leasehold.WaitOver
}
