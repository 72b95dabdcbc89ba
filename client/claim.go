package client

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/leasehold/leasehold"
	"github.com/leasehold/leasehold/internal/limit"
	"github.com/leasehold/leasehold/store"
)

// A claim is one acquire under way: of one resource, or of several at once.
type claim struct {
	options
	session       *Session
	holds         []*Hold // the first is that of the request itself, the others are those of its Also
	request       store.Request
	began         time.Duration // when the program called, if it waits
	sent          time.Duration // when the first request was sent
	asked         time.Duration // when the last one was sent, if the session is local
	waited        bool          // it may have been granted after a wait: when is not known
	watchedBefore bool          // the watch was complete when it began
	maybeGranted  bool          // an attempt got no answer and may be granted, whatever another was told
}

// acquire sends an acquire under new ids, and returns a hold for each item.
func (s *Session) acquire(ctx context.Context, o options, began time.Duration) ([]*Hold, error) {
	a := &claim{options: o, session: s, began: began, sent: s.clock(), watchedBefore: s.client.watchComplete.Load()}
	first := o.items[0]
	party := ""
	for _, item := range o.items {
		id := newID()
		if party == "" {
			party = o.partyOf(ctx, id)
		}
		h := &Hold{
			session: s, resource: item.Resource, holder: o.holder, id: id, party: party,
			values: context.WithoutCancel(ctx),
		}
		a.holds = append(a.holds, h)
		// Before the request is sent: an event about the lease may arrive before the answer does.
		if !s.add(h, id) {
			return nil, errRetry
		}
	}
	a.request = store.Request{
		Resource: first.Resource, Shared: first.Shared, Slots: first.Slots, Capacity: first.Capacity,
		Holder: o.holder, ID: a.holds[0].id, Session: s.storeID(), Party: party, Reason: o.reason,
		Labels: store.LabelsOf(o.labels), Value: o.value, Floor: leasehold.Token(s.client.largest.Load()),
		Select: o.selects, Reservation: o.reserved, Grace: o.grace, HoldLimit: o.holdLimit, Priority: o.priority,
		Wait: a.remainingWait(),
	}
	if s.local {
		a.request.TTL = s.ttl
	}
	for i, item := range o.items[1:] {
		a.request.Also = append(a.request.Also, store.Item{
			Ref:    store.Ref{Resource: item.Resource, ID: a.holds[i+1].id},
			Shared: item.Shared, Slots: item.Slots, Capacity: item.Capacity,
		})
	}
	lease, err := a.ask(ctx)
	if err == nil {
		a.maybeGranted = true // even if what has to confirm it is refused
		err = a.granted(ctx, lease)
	}
	if errors.Is(err, ErrExpired) && (s.local || !s.alive()) {
		err = errRetry // the process was paused: it was over before the answer was read
	}
	if err != nil {
		a.withdraw(err)
		return nil, err
	}
	return a.holds, nil
}

// withdraw makes sure that nothing of a failed acquire stays on the server.
func (a *claim) withdraw(err error) {
	for _, h := range a.holds {
		h.lose(&LostError{How: leasehold.Withdrawn})
	}
	if isRefusal(err) && !a.maybeGranted {
		return
	}
	// It may be granted, now or later, and renewals of the session would keep it alive.
	refs := make([]store.Ref, len(a.holds))
	for i, h := range a.holds {
		refs[i] = h.ref()
	}
	a.session.releaseLater(refs...)
}

// remainingWait returns how long the server may let it wait.
func (a *claim) remainingWait() time.Duration {
	switch a.wait {
	case 0:
		return 0
	case asLongAsContext:
		return leasehold.MaxWait
	}
	return min(max(0, a.began+a.wait-a.session.clock()), leasehold.MaxWait)
}

// isRefusal reports whether a server decided that there is no lease and no wait.
func isRefusal(err error) bool {
	var e *leasehold.Error
	if !errors.As(err, &e) {
		return false
	}
	switch e.Code {
	case leasehold.Held, leasehold.Lost, leasehold.NotFound, leasehold.Invalid, leasehold.Denied,
		leasehold.Limited, leasehold.Refused:
		return true
	}
	return false
}

// ask sends the request until it is answered. The id is the same in each attempt, so a grant
// whose answer was lost is found and not made twice.
func (a *claim) ask(ctx context.Context) (store.Grant, error) {
	both := limit.Both(ctx, a.session.done) // without its session it cannot be granted
	defer both.Stop()
	ctx = both
	if a.progress != nil && a.wait != 0 {
		a.maybeGranted = true // a progress report is an acquire too, and may be granted
		done := make(chan struct{})
		go func() {
			defer close(done)
			a.reportProgress(ctx)
		}()
		defer func() { both.Stop(); <-done }()
	}
	// A store without sessions may keep the place of a waiter that it refuses.
	a.maybeGranted = a.maybeGranted || a.session.local && a.request.Wait > 0
	for n := 1; ; n++ {
		lease, err := a.askOnce(ctx)
		a.maybeGranted = a.maybeGranted || store.Transient(err)
		switch {
		case err == nil:
			return lease, nil
		case ctx.Err() != nil:
			return lease, a.stopped(ctx, err)
		// The id was used up. Whether it may be asked for again depends on who ended it.
		case errors.Is(err, leasehold.ErrLost) || errors.Is(err, leasehold.ErrNotFound):
			return lease, a.whenGone(ctx, err)
		case errors.Is(err, leasehold.ErrHeld) && a.wait == asLongAsContext:
			return lease, errRetry // it waited as long as a server allows
		case !store.Transient(err):
			return lease, err
		case a.wait != 0 && a.remainingWait() == 0:
			return lease, err
		}
		if a.wait != 0 && errors.Is(err, context.DeadlineExceeded) {
			continue // it keeps its place in the queue: only this request has ended
		}
		if !a.session.client.pause(ctx, n) {
			return lease, a.stopped(ctx, err)
		}
	}
}

