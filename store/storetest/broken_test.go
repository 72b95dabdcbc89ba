package storetest

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/leasehold/leasehold"
	"github.com/leasehold/leasehold/store"
	"github.com/leasehold/leasehold/store/memory"
)

// A faulty store has one fault. What it does not override is right.
type faulty struct {
	*memory.Store
	fault fault
	seen  *seen
}

// seen is what the handles of a broken store know together.
type seen struct {
	mu     sync.Mutex // guards what follows
	n      int
	grants map[string]store.Grant
}

func (s *seen) note(id string, g store.Grant) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.grants[id] = g
}

func (s *seen) grant(id string) (store.Grant, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	g, ok := s.grants[id]
	return g, ok
}

func (s *seen) count() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.n++
	return s.n
}

// A fault replaces what it breaks.
type fault struct {
	by []string // the cases that must find it

	acquire func(*faulty, context.Context, store.Request) (store.Grant, error)
	renew   func(*faulty, context.Context, []store.Ref) ([]store.Renewal, error)
	release func(*faulty, context.Context, store.ReleaseRequest) error
	breaks  func(*faulty, context.Context, store.BreakRequest) (leasehold.Lease, error)
	read    func(*faulty, context.Context, string) (store.Resource, error)
	list    func(*faulty, context.Context, store.Query) (store.Page, error)
	renewed func(*faulty, store.SessionAnswer) store.SessionAnswer
	power   func(store.Features) store.Features
}

func (b *faulty) Features() store.Features {
	if b.fault.power != nil {
		return b.fault.power(b.Store.Features())
	}
	return b.Store.Features()
}

func (b *faulty) Acquire(ctx context.Context, r store.Request) (store.Grant, error) {
	if b.fault.acquire != nil {
		return b.fault.acquire(b, ctx, r)
	}
	return b.Store.Acquire(ctx, r)
}

func (b *faulty) Renew(ctx context.Context, refs ...store.Ref) ([]store.Renewal, error) {
	if b.fault.renew != nil {
		return b.fault.renew(b, ctx, refs)
	}
	return b.Store.Renew(ctx, refs...)
}

func (b *faulty) Release(ctx context.Context, r store.ReleaseRequest) error {
	if b.fault.release != nil {
		return b.fault.release(b, ctx, r)
	}
	return b.Store.Release(ctx, r)
}

func (b *faulty) Break(ctx context.Context, r store.BreakRequest) (leasehold.Lease, error) {
	if b.fault.breaks != nil {
		return b.fault.breaks(b, ctx, r)
	}
	return b.Store.Break(ctx, r)
}

func (b *faulty) Read(ctx context.Context, resource string) (store.Resource, error) {
	if b.fault.read != nil {
		return b.fault.read(b, ctx, resource)
	}
	return b.Store.Read(ctx, resource)
}

func (b *faulty) List(ctx context.Context, q store.Query) (store.Page, error) {
	if b.fault.list != nil {
		return b.fault.list(b, ctx, q)
	}
	return b.Store.List(ctx, q)
}

func (b *faulty) RenewSession(ctx context.Context, id string, n uint64) (store.SessionAnswer, error) {
	answer, err := b.Store.RenewSession(ctx, id, n)
	if b.fault.renewed != nil && err == nil {
		answer = b.fault.renewed(b, answer)
	}
	return answer, err
}

// as acquires in another way, and answers as if nothing were different.
func (b *faulty) as(ctx context.Context, r store.Request, change func(*store.Request)) (store.Grant, error) {
	other := r
	change(&other)
	g, err := b.Store.Acquire(ctx, other)
	g.Resource, g.ID, g.Holder = r.Resource, r.ID, r.Holder
	return g, err
}

