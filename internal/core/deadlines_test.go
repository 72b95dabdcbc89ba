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
			if err := compareHeap(heap, timers); err != nil {
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

func compareHeap(heap deadlines, timers []*timer) error {
	set := sorted(timers)
	if len(set) != len(heap) {
		return fmt.Errorf("%d timers are set, %d are in the heap", len(set), len(heap))
	}
	next := heap.next()
	switch {
	case len(set) == 0 && next != nil:
		return fmt.Errorf("%s is due, though nothing is set", next.key)
	case len(set) > 0 && next != set[0]:
		return fmt.Errorf("%v is due next, and not %v", next, set[0])
	}
	for i, slot := range heap {
		if slot.timer.place != i+1 || slot.at != slot.timer.at {
			return fmt.Errorf("slot %d says %d, its timer %d at place %d", i+1, slot.at, slot.timer.at, slot.timer.place)
		}
	}
	return nil
}

// drain takes them all out in the order in which they are due.
func drain(t *testing.T, heap *deadlines, timers []*timer) {
	for _, want := range sorted(timers) {
		if got := heap.next(); got != want {
			t.Fatalf("%v is due next, and not %v", got, want)
		}
		heap.set(want, 0)
	}
	if len(*heap) != 0 || heap.next() != nil {
		t.Fatalf("%d are left", len(*heap))
	}
}
