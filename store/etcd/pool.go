package etcd

import (
	"context"
	"sync"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/leasehold/leasehold/store"
)

// The pool keeps etcd leases that have no key any more for the next hold. Each hold has an etcd lease
// of its own, but to end one costs etcd far more than to create one (600 in a second), so those of
// released holds are used again.
//
// A lease comes into the pool only when it is certain that nothing is bound to it, and that nothing on
// its way can be: after the step that deleted its key, or after one that was refused. It is never
// revoked before Close, because a revoke that came late would end the next hold.
const poolMany = 1024

// A lease is an etcd lease.
type lease struct {
	id      clientv3.LeaseID
	asked   int64         // seconds; the TTL that was asked for
	ttl     time.Duration // the TTL that etcd gave
	renewed time.Duration // before the last renewal was sent, by the store's clock
}

type pool struct {
	clock store.Clock // which does not stop in suspend, as etcd does not

	mu   sync.Mutex // guards what follows
	idle map[int64][]lease
	used map[string]lease // by the id that holds or waits with it
	size int              // of used when the dead were last dropped
}

func newPool(clock store.Clock) *pool {
	return &pool{clock: clock, idle: map[int64][]lease{}, used: map[string]lease{}, size: poolMany}
}

func (p *pool) age(l lease) time.Duration { return p.clock.Now() - l.renewed }

// take returns an idle lease, if there is one that has half of its TTL left.
func (p *pool) take(asked int64) (lease, bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	idle := p.idle[asked]
	if len(idle) == 0 {
		return lease{}, false
	}
	l := idle[len(idle)-1]
	p.idle[asked] = idle[:len(idle)-1]
	if p.age(l) > l.ttl/2 {
		delete(p.idle, asked) // the others are older
		return lease{}, false
	}
	return l, true
}

func (p *pool) put(l lease) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if idle := p.idle[l.asked]; len(idle) < poolMany && p.age(l) < l.ttl/2 {
		p.idle[l.asked] = append(idle, l)
	}
}

// bind remembers the lease of an id. It is forgotten when it must have ended.
func (p *pool) bind(id string, l lease) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.used[id] = l
	if len(p.used) < 2*p.size {
		return
	}
	for id, l := range p.used {
		if p.age(l) > 2*l.ttl {
			delete(p.used, id)
		}
	}
	p.size = max(poolMany, len(p.used))
}

func (p *pool) of(id string) (lease, bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	l, ok := p.used[id]
	return l, ok
}

// unbind forgets the lease of an id; it becomes idle if its key was deleted by this process.
func (p *pool) unbind(id string, deleted bool) {
	p.mu.Lock()
	l, ok := p.used[id]
	delete(p.used, id)
	p.mu.Unlock()
	if ok && deleted {
		p.put(l)
	}
}

// drain returns all idle leases and forgets them.
func (p *pool) drain() (idle []lease) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, some := range p.idle {
		idle = append(idle, some...)
	}
	clear(p.idle)
	return idle
}

// grant makes an etcd lease.
func (s *Store) grant(ctx context.Context, asked int64) (lease, error) {
	began := s.pool.clock.Now()
	answer, err := s.client.Grant(ctx, asked)
	if err != nil {
		return lease{}, err
	}
	return lease{id: answer.ID, asked: asked, ttl: time.Duration(answer.TTL) * time.Second, renewed: began}, nil
}

// What Close ends of the idle leases, and for how long it tries: the others end by themselves.
const (
	closeMany = 16
	closeTime = time.Second
)

func (s *Store) revokeIdle() {
	ctx, cancel := context.WithTimeout(context.Background(), closeTime)
	defer cancel()
	idle := s.pool.drain()
	var all sync.WaitGroup
	for _, l := range idle[:min(closeMany, len(idle))] {
		all.Go(func() { _, _ = s.client.Revoke(ctx, l.id) })
	}
	all.Wait()
}
