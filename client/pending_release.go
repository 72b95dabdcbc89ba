package client

import (
	"context"
	"errors"
	"time"

	"github.com/leasehold/leasehold"
	v1 "github.com/leasehold/leasehold/api/v1"
	"github.com/leasehold/leasehold/store"
)

// pendingReleases are the ids of a session that the server has to release although nobody waits
// for it: acquires that were cancelled, and releases that reached no server. The session would
// keep them alive. One worker for each session releases them beside the renewals, which must
// never wait for it.
//
// The session's lock guards it.
type pendingReleases struct {
	due       map[store.Ref]int // how often a server did not know it, or had no room for its mark
	deferred  map[store.Ref]int // the same, to be tried again after the next renewal
	sending   map[store.Ref]int // what the worker has taken
	called    map[store.Ref]int // what a caller waits for: Release in a local session, or the end of a task
	releasing bool              // a worker runs
}

// maxUnknown is how often to release an id that the server does not know, or for whose mark the
// session has no room. Once is not enough: a cancelled acquire may still be on its way and
// arrive after its release.
const maxUnknown = 3

// maxBatch is how many bytes of ids go into one request, beside their number: well within what
// a server reads.
const maxBatch = v1.MaxBody / 2

// releaseLater queues ids to be released, and starts the worker.
func (s *Session) releaseLater(ids ...store.Ref) {
	s.mu.Lock()
	if s.ended == nil {
		for _, id := range ids {
			note(&s.pending.due, id, 0)
		}
	}
	s.mu.Unlock()
	s.startReleasing()
}

// note sets an id in a map, and makes the map at first.
func note(list *map[store.Ref]int, id store.Ref, n int) {
	if *list == nil {
		*list = map[store.Ref]int{}
	}
	(*list)[id] = n
}

// retryDeferred makes deferred releases due again.
func (s *Session) retryDeferred() {
	s.mu.Lock()
	if len(s.pending.due) == 0 {
		// What is due comes first; the deferred ones wait for another renewal.
		s.pending.due, s.pending.deferred = s.pending.deferred, nil
	}
	s.mu.Unlock()
	s.startReleasing()
}

// startReleasing starts the worker if something is due and none runs.
func (s *Session) startReleasing() {
	s.mu.Lock()
	start := len(s.pending.due) > 0 && !s.pending.releasing
	if start {
		s.pending.releasing = true
	}
	s.mu.Unlock()
	if start {
		s.client.background(s.releasePending)
	}
}

// releasePending is the worker: it releases what is due, until nothing is. It stops when the client
// is closed; closing the session releases the rest.
func (s *Session) releasePending(ctx context.Context) {
	for failures := 0; ; {
		batch := s.nextBatch(s.client.maxReleases())
		if len(batch) == 0 {
			s.lookIfUnused()
			return
		}
		err := s.releaseBatch(ctx, batch)
		if !store.Transient(err) {
			failures = 0
			continue
		}
		if failures++; !backoff.Sleep(ctx, failures) {
			return
		}
	}
}

// maxReleases returns how many ids go into one request.
func (c *Client) maxReleases() int {
	if s, ok := c.store.(interface{ MaxReleases() int }); ok {
		return s.MaxReleases()
	}
	return v1.MaxReleases
}

// nextBatch takes due ids, within a number and maxBatch. If there are none, the worker is done.
func (s *Session) nextBatch(most int) map[store.Ref]int {
	s.mu.Lock()
	defer s.mu.Unlock()
	batch, size := map[store.Ref]int{}, 0
	for id, n := range s.pending.due {
		if len(batch) > 0 && (len(batch) == most || size+len(id.ID) > maxBatch) {
			break
		}
		batch[id] = n
		size += len(id.ID) + len(`"",`)
		delete(s.pending.due, id)
	}
	// Under the same lock as the look at what is due: an id that is queued later finds no worker
	// and starts one.
	s.pending.sending, s.pending.releasing = batch, len(batch) > 0
	return batch
}

// releaseBatch sends one request for a batch, and records the outcome. If a server refuses the
// batch, each id is released alone.
func (s *Session) releaseBatch(ctx context.Context, batch map[store.Ref]int) error {
	// Withdraw leaves a mark for an unknown id, so that an acquire that arrives after its release
	// is refused.
	r := store.ReleaseRequest{Session: s.storeID(), Withdraw: true}
	for id := range batch {
		r.Leases = append(r.Leases, id)
	}
	// Nobody waits for it, so a server may take its time for a large batch.
	limit := max(s.attemptLimit(), time.Second)
	err := once(ctx, limit, func(ctx context.Context) error { return s.client.store.Release(ctx, r) })
	switch {
	case err == nil || len(batch) == 1 && errors.Is(err, leasehold.ErrLost):
		return nil
	case store.Transient(err):
		s.requeue(batch)
		return err
	case len(batch) == 1:
		// A session with no room for a mark will have none at the next renewal either.
		s.postpone(batch, errors.Is(err, leasehold.ErrNotFound) || s.hasNoRoom(err))
		return nil
	}
	// One id that the server refuses must not keep the others from being released.
	for id, n := range batch {
		if failure := s.releaseBatch(ctx, map[store.Ref]int{id: n}); failure != nil {
			err = failure
		}
	}
	return err
}

// requeue makes ids due again whose release reached no server. They do not count as unknown: no
// server has said anything about them.
func (s *Session) requeue(batch map[store.Ref]int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ended != nil {
		return
	}
	for id, n := range batch {
		note(&s.pending.due, id, n)
	}
}

// postpone defers ids whose release a server refused. Ids that stay unknown, or without room,
// are dropped after maxUnknown times. So is every refused one of a local session: nothing renews it,
// so that it ends by itself.
func (s *Session) postpone(batch map[store.Ref]int, unknown bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ended != nil {
		return
	}
	for id, n := range batch {
		if unknown || s.local {
			n++
		}
		if n < maxUnknown {
			note(&s.pending.deferred, id, n)
		}
	}
}