// stopped returns the error of an acquire whose context ended: with the session, or because the
// caller cancelled it.
func (a *claim) stopped(ctx context.Context, err error) error {
	if a.session.done.Err() != nil {
		return errRetry
	}
	return fmt.Errorf("%s was not acquired: %w: %w", a.request.Resource, context.Cause(ctx), err)
}

// maxWaitPerRequest is how long one request waits. Without it, a server that vanished silently
// would keep the caller waiting for ever. The place in the queue is kept between two requests.
const maxWaitPerRequest = 30 * time.Second

// askOnce makes one attempt.
func (a *claim) askOnce(ctx context.Context) (lease store.Grant, err error) {
	keeper := a.session.client.store
	if a.session.local {
		a.asked = a.session.clock() // for each attempt: the answer says what remained at this one
	}
	if a.request.Wait == 0 {
		err = once(ctx, 5*time.Second, func(ctx context.Context) (err error) {
			lease, err = keeper.Acquire(ctx, a.request)
			return err
		})
		return lease, err
	}
	request, limit := a.request, maxWaitPerRequest
	left := a.remainingWait()
	if left <= maxWaitPerRequest {
		limit = left + 5*time.Second // the server decides when the wait is over
	}
	if a.session.local {
		request.Wait = left // a waiter without a session waits anew with each request
	}
	within, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	lease, err = keeper.Acquire(within, request)
	// An attempt without an answer may have waited.
	a.waited = a.waited || err != nil || lease.Waited
	return lease, err
}

// whenGone returns the error of an acquire whose id ended before the client held it. If it
// expired while no answer came, it can be asked for again; if an operator broke it, it cannot.
func (a *claim) whenGone(ctx context.Context, err error) error {
	if !a.session.alive() {
		return errRetry
	}
	if a.session.local && errors.Is(err, leasehold.ErrNotFound) {
		return err // what is missing is not the lease
	}
	end := a.ending(ctx)
	if end != nil && end.How == leasehold.ByBreak {
		return &LostError{How: leasehold.ByBreak, Resource: a.request.Resource, By: end.By, Reason: end.Reason}
	}
	if end == nil && a.request.Reservation != "" && a.session.renewUntil(ctx) == nil {
		return err // the session is there: what is over, or unknown, is the reservation
	}
	if end == nil && errors.Is(err, leasehold.ErrNotFound) {
		// A server that does not know the wait does not know the session either.
		a.session.endAs(&LostError{How: leasehold.SessionClosed, Reason: err.Error()})
	}
	return errRetry
}

// granted makes holds from an answer. Their deadline is the session's: the answer to a request
// that waited says nothing about when the time began to count.
func (a *claim) granted(ctx context.Context, answer store.Grant) error {
	s := a.session
	if s.private && a.waited && !s.local {
		// The client renewed while it waited; from here on the program decides.
		if err := s.renewUntil(ctx); err != nil {
			return err
		}
	}
	if len(a.holds) == 1 && a.holds[0].ID() == answer.ID {
		return a.grantOne(ctx, a.holds[0], answer)
	}
	leases := map[string]store.Grant{answer.ID: answer}
	for _, lease := range answer.Also {
		leases[lease.ID] = lease
	}
	for _, h := range a.holds {
		lease, ok := leases[h.ID()]
		if !ok {
			return &leasehold.Error{Code: leasehold.Undecided,
				Message: h.Resource() + " is not in the answer of the server"}
		}
		if err := a.grantOne(ctx, h, lease); err != nil {
			return err
		}
	}
	return nil
}

// grantOne makes a hold from one lease. If the lease has a hold limit, which may come from the
// server's definitions, the hold has a deadline of its own.
func (a *claim) grantOne(ctx context.Context, h *Hold, lease store.Grant) error {
	if lease.Resource != h.resource && leasehold.IsTaskFolder(h.resource) {
		h.task.Store(&lease.Resource)
	}
	h.slots, h.units, h.after = lease.Slots, lease.Units, lease.After
	h.floor.Store(uint64(lease.Floor))
	a.session.client.saw(lease.Token)
	// Only an answer that is as new as what the session knows can be relied on; see
	// interventions.go.
	behind := h.granted(lease)
	if a.session.local {
		return a.grantLocal(ctx, h, lease, behind)
	}
	if !lease.Counted {
		h.recheckRegularly()
	}
	if !lease.Counted && !a.watchedBefore && a.session.client.watchComplete.Load() {
		// The watch began meanwhile: it did not tell of earlier events.
		a.session.client.background(func(ctx context.Context) { _ = h.recheck(ctx) })
	}
	switch {
	// After a wait only the server knows when it was granted, and so when it ends.
	case behind, lease.HoldLimit > 0 && a.waited:
		h.recheckLimit(lease.HoldLimit > 0)
		if err := h.recheck(ctx); err != nil {
			return err
		}
	case lease.HoldLimit > 0:
		h.setLimit(a.sent, deadlineAfter(a.sent, lease.HoldLimit))
	}
	return h.Err()
}
