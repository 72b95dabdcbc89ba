package kernel

import (
	"time"

	"github.com/leasehold/leasehold"
	"github.com/leasehold/leasehold/internal/core/usage"
	"github.com/leasehold/leasehold/internal/pattern"
)

// A Resource is kept while somebody has it or wants it, and for a while after,
// for what it remembers.
type Resource struct {
	Path    string
	Claim   string // the id of the exclusive lease on it, if any
	Waiting int
	Idle    uint64
	More    *More // what a resource has that was held before, or is shared

	timer *timer // while somebody waits for the end of a rest, or a task does
}

// More is what a resource has that was held before, or is shared.
type More struct {
	Last   *Ending
	Rests  []Rest
	Shares *Shares      // nil: nobody has, wants or remembers slots of it
	Usual  *usage.Usual // nil: nothing is learned yet
}

// An Ending is what a resource remembers of its last lease.
type Ending struct {
	ID     string
	Holder string
	Token  leasehold.Token
	How    leasehold.How
	By     string
	Reason string
	Wall   int64

	Foreign string        // as in Terms
	TTL     time.Duration // of the lease; 0: it had none of its own
}

func (r *Resource) more() More {
	if r.More == nil {
		return More{}
	}
	return *r.More
}

func (r *Resource) setMore(m More) {
	r.More = nil
	if m.Last != nil || len(m.Rests) > 0 || m.Shares != nil || m.Usual != nil {
		r.More = new(m)
	}
}

// Held reports whether anybody has the resource, or some of it.
func (r *Resource) Held() bool { return r.Claim != "" || r.Sharers() > 0 }

// Resting reports whether a part of it rests.
func (r *Resource) Resting() bool { return len(r.more().Rests) > 0 }

// InUse reports whether it is held, waited for or at rest.
func (r *Resource) InUse() bool { return r.Held() || r.Waiting > 0 || r.Resting() }

// Leased reports whether somebody has all of a resource.
func (s *State) Leased(namespace, path string) bool {
	sp, ok := s.spaces.Get(namespace)
	if !ok {
		return false
	}
	r, ok := sp.resources.Get(path)
	return ok && r.Claim != ""
}

// setResource stores a resource and keeps five accounts that depend on it: the list of idle
// resources, of which only a bounded number is remembered; the timer of a rest that somebody
// waits for; the agreed capacity, which is forgotten once nobody holds or wants the
// resource, so that the next to share it may agree on another; whether the task of its name can be
// claimed; and whether its name is in use in its area. A change that touches none of them may store
// the resource directly.
func (t *turn) setResource(sp *space, r *Resource) {
	idle := !r.Held() && r.Waiting == 0
	if r.More != nil && r.More.Shares != nil && idle {
		more := *r.More
		shares := *more.Shares
		shares.Capacity = 0
		if more.Shares = &shares; len(shares.Units) == 0 {
			more.Shares = nil
		}
		r.setMore(more)
	}
	// The end of a rest changes nothing unless somebody waits for it. Without a waiter it needs
	// no timer, and the log no tick.
	// In an area somebody may wait for it under another name.
	inArea := pattern.In(r.Path)
	if at := r.resumes(); at != 0 && (r.Waiting > 0 || sp.isTodo(r.Path) || inArea) {
		if r.timer == nil {
			r.timer = newTimer(dueResource, sp, r.Path)
		}
		t.due.Set(r.timer, at)
	} else if r.timer != nil {
		t.due.Set(r.timer, 0)
		r.timer = nil
	}
	switch {
	case idle && r.Idle == 0:
		t.idleSeq++
		r.Idle = t.idleSeq
		t.idle.Set(r.Idle, place{sp.name, r.Path})
		sp.unmirror(r.Path)
	case !idle && r.Idle != 0:
		t.idle.Delete(r.Idle)
		r.Idle = 0
	}
	sp.resources.Set(r.Path, r)
	sp.tasks.Place(Namespace{t.State, sp}, r.Path)
	if inArea {
		sp.areas.Stored(r)
	}
}

// dropResource forgets a resource that nobody has or wants.
func (t *turn) dropResource(sp *space, r *Resource) {
	sp.resources.Delete(r.Path)
	t.dropped(sp, r)
}

// dropped takes a resource that is no longer stored out of what else knows it.
func (t *turn) dropped(sp *space, r *Resource) {
	if r.timer != nil { // of a rest that is over
		t.due.Set(r.timer, 0)
	}
	if pattern.In(r.Path) {
		sp.areas.Dropped(r.Path)
	}
}
