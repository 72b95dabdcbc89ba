package azblob

import (
	"time"

	"github.com/leasehold/leasehold"
)

// A lease is what this process knows of a lease that it asked for. Azure does not tell how long a lease
// lasts, and renews one that has expired.
type lease struct {
	resource string
	note     note
	token    leasehold.Token   // 0: it is not believed in
	until    time.Duration     // when it is over, counted from before it was asked for or renewed
	ending   *leasehold.Ending // how it ended; nil: it has not
}

const (
	keepEnded = 15 * time.Minute
	keepLeast = 1024 // leases that are kept without a look at their age
)

// known returns a copy of the lease of an id; nil if this process did not ask for it. If it has ended, the second
// result says how.
func (s *Store) known(id string) (*lease, *leasehold.Ending) {
	s.mu.Lock()
	defer s.mu.Unlock()
	l := s.leases[id]
	if l == nil {
		return nil, nil
	}
	if l.ending == nil && l.token != 0 && s.clock.Now() >= l.until {
		l.ending = l.end(leasehold.ByTTL)
	}
	c := *l
	return &c, c.ending
}

func (l *lease) end(how leasehold.How) *leasehold.Ending {
	return &leasehold.Ending{ID: l.note.ID, Holder: l.note.Holder, Token: l.token, How: how, At: time.Now(),
		TTL: l.note.ttl()}
}

// remember adds a lease that is asked for.
func (s *Store) remember(l *lease) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.leases[l.note.ID] = l
	if len(s.leases) < max(keepLeast, 2*s.pruned) {
		return
	}
	now := s.clock.Now()
	for id, l := range s.leases {
		if now-l.until > keepEnded {
			delete(s.leases, id)
		}
	}
	s.pruned = len(s.leases)
}

// over notes how a lease ended, unless that is known.
func (s *Store) over(id string, e *leasehold.Ending) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if l := s.leases[id]; l == nil {
		s.leases[id] = &lease{note: note{ID: id}, until: s.clock.Now(), ending: e}
	} else if l.ending == nil {
		l.ending = e
	}
}

// ended notes how a lease of this process ended.
func (s *Store) ended(id string, e *leasehold.Ending) {
	if l, _ := s.known(id); l != nil {
		s.over(id, e)
	}
}

// forget drops a lease that came to nothing.
func (s *Store) forget(l *lease) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if now := s.leases[l.note.ID]; now != nil && now.ending == nil && now.token == 0 {
		delete(s.leases, l.note.ID)
	}
}

// granted notes the token of a lease: from now on it is held.
func (s *Store) granted(id string, token leasehold.Token) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if l := s.leases[id]; l != nil {
		l.token = token
	}
}

// prolong notes a renewal.
func (s *Store) prolong(id string, until time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if l := s.leases[id]; l != nil {
		l.until = max(l.until, until)
	}
}
