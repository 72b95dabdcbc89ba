package consul

import (
	"context"
	"errors"
	"strings"
	"sync"
	"time"

	"github.com/hashicorp/consul/api"

	"github.com/leasehold/leasehold/store"
)

// lockDelay is the shortest that the driver sends: it takes 0 for the default of 15 s.
const lockDelay = time.Millisecond

// How long marks live, and how many share a session. All that end at the same moment are deleted by one
// step of Consul.
const (
	markMore  = 15 * time.Minute // twice that is the least time that a mark outlives a lease, about
	markRoll  = time.Minute      // how long new marks are locked by the same session
	markFresh = 2 * time.Minute  // how old the session of a mark may be before a renewal gives it another
	markMany  = 500
	markUnit  = 10 * time.Minute
	idleMany  = 1024 // sessions without a key, of one TTL
	idleTTLs  = 16   // that may have some before it is looked which are too old
)

// A session is a Consul session.
type session struct {
	id   string
	ttl  time.Duration
	born time.Duration // before it was created or last renewed, by the store's clock
	used int           // marks that it locks

	index uint64 // of the key that it locks, which is another for each lease; 0: not known
}

// sessions knows the sessions of this process: those of leases that were released, which the next lease
// can use, and those of marks.
//
// One becomes idle only when it is certain that it locks nothing, and that nothing on its way can make
// it: after the step that deleted its key, or after one that was refused.
type sessions struct {
	client *api.Client
	clock  store.Clock // which does not stop in suspend, as Consul does not

	making chan struct{} // holds something while a session for marks is being made

	mu    sync.Mutex // guards what follows
	idle  map[time.Duration][]session
	lists int // how many idle may have before those that are too old are dropped
	marks map[time.Duration]*session
	fresh map[string]time.Duration // sessions of marks by the time of their creation
}

func newSessions(client *api.Client, clock store.Clock) *sessions {
	return &sessions{client: client, clock: clock, making: make(chan struct{}, 1),
		idle: map[time.Duration][]session{}, lists: idleTTLs,
		marks: map[time.Duration]*session{}, fresh: map[string]time.Duration{}}
}

// recent is the part of its TTL that an idle session may be old. It cannot be renewed instead: a
// renewal does not prove that it was the leader who answered.
const recent = 10

func (s *sessions) age(one session) time.Duration { return s.clock.Now() - one.born }

// take returns an idle session that is as good as new.
func (s *sessions) take(ttl time.Duration) (session, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	idle := s.idle[ttl]
	if len(idle) == 0 {
		return session{}, false
	}
	one := idle[len(idle)-1]
	if s.age(one) > ttl/recent { // and the others are older
		delete(s.idle, ttl)
		return session{}, false
	}
	s.idle[ttl] = idle[:len(idle)-1]
	return one, true
}

// put makes a session idle. What is too old for another lease ends by itself.
func (s *sessions) put(one session) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if idle := s.idle[one.ttl]; len(idle) < idleMany && s.age(one) < one.ttl/recent {
		s.idle[one.ttl] = append(idle, one)
	}
	if len(s.idle) < s.lists {
		return
	}
	for ttl, idle := range s.idle {
		if n := len(idle); n == 0 || s.age(idle[n-1]) > ttl/recent {
			delete(s.idle, ttl)
		}
	}
	s.lists = max(idleTTLs, 2*len(s.idle))
}

// create makes a session that deletes its keys when it ends.
func (s *sessions) create(ctx context.Context, name string, ttl time.Duration) (session, error) {
	one := session{ttl: ttl, born: s.clock.Now()}
	var err error
	one.id, _, err = s.client.Session().CreateNoChecks(&api.SessionEntry{
		Name: name, TTL: ttl.String(), Behavior: api.SessionBehaviorDelete, LockDelay: lockDelay,
	}, new(api.WriteOptions).WithContext(ctx))
	return one, err
}

// forMark returns the session for the mark of a lease with a TTL, which may live twice that long.
func (s *sessions) forMark(ctx context.Context, ttl time.Duration) (string, error) {
	class := markUnit
	for class < ttl {
		class *= 2
	}
	if id := s.useMark(class); id != "" {
		return id, nil
	}
	select {
	case s.making <- struct{}{}:
		defer func() { <-s.making }()
	case <-ctx.Done():
		return "", context.Cause(ctx)
	}
	if id := s.useMark(class); id != "" {
		return id, nil // somebody else made it meanwhile
	}
	one, err := s.create(ctx, "leasehold marks", min(class+markMore, longest))
	if err != nil {
		return "", err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	one.used = 1
	s.marks[class] = &one
	s.fresh[one.id] = one.born
	for id, born := range s.fresh {
		if s.clock.Now()-born > markFresh {
			delete(s.fresh, id)
		}
	}
	return one.id, nil
}

func (s *sessions) useMark(class time.Duration) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	one := s.marks[class]
	if one == nil || one.used >= markMany || s.age(*one) > markRoll {
		return ""
	}
	one.used++
	return one.id
}

// isFresh reports whether a mark that is locked by a session lives for long enough.
func (s *sessions) isFresh(id string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	born, ok := s.fresh[id]
	return ok && s.clock.Now()-born <= markFresh
}

// forget makes the next mark take a new session: Consul does not know the ones that there are.
func (s *sessions) forget() {
	s.mu.Lock()
	defer s.mu.Unlock()
	clear(s.marks)
	clear(s.fresh)
}

// renew renews a session; false: it has ended.
func (s *sessions) renew(ctx context.Context, id string) (bool, error) {
	entry, _, err := s.client.Session().Renew(id, new(api.WriteOptions).WithContext(ctx))
	if errors.Is(err, api.ErrSessionExpired) {
		return false, nil
	}
	return entry != nil, err
}

// destroy ends a session that locks nothing. If it fails, the session ends by itself.
func (s *sessions) destroy(ctx context.Context, id string) {
	_, _ = s.client.Session().Destroy(id, new(api.WriteOptions).WithContext(ctx))
}

// drain returns all idle sessions and forgets them.
func (s *sessions) drain() (idle []session) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, some := range s.idle {
		idle = append(idle, some...)
	}
	clear(s.idle)
	return idle
}

// gone reports whether a request named a session that has ended.
func gone(err error) bool { return err != nil && strings.Contains(err.Error(), "invalid session") }
