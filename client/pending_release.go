package client

import (
	"context"
	"errors"
	"time"

	"github.com/leasehold/leasehold"
	v1 "github.com/leasehold/leasehold/api/v1"
)

// owed is what must not stay on the server, where the session would keep it alive: what
// was asked for and is not wanted any more, and releases that found no server. One worker
// for each session takes it back, beside the renewals: those must never wait for it.
//
// The session's lock guards it.
type owed struct {
	due     map[string]int // ids, and how often a server did not know them, or had no room
	resting map[string]int // those that are asked about again after the next renewal
	working bool
}

// strays is how often an id is taken back that the server does not know, or whose mark has no
// room in the session: a message that was given up may still be on its way, and arrive after
// the one that took it back.
const strays = 3

// maxBatch is how many bytes of ids go into one message, beside v1.MaxReleases: well
// within what a server reads.
const maxBatch = v1.MaxBody / 2

// owe notes ids that are to be taken back, and has that begun.
func (s *Session) owe(ids ...string) {
	s.mu.Lock()
	if s.ended == nil {
		for _, id := range ids {
			note(&s.owed.due, id, 0)
		}
	}
	s.mu.Unlock()
	s.work()
}

// note enters an id in a list, which may not have been made yet.
func note(list *map[string]int, id string, n int) {
	if *list == nil {
		*list = map[string]int{}
	}
	(*list)[id] = n
}

// repay asks about stray ids once more.
func (s *Session) repay() {
	s.mu.Lock()
	if len(s.owed.due) == 0 {
		s.owed.due, s.owed.resting = s.owed.resting, nil
	}
	s.mu.Unlock()
	s.work()
}

// work starts the worker if there is something to do for it.
func (s *Session) work() {
	s.mu.Lock()
	start := len(s.owed.due) > 0 && !s.owed.working
	if start {
		s.owed.working = true
	}
	s.mu.Unlock()
	if start {
		s.client.background(s.takeBack)
	}
}

// takeBack is the worker: it releases what is owed, until nothing is.
func (s *Session) takeBack(ctx context.Context) {
	for failures := 0; ; {
		batch := s.nextOwed(s.client.servers.Level() >= v1.LevelMany)
		if len(batch) == 0 {
			return
		}
		err := s.releaseMany(ctx, batch)
		if !v1.Transient(err) {
			failures = 0
			continue
		}
		if failures++; !backoff.Sleep(ctx, failures) {
			return
		}
	}
}

// nextOwed takes ids out of what is owed: one, or many. The worker is done if there are
// none.
func (s *Session) nextOwed(many bool) map[string]int {
	s.mu.Lock()
	defer s.mu.Unlock()
	batch, size := map[string]int{}, 0
	for id, n := range s.owed.due {
		if len(batch) > 0 && (!many || len(batch) == v1.MaxReleases || size+len(id) > maxBatch) {
			break
		}
		batch[id] = n
		size += len(id) + len(`"",`)
		delete(s.owed.due, id)
	}
	s.owed.working = len(batch) > 0
	return batch
}

// releaseMany sends one message for a batch, and notes what it came to. If a server would
// not do it for all of them, each is asked about alone.
func (s *Session) releaseMany(ctx context.Context, batch map[string]int) error {
	r := v1.ReleaseRequest{Session: s.id, Withdraw: true}
	for id := range batch {
		r.IDs = append(r.IDs, id)
	}
	if len(batch) == 1 && s.client.servers.Level() < v1.LevelMany {
		r = v1.ReleaseRequest{ID: r.IDs[0]}
	}
	// Nothing depends on when it is done, so that a server may take its time for many.
	err := s.client.servers.Once(ctx, max(s.attempt(), time.Second), func(ctx context.Context, w *v1.Caller) error { return w.Release(ctx, r) })
	switch {
	case err == nil || len(batch) == 1 && errors.Is(err, leasehold.ErrLost):
		return nil
	case v1.Transient(err):
		s.owedStill(batch)
		return err
	case len(batch) == 1:
		// A session with no room for a mark will have none at the next renewal either.
		s.rest(batch, errors.Is(err, leasehold.ErrNotFound) || s.hasNoRoom(err))
		return nil
	}
	for id, n := range batch {
		if failure := s.releaseMany(ctx, map[string]int{id: n}); failure != nil {
			err = failure
		}
	}
	return err
}

// owedStill puts back what could not be asked about.
func (s *Session) owedStill(batch map[string]int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ended != nil {
		return
	}
	for id, n := range batch {
		note(&s.owed.due, id, n)
	}
}

// rest puts back what a server refused, or does not know, for a while: but not for ever
// what nobody knows, or has room for.
func (s *Session) rest(batch map[string]int, unknown bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ended != nil {
		return
	}
	for id, n := range batch {
		if unknown {
			n++
		}
		if n < strays {
			note(&s.owed.resting, id, n)
		}
	}
}
