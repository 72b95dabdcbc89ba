package client

import (
	"context"
	"errors"
	"sync"
)

// A Mutex is a resource as a sync.Locker, for code that expects one. It excludes goroutines of
// this program and other programs alike.
//
// A Locker cannot report that its lease was lost. Where that matters, and it mostly does, use Do
// or Acquire; at least stop when Context ends, and show Hold().Token() to what you protect.
// Unlock panics if the lease was lost, because the work before it was not protected.
type Mutex struct {
	client   *Client
	resource string
	options  []Option

	mu   sync.Mutex // guards what follows
	hold *Hold
}

var _ sync.Locker = (*Mutex)(nil)

// Mutex returns a mutex on a resource. It sends no request.
func (c *Client) Mutex(resource string, options ...Option) *Mutex {
	return &Mutex{client: c, resource: resource, options: options}
}

// Lock acquires the resource, however long that takes. It panics if that is impossible, because
// the name is invalid or the client closed.
func (m *Mutex) Lock() {
	h, err := m.client.Acquire(context.Background(), m.resource, m.options...)
	if err != nil {
		panic("leasehold: " + err.Error())
	}
	m.set(h)
}

// TryLock acquires the resource if it is free, and reports whether it did.
func (m *Mutex) TryLock() bool {
	h, err := m.client.TryAcquire(context.Background(), m.resource, m.options...)
	if err != nil {
		return false
	}
	m.set(h)
	return true
}

// Unlock releases the resource. It panics if the mutex is not locked, or if the lease was lost;
// see Mutex.
func (m *Mutex) Unlock() {
	unlock(m.set(nil), m.resource)
}

func unlock(h *Hold, resource string) {
	if h == nil {
		panic("leasehold: " + resource + " is not held by this mutex")
	}
	err := h.Release(context.Background())
	if errors.Is(err, ErrLost) {
		panic("leasehold: " + err.Error())
	}
}

// Hold returns the hold of a locked mutex; nil if it is not locked.
func (m *Mutex) Hold() *Hold {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.hold
}

// Context returns a context that ends with the hold. If the mutex is not locked, it has ended.
func (m *Mutex) Context() context.Context {
	if h := m.Hold(); h != nil {
		return h.Context()
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	return ctx
}

func (m *Mutex) set(h *Hold) (before *Hold) {
	m.mu.Lock()
	defer m.mu.Unlock()
	before, m.hold = m.hold, h
	return before
}

// An RWMutex is a resource as a sync.RWMutex: many readers, or one writer. The warnings of Mutex
// apply to it too.
type RWMutex struct {
	Mutex

	readersMu sync.Mutex // guards what follows
	readers   []*Hold
}

// RWMutex returns a reader/writer mutex on a resource. It sends no request.
func (c *Client) RWMutex(resource string, options ...Option) *RWMutex {
	return &RWMutex{Mutex: Mutex{client: c, resource: resource, options: options}}
}

// RLock acquires the resource beside other readers.
func (m *RWMutex) RLock() {
	h, err := m.client.Acquire(context.Background(), m.resource, m.reading()...)
	if err != nil {
		panic("leasehold: " + err.Error())
	}
	m.read(h)
}

// TryRLock acquires the resource beside other readers, if nobody writes or waits to write. It
// reports whether it did.
func (m *RWMutex) TryRLock() bool {
	h, err := m.client.TryAcquire(context.Background(), m.resource, m.reading()...)
	if err != nil {
		return false
	}
	m.read(h)
	return true
}

// RUnlock releases one reader's hold. It panics if there is none, or if its lease was lost.
func (m *RWMutex) RUnlock() {
	m.readersMu.Lock()
	var h *Hold
	if last := len(m.readers) - 1; last >= 0 {
		h, m.readers = m.readers[last], m.readers[:last]
	}
	m.readersMu.Unlock()
	unlock(h, m.resource)
}

// RLocker returns a sync.Locker whose Lock and Unlock are RLock and RUnlock.
func (m *RWMutex) RLocker() sync.Locker { return (*rlocker)(m) }

type rlocker RWMutex

func (r *rlocker) Lock() { (*RWMutex)(r).RLock() }

func (r *rlocker) Unlock() { (*RWMutex)(r).RUnlock() }

func (m *RWMutex) reading() []Option { return append([]Option{Shared()}, m.options...) }

func (m *RWMutex) read(h *Hold) {
	m.readersMu.Lock()
	defer m.readersMu.Unlock()
	m.readers = append(m.readers, h)
}
