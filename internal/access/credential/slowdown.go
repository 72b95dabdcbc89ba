package credential

import (
	"net/netip"
	"sync"
	"time"
)

// How many logins may fail that come from one address: some at once, and then one at a time.
const (
	failuresAtOnce = 20
	failureEvery   = time.Second
	maxAddresses   = 4096
)

// A slowdown counts failed logins by address, and never by name: nobody is locked out because somebody else tries
// its name. It forgets an address when its failures are long enough ago.
type slowdown struct {
	mu        sync.Mutex // guards what follows
	addresses map[netip.Prefix]time.Time
}

// enter counts a login that may fail, and returns how long it has to wait; then it was not counted.
func (s *slowdown) enter(from netip.Prefix, now time.Time) (wait time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	until := s.addresses[from] // when all its failures are forgotten
	if until.Before(now) {
		until = now
	}
	if wait = until.Sub(now) - (failuresAtOnce-1)*failureEvery; wait > 0 {
		return wait
	}
	if _, known := s.addresses[from]; !known && len(s.addresses) >= maxAddresses {
		s.forget(now)
	}
	s.addresses[from] = until.Add(failureEvery)
	return 0
}

// leave takes back what enter counted: it was not a failure.
func (s *slowdown) leave(from netip.Prefix) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if until, ok := s.addresses[from]; ok {
		s.addresses[from] = until.Add(-failureEvery)
	}
}

// forget makes room for another address.
func (s *slowdown) forget(now time.Time) {
	for from, until := range s.addresses {
		if !until.After(now) {
			delete(s.addresses, from)
		}
	}
	for from := range s.addresses {
		if len(s.addresses) < maxAddresses {
			return
		}
		delete(s.addresses, from)
	}
}
