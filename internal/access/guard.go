package access

import (
	"context"
	"sync"

	"github.com/leasehold/leasehold"
	"github.com/leasehold/leasehold/internal/audit"
	"github.com/leasehold/leasehold/internal/core"
	policy "github.com/leasehold/leasehold/internal/core/access"
	"github.com/leasehold/leasehold/internal/core/command"
	"github.com/leasehold/leasehold/internal/engine"
)

// A Guard is an engine as somebody sees it who may not see everything. Who asks is in the context of each call: see
// engine.WithAsker. Its methods may be called from any goroutine.
type Guard struct {
	engine  engine.Engine
	feed    *engine.Feed // behind the guard's gate
	rates   rates
	streams streams
	unnamed unnamed

	readings sync.Pool // of *reading
}

var _ engine.Engine = (*Guard)(nil)

// New returns a guard before an engine.
func New(e engine.Engine) *Guard {
	g := &Guard{engine: e, streams: streams{waits: map[*context.CancelFunc]struct{}{}}}
	g.feed = e.Feed().Behind(gate{g})
	g.readings.New = func() any {
		r := &reading{}
		r.run = r.look
		return r
	}
	return g
}

// Do carries out a command, in the name of the asker. Whether it may is decided where it is applied.
func (g *Guard) Do(ctx context.Context, c core.Command) (core.Answer, error) {
	if p := g.feed.Policy(); p != nil {
		var err error
		if c, err = g.sign(ctx, p, c); err != nil {
			return core.Answer{}, err
		}
	}
	answer, err := g.engine.Do(ctx, c)
	g.unnamed.told(ctx, core.LargeOf(c), err)
	return answer, err
}

// Submit carries out commands, each in the name of its asker.
func (g *Guard) Submit(batch []engine.Submission) {
	p := g.feed.Policy()
	if p == nil {
		g.engine.Submit(batch)
		return
	}
	admitted := make([]engine.Submission, 0, len(batch))
	for _, s := range batch {
		c, err := g.sign(s.Ctx, p, s.Command)
		if err != nil {
			s.Done(core.Answer{}, err)
			continue
		}
		s.Command = c
		admitted = append(admitted, s)
	}
	g.engine.Submit(admitted)
}

// sign lets a command in, and returns it with the name of its asker where it has room for one.
func (g *Guard) sign(ctx context.Context, p *policy.Policy, c core.Command) (core.Command, error) {
	if err := g.admit(ctx, p, c); err != nil {
		return nil, err
	}
	if asker := engine.AskerOf(ctx); asker != nil && asker != &policy.System {
		c = command.SignedBy(c, asker.Principal)
	}
	return c, nil
}

// Read calls fn with what the asker may see of the state, by the policy of that very state. A read that may see nothing
// of what it asks for returns Denied.
func (g *Guard) Read(ctx context.Context, fn func(core.View)) error {
	if p := g.feed.Policy(); p != nil {
		if err := g.admit(ctx, p, nil); err != nil {
			return err
		}
	}
	r := g.readings.Get().(*reading)
	r.ctx, r.fn = ctx, fn
	err := g.engine.Read(ctx, r.run)
	if err == nil && r.denied != nil {
		err = r.denied
	}
	r.ctx, r.fn, r.denied = nil, nil, nil
	g.readings.Put(r)
	return err
}

// A reading is a read under way. It is used again, so that one without a policy costs no more than a bare one. The view
// of an asker is not: what fn takes from it, such as a history, asks it after the read is over.
type reading struct {
	ctx    context.Context
	fn     func(core.View)
	run    func(core.View) // look
	denied *leasehold.Error
}

func (r *reading) look(v core.View) {
	p := v.Policy()
	if p == nil {
		r.fn(v)
		return
	}
	permit, err := permitOf(r.ctx, p)
	switch {
	case err != nil:
		r.denied = err
	case permit == nil:
		r.fn(v) // a server asks by itself
	default:
		seen := &view{in: v, permit: permit, door: doorOf(r.ctx)}
		r.fn(seen)
		if !seen.shown {
			r.denied = seen.denied
		}
	}
}

// Ready reports whether the engine can be read, and nothing of what it has: anybody may ask.
func (g *Guard) Ready(ctx context.Context) error { return g.engine.Read(ctx, func(core.View) {}) }

// Level returns the level of the rules by which the engine decides.
func (g *Guard) Level() core.Level { return g.engine.Level() }

// Feed tells what happens, as far as the asker of each watch may see it.
func (g *Guard) Feed() *engine.Feed { return g.feed }

// Changed returns a channel that is closed when the policy is another; nil: it never will be.
func (g *Guard) Changed() <-chan struct{} {
	changed := g.feed.Changed()
	if g.feed.Closed() {
		return nil
	}
	return changed
}

// Journal has what was done, as far as the asker of each search may see it; nil: the engine keeps none.
func (g *Guard) Journal() audit.Book {
	if book := g.engine.Journal(); book != nil {
		return journal{g, book}
	}
	return nil
}

// Permit returns what the asker may do, by the newest policy that this server knows; nil: everything.
func (g *Guard) Permit(ctx context.Context) (*policy.Permit, error) {
	permit, err := permitOf(ctx, g.feed.Policy())
	if err != nil {
		return nil, err
	}
	return permit, nil
}

// MayCluster returns why the asker may not do something that belongs to no namespace; nil: it may.
func (g *Guard) MayCluster(ctx context.Context, v policy.Verb) error {
	permit, err := g.Permit(ctx)
	if err != nil {
		return err
	}
	if !permit.MayCluster(v) {
		return denyCluster(permit, v)
	}
	return nil
}

// MayWrite returns why the asker may not write the record at a path, or none below it if below is true; nil: it may
// try. Doors ask before they read what was sent, so that nothing is made of the body of somebody without the right.
// Whether the write is allowed is decided where it is applied.
func (g *Guard) MayWrite(ctx context.Context, namespace, path string, below bool) error {
	err := g.mayWrite(ctx, namespace, path, below)
	if err != nil && g.Ready(ctx) == nil { // the policy that this server knew may have been an older one
		err = g.mayWrite(ctx, namespace, path, below)
	}
	return err
}

func (g *Guard) mayWrite(ctx context.Context, namespace, path string, below bool) error {
	permit, err := g.Permit(ctx)
	switch {
	case err != nil || permit == nil:
		return err
	case below && len(permit.Parts(policy.RecordWrite, namespace, path)) == 0,
		!below && !permit.May(policy.RecordWrite, namespace, path, permit.Self()):
		return deny(permit, policy.RecordWrite, namespace, path)
	}
	return nil
}

// permitOf returns what the asker of a context may do; nil: everything.
func permitOf(ctx context.Context, p *policy.Policy) (*policy.Permit, *leasehold.Error) {
	if p == nil {
		return nil, nil
	}
	asker := engine.AskerOf(ctx)
	if asker == nil {
		return nil, whoAreYou()
	}
	permit := p.Permit(asker)
	if permit.Revoked() {
		return nil, revoked(asker)
	}
	return permit, nil
}

// doorOf returns the door through which somebody asks.
func doorOf(ctx context.Context) string {
	origin, _ := engine.OriginOf(ctx)
	return origin.Door
}
