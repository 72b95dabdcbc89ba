package client

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/leasehold/leasehold"
	v1 "github.com/leasehold/leasehold/api/v1"
)

// A Cache reads records and keeps their values in memory, and is never stale. It holds a shared
// lease on each record it has. A writer asks the readers to give theirs back, and waits until
// they have, or for the TTL of a reader that died.
//
// Each record is guarded by the resource of the same name. It must be written only by Put of a
// Cache, or under an exclusive lease on that resource.
type Cache struct {
	client  *Client
	options []Option

	mu      sync.Mutex // guards what follows
	entries map[string]*entry
}

// An entry is one value, valid as long as its hold.
type entry struct {
	hold    *Hold
	value   []byte
	missing error // the error of a record that does not exist
	filled  chan struct{}
	failed  error
}

// maxEntries is how many values a cache keeps; beyond it, an arbitrary one is evicted.
const maxEntries = 10000

// Cache returns an empty cache. The options are those of its leases; TTL is the longest that a
// writer waits for a reader that died.
func (c *Client) Cache(options ...Option) *Cache {
	return &Cache{client: c, options: options, entries: map[string]*entry{}}
}

// Get returns the value of a record. Do not modify it. If there is no such record, the error is
// a leasehold.ErrNotFound.
func (c *Cache) Get(ctx context.Context, path string) ([]byte, error) {
	for {
		e, ours := c.entry(path)
		if ours {
			c.fill(ctx, path, e)
		}
		select {
		case <-e.filled:
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
		switch {
		case e.failed != nil && ours:
			return nil, e.failed
		case e.failed == nil && e.hold.Valid():
			return e.value, e.missing
		}
		c.drop(path, e)
		if err := ctx.Err(); err != nil {
			return nil, context.Cause(ctx)
		}
	}
}

// entry returns the entry of a record, or a new one that the caller has to fill.
func (c *Cache) entry(path string) (e *entry, ours bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if e := c.entries[path]; e != nil {
		return e, false
	}
	e = &entry{filled: make(chan struct{})}
	c.entries[path] = e
	// Each entry costs a lease on the server, too, so a cache must not grow without bound.
	if len(c.entries) > maxEntries {
		c.shrinkLocked()
	}
	return e, true
}

// shrinkLocked evicts an arbitrary value.
func (c *Cache) shrinkLocked() {
	for path, e := range c.entries {
		select {
		case <-e.filled:
		default:
			continue // somebody waits for it
		}
		delete(c.entries, path)
		if e.hold != nil {
			c.client.background(func(context.Context) { e.hold.releaseOrLog() })
		}
		return
	}
}

// fill acquires the shared lease and then reads: while it is held nobody writes.
func (c *Cache) fill(ctx context.Context, path string, e *entry) {
	defer close(e.filled)
	e.hold, e.failed = c.client.Acquire(ctx, path, append([]Option{Shared(), Reason("cached")}, c.options...)...)
	if e.failed != nil {
		c.drop(path, e)
		return
	}
	// Before the value is read: a writer that asks in between is answered by giving the lease back,
	// and the value is then never used.
	e.hold.onMessage(func(Message) { c.evict(path, e) })
	e.value, e.failed = c.client.Get(ctx, path)
	if errors.Is(e.failed, leasehold.ErrNotFound) {
		e.missing, e.failed = e.failed, nil
	}
	if e.failed != nil {
		c.evict(path, e)
	}
}

// evict drops a value and releases its lease, because somebody wants to write.
func (c *Cache) evict(path string, e *entry) {
	c.drop(path, e)
	c.client.background(func(context.Context) { e.hold.releaseOrLog() })
}

func (c *Cache) drop(path string, e *entry) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.entries[path] == e {
		delete(c.entries, path)
	}
}

// Put writes a record once no cache has the old value. While it waits nobody gets a new shared
// lease.
func (c *Cache) Put(ctx context.Context, path string, value []byte) error {
	value = slices.Clone(value)
	asking, stop := context.WithCancel(ctx)
	var asked sync.WaitGroup
	asked.Go(func() { c.ask(asking, path) })
	h, err := c.client.Acquire(ctx, path, append([]Option{Reason("write")}, c.options...)...)
	stop()
	asked.Wait()
	if err != nil {
		return err
	}
	defer h.releaseOrLog()
	return h.Put(ctx, path, value)
}

// ask asks the readers to give their leases back, until ctx ends: one message reaches only some
// of them.
func (c *Cache) ask(ctx context.Context, path string) {
	for ctx.Err() == nil {
		_ = c.client.Ask(ctx, path, "please release: the record is about to be written")
		v1.Backoff{First: 100 * time.Millisecond, Most: 100 * time.Millisecond}.Sleep(ctx, 1)
	}
}
