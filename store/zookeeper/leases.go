package zookeeper

import (
	"errors"
	"path"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/leasehold/leasehold"
)

// A lease is a lease or a waiter of this process. Its session lives for as long as the process does,
// since the driver sends pings by itself: ZooKeeper would never end a lease that nobody renews. So it
// is deleted here when its time is over, by one timer for the whole store. If the process dies,
// ZooKeeper ends the session.
type lease struct {
	resource string
	note     note
	session  *session

	// What follows changes under the lock of its id, and is read under Store.mu.
	name  string // of its node; empty: not known whether there is one
	token leasehold.Token

	// What follows is guarded by Store.mu.
	held   bool          // it waits if not
	until  time.Duration // when it is over; for one that is, when to try again to delete its node
	doomed bool          // it is over, and its node has to go
}

func (l *lease) path() string { return path.Join(l.session.s.paths.resource(l.resource), l.name) }

// An ending is how a lease of this process ended. It is kept for a while, since its id must not be
// granted again. Requests for an id come from the process that made it, so others need not know.
type ending struct {
	*leasehold.Ending
	kept time.Duration
}

const (
	keepEndings = 15 * time.Minute
	keepLeast   = 1024 // endings that are kept without a look at their age
	buryAgain   = time.Second
)

// known returns what is known of an id. Both results are nil if it is unknown.
func (s *Store) known(id string) (*lease, *leasehold.Ending) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if e := s.ended[id]; e != nil {
		return nil, e.Ending
	}
	return s.leases[id], nil
}

// add adds a lease that is about to be created.
func (s *Store) add(l *lease) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.leases[l.note.ID] = l
	s.wakeLocked(l.until)
}

// drop forgets a lease whose node is gone.
func (s *Store) drop(l *lease) {
	s.mu.Lock()
	same := s.leases[l.note.ID] == l
	if same {
		delete(s.leases, l.note.ID)
	}
	s.mu.Unlock()
	if same {
		l.session.done()
	}
}

// extend makes a lease or waiter last until a moment. It reports whether it was not over.
func (s *Store) extend(l *lease, until time.Duration, held bool) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if l.doomed || s.leases[l.note.ID] != l || s.clock.Now() >= l.until && l.held {
		return false
	}
	l.until, l.held = max(until, l.until), l.held || held
	s.wakeLocked(l.until)
	return true
}

// doom says that a lease is over, and how.
func (s *Store) doom(l *lease, e *leasehold.Ending) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.doomLocked(l, e)
}

func (s *Store) doomLocked(l *lease, e *leasehold.Ending) {
	l.doomed, l.until = true, s.clock.Now()+buryAgain
	s.wakeLocked(l.until)
	if e != nil {
		s.endLocked(e)
	}
}

func (s *Store) end(e *leasehold.Ending) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.endLocked(e)
}

func (s *Store) endLocked(e *leasehold.Ending) {
	now := s.clock.Now()
	if s.ended[e.ID] == nil {
		s.ended[e.ID] = &ending{e, now}
	}
	if len(s.ended) < max(keepLeast, 2*s.pruned) {
		return
	}
	for id, e := range s.ended {
		if now-e.kept > keepEndings {
			delete(s.ended, id)
		}
	}
	s.pruned = len(s.ended)
}

// wakeLocked makes the timer fire at a moment, or earlier.
func (s *Store) wakeLocked(at time.Duration) {
	if s.closed || s.wakes != 0 && s.wakes <= at {
		return
	}
	s.wakes = at
	in := max(at-s.clock.Now(), 0)
	if s.timer == nil {
		s.timer = time.AfterFunc(in, s.sweep)
	} else {
		s.timer.Reset(in)
	}
}

// sweep deletes the nodes of leases that are over.
func (s *Store) sweep() {
	s.mu.Lock()
	defer s.mu.Unlock()
	now, next := s.clock.Now(), time.Duration(0)
	for _, l := range s.leases {
		if l.until <= now {
			l := l
			go s.bury(l)
		} else if next == 0 || l.until < next {
			next = l.until
		}
	}
	if s.wakes = 0; next != 0 {
		s.wakeLocked(next)
	}
}

// bury ends a lease whose time is over.
func (s *Store) bury(l *lease) {
	defer s.ids.lock(l.note.ID)()
	s.mu.Lock()
	if s.leases[l.note.ID] != l || l.until > s.clock.Now() {
		s.mu.Unlock() // it was renewed, or is gone
		return
	}
	var e *leasehold.Ending
	if l.held && !l.doomed {
		e = l.ending(leasehold.ByTTL)
	}
	s.doomLocked(l, e)
	s.mu.Unlock()
	_ = s.remove(l) // what fails is tried again
}

func (l *lease) ending(how leasehold.How) *leasehold.Ending {
	return &leasehold.Ending{ID: l.note.ID, Holder: l.note.Holder, Token: l.token, How: how, At: time.Now(),
		TTL: l.note.ttl()}
}

// remove deletes the node of a lease that is doomed, and forgets it. The caller has the lock of its id.
func (s *Store) remove(l *lease) error {
	if !l.session.over.Load() {
		if l.name == "" {
			if err := s.find(l); err != nil {
				return err
			}
		}
		if l.name != "" {
			sent := s.clock.Now()
			err := l.session.conn.Delete(l.path(), -1)
			if err != nil && !errors.Is(err, zk.ErrNoNode) && !l.session.over.Load() {
				return err
			}
			if err == nil {
				l.session.written(sent)
			}
		}
	}
	s.drop(l)
	return nil
}

// find looks for the node of a lease whose creation was not answered. The connection may lead to another
// member now, which has not heard of the creation yet. So a write goes first, and what is read after its
// answer shows everything before it. The creation cannot come after it: the leader refuses what
// a session sent by way of a member that it has left.
func (s *Store) find(l *lease) error {
	_, err := l.session.multi(&zk.CheckVersionRequest{Path: s.paths.leases(), Version: -1})
	if err != nil && !errors.Is(err, zk.ErrNoNode) {
		return err
	}
	places, err := s.places(l.session, l.resource)
	if err != nil {
		return err
	}
	for _, p := range places {
		if p.id == l.note.ID {
			l.name = p.name
		}
	}
	return nil
}

// places returns who holds a resource and waits for it, in order: the first one holds it.
func (s *Store) places(c *session, resource string) ([]place, error) {
	children, _, err := c.conn.Children(s.paths.resource(resource))
	if errors.Is(err, zk.ErrNoNode) {
		return nil, nil
	}
	return placesOf(children), err
}

// permitted returns an error if nothing in the namespace may be read: then what does not seem to exist
// may be hidden.
func (s *Store) permitted(c *session) error {
	_, _, err := c.conn.Get(s.paths.leases())
	if errors.Is(err, zk.ErrNoNode) {
		return nil
	}
	return err
}

// fresh is places after everything that was answered to anybody before.
func (s *Store) fresh(c *session, resource string) ([]place, error) {
	if _, err := c.conn.Sync(s.paths.leases()); err != nil && !errors.Is(err, zk.ErrNoNode) {
		return nil, err
	}
	return s.places(c, resource)
}