// planted are the faults. Each must be found.
var planted = map[string]fault{
	"grants what is held to every fifth who asks": {
		by: []string{"id/one holder of many", "contenders/fenced register"},
		acquire: func(b *faulty, ctx context.Context, r store.Request) (store.Grant, error) {
			if g, err := b.Store.Acquire(ctx, r); !errors.Is(err, leasehold.ErrHeld) || b.seen.count()%5 != 0 {
				return g, err
			}
			return b.as(ctx, r, func(r *store.Request) { r.Resource, r.ID = "shadow of "+r.ID, "shadow of "+r.ID })
		},
	},
	"grants again to a retry": {
		by: []string{"acquire/each state", "messages/lost replies", "id/many at once"},
		acquire: func(b *faulty, ctx context.Context, r store.Request) (store.Grant, error) {
			g, err := b.Store.Acquire(ctx, r)
			if before, again := b.seen.grant(r.ID); err == nil && again && before.Token == g.Token {
				g.Token += 1000
			}
			b.seen.note(r.ID, g)
			return g, err
		},
	},
	"refuses a retry as held": {
		by: []string{"acquire/each state", "messages/lost replies"},
		acquire: func(b *faulty, ctx context.Context, r store.Request) (store.Grant, error) {
			g, err := b.Store.Acquire(ctx, r)
			if before, again := b.seen.grant(r.ID); err == nil && again {
				return store.Grant{}, &leasehold.Error{Code: leasehold.Held, Lease: &before.Lease}
			}
			b.seen.note(r.ID, g)
			return g, err
		},
	},
	"renews by a retry": {
		by: []string{"id/an acquire again is no renewal"},
		acquire: func(b *faulty, ctx context.Context, r store.Request) (store.Grant, error) {
			g, err := b.Store.Acquire(ctx, r)
			if err == nil && g.Remaining < r.TTL {
				list, _ := b.Store.Renew(ctx, store.Ref{Resource: r.Resource, ID: r.ID})
				g.Remaining = list[0].Remaining
			}
			return g, err
		},
	},
	"revives an expired lease by a renewal": {
		by:      []string{"renew/each state", "time/by itself"},
		acquire: remember,
		renew: func(b *faulty, ctx context.Context, refs []store.Ref) ([]store.Renewal, error) {
			return b.pretend(ctx, refs, leasehold.ByTTL)
		},
	},
	"does not show a break to the holder": {
		by:      []string{"renew/each state", "break/each state"},
		acquire: remember,
		renew: func(b *faulty, ctx context.Context, refs []store.Ref) ([]store.Renewal, error) {
			return b.pretend(ctx, refs, leasehold.ByBreak)
		},
	},
	"forgets who broke a lease": {
		by: []string{"renew/each state"},
		renew: func(b *faulty, ctx context.Context, refs []store.Ref) ([]store.Renewal, error) {
			list, err := b.Store.Renew(ctx, refs...)
			for _, r := range list {
				if r.Ended != nil {
					r.Ended.By = ""
				}
			}
			return list, err
		},
	},
	"answers renewals out of order": {
		by: []string{"renew/many at once"},
		renew: func(b *faulty, ctx context.Context, refs []store.Ref) ([]store.Renewal, error) {
			list, err := b.Store.Renew(ctx, refs...)
			slices.Reverse(list)
			return list, err
		},
	},
	"renews no more than 100 at once": {
		by: []string{"renew/many at once"},
		renew: func(b *faulty, ctx context.Context, refs []store.Ref) ([]store.Renewal, error) {
			list, err := b.Store.Renew(ctx, refs[:min(len(refs), 100)]...)
			return append(list, make([]store.Renewal, len(refs)-len(list))...), err
		},
	},
	"uses a released id again": {
		by: []string{"acquire/each state", "release/each state", "messages/lost replies"},
		acquire: func(b *faulty, ctx context.Context, r store.Request) (store.Grant, error) {
			g, err := b.Store.Acquire(ctx, r)
			if errors.Is(err, leasehold.ErrLost) {
				return b.as(ctx, r, func(r *store.Request) { r.ID += " again" })
			}
			return g, err
		},
	},
	"grants an acquire that comes after its release": {
		by: []string{"messages/a late acquire", "acquire/each state"},
		release: func(b *faulty, ctx context.Context, r store.ReleaseRequest) error {
			for _, ref := range r.Leases {
				one := store.ReleaseRequest{Leases: []store.Ref{ref}, Session: r.Session}
				list, err := b.Store.Renew(ctx, ref)
				if err == nil && list[0].Ended != nil && list[0].Ended.How == 0 {
					continue // it leaves no mark
				}
				if err := b.Store.Release(ctx, one); err != nil {
					return err
				}
			}
			return nil
		},
	},
	"releases by resource": {
		by: []string{"release/each state, beside another", "messages/repeated"},
		release: func(b *faulty, ctx context.Context, r store.ReleaseRequest) error {
			for _, ref := range r.Leases {
				now, err := b.Store.Read(ctx, ref.Resource)
				for _, h := range now.Holders {
					r.Leases = append(r.Leases, store.Ref{Resource: ref.Resource, ID: h.ID})
				}
				if err != nil {
					return err
				}
			}
			return b.Store.Release(ctx, r)
		},
	},
	"breaks by resource": {
		by: []string{"break/each state, beside another"},
		breaks: func(b *faulty, ctx context.Context, r store.BreakRequest) (leasehold.Lease, error) {
			if now, err := b.Store.Read(ctx, r.Resource); err == nil && len(now.Holders) > 0 {
				r.ID = now.Holders[0].ID
			}
			return b.Store.Break(ctx, r)
		},
	},
	"fails to release what has ended": {
		by: []string{"release/each state"},
		release: func(b *faulty, ctx context.Context, r store.ReleaseRequest) error {
			list, err := b.Store.Renew(ctx, r.Leases...)
			_ = b.Store.Release(ctx, r)
			for _, renewal := range list {
				if renewal.Ended != nil {
					return leasehold.ErrNotFound
				}
			}
			return err
		},
	},
	"gives tokens that go back": {
		by: []string{"tokens/grow", "tokens/grow at once", "contenders/fenced register"},
		acquire: func(b *faulty, ctx context.Context, r store.Request) (store.Grant, error) {
			g, err := b.Store.Acquire(ctx, r)
			if g.Token > 3 {
				g.Token -= g.Token / 4 * 4
			}
			return g, err
		},
	},
	"gives tokens above 2^53": {
		by: []string{"acquire/free"},
		acquire: func(b *faulty, ctx context.Context, r store.Request) (store.Grant, error) {
			g, err := b.Store.Acquire(ctx, r)
			g.Token |= 1 << 60
			return g, err
		},
	},
	"ignores the floor": {
		by: []string{"tokens/floor"},
		acquire: func(b *faulty, ctx context.Context, r store.Request) (store.Grant, error) {
			return b.as(ctx, r, func(r *store.Request) { r.Floor = 0 })
		},
	},
	"ends leases early": {
		by: []string{"time/never before the TTL, and soon after", "wait/until the end of the TTL"},
		acquire: func(b *faulty, ctx context.Context, r store.Request) (store.Grant, error) {
			g, err := b.as(ctx, r, func(r *store.Request) { r.TTL = max(r.TTL*4/5, min(r.TTL, leasehold.MinTTL)) })
			g.Remaining = min(r.TTL, g.Remaining*5/4)
			return g, err
		},
	},
	"never ends leases": {
		by: []string{"time/by itself", "time/many at once", "contenders/paused holders"},
		acquire: func(b *faulty, ctx context.Context, r store.Request) (store.Grant, error) {
			g, err := b.as(ctx, r, func(r *store.Request) {
				if r.TTL >= leasehold.MinTTL && r.TTL < leasehold.MaxTTL {
					r.TTL = leasehold.MaxTTL
				}
			})
			g.Remaining = min(g.Remaining, r.TTL)
			return g, err
		},
	},
	"rounds a TTL": {
		by: []string{"time/limits of the TTL"},
		acquire: func(b *faulty, ctx context.Context, r store.Request) (store.Grant, error) {
			r.TTL = min(max(r.TTL, leasehold.MinTTL), leasehold.MaxTTL)
			return b.Store.Acquire(ctx, r)
		},
	},
	"promises more than the TTL": {
		by: []string{"acquire/free", "contenders/fenced register"},
		acquire: func(b *faulty, ctx context.Context, r store.Request) (store.Grant, error) {
			g, err := b.Store.Acquire(ctx, r)
			g.Remaining += g.Remaining / 2
			return g, err
		},
		renew: func(b *faulty, ctx context.Context, refs []store.Ref) ([]store.Renewal, error) {
			list, err := b.Store.Renew(ctx, refs...)
			for i := range list {
				list[i].Remaining += list[i].Remaining / 2
			}
			return list, err
		},
	},
	"serves the last waiter first": {
		by: []string{"queue/first come, first served", "queue/outlives the call"},
		acquire: func(b *faulty, ctx context.Context, r store.Request) (store.Grant, error) {
			if r.Wait > 0 && r.Priority == 0 {
				r.Priority = b.seen.count() % leasehold.MaxPriority
			}
			return b.Store.Acquire(ctx, r)
		},
	},
	"lets others overtake those who wait": {
		by: []string{"queue/nobody overtakes"},
		acquire: func(b *faulty, ctx context.Context, r store.Request) (store.Grant, error) {
			if r.Wait == 0 {
				return b.Store.Acquire(ctx, r)
			}
			wait := store.Waiting{For: r.Wait, Poll: time.Second}
			r.Wait = 0
			return store.Await(ctx, wait, func(ctx context.Context) (store.Grant, error) {
				return b.Store.Acquire(ctx, r)
			})
		},
	},
	"keeps dead waiters": {
		by: []string{"queue/a dead waiter is skipped"},
		acquire: func(b *faulty, ctx context.Context, r store.Request) (store.Grant, error) {
			if r.Wait > 0 {
				ctx = context.WithoutCancel(ctx)
			}
			return b.Store.Acquire(ctx, r)
		},
	},
	"keeps those in the queue whose wait is over": {
		by: []string{"wait/is over"},
		acquire: func(b *faulty, ctx context.Context, r store.Request) (store.Grant, error) {
			if r.Wait == 0 {
				return b.Store.Acquire(ctx, r)
			}
			ctx, cancel := context.WithTimeout(ctx, r.Wait)
			defer cancel()
			r.Wait += time.Hour
			g, err := b.Store.Acquire(ctx, r)
			if ctx.Err() == nil {
				return g, err
			}
			r.Wait = 0
			return b.Store.Acquire(context.WithoutCancel(ctx), r)
		},
	},
	"does not say that it waited": {
		by: []string{"wait/until a release"},
		acquire: func(b *faulty, ctx context.Context, r store.Request) (store.Grant, error) {
			g, err := b.Store.Acquire(ctx, r)
			g.Waited = false
			return g, err
		},
	},
	"does not wake waiters": {
		by: []string{"wait/until a release", "wait/until the end of the TTL"},
		acquire: func(b *faulty, ctx context.Context, r store.Request) (store.Grant, error) {
			g, err := b.Store.Acquire(ctx, r)
			if g.Waited {
				time.Sleep(5 * time.Second)
			}
			return g, err
		},
	},
	"does not distinguish case": {
		by: []string{"names/hostile", "list/prefix"},
		acquire: func(b *faulty, ctx context.Context, r store.Request) (store.Grant, error) {
			return b.as(ctx, r, func(r *store.Request) { r.Resource = strings.ToLower(r.Resource) })
		},
		read: func(b *faulty, ctx context.Context, resource string) (store.Resource, error) {
			r, err := b.Store.Read(ctx, strings.ToLower(resource))
			r.Resource = resource
			return r, err
		},
	},
	"cuts long names": {
		by: []string{"names/hostile", "names/longest"},
		acquire: func(b *faulty, ctx context.Context, r store.Request) (store.Grant, error) {
			return b.as(ctx, r, func(r *store.Request) { r.Resource = r.Resource[:min(len(r.Resource), 255)] })
		},
		read: func(b *faulty, ctx context.Context, resource string) (store.Resource, error) {
			r, err := b.Store.Read(ctx, resource[:min(len(resource), 255)])
			r.Resource = resource
			return r, err
		},
	},
	"loses one at the end of each page": {
		by: []string{"list/pages"},
		list: func(b *faulty, ctx context.Context, q store.Query) (store.Page, error) {
			page, err := b.Store.List(ctx, q)
			if n := len(page.Items); page.Next != "" && n > 1 {
				page.Items = page.Items[:n-1]
			}
			return page, err
		},
	},
	"ignores the prefix": {
		by: []string{"list/prefix"},
		list: func(b *faulty, ctx context.Context, q store.Query) (store.Page, error) {
			q.Prefix = q.Prefix[:strings.LastIndexByte(q.Prefix, '/')+1]
			return b.Store.List(ctx, q)
		},
	},
	"shows leases that ended": {
		by:      []string{"read/each state", "time/by itself"},
		acquire: remember,
		read: func(b *faulty, ctx context.Context, resource string) (store.Resource, error) {
			r, err := b.Store.Read(ctx, resource)
			if r.Last != nil && r.Holding == 0 {
				if g, ok := b.seen.grant(r.Last.ID); ok {
					r.State, r.Holding, r.Holders = leasehold.Leased, 1, []leasehold.Lease{g.Lease}
				}
			}
			return r, err
		},
	},
	"accepts what it does not list": {
		by: []string{"powers/others are refused"},
		power: func(f store.Features) store.Features {
			f.Powers = slices.DeleteFunc(slices.Clone(f.Powers), func(p store.Power) bool { return p == store.Slots })
			return f
		},
	},
	"implements what it does not list": {
		by: []string{"powers/are as listed"},
		power: func(f store.Features) store.Features {
			f.Powers = slices.DeleteFunc(slices.Clone(f.Powers), func(p store.Power) bool { return p == store.NotePower })
			return f
		},
	},
	"lists what it has not": {
		by: []string{"powers/value"},
		power: func(f store.Features) store.Features {
			f.Powers = append(slices.Clone(f.Powers), store.ValueInLease)
			return f
		},
	},
	"counts no interventions": {
		by: []string{"powers/sessions count interventions"},
		renewed: func(_ *faulty, a store.SessionAnswer) store.SessionAnswer {
			a.Interventions, a.Intervened = 0, nil
			return a
		},
	},
	"panics": {
		by: []string{"id/one holder of many", "contenders/fenced register", "acquire/each state", "wait/until a release"},
		acquire: func(b *faulty, ctx context.Context, r store.Request) (store.Grant, error) {
			if b.seen.count()%2 == 0 {
				panic("on purpose")
			}
			return b.Store.Acquire(ctx, r)
		},
	},
	"ignores a context that has ended": {
		by: []string{"messages/a context that has ended"},
		renew: func(b *faulty, ctx context.Context, refs []store.Ref) ([]store.Renewal, error) {
			return b.Store.Renew(context.WithoutCancel(ctx), refs...)
		},
	},
}

