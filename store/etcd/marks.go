package etcd

import (
	"context"
	"sync"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
)

// How long marks live, and how many share a lease. All that end at the same moment are deleted by one
// step of etcd, which blocks everything else meanwhile.
const (
	markMore  = 15 * time.Minute // the least time that a mark outlives a lease which is not renewed, about
	markRoll  = time.Minute      // how long new marks are bound to the same lease
	markFresh = 2 * time.Minute  // how old the lease of a mark may be before a renewal binds it to another
	markMany  = 1000             // marks that are bound to the same lease; twice as many until there is another
	markUnit  = 10 * time.Minute
)

// marks knows the etcd leases that marks are bound to.
type marks struct {
	client *clientv3.Client

	mu      sync.Mutex // guards what follows
	current map[time.Duration]*rolling
	born    map[clientv3.LeaseID]time.Time // of those that are fresh
}

type rolling struct {
	id    clientv3.LeaseID
	since time.Time
	used  int
	next  bool // somebody asks for the one after it
}

func newMarks(c *clientv3.Client) *marks {
	return &marks{client: c, current: map[time.Duration]*rolling{}, born: map[clientv3.LeaseID]time.Time{}}
}

// lease returns an etcd lease for the mark of a lease with a TTL.
func (m *marks) lease(ctx context.Context, ttl time.Duration) (clientv3.LeaseID, error) {
	class := markUnit
	for class < ttl {
		class *= 2
	}
	if id := m.use(class); id != 0 {
		return id, nil
	}
	since := time.Now()
	grant, err := m.client.Grant(ctx, int64((class+markMore)/time.Second))
	if err != nil {
		return 0, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.current[class] = &rolling{id: grant.ID, since: since, used: 1}
	m.born[grant.ID] = since
	for id, at := range m.born {
		if time.Since(at) > markFresh {
			delete(m.born, id)
		}
	}
	return grant.ID, nil
}

// use returns the lease for a new mark; 0: the caller has to ask etcd for another. When one is used up, a
// single caller does that, and the others go on with the old one meanwhile.
func (m *marks) use(class time.Duration) clientv3.LeaseID {
	m.mu.Lock()
	defer m.mu.Unlock()
	r := m.current[class]
	if r == nil || r.used >= 2*markMany || time.Since(r.since) > markRoll*3/2 {
		return 0
	}
	if !r.next && (r.used >= markMany || time.Since(r.since) > markRoll) {
		r.next = true
		return 0
	}
	r.used++
	return r.id
}

// fresh reports whether a mark that is bound to a lease lives for long enough.
func (m *marks) fresh(id clientv3.LeaseID) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	at, ok := m.born[id]
	return ok && time.Since(at) <= markFresh
}

// forget makes the next mark take a new lease: etcd does not know the ones that there are.
func (m *marks) forget() {
	m.mu.Lock()
	defer m.mu.Unlock()
	clear(m.current)
	clear(m.born)
}
