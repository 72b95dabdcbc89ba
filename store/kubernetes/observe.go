package kubernetes

import (
	"sync"
	"time"

	"github.com/leasehold/leasehold/store"
)

// A view is a Lease, and what this process knows about its time.
type view struct {
	object *object // nil: there is no Lease
	cached bool    // nobody was asked just now

	seen  time.Duration // when the spec was seen first, on our clock
	since time.Duration // before the request was sent that wrote the spec; negative: it was not ours
}

const unknown = time.Duration(-1)

// held reports whether somebody holds the Lease, as far as this process can tell.
func (v view) held(now time.Duration) bool {
	if v.object == nil || v.object.Spec.HolderIdentity == "" {
		return false
	}
	return v.duration() == 0 || now < v.ends()
}

// ends is when the lease has ended. Nobody relies on one that this process wrote for longer than a TTL after
// the request was sent. One of somebody else's may have been renewed until just before it was seen.
func (v view) ends() time.Duration {
	if v.since >= 0 {
		return v.since + v.duration()
	}
	return v.seen + v.duration()
}

// duration is how long the lease lasts without a renewal; 0: it does not end by time.
func (v view) duration() time.Duration {
	if n := v.object.current(); n != nil {
		return n.ttl()
	}
	return time.Duration(v.object.Spec.LeaseDurationSeconds) * time.Second
}

// remaining is what is left of the lease at least, for others; 0: it does not end by time.
func (v view) remaining(now time.Duration) time.Duration {
	if v.duration() == 0 {
		return 0
	}
	return max(v.ends()-now, 1)
}

// An observer remembers since when each Lease has been as it is.
type observer struct {
	clock store.Clock

	mu     sync.Mutex // guards what follows
	leases map[string]*observed
	prune  int // how many there may be before the old ones are dropped
}

type observed struct {
	view
	exact bool // no request has failed since
	tried []attempt
}

// An attempt is a request whose answer may be lost. Its time of renewal is unique.
type attempt struct {
	spec spec
	sent time.Duration
}

const (
	attemptsKept = 4
	leasesKept   = 1000
	leaseIdle    = 10 * time.Minute // after its end
)

func newObserver(c store.Clock) *observer {
	return &observer{clock: c, leases: map[string]*observed{}, prune: leasesKept}
}

// known returns a Lease as it was seen last, if nothing says that it has changed.
func (w *observer) known(name string) (view, bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	o := w.leases[name]
	if o == nil || !o.exact {
		return view{}, false
	}
	v := o.view
	v.cached = true
	return v, true
}

// saw takes a Lease that the API server has just shown. Time is counted from now: its last renewal may
// have been accepted at any moment before.
func (w *observer) saw(o *object) view {
	now := w.clock.Now()
	w.mu.Lock()
	defer w.mu.Unlock()
	before := w.leases[o.Meta.Name]
	if before == nil {
		w.drop(now)
		before = &observed{}
		w.leases[o.Meta.Name] = before
	}
	if before.object == nil || before.object.Spec != o.Spec || before.object.Meta.UID != o.Meta.UID {
		before.seen, before.since = now, unknown
		for _, a := range before.tried {
			if a.spec == o.Spec {
				before.since = a.sent
			}
		}
	}
	before.object, before.exact = o, true
	return before.view
}

// trying takes what is about to be written.
func (w *observer) trying(o *object) {
	now := w.clock.Now()
	w.mu.Lock()
	defer w.mu.Unlock()
	before := w.leases[o.Meta.Name]
	if before == nil {
		return
	}
	before.tried = append(before.tried, attempt{o.Spec, now})
	before.tried = before.tried[max(0, len(before.tried)-attemptsKept):]
}

// doubt makes the next verb ask for a Lease, rather than rely on what was seen.
func (w *observer) doubt(name string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if o := w.leases[name]; o != nil {
		o.exact = false
	}
}

// gone takes that there is no such Lease.
func (w *observer) gone(name string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.leases, name)
}

// drop forgets Leases that ended a while ago. If one comes back, it is watched from then on.
func (w *observer) drop(now time.Duration) {
	if len(w.leases) < w.prune {
		return
	}
	for name, o := range w.leases {
		if o.object == nil || now > o.seen+o.duration()+leaseIdle {
			delete(w.leases, name)
		}
	}
	w.prune = max(leasesKept, 2*len(w.leases))
}
