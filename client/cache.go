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

// A Cache reads records and keeps their values in memory for as long as it holds a read
// lease on each: until somebody wants to write it. A value is never stale. Who writes asks
// the readers to let go, and waits until they have, or for the TTL of one that is gone.
//
// Each record is guarded by the resource of the same name, and must be written by Put of a
// Cache alone, or under an exclusive lease on that resource.
type Cache struct {
	client  *Client
	options []Option

	mu      sync.Mutex // guards what follows
	entries map[string]*entry
}

// An entry is one value, good while its hold is valid.
type entry struct {
	hold    *Hold
	value   []byte
	missing error // there is no such record
	filled  chan struct{}
	failed  error
}

// maxEntries is how many values a cache keeps; beyond it, any one is let go.
const maxEntries = 10000

// Cache returns an empty cache. The options are those of its leases: of them TTL is how
// long a writer waits, at most, for a reader that is gone.
func (c *Client) Cache(options ...Option) *Cache {
	return &Cache{client: c, options: options, entries: map[string]*entry{}}
}

// Get returns the value of a record, which must not be changed. If there is none, the
// error is a leasehold.ErrNotFound.
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

// entry returns what is kept of a record, or a new entry that the caller has to fill.
func (c *Cache) entry(path string) (e *entry, ours bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if e := c.entries[path]; e != nil {
		return e, false
	}
	e = &entry{filled: make(chan struct{})}
	c.entries[path] = e
	if len(c.entries) > maxEntries {
		c.shrinkLocked()
	}
	return e, true
}

// shrinkLocked lets go of any value that is there.
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

// fill acquires the read lease and then reads: while it is held nobody writes.
func (c *Cache) fill(ctx context.Context, path string, e *entry) {
	defer close(e.filled)
	e.hold, e.failed = c.client.Acquire(ctx, path, append([]Option{Shared(), Reason("cached")}, c.options...)...)
	if e.failed != nil {
		c.drop(path, e)
		return
	}
	e.hold.onMessage(func(Message) { c.letGo(path, e) })
	e.value, e.failed = c.client.Get(ctx, path)
	if errors.Is(e.failed, leasehold.ErrNotFound) {
		e.missing, e.failed = e.failed, nil
	}
	if e.failed != nil {
		c.letGo(path, e)
	}
}

// letGo gives a read lease back, since somebody wants to write.
func (c *Cache) letGo(path string, e *entry) {
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

// Put writes a record when no cache has the old value any more. While it waits nobody
// gets a new read lease.
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

// ask asks the readers to let go, again and again: a message reaches the first ones, and
// there may be many.
func (c *Cache) ask(ctx context.Context, path string) {
	for ctx.Err() == nil {
		_ = c.client.Ask(ctx, path, "please let go: the record will be written")
		v1.Backoff{First: 100 * time.Millisecond, Most: 100 * time.Millisecond}.Sleep(ctx, 1)
	}
}
