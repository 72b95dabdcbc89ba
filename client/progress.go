package client

import (
	"context"
	"errors"
	"time"

	"github.com/leasehold/leasehold"
	v1 "github.com/leasehold/leasehold/api/v1"
)

// Progress is told how a wait stands: when it begins, and whenever that changed. fn is
// called from one goroutine at a time, and not any more when the acquire returns.
func Progress(fn func(Waiting)) Option { return func(o *options) { o.progress = fn } }

// A Waiting is how a wait stands.
type Waiting struct {
	Resource string
	Position int // 1 is next; 0: not known yet
	Queue    int // how many wait
	Holder   string
	Reason   string // why the holder needs it
	Since    time.Time
	Expires  time.Time // of the lease in the way, if nobody renews it; zero: it has no end
	Waited   time.Duration
	Forecast time.Duration // in how long a turn usually comes; 0: nobody can tell
}

// progressBackoff is how long to wait from one question about a wait to the next.
var progressBackoff = v1.Backoff{First: 500 * time.Millisecond, Most: 5 * time.Second}

// reportProgress says how the wait stands, until ctx ends.
func (a *claim) reportProgress(ctx context.Context) {
	said := Waiting{}
	question := a.request
	question.Wait = 0
	for n := 1; progressBackoff.Sleep(ctx, n); n++ {
		var held *leasehold.Error
		err := a.session.client.servers.Once(ctx, 5*time.Second, func(ctx context.Context, w *v1.Caller) error {
			_, err := w.Acquire(ctx, question)
			return err
		})
		if !errors.As(err, &held) || held.Code != leasehold.Held || ctx.Err() != nil {
			continue
		}
		now := waitingOf(a.request.Resource, held)
		if now != said {
			said = now
			now.Waited, now.Forecast = a.session.clock()-a.began, held.Forecast // which change all the time
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
