package client

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"slices"
	"time"

	"github.com/leasehold/leasehold"
	"github.com/leasehold/leasehold/store"
)

// A store without sessions gives each lease a TTL of its own. The client's session is then local: it
// only groups leases with the same terms, so that they are renewed together. It does not end by time,
// and the deadline of each hold comes from the answer about its own lease.

// maxRenewed is how many leases are renewed by one call: the answer to a call that takes long says
// less than that to a quick one. It is halved, up to maxHalved times, while calls take too long.
const (
	maxRenewed = 500
	maxHalved  = 4
)

// storeID returns the session's id in the store; empty if it is local.
func (s *Session) storeID() string {
	if s.local {
		return ""
	}
	return s.id
}

// openLocal makes a local session ready.
func (s *Session) openLocal() error {
	if err := s.client.store.Features().CheckTTL(s.ttl); err != nil {
		return err
	}
	s.mu.Lock()
	s.deadline.Store(int64(never))
	s.renewAt = s.nextRenewal(s.clock())
	s.mu.Unlock()
	s.client.scheduler.set(&s.timer, s.clock())
	return nil
}

// grantLocal makes a hold from a lease with a TTL of its own.
func (a *claim) grantLocal(ctx context.Context, h *Hold, lease store.Grant, behind bool) error {
	s := a.session
	if lease.Remaining <= 0 {
		return &leasehold.Error{Code: leasehold.Undecided, Message: h.Resource() + " was granted without an end"}
	}
	if a.waited || behind {
		// When its time began to count is not known. Not recheck, which would leave it to another one
		// that runs: the hold has no deadline before the answer.
		if err := h.recheckOnce(ctx); err != nil {
			return err
		}
	} else {
		s.mu.Lock()
		h.extendLocked(deadlineAfter(a.asked, lease.Remaining))
		s.mu.Unlock()
	}
	h.mu.Lock()
	m := h.extraLocked()
	h.mu.Unlock()
	s.client.scheduler.set(&m.timer, s.clock()) // fire returns when it is due
	return h.Err()
}

// extendLocked moves the hold's own deadline. A hold whose deadline has passed may have been seen as
// lost, and must not come back. Answers can overtake each other, so an older one takes nothing back;
// a break that shortens the lease sets a limit. The session's lock is held.
func (h *Hold) extendLocked(until time.Duration) {
	old := time.Duration(h.frozenAt.Load())
	if old == 0 || until > old && h.session.clock() < old {
		h.frozenAt.Store(int64(until))
	}
}

// renewLocal renews the leases of a local session, each by its id. Those that the store could not
// renew are tried again one by one; if there is only one, its error is returned.
func (s *Session) renewLocal(ctx context.Context) error {
	holds := s.granted()
	// Those that end first come first, so that another attempt goes on where this one fails.
	slices.SortFunc(holds, func(a, b *Hold) int { return cmp.Compare(a.ownDeadline(), b.ownDeadline()) })
	s.mu.Lock()
	halved := s.halved
	s.mu.Unlock()
	began := s.clock()
	slowest := time.Duration(0)
	var err error
	for chunk := range slices.Chunk(holds, maxRenewed>>halved) {
		sent := s.clock()
		err = s.renewChunk(ctx, chunk)
		slowest = max(slowest, s.clock()-sent)
		if err != nil {
			break
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case err != nil && slowest >= s.attemptLimit():
		s.halved = min(halved+1, maxHalved)
	case err == nil && slowest < s.attemptLimit()/4:
		s.halved = max(0, halved-1)
	}
	if err == nil {
		s.renewAt = max(s.renewAt, s.nextRenewal(began))
	}
	return err
}

// renewChunk renews some holds by one request. Their new deadlines count from before it was sent.
func (s *Session) renewChunk(ctx context.Context, holds []*Hold) error {
	refs := make([]store.Ref, len(holds))
	for i, h := range holds {
		refs[i] = h.ref()
	}
	var (
		sent    time.Duration
		answers []store.Renewal
	)
	err := once(ctx, s.attemptLimit(), func(ctx context.Context) (err error) {
		sent = s.clock()
		answers, err = renewLeases(ctx, s.client.store, refs...)
		return err
	})
	if err != nil {
		return err
	}
	for i, h := range holds {
		answer := answers[i]
		switch {
		case answer.Err != nil && s.private:
			return answer.Err
		case answer.Err != nil, answer.Ended != nil && answer.Ended.How == 0:
			s.queueRecheck(h)
		case answer.Ended != nil:
			h.lose(lostAs(answer.Ended))
		case !h.applyLease(sent, answer.Grant):
			s.queueRecheck(h)
		}
	}
	return nil
}

// granted returns the holds that were granted and are not lost.
func (s *Session) granted() (holds []*Hold) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, h := range s.holds {
		if h.token.Load() != 0 {
			holds = append(holds, h)
		}
	}
	return holds
}

