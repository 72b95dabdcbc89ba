package door

import "sync"

// A Sleeper is something that waits for a channel to be closed without a goroutine of its own. It must not be copied.
type Sleeper struct {
	Wake func() // is called by a goroutine of its own

	room *room // where it sleeps; nil: it is awake
	at   int   // its place there
}

// sleepers are all that sleep. Those that wait for the same channel share a goroutine.
type sleepers struct {
	mu    sync.Mutex // guards what follows, and the sleepers
	rooms map[<-chan struct{}]*room
}

// A room is where all sleep that wait for one channel.
type room struct {
	until <-chan struct{}
	all   []*Sleeper
	empty chan struct{} // closed when nobody sleeps here any more
}

// SleepUntil wakes a sleeper once, when a channel is closed, unless Awake comes before that. A nil channel is never
// closed.
func (b *Backend) SleepUntil(closed <-chan struct{}, one *Sleeper) {
	if closed == nil {
		return
	}
	s := &b.sleepers
	s.mu.Lock()
	defer s.mu.Unlock()
	s.leave(one)
	r := s.rooms[closed]
	if r == nil {
		r = &room{until: closed, empty: make(chan struct{})}
		if s.rooms == nil {
			s.rooms = map[<-chan struct{}]*room{}
		}
		s.rooms[closed] = r
		go s.wait(r)
	}
	one.room, one.at = r, len(r.all)
	r.all = append(r.all, one)
}

// Awake says that a sleeper waits no more. It may still be woken if that has begun.
func (b *Backend) Awake(one *Sleeper) {
	b.sleepers.mu.Lock()
	defer b.sleepers.mu.Unlock()
	b.sleepers.leave(one)
}

func (s *sleepers) leave(one *Sleeper) {
	r := one.room
	if r == nil {
		return
	}
	last := len(r.all) - 1
	r.all[one.at] = r.all[last]
	r.all[one.at].at = one.at
	r.all[last] = nil
	r.all, one.room = r.all[:last], nil
	if last == 0 {
		delete(s.rooms, r.until)
		close(r.empty)
	}
}

// wait wakes all in a room when their channel is closed.
func (s *sleepers) wait(r *room) {
	select {
	case <-r.until:
	case <-r.empty:
		return
	}
	s.mu.Lock()
	all := r.all
	if len(all) > 0 {
		delete(s.rooms, r.until)
	}
	for _, one := range all {
		one.room = nil
	}
	s.mu.Unlock()
	for _, one := range all {
		go one.Wake()
	}
}
