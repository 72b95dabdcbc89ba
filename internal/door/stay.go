package door

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/leasehold/leasehold"
	"github.com/leasehold/leasehold/internal/access/credential"
	"github.com/leasehold/leasehold/internal/engine"
	"github.com/leasehold/leasehold/internal/listen"
)

// maxChecks is how many watch the health of a server.
const maxChecks = 1000

// Stay counts a request that waits for a resource, and refuses it if too many do or the server
// is stopping. The context says whose request it is. Call leave when it ends.
func (b *Backend) Stay(ctx context.Context) (leave func(), err error) {
	return b.StayAs(ctx, b.Metrics().Waiting)
}

// StayAs counts a request that stays for another reason, such as a watch, in that gauge.
func (b *Backend) StayAs(ctx context.Context, kind prometheus.Gauge) (leave func(), err error) {
	return b.stay(ctx, b.stays, kind)
}

// StayRenewing counts a request that stays to renew leases or sessions. It never competes with those that wait or
// watch: without it, its client would lose what it has.
func (b *Backend) StayRenewing(ctx context.Context) (leave func(), err error) {
	return b.stay(ctx, b.renewals, b.Metrics().Waiting)
}

// StayChecking counts a request that watches the health of the server, which anybody may.
func (b *Backend) StayChecking(ctx context.Context) (leave func(), err error) {
	return b.stay(ctx, b.checks, b.Metrics().Watches)
}

func (b *Backend) stay(ctx context.Context, places *Places, kind prometheus.Gauge) (leave func(), err error) {
	if b.Stopping().Err() != nil {
		return nil, engine.Unavailable(listen.StoppingMessage)
	}
	left, err := places.Enter(ctx)
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
	ctx, end := context.WithCancelCause(ctx)
	return ctx, b.endWithServer(end)
}

// Staying returns a context for a request that stays: it ends when the server drains, and when the credential of who
// asks does.
func (b *Backend) Staying(ctx context.Context, p *credential.Proof) (context.Context, context.CancelFunc) {
	ctx, end := context.WithCancelCause(ctx)
	cancel := b.endWithServer(end)
	if p == nil {
		return ctx, cancel
	}
	forget := b.watchProof(p, end)
	return ctx, func() {
		forget()
		cancel()
	}
}

// endWithServer ends a context when the server drains, or when cancel is called. context.AfterFunc would do the same at
// three times the price, for each of ten thousand watches.
func (b *Backend) endWithServer(end context.CancelCauseFunc) (cancel func()) {
	sleeper := &Sleeper{Wake: func() { end(nil) }}
	b.SleepUntil(b.Stopping().Done(), sleeper)
	return func() {
		b.Awake(sleeper)
		end(nil)
	}
}

// Proven returns a context for a request that takes long: it ends when the credential of who asks expires, or no longer
// proves the same. The expiry is that of the policy of each moment.
func (b *Backend) Proven(ctx context.Context, p *credential.Proof) (context.Context, context.CancelFunc) {
	ctx, end := context.WithCancelCause(ctx)
	forget := b.watchProof(p, end)
	return ctx, func() {
		forget()
		end(nil)
	}
}

// A proofWatch ends a context when a proof does. It has no goroutine: there may be ten thousand of them.
type proofWatch struct {
	backend *Backend
	proof   *credential.Proof
	sleeper Sleeper

	mu    sync.Mutex              // guards what follows
	end   context.CancelCauseFunc // nil: the watch is over
	timer *time.Timer             // for the expiry; nil: there was none so far
}

// watchProof watches a proof until forget is called; nil is never over.
func (b *Backend) watchProof(p *credential.Proof, end context.CancelCauseFunc) (forget func()) {
	if p == nil {
		return func() {}
	}
	w := &proofWatch{backend: b, proof: p, end: end}
	w.sleeper.Wake = w.look
	w.look()
	return w.forget
}

// look judges the proof, and is called again when the policy has changed, and when the proof expires.
func (w *proofWatch) look() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.end == nil {
		return
	}
	b := w.backend
	changed := b.guard.Changed() // before the policy is looked at
	expires, err := b.login.Still(w.proof)
	if err != nil {
		w.end(coded(err))
		return
	}
	b.SleepUntil(changed, &w.sleeper)
	if expires.IsZero() {
		return
	}
	rest := expires.Sub(b.login.Now())
	if w.timer == nil {
		w.timer = time.AfterFunc(rest, w.look)
		return
	}
	w.timer.Reset(rest)
}

func (w *proofWatch) forget() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.end = nil
	w.backend.Awake(&w.sleeper)
	if w.timer != nil {
		w.timer.Stop()
	}
}

// Ended returns why a request that took long had to end, if that is because its credential did. The guard may have been
// the first to notice, and says only that the request was denied: a client that has another credential would keep it.
func (b *Backend) Ended(ctx context.Context, p *credential.Proof, err error) error {
	var ended *loginError
	if errors.As(context.Cause(ctx), &ended) {
		return ended
	}
	if p != nil && errors.Is(err, leasehold.ErrDenied) {
		_, refused := b.login.Still(p)
		return coded(refused)
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
