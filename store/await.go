package store

import (
	"context"
	"errors"
	"math/rand/v2"
	"time"

	"github.com/leasehold/leasehold"
)

// A Waiting says how Await waits.
type Waiting struct {
	For  time.Duration   // Request.Wait
	Poll time.Duration   // how often to ask again at least
	Wake <-chan struct{} // receives when it is worth asking again; nil: nothing tells

	// Leave takes the id out of the queue when the wait is over: it would be in the way of others for
	// another TTL. Nil: there is no queue. See Leaving.
	Leave func(context.Context) error
}

// Leaving returns a Waiting.Leave that releases the id of a request.
func Leaving(s Store, r Request) func(context.Context) error {
	release := ReleaseRequest{Leases: []Ref{{Resource: r.Resource, ID: r.ID}}, Withdraw: true}
	return func(ctx context.Context) error { return s.Release(ctx, release) }
}

// leaveWithin is how long a call may take to leave the queue after its wait was over.
const leaveWithin = 2 * time.Second

// leave leaves the queue. If that fails, the waiter ends after its TTL.
func (w Waiting) leave(ctx context.Context) {
	if w.Leave == nil || w.For <= 0 {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), leaveWithin)
	defer cancel()
	_ = w.Leave(ctx)
}

// Await asks for a lease until it is granted, refused, or the wait is over. It is for stores whose
// waiters have to poll. It asks again when it is woken, when the lease in the way ends (the Held
// error says what remains of that), and at the interval of Poll, whichever is first. Each question
// renews the waiter's own deadline, so Poll is well below the TTL.
func Await(ctx context.Context, w Waiting, ask func(context.Context) (Grant, error)) (Grant, error) {
	began := time.Now()
	for n := 0; ; n++ {
		grant, err := ask(ctx)
		var held *leasehold.Error
		if !errors.As(err, &held) || held.Code != leasehold.Held {
			grant.Waited = grant.Waited || n > 0
			return grant, err
		}
		left := w.For - time.Since(began)
		if left <= 0 {
			w.leave(ctx)
			return grant, err
		}
		if !sleep(ctx, min(left, w.pause(held)), w.Wake) {
			return grant, context.Cause(ctx)
		}
	}
}

// pause returns how long to sleep before the next question. The random part keeps waiters of an
// unfair store from asking all at the same moment.
func (w Waiting) pause(held *leasehold.Error) time.Duration {
	d := w.Poll - rand.N(w.Poll/8+1)
	if held.Lease != nil && held.Lease.Remaining > 0 {
		d = min(d, held.Lease.Remaining+time.Millisecond)
	}
	return max(d, time.Millisecond)
}

// sleep reports whether ctx is still alive after d, or earlier if it is woken.
func sleep(ctx context.Context, d time.Duration, wake <-chan struct{}) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-wake:
	case <-ctx.Done():
		return false
	}
	return ctx.Err() == nil
}
