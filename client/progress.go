package client

import (
	"context"
	"errors"
	"time"

	"github.com/leasehold/leasehold"
	v1 "github.com/leasehold/leasehold/api/v1"
)

// Progress calls fn with the state of a wait: when it begins, and whenever it changed. fn is
// called from one goroutine at a time, and no longer once the acquire has returned.
func Progress(fn func(Waiting)) Option { return func(o *options) { o.progress = fn } }

// Waiting is the state of a wait.
type Waiting struct {
	Resource string
	Position int // 1 is next; 0: not known yet
	Queue    int // the number of waiters
	Holder   string
	Reason   string // why the holder needs it
	Since    time.Time
	Expires  time.Time // of the lease in the way, unless it is renewed; zero: it has no TTL
	Waited   time.Duration
	Forecast time.Duration // how long until a turn usually comes; 0: not known

	ForecastError time.Duration // how far the forecast may be off, four times of five; 0: not known
}

// progressBackoff is the pause between two progress reports.
var progressBackoff = v1.Backoff{First: 500 * time.Millisecond, Most: 5 * time.Second}

// reportProgress reports the state of the wait until ctx ends.
func (a *claim) reportProgress(ctx context.Context) {
	said := Waiting{}
	question := a.request
	// The same id without a wait: the server answers at once with the place of the waiter that it
	// knows, and does not queue it twice.
	question.Wait = 0
	for n := 1; progressBackoff.Sleep(ctx, n); n++ {
		var held *leasehold.Error
		err := once(ctx, 5*time.Second, func(ctx context.Context) error {
			_, err := a.session.client.store.Acquire(ctx, question)
			return err
		})
		if !errors.As(err, &held) || held.Code != leasehold.Held || ctx.Err() != nil {
			continue
		}
		now := waitingOf(a.request.Resource, held)
		if now != said {
			said = now
			// Not compared: they change all the time.
			now.Waited, now.Forecast = a.session.clock()-a.began, held.Forecast
			now.ForecastError = held.ForecastError
			a.progress(now)
		}
	}
}

func waitingOf(resource string, e *leasehold.Error) Waiting {
	w := Waiting{Resource: resource, Position: e.Position, Queue: e.Waiting}
	if l := e.Lease; l != nil {
		w.Holder, w.Reason, w.Since = l.Holder, l.Reason, l.Acquired
		w.Expires = l.Expires
	}
	return w
}
