package access

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/leasehold/leasehold"
	"github.com/leasehold/leasehold/internal/core"
	policy "github.com/leasehold/leasehold/internal/core/access"
	"github.com/leasehold/leasehold/internal/engine"
)

// showsEvent reports whether somebody may see an event, in a watch or in history. Everything that an event says is
// about its own resource, record or session.
func showsEvent(p *policy.Permit, door string, e *leasehold.Event) bool {
	owner := e.Owner
	switch e.Kind {
	case leasehold.SessionOpened, leasehold.SessionEnded:
		return p.MayToOwn(policy.Watch, e.Namespace, owner)
	case leasehold.RecordPut, leasehold.RecordDeleted:
		return p.May(policy.Watch, e.Namespace, e.Resource, owner) &&
			readsRecord(p, door, e.Namespace, e.Resource, owner)
	}
	switch {
	case e.Resource == "" && e.Session != "": // an alarm about a session
		return p.MayToOwn(policy.Watch, e.Namespace, owner)
	case e.Resource == "": // an alarm about the whole namespace
		return p.MaySomewhere(policy.Watch, e.Namespace)
	}
	return p.May(policy.Watch, e.Namespace, e.Resource, owner) && p.May(policy.Read, e.Namespace, e.Resource, owner)
}

// A gate is the guard as the feed sees it.
type gate struct{ guard *Guard }

// Watch lets somebody follow a namespace.
func (g gate) Watch(ctx context.Context, namespace string) (engine.Sight, error) {
	s := &sight{guard: g.guard, ctx: ctx, namespace: namespace, door: doorOf(ctx)}
	if err := s.Look(); err != nil {
		return nil, err
	}
	leave, err := g.guard.countWatch(s.permit, namespace)
	if err != nil {
		return nil, err
	}
	left := g.guard.enter()
	context.AfterFunc(ctx, func() {
		leave()
		left()
	})
	return s, nil
}

// Wait returns why somebody may no longer wait for what it asked for.
func (g gate) Wait(ctx context.Context, c *core.Acquire) error {
	permit, err := permitOf(ctx, g.guard.feed.Policy())
	if err != nil {
		return err
	}
	for _, item := range c.Items() {
		verb := policy.Acquire
		// What a reservation is for was judged when it was claimed.
		if item.Slots != 0 || c.Reservation != "" && !permit.MayHold(verb, c.Namespace, item.Resource, c.Holder, nil) {
			verb = policy.Share
		}
		if !permit.MayHold(verb, c.Namespace, item.Resource, c.Holder, nil) {
			return deny(permit, verb, c.Namespace, item.Resource)
		}
	}
	return nil
}

// Stay counts a wait, and ends it when nobody can know any more who may wait. What began before there was a policy has
// no asker, and ends with the first one anyway.
func (g gate) Stay(ctx context.Context) (context.Context, func()) {
	if g.guard.feed.Policy() == nil {
		return ctx, func() {}
	}
	leave := g.guard.enter()
	ctx, end := context.WithCancel(ctx)
	s := &g.guard.streams
	s.mu.Lock()
	defer s.mu.Unlock()
	s.waits[&end] = struct{}{}
	if s.lost.Load() {
		end()
	}
	return ctx, func() {
		end()
		s.mu.Lock()
		delete(s.waits, &end)
		s.mu.Unlock()
		leave()
	}
}

// A sight is what one watch may see.
type sight struct {
	guard     *Guard
	ctx       context.Context
	namespace string
	door      string

	policy *policy.Policy // by which permit was made
	permit *policy.Permit
}

// Look returns why the watch cannot go on: its asker lost the right, or nobody knows. That a credential expires
// is for the door to notice, which ends the context.
func (s *sight) Look() error {
	p := s.guard.feed.Policy()
	if p == nil {
		s.policy, s.permit = nil, nil
		return nil
	}
	if s.guard.streams.lost.Load() {
		return unheard("watch")
	}
	if p != s.policy {
		permit, err := permitOf(s.ctx, p)
		if err != nil {
			return err
		}
		if !permit.MaySomewhere(policy.Watch, s.namespace) {
			return deny(permit, policy.Watch, s.namespace, "")
		}
		s.policy, s.permit = p, permit
	}
	return nil
}