// lookIfUnused has a private local session closed when it is unused: nothing else would look, since
// it is not renewed and does not end by time.
func (s *Session) lookIfUnused() {
	if s.local && s.private {
		s.client.scheduler.set(&s.timer, s.clock())
	}
}

// beginRelease notes a release by its caller. Until it has ended, and is pending if it failed, the
// session is not unused, and closing it releases the lease too. The end of a task is noted in every session.
func (s *Session) beginRelease(ref store.Ref) {
	s.mu.Lock()
	note(&s.pending.called, ref, 0)
	s.mu.Unlock()
}

func (s *Session) endRelease(ref store.Ref) {
	s.mu.Lock()
	delete(s.pending.called, ref)
	s.mu.Unlock()
	s.lookIfUnused()
}

// leftLocked returns what a local session has to release when it ends: what it holds or asks for,
// except reservations, and what was to be released anyway.
func (s *Session) leftLocked() (left []store.Ref) {
	if !s.local {
		return nil
	}
	for _, h := range s.holds {
		if s.renewal.mode != renewNever || h.token.Load() == 0 {
			left = append(left, h.ref())
		}
	}
	p := s.pending
	for _, refs := range []map[store.Ref]int{p.due, p.deferred, p.sending, p.called} {
		left = slices.AppendSeq(left, maps.Keys(refs))
	}
	return left
}

// closeLocal ends a local session, and releases its leases.
func (s *Session) closeLocal(ctx context.Context) error {
	left := s.endAs(&LostError{How: leasehold.SessionClosed})
	var failures []error
	for refs := range slices.Chunk(left, max(1, s.client.maxReleases())) {
		r := store.ReleaseRequest{Leases: refs, Withdraw: true}
		err := s.client.retry(ctx, callTimeout/3, func(ctx context.Context) error {
			return s.client.store.Release(ctx, r)
		})
		if !isGone(err) {
			failures = append(failures, err)
		}
	}
	return errors.Join(failures...)
}

// ending returns how the id of an acquire ended; nil if that is not known.
func (a *claim) ending(ctx context.Context) *leasehold.Ending {
	s := a.session
	if !s.local {
		if e := s.client.ending(ctx, a.request.Resource, a.request.ID); e != nil {
			return &leasehold.Ending{How: e.How, By: e.By, Reason: e.Reason}
		}
		return nil
	}
	var answer store.Renewal
	err := once(ctx, s.attemptLimit(), func(ctx context.Context) (err error) {
		answer, err = renewLease(ctx, s.client.store, a.holds[0].ref())
		return err
	})
	if err != nil {
		return nil
	}
	return answer.Ended
}

// saw remembers the largest token, which is the floor of the next request.
func (c *Client) saw(token leasehold.Token) {
	for {
		largest := c.largest.Load()
		if uint64(token) <= largest || c.largest.CompareAndSwap(largest, uint64(token)) {
			return
		}
	}
}

// checkPowers returns an error if the store lacks what an acquire asks for.
func (c *Client) checkPowers(o options) error {
	r := store.Request{Grace: o.grace, HoldLimit: o.holdLimit, Priority: o.priority, Value: o.value}
	for i, item := range o.items {
		if i == 0 {
			r.Shared, r.Slots = item.Shared, item.Slots
			continue
		}
		r.Also = append(r.Also, store.Item{Shared: item.Shared, Slots: item.Slots})
	}
	return store.CheckPowers(c.store, r)
}
