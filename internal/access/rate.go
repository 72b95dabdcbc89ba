package access

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/leasehold/leasehold"
	"github.com/leasehold/leasehold/internal/core"
	policy "github.com/leasehold/leasehold/internal/core/access"
	"github.com/leasehold/leasehold/internal/core/command"
	"github.com/leasehold/leasehold/internal/engine"
)

// admit lets a command in, or a read if there is none: somebody has to ask, within its quotas. What a waiting request
// does by itself is not counted again.
func (g *Guard) admit(ctx context.Context, p *policy.Policy, c core.Command) error {
	asker := engine.AskerOf(ctx)
	switch {
	case asker == nil:
		return whoAreYou()
	case asker == &policy.System || engine.Waits(ctx):
		return nil
	}
	// Renewals and releases have a budget of their own: a flood of acquires must not cost a holder its lease.
	key := bucketKey{whose: asker.Principal, keeps: c != nil && core.KeepsOrEnds(c)}
	if err := g.rates.admit(p.QuotaOfPrincipal(asker.Principal), key); err != nil || c == nil {
		return err
	}
	key.whose, key.space = command.NamespaceOf(c), true
	return g.rates.admit(p.QuotaOfNamespace(key.whose), key)
}

// rates has a bucket for each principal and namespace that has a quota and asked lately. Those who did not ask for a
// while have full buckets, which need not be kept.
type rates struct {
	mu      sync.Mutex // guards what follows
	buckets map[bucketKey]*bucket
	before  map[bucketKey]*bucket // those of before buckets was full
	watches map[bucketKey]int
}

// maxBuckets bounds the memory: there are twice as many at most.
const maxBuckets = 10000

type bucketKey struct {
	whose string // a principal
	space bool   // or a namespace
	keeps bool   // for renewals and releases
}

func (k bucketKey) String() string {
	if k.space {
		return "namespace " + k.whose
	}
	return k.whose
}

// A bucket is filled at the rate of a quota, up to what one second brings.
type bucket struct {
	left float64
	at   time.Time
}

// admit takes one request out of a bucket.
func (r *rates) admit(q *policy.Quota, key bucketKey) error {
	if q == nil {
		return nil
	}
	what, rate := "requests", q.Requests
	if key.keeps {
		what, rate = "renewals and releases", q.Renewals
	}
	if rate == 0 {
		return nil
	}
	wait := r.take(key, float64(rate), time.Now())
	if wait == 0 {
		return nil
	}
	return &leasehold.Error{Code: leasehold.Limited, Forecast: wait, Message: fmt.Sprintf(
		"the quota of %v allows %d %s a second, and %d were sent within the last one: try again in %v", key, rate, what,
		rate, wait.Round(time.Millisecond))}
}

// take returns how long to wait until there is room; 0: there was.
func (r *rates) take(key bucketKey, rate float64, now time.Time) time.Duration {
	r.mu.Lock()
	defer r.mu.Unlock()
	b := r.bucket(key, rate, now)
	b.left = min(rate, b.left+rate*now.Sub(b.at).Seconds())
	b.at = now
	if b.left >= 1 {
		b.left--
		return 0
	}
	return max(time.Millisecond, time.Duration((1-b.left)/rate*float64(time.Second)))
}

func (r *rates) bucket(key bucketKey, rate float64, now time.Time) *bucket {
	if b := r.buckets[key]; b != nil {
		return b
	}
	b := r.before[key]
	if b == nil {
		b = &bucket{left: rate, at: now}
	}
	if r.buckets == nil || len(r.buckets) >= maxBuckets {
		r.before, r.buckets = r.buckets, map[bucketKey]*bucket{}
	}
	r.buckets[key] = b
	return b
}

// countWatch counts a watch that begins. Call leave when it ends.
func (g *Guard) countWatch(permit *policy.Permit, namespace string) (leave func(), err error) {
	if permit == nil {
		return func() {}, nil
	}
	who := permit.Asker.Principal
	r := &g.rates
	r.mu.Lock()
	defer r.mu.Unlock()
	counted := []struct {
		key   bucketKey
		quota *policy.Quota
	}{
		{bucketKey{whose: who}, permit.Policy.QuotaOfPrincipal(who)},
		{bucketKey{whose: namespace, space: true}, permit.Policy.QuotaOfNamespace(namespace)},
	}
	for _, c := range counted {
		if c.quota != nil && c.quota.Watches > 0 && int64(r.watches[c.key]) >= c.quota.Watches {
			return nil, &leasehold.Error{Code: leasehold.Limited, Message: fmt.Sprintf("the quota of %v allows %d "+
				"watches at a server, and there are %d: end one, or follow several paths with one watch", c.key,
				c.quota.Watches, r.watches[c.key])}
		}
	}
	if r.watches == nil {
		r.watches = map[bucketKey]int{}
	}
	for _, c := range counted {
		r.watches[c.key]++
	}
	return func() {
		r.mu.Lock()
		defer r.mu.Unlock()
		for _, c := range counted {
			if r.watches[c.key]--; r.watches[c.key] == 0 {
				delete(r.watches, c.key)
			}
		}
	}, nil
}