// remember notes what was granted.
func remember(b *faulty, ctx context.Context, r store.Request) (store.Grant, error) {
	g, err := b.Store.Acquire(ctx, r)
	if err == nil {
		b.seen.note(r.ID, g)
	}
	return g, err
}

// pretend renews, and answers that a lease goes on which ended in a way.
func (b *faulty) pretend(ctx context.Context, refs []store.Ref, how leasehold.How) ([]store.Renewal, error) {
	list, err := b.Store.Renew(ctx, refs...)
	for i, r := range list {
		if g, ok := b.seen.grant(refs[i].ID); ok && r.Ended != nil && r.Ended.How == how {
			list[i] = store.Renewal{Grant: g}
		}
	}
	return list, err
}

// brokenConfig opens stores with a fault.
func brokenConfig(f fault) Config {
	return Config{
		Open: func(t testing.TB) store.Store {
			s, err := memory.Open(memory.Config{})
			if err != nil {
				t.Fatal(err)
			}
			return &faulty{s, f, &seen{grants: map[string]store.Grant{}}}
		},
		Second: func(_ testing.TB, first store.Store) store.Store {
			b := first.(*faulty)
			return &faulty{b.Store.Again(), b.fault, b.seen}
		},
		Virtual: true, TTL: 10 * time.Second, WaiterLife: 15 * time.Second,
	}
}