// unheard is why nobody may go on with something.
func unheard(what string) error {
	return engine.Unavailable("no leader heard for a second: nobody knows who may " + what + "; try another server")
}

// fresh is Permit for what takes long: it returns an error if nobody knows whether the policy is the newest.
func (g *Guard) fresh(ctx context.Context) (*policy.Permit, error) {
	permit, err := g.Permit(ctx)
	if err == nil && permit != nil && g.streams.lost.Load() {
		return nil, unheard("go on")
	}
	return permit, err
}

// Shows reports whether the watch may see an event.
func (s *sight) Shows(e *leasehold.Event) bool {
	return s.permit == nil || showsEvent(s.permit, s.door, e)
}

// While there are watches, waits, or values on their way, and a policy, the guard makes sure that it is the newest one:
// it reads the state, as everybody's answers have it, every freshen. If that fails for stale, they end.
const (
	freshen = 250 * time.Millisecond
	stale   = time.Second
)

// streams are the watches of a guard, and what else takes long.
type streams struct {
	lost atomic.Bool // nobody knows whether the policy is the newest

	mu    sync.Mutex // guards what follows
	open  int
	stop  context.CancelFunc               // of who looks after them
	waits map[*context.CancelFunc]struct{} // that end when the leader is lost

	confirmed time.Time // when the newest read began that found a leader
}

// follow counts a watch until ctx ends.
func (g *Guard) follow(ctx context.Context) { context.AfterFunc(ctx, g.enter()) }

// enter counts something that takes long, until leave is called.
func (g *Guard) enter() (leave func()) {
	s := &g.streams
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.open++; s.open == 1 {
		looking, stop := context.WithCancel(context.Background())
		s.stop = stop
		go g.stayFresh(looking)
	}
	return func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		if s.open--; s.open == 0 {
			s.stop()
			s.lost.Store(false) // nobody looks after it any more, and what begins reads the state
		}
	}
}

// stayFresh runs while there are watches, and an engine.
func (g *Guard) stayFresh(ctx context.Context) {
	late := time.AfterFunc(stale, func() { g.setLost(ctx, g.feed.Policy() != nil) })
	defer late.Stop()
	for ctx.Err() == nil && !g.feed.Closed() {
		changed := g.feed.Changed()
		if g.feed.Policy() == nil {
			late.Stop()
			g.setLost(ctx, false)
			select {
			case <-changed:
			case <-ctx.Done():
			}
			late.Reset(stale)
			continue
		}
		go g.confirm(ctx, late) // one that takes long must not hold up the next
		pause(ctx, freshen)
	}
}

// confirm reads the state, and puts off the moment at which the leader counts as lost.
func (g *Guard) confirm(ctx context.Context, late *time.Timer) {
	began := time.Now()
	reading, cancel := context.WithTimeout(ctx, stale)
	defer cancel()
	if g.Ready(reading) != nil {
		return
	}
	s := &g.streams
	s.mu.Lock()
	newest := ctx.Err() == nil && g.feed.Policy() != nil && began.After(s.confirmed)
	if newest {
		s.confirmed = began
		late.Reset(stale - time.Since(began))
	}
	s.mu.Unlock()
	if newest {
		g.setLost(ctx, false)
	}
}

func (g *Guard) setLost(ctx context.Context, lost bool) {
	s := &g.streams
	s.mu.Lock()
	defer s.mu.Unlock()
	if ctx.Err() != nil || s.lost.Swap(lost) == lost || !lost {
		return
	}
	g.feed.Wake()
	for end := range s.waits {
		(*end)()
	}
}

func pause(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}
