package credential

import (
	"crypto/sha256"
	"sync"
	"sync/atomic"
	"time"

	"github.com/leasehold/leasehold/internal/core/access"
)

// maxCached is how many credentials are remembered: more than a policy can have tokens.
const maxCached = 32768

// A key names a credential. The kind keeps apart what is secret from what is not: else the bytes of somebody's
// certificate, shown as a secret, would be that certificate.
type key struct {
	kind byte
	sum  [sha256.Size]byte
}

// The kinds of keys.
const (
	bySecret = iota
	byCertificate
	byAccount
)

func (s *Shown) key() key {
	if s.Secret != "" {
		var room [2048]byte // on the stack, where nearly every secret has room
		return key{bySecret, sha256.Sum256(append(room[:0], s.Secret...))}
	}
	return key{byCertificate, sha256.Sum256(s.Certificate.Raw)}
}

// An entry is a credential that was found good.
type entry struct {
	proof  *Proof
	policy *access.Policy // by which
	issuer *issuer        // of a JWT
	keys   *keySet        // by which it was verified

	token string       // the id of a token of ours
	noted atomic.Int64 // when its use was last noted, in Unix nanoseconds
}

// holds reports whether an entry is still right.
func (e *entry) holds(k *known, now time.Time) bool {
	if !e.policy.SameRules(k.policy) || e.proof.Expired(now) {
		return false
	}
	return e.issuer == nil || e.issuer.keys.current(now) == e.keys
}

// A cache remembers credentials that were found good. Its size is bounded.
type cache struct {
	most int

	mu      sync.RWMutex // guards what follows
	entries map[key]*entry
}

func newCache(most int) *cache { return &cache{most: most, entries: map[key]*entry{}} }

func (c *cache) get(k *key) *entry {
	c.mu.RLock()
	defer c.mu.RUnlock()
	return c.entries[*k]
}

func (c *cache) put(k key, e *entry, now time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if _, known := c.entries[k]; !known && len(c.entries) >= c.most {
		c.evict(now)
	}
	c.entries[k] = e
}

// evict makes room: it drops those that have ended among a few, or one of them.
func (c *cache) evict(now time.Time) {
	const few = 8
	looked := 0
	for k, e := range c.entries {
		if looked++; e.proof.Expired(now) || looked == few && len(c.entries) >= c.most {
			delete(c.entries, k)
		}
		if looked == few {
			return
		}
	}
}

// keep forgets what was judged by another policy: it would keep that one in memory.
func (c *cache) keep(policy *access.Policy) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for k, e := range c.entries {
		if !e.policy.SameRules(policy) {
			delete(c.entries, k)
		}
	}
}

func (c *cache) drop(k key) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.entries, k)
}
