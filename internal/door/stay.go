package door

import (
	"context"
	"errors"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/leasehold/leasehold/internal/access/credential"
	"github.com/leasehold/leasehold/internal/engine"
	"github.com/leasehold/leasehold/internal/listen"
)

// Stay counts a request that waits for a resource, and refuses it if too many do or the server
// is stopping. Call leave when it ends.
func (b *Backend) Stay() (leave func(), err error) { return b.StayAs(b.Metrics().Waiting) }

// StayAs counts a request that stays for another reason, such as a watch, in that gauge.
func (b *Backend) StayAs(kind prometheus.Gauge) (leave func(), err error) {
	if b.Stopping().Err() != nil {
		return nil, engine.Unavailable(listen.StoppingMessage)
	}
	left, err := b.stays.Enter()
	if err != nil {
		return nil, err
	}
	kind.Inc()
	return func() {
		kind.Dec()
		left()
	}, nil
}

// UntilStopping returns a context that ends when the server drains, too.
func (b *Backend) UntilStopping(ctx context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(ctx)
	release := context.AfterFunc(b.Stopping(), cancel)
	return ctx, func() {
		release()
		cancel()
	}
}

// errEnded is why what stays ends when its credential does.
var errEnded = &loginError{&credential.Refusal{Reason: credential.Expired,
	Message: "the credential expired in the meantime: get another one, and ask again with the same id"}}

// Staying returns a context for a request that stays: it ends when the server drains, and when the credential of who
// asks expires.
func (b *Backend) Staying(ctx context.Context, p *credential.Proof) (context.Context, context.CancelFunc) {
	ctx, cancel := b.UntilStopping(ctx)
	if p == nil || p.Expires.IsZero() {
		return ctx, cancel
	}
	ctx, ended := context.WithTimeoutCause(ctx, p.Expires.Sub(b.login.Now()), errEnded)
	return ctx, func() {
		ended()
		cancel()
	}
}

// Ended returns why a request that stayed had to end, if that is because its credential expired.
func Ended(ctx context.Context) error {
	if err := context.Cause(ctx); errors.Is(err, errEnded) {
		return err
	}
	return nil
}

// Pause waits, and reports whether there is still somebody to wait for: it ends early, with
// false, when ctx does or the server drains.
func (b *Backend) Pause(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
	case <-b.Stopping().Done():
	}
	return false
}
