package core

// A timer is when one thing is due. It is the only part of the state that is
// changed in place, and no snapshot looks at it.
type timer struct {
	at    Time
	kind  dueKind
	space *space
	key   string
	place int // in the heap, from 1 on; 0: not in it
}

type dueKind uint8

const (
	dueClaim    dueKind = iota + 1
	dueSession          // a session that is not renewed
	dueResource         // the end of a grace that somebody waits for
)

// deadlines is a 4-ary heap: shallower than a binary one, with the children of a
// slot next to each other in memory.
//
// A renewal moves its slot at once. To leave that until the slot comes to the top
// would be cheaper, but then one lease that nobody renews keeps all the others from
// the top, and its end makes one command pay for every renewal since.
type deadlines []slot

// A slot repeats the moment of its timer, which may be far away in memory.
type slot struct {
	at    Time
	timer *timer
}

// before is a total order, so that every node ends the same leases first however
// its heap came to be.
func (a slot) before(b slot) bool {
	if a.at != b.at {
		return a.at < b.at
	}
	t, u := a.timer, b.timer
	switch {
	case t.kind != u.kind:
		return t.kind < u.kind
	case t.space.name != u.space.name:
		return t.space.name < u.space.name
	}
	return t.key < u.key
}

// set moves a timer to a moment; 0 takes it out.
func (h *deadlines) set(t *timer, at Time) {
	t.at = at
	switch {
	case at == 0 && t.place == 0:
	case at == 0:
		h.remove(t)
	case t.place == 0:
		*h = append(*h, slot{})
		h.rise(len(*h)-1, slot{at, t})
	default:
		h.move(t.place-1, slot{at, t})
	}
}

func (h *deadlines) remove(t *timer) {
	q := *h
	i, last := t.place-1, len(q)-1
	moved := q[last]
	q[last] = slot{} // lets the timer go
	*h = q[:last]
	t.place = 0
	if i != last {
		h.move(i, moved)
	}
}

// move puts a slot where it belongs, from a place that is free for it.
func (h deadlines) move(i int, s slot) {
	if i > 0 && s.before(h[(i-1)/4]) {
		h.rise(i, s)
	} else {
		h.sink(i, s)
	}
}

func (h deadlines) rise(i int, s slot) {
	for i > 0 {
		parent := (i - 1) / 4
		if !s.before(h[parent]) {
			break
		}
		h.store(i, h[parent])
		i = parent
	}
	h.store(i, s)
}

func (h deadlines) sink(i int, s slot) {
	for {
		first := 4*i + 1
		if first >= len(h) {
			break
		}
		least := first
		for child := first + 1; child < min(first+4, len(h)); child++ {
			if h[child].before(h[least]) {
				least = child
			}
		}
		if !h[least].before(s) {
			break
		}
		h.store(i, h[least])
		i = least
	}
	h.store(i, s)
}

func (h deadlines) store(i int, s slot) {
	h[i] = s
	s.timer.place = i + 1
}

// next returns the timer that is due first, nil if there is none.
func (h deadlines) next() *timer {
	if len(h) == 0 {
		return nil
	}
	return h[0].timer
}

// Due returns when time alone would next change something, and false if it never
// would.
func (s *State) Due() (Time, bool) {
	t := s.due.next()
	if t == nil {
		return 0, false
	}
	return t.at, true
}
