package credential

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/leasehold/leasehold/internal/core/access"
)

// readTime is how long the policy may take to be read.
const readTime = 2 * time.Second

// known is a policy, with what is looked up in it. It is never changed.
type known struct {
	policy  *access.Policy // nil: access is off
	issuers map[string][]*issuer
	rules   []*access.Certificate
}

// policies has the policy that is in force here, and can ask whether another one is by now.
type policies struct {
	local func() *access.Policy
	read  func(context.Context) (*access.Policy, error)
	index func(old *known, policy *access.Policy) *known

	latest   atomic.Pointer[known]
	indexing sync.Mutex // one makes an index, so that each issuer's keys are fetched once

	mu      sync.Mutex // guards what follows
	running *round
	next    *round // begins when running ends
}

// A round is one reading of the policy. All who ask before it begins share it, so that a flood of unknown tokens
// causes one reading after the other and not one for each.
type round struct {
	done chan struct{}
	got  *known
	err  error
}

// here returns the policy as this server has applied it.
func (p *policies) here() *known { return p.known(p.local()) }

// known returns a policy with its index, which is made once.
func (p *policies) known(policy *access.Policy) *known {
	if k := p.latest.Load(); k != nil && k.policy == policy {
		return k
	}
	p.indexing.Lock()
	defer p.indexing.Unlock()
	k := p.latest.Load()
	if k == nil || k.policy != policy {
		k = p.index(k, policy)
		p.latest.Store(k)
	}
	return k
}

// fresh returns the policy with every change that anybody knew of before fresh was called.
func (p *policies) fresh(ctx context.Context) (*known, error) {
	r := p.join()
	select {
	case <-r.done:
		return r.got, r.err
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// join returns a round that has not begun.
func (p *policies) join() *round {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.running == nil {
		p.running = newRound()
		go p.run(p.running)
		return p.running
	}
	if p.next == nil {
		p.next = newRound()
	}
	return p.next
}

func newRound() *round { return &round{done: make(chan struct{})} }

// run reads the policy until nobody wants to know any more.
func (p *policies) run(r *round) {
	for r != nil {
		ctx, cancel := context.WithTimeout(context.Background(), readTime)
		policy, err := p.read(ctx)
		cancel()
		if r.err = err; err == nil {
			r.got = p.known(policy)
		}
		close(r.done)
		p.mu.Lock()
		p.running, p.next = p.next, nil
		r = p.running
		p.mu.Unlock()
	}
}