// failures runs one case on a store, and returns what failed.
func failures(t *testing.T, c Config, one test) (r result) {
	synctest.Test(t, func(t *testing.T) { r = c.check(t, one) })
	return r
}

// Each fault that is planted in a store is found, by each case that is there to find it.
func TestTheSuiteFindsABrokenStore(t *testing.T) {
	cases := map[string]test{}
	for _, one := range tests() {
		cases[one.name] = one
	}
	for _, name := range slices.Sorted(maps.Keys(planted)) {
		t.Run(name, func(t *testing.T) {
			for _, by := range planted[name].by {
				c := brokenConfig(planted[name])
				for _, c.brief = range []bool{false, true} {
					r := failures(t, c, cases[by])
					if !r.failed() {
						t.Fatalf("a store that %s passes %q (in the short form: %v)", name, by, c.brief)
					}
					t.Logf("found by %s: %.300s", by, r.failures[0])
				}
			}
		})
	}
}

// Without a fault nothing is found: what the test above finds is the fault, and not the decorator.
func TestTheDecoratorItselfIsRight(t *testing.T) {
	c := brokenConfig(fault{})
	f := c.features(t)
	for _, one := range tests() {
		if c.leavesOut(f, one) != "" {
			continue
		}
		if r := failures(t, c, one); r.failed() {
			t.Errorf("%s fails: %s", one.name, r.failures[0])
		}
	}
}

// A cleanup that fails or panics keeps none from the others.
func TestAllIsCleanedUp(t *testing.T) {
	r := newRecorder(t, "x")
	cleaned := 0
	for range 3 {
		r.Cleanup(func() { cleaned++ })
		r.Cleanup(func() { r.Fatal("failed") })
		r.Cleanup(func() { panic("on purpose") })
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		r.finish()
	}()
	<-ended
	if cleaned != 3 || len(r.result().failures) != 6 {
		t.Errorf("%d of 3 are cleaned up: %q", cleaned, r.result().failures)
	}
}
