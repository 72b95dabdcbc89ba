package core

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
)

// TestDeadlines compares the heap with a list that is sorted anew after every change.
func TestDeadlines(t *testing.T) {
	t.Parallel()
	spaces := []*space{newSpace("a"), newSpace("b")}
	for seed := range uint64(12) {
		chance := rand.New(rand.NewPCG(seed, 0))
		var heap deadlines
		timers := make([]*timer, 1+chance.IntN(200))
		for i := range timers {
			timers[i] = &timer{kind: dueKind(1 + chance.IntN(3)), space: spaces[chance.IntN(2)], key: fmt.Sprint(i)}
		}
		for range 800 {
			moveOne(chance, &heap, timers)
			if err := compareHeap(chance, heap, timers); err != nil {
				t.Fatalf("seed %d: %v", seed, err)
			}
		}
		drain(t, &heap, timers)
	}
}

// moveOne takes out a timer, puts it in, or moves it earlier or later. Moments are few,
// so that many things are due at once.
func moveOne(chance *rand.Rand, heap *deadlines, timers []*timer) {
	t := timers[chance.IntN(len(timers))]
	switch chance.IntN(4) {
	case 0:
		heap.set(t, 0)
	case 1:
		heap.set(t, max(1, t.at-Time(chance.IntN(20))))
	default:
		heap.set(t, t.at+Time(1+chance.IntN(20)))
	}
}

// sorted lists the timers that are set, the first first.
func sorted(timers []*timer) []*timer {
	set := slices.DeleteFunc(slices.Clone(timers), func(t *timer) bool { return t.at == 0 })
	slices.SortFunc(set, func(a, b *timer) int {
		return cmp.Or(cmp.Compare(a.at, b.at), cmp.Compare(a.kind, b.kind), strings.Compare(a.space.name, b.space.name), strings.Compare(a.key, b.key))
	})
	return set
}

// compareHeap asks for what is due at some moment. The heap may learn by that, which
// must not change what it says.
func compareHeap(chance *rand.Rand, heap deadlines, timers []*timer) error {
	set := sorted(timers)
	if len(set) != len(heap) {
		return fmt.Errorf("%d timers are set, %d are in the heap", len(set), len(heap))
	}
	now := Time(chance.IntN(60))
	var want *timer
	if len(set) > 0 && set[0].at <= now {
		want = set[0]
	}
	if got := heap.due(now); got != want {
		return fmt.Errorf("%v is due by %d, and not %v", got, now, want)
	}
	for i, slot := range heap {
		if slot.timer.place != i+1 || slot.at > slot.timer.at {
			return fmt.Errorf("slot %d says %d, its timer %d at place %d", i+1, slot.at, slot.timer.at, slot.timer.place)
		}
		if len(set) > 0 && heap[0].at > set[0].at {
			return fmt.Errorf("the heap begins at %d, though %d is due", heap[0].at, set[0].at)
		}
	}
	return nil
}

// drain takes them all out in the order in which they are due.
func drain(t *testing.T, heap *deadlines, timers []*timer) {
	for _, want := range sorted(timers) {
		if got := heap.due(want.at); got != want {
			t.Fatalf("%v is due next, and not %v", got, want)
		}
		heap.set(want, 0)
	}
	if len(*heap) != 0 {
		t.Fatalf("%d are left", len(*heap))
	}
}

// TestRenewalsAreNotPaidForAtOnce renews very many things and then asks what is due: each
// question puts right only so many of them, and says no until it is sure.
func TestRenewalsAreNotPaidForAtOnce(t *testing.T) {
	sp := newSpace("a")
	s := NewAt(NewestLevel)
	timers := make([]*timer, 5*maxRight)
	for i := range timers {
		timers[i] = &timer{kind: dueClaim, space: sp, key: fmt.Sprint(i)}
		s.due.set(timers[i], 10)
	}
	for _, timer := range timers[1:] {
		s.due.set(timer, 1000*lookAhead)
	}
	s.due.set(timers[0], 20)
	questions := 1
	for !s.DueBy(20) {
		questions++
		if at, ok := s.Due(); !ok || at > 20 {
			t.Fatalf("it says no, and to look again at %d", at)
		}
	}
	if questions != 5 && questions != 6 {
		t.Errorf("%d questions for %d renewals", questions, len(timers))
	}
	if at, ok := s.Due(); !ok || at != 20 {
		t.Errorf("due at %d", at)
	}
}
