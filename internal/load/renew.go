package load

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/leasehold/leasehold"
	v1 "github.com/leasehold/leasehold/api/v1"
)

// A renewer holds its share of the leases and renews one after the other.
type renewer struct {
	client
	mine []int
	ttl  time.Duration // longer than it takes to come round to the first one again
	held []string
	next int
}

// errIdle is the end of a worker that has nothing left to do.
var errIdle = errors.New("there is nothing left to do")

// prepare stops between two requests and cuts none off: a release could overtake
// the acquire that it is meant to undo.
func (r *renewer) prepare(ctx context.Context) error {
	for _, resource := range r.mine {
		if ctx.Err() != nil {
			return nil
		}
		id := r.newID()
		request := r.request(resource, id)
		request.TTL.Duration = v1.Duration(r.ttl)
		_, err := r.Acquire(r.run.ctx, request)
		if !errors.Is(err, leasehold.ErrUnavailable) {
			r.held = append(r.held, id) // also if no answer came
		}
		if err != nil {
			return err
		}
		r.run.done.Add(1)
	}
	return nil
}

func (r *renewer) step(ctx context.Context) (sample, error) {
	if len(r.held) == 0 {
		return sample{}, errIdle
	}
	i := r.next % len(r.held)
	r.next = i + 1
	began := time.Now()
	_, err := r.Renew(ctx, v1.RenewRequest{ID: r.held[i]})
	if err == nil {
		return sample{began, time.Since(began)}, nil
	}
	if isNone(err) {
		r.held = slices.Delete(r.held, i, i+1) // it would fail for ever
	}
	return sample{}, err
}

// clear gives up after a few errors: with a server that is gone, a thousand timeouts in a row would
// take hours, and the leases end by themselves.
func (r *renewer) clear(ctx context.Context) (left int) {
	for i, id := range r.held {
		if err := r.Release(ctx, v1.ReleaseRequest{ID: id}); err != nil && !isNone(err) {
			if left++; ctx.Err() != nil || left > 3 {
				return left + len(r.held) - i - 1 // no server answers
			}
		}
		r.run.done.Add(1)
	}
	return left
}
