package timeline

// A Timer is when one thing is due. It is changed in place.
type Timer[T any] struct {
	At    Time // when it is due, as Heap.Set was told last; 0: it is not
	Of    T    // what is due
	place int  // in the heap, from 1 on; 0: not in it
}

// Scheduled reports whether a timer is in a heap.
func (t *Timer[T]) Scheduled() bool { return t.place != 0 }

// A Heap has timers in the order in which they are due. It is 4-ary: shallower than a binary
// heap, with the children of a slot next to each other in memory.
//
// It is lazy. A renewal moves its timer later and leaves the slot alone, which then
// has a moment that is too early and never too late. It is corrected when that
// moment has come: once in a TTL, however often the thing was renewed. Nobody looks
// for the true next moment before that: to find it, all that was renewed since would have
// to be corrected at once.
type Heap[T any] struct {
	slots  []slot[T]
	before func(a, b T) bool
}

// A slot's moment is at or before that of its timer.
type slot[T any] struct {
	at    Time
	timer *Timer[T]
}

// NewHeap returns an empty heap. before must be a total order of what is due at one moment, so
// that every node ends the same things first, however its heap came to be.
func NewHeap[T any](before func(a, b T) bool) Heap[T] { return Heap[T]{before: before} }

// Len returns how many timers there are.
func (h *Heap[T]) Len() int { return len(h.slots) }

func (h *Heap[T]) less(a, b slot[T]) bool {
	if a.at != b.at {
		return a.at < b.at
	}
	return h.before(a.timer.Of, b.timer.Of)
}

// Set moves a timer to a moment; 0 takes it out. A later moment than the slot has is only
// written in the timer: that is what makes a renewal cheap.
func (h *Heap[T]) Set(t *Timer[T], at Time) {
	t.At = at
	switch {
	case at == 0 && t.place == 0:
	case at == 0:
		h.remove(t)
	case t.place == 0:
		h.slots = append(h.slots, slot[T]{})
		h.rise(len(h.slots)-1, slot[T]{at, t})
	case at < h.slots[t.place-1].at:
		h.rise(t.place-1, slot[T]{at, t})
	}
}

func (h *Heap[T]) remove(t *Timer[T]) {
	i, last := t.place-1, len(h.slots)-1
	moved := h.slots[last]
	h.slots[last] = slot[T]{} // lets the timer go
	h.slots = h.slots[:last]
	t.place = 0
	if i != last {
		h.move(i, moved)
	}
}

// move puts a slot where it belongs, from a place that is free for it.
func (h *Heap[T]) move(i int, s slot[T]) {
	if i > 0 && h.less(s, h.slots[(i-1)/4]) {
		h.rise(i, s)
	} else {
		h.sink(i, s)
	}
}

func (h *Heap[T]) rise(i int, s slot[T]) {
	for i > 0 {
		parent := (i - 1) / 4
		if !h.less(s, h.slots[parent]) {
			break
		}
		h.store(i, h.slots[parent])
		i = parent
	}
	h.store(i, s)
}

func (h *Heap[T]) sink(i int, s slot[T]) {
	for {
		first := 4*i + 1
		if first >= len(h.slots) {
			break
		}
		least := first
		for child := first + 1; child < min(first+4, len(h.slots)); child++ {
			if h.less(h.slots[child], h.slots[least]) {
				least = child
			}
		}
		if !h.less(h.slots[least], s) {
			break
		}
		h.store(i, h.slots[least])
		i = least
	}
	h.store(i, s)
}

func (h *Heap[T]) store(i int, s slot[T]) {
	h.slots[i] = s
	s.timer.place = i + 1
}

// Due returns the first timer whose moment has come; nil if there is none.
func (h *Heap[T]) Due(now Time) *Timer[T] {
	for len(h.slots) > 0 && h.slots[0].at <= now {
		if h.exact() {
			return h.slots[0].timer
		}
		h.correct()
	}
	return nil
}

// exact reports whether the first slot has the moment of its timer.
func (h *Heap[T]) exact() bool { return h.slots[0].at == h.slots[0].timer.At }

// correct puts the first slot where its timer belongs.
func (h *Heap[T]) correct() { h.sink(0, slot[T]{h.slots[0].timer.At, h.slots[0].timer}) }

// Next returns a moment before which nothing is due, and false if nothing ever is. It may be
// too early, since what was renewed is not looked at until then.
func (h *Heap[T]) Next() (Time, bool) {
	if len(h.slots) == 0 {
		return 0, false
	}
	return h.slots[0].at, true
}

// Correct makes Next exact if that is before a moment. It corrects at most the given number of
// slots.
func (h *Heap[T]) Correct(by Time, most int) {
	for range most {
		if len(h.slots) == 0 || h.slots[0].at > by || h.exact() {
			return
		}
		h.correct()
	}
}

// DueBy reports whether the first slot is exact, and due by a moment.
func (h *Heap[T]) DueBy(now Time) bool {
	return len(h.slots) > 0 && h.slots[0].at <= now && h.exact()
}

// NoneDue reports whether no timer is due by a moment. It may return false although none is: it
// looks at a bounded number of slots, and changes none.
func (h *Heap[T]) NoneDue(now Time, most int) bool { return h.noneDue(0, now, &most) }

// noneDue is NoneDue from a slot downwards. What is behind a slot is due no earlier than the
// slot says.
func (h *Heap[T]) noneDue(i int, now Time, left *int) bool {
	if i >= len(h.slots) || h.slots[i].at > now {
		return true
	}
	if *left--; *left < 0 || h.slots[i].timer.At <= now {
		return false
	}
	for child := 4*i + 1; child <= 4*i+4; child++ {
		if !h.noneDue(child, now, left) {
			return false
		}
	}
	return true
}

// Check calls that with each thing that must be so.
func (h *Heap[T]) Check(that func(ok bool, format string, args ...any)) {
	for i, s := range h.slots {
		that(s.timer.place == i+1, "deadline %d thinks it is at %d", i+1, s.timer.place)
		that(s.at <= s.timer.At, "deadline %d says %d, its timer %d", i+1, s.at, s.timer.At)
		that(i == 0 || !h.less(s, h.slots[(i-1)/4]), "deadline %d comes before its parent", i+1)
	}
}
