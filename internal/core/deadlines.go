package core

import "time"

// A timer is when one thing is due. It is the only part of the state that is
// changed in place, and no snapshot looks at it.
type timer struct {
	at    Time // the truth
	kind  dueKind
	space *space
	key   string
	place int // in the heap, from 1 on; 0: not in it
}

type dueKind uint8

const (
	dueClaim      dueKind = iota + 1
	dueSession            // a session that is not renewed
	dueResource           // the end of a grace that somebody waits for
	dueQuarantine         // the end of a quarantine, and the queues that wait for it
	dueShelf              // the versions of a record that was deleted long ago
)

// deadlines is a 4-ary heap: shallower than a binary one, with the children of a
// slot next to each other in memory.
//
// It is lazy. A renewal moves its timer later and leaves the slot alone, which then
// says a moment that is too early and never too late. It is put right when that
// moment has come: once in a TTL, however often the thing was renewed. Nobody looks
// for the true next moment before that; whoever did would have to put right all
// that was renewed since at once.
type deadlines []slot

// A slot's moment is at or before that of its timer.
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
	case at < (*h)[t.place-1].at:
		h.rise(t.place-1, slot{at, t})
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

// due returns the first timer whose moment has come; nil if there is none.
func (h deadlines) due(now Time) *timer {
	for len(h) > 0 && h[0].at <= now {
		if h[0].at == h[0].timer.at {
			return h[0].timer
		}
		h.right()
	}
	return nil
}

// right puts the first slot where its timer says.
func (h deadlines) right() { h.sink(0, slot{h[0].timer.at, h[0].timer}) }

// How far ahead, and how many slots at once, are put right by DueBy: the first makes
// it rarely necessary to look, the second makes nobody wait while one looks.
const (
	lookAhead = Time(50 * time.Millisecond)
	maxRight  = 1024
)

// Due returns a moment before which time alone changes nothing, and false if it never
// does. What was put off is due at once. It may be too early, since what was renewed is not looked at until then:
// DueBy tells.
func (s *State) Due() (Time, bool) {
	if s.chores.Len() > 0 {
		return s.now, true
	}
	if len(s.due) == 0 {
		return 0, false
	}
	return s.due[0].at, true
}

// maxLate is how many deadlines are looked at to find whether one has passed.
const maxLate = 256

// calm reports whether nothing is over at the stamp, or due in another way, that was not
// collected. It may say no although that is so: it looks at so many deadlines only, and
// changes none. A frozen state has none to look at.
func (s *State) calm() bool {
	if s.frozen {
		return false
	}
	left := maxLate
	return s.due.noneDue(0, s.now, &left)
}

// noneDue reports whether none of the timers from a slot downwards is due by a moment.
// What is behind a slot is due no earlier than the slot says.
func (h deadlines) noneDue(i int, now Time, left *int) bool {
	if i >= len(h) || h[i].at > now {
		return true
	}
	if *left--; *left < 0 || h[i].timer.at <= now {
		return false
	}
	for child := 4*i + 1; child <= 4*i+4; child++ {
		if !h.noneDue(child, now, left) {
			return false
		}
	}
	return true
}

// DueBy tells whether time alone would change something at a moment. It looks at so
// many things only; if there are more, it says no, and Due still lies before the
// moment: ask again. What it does is no part of the state.
func (s *State) DueBy(now Time) bool {
	for range maxRight {
		if len(s.due) == 0 || s.due[0].at > now+lookAhead || s.due[0].at == s.due[0].timer.at {
			break
		}
		s.due.right()
	}
	return s.chores.Len() > 0 || len(s.due) > 0 && s.due[0].at <= now && s.due[0].at == s.due[0].timer.at
}
