package timeline

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
	for seed := range uint64(12) {
		chance := rand.New(rand.NewPCG(seed, 0))
		heap := NewHeap(func(a, b string) bool { return a < b })
		timers := make([]*Timer[string], 1+chance.IntN(200))
		for i := range timers {
			timers[i] = &Timer[string]{Of: fmt.Sprint(i)}
		}
		for range 800 {
			moveOne(chance, &heap, timers)
			if err := compareHeap(chance, &heap, timers); err != nil {
				t.Fatalf("seed %d: %v", seed, err)
			}
		}
		drain(t, &heap, timers)
	}
}

// moveOne takes out a timer, puts it in, or moves it earlier or later. Moments are few,
// so that many things are due at once.
func moveOne(chance *rand.Rand, heap *Heap[string], timers []*Timer[string]) {
	t := timers[chance.IntN(len(timers))]
	switch chance.IntN(4) {
	case 0:
		heap.Set(t, 0)
	case 1:
		heap.Set(t, max(1, t.At-Time(chance.IntN(20))))
	default:
		heap.Set(t, t.At+Time(1+chance.IntN(20)))
	}
}

// sorted lists the timers that are set, the first first.
func sorted(timers []*Timer[string]) []*Timer[string] {
	set := slices.DeleteFunc(slices.Clone(timers), func(t *Timer[string]) bool { return t.At == 0 })
	slices.SortFunc(set, func(a, b *Timer[string]) int {
		return cmp.Or(cmp.Compare(a.At, b.At), strings.Compare(a.Of, b.Of))
	})
	return set
}

// compareHeap asks for what is due at some moment. The heap may learn by that, which
// must not change what it says.
func compareHeap(chance *rand.Rand, heap *Heap[string], timers []*Timer[string]) error {
	set := sorted(timers)
	if len(set) != heap.Len() {
		return fmt.Errorf("%d timers are set, %d are in the heap", len(set), heap.Len())
	}
	now := Time(chance.IntN(60))
	var want *Timer[string]
	if len(set) > 0 && set[0].At <= now {
		want = set[0]
	}
	if got := heap.Due(now); got != want {
		return fmt.Errorf("%v is due by %d, and not %v", got, now, want)
	}
	for i, slot := range heap.slots {
		if slot.timer.place != i+1 || slot.at > slot.timer.At {
			return fmt.Errorf("slot %d says %d, its timer %d at place %d", i+1, slot.at, slot.timer.At, slot.timer.place)
		}
		if len(set) > 0 && heap.slots[0].at > set[0].At {
			return fmt.Errorf("the heap begins at %d, though %d is due", heap.slots[0].at, set[0].At)
		}
	}
	return nil
}

// drain takes them all out in the order in which they are due.
func drain(t *testing.T, heap *Heap[string], timers []*Timer[string]) {
	for _, want := range sorted(timers) {
		if got := heap.Due(want.At); got != want {
			t.Fatalf("%v is due next, and not %v", got, want)
		}
		heap.Set(want, 0)
	}
	if heap.Len() != 0 {
		t.Fatalf("%d are left", heap.Len())
	}
}

// TestCheckFinds damages a heap in every way that Check is there for.
func TestCheckFinds(t *testing.T) {
	for says, damage := range map[string]func(h *Heap[string]){
		"deadline 1 thinks it is at 2": func(h *Heap[string]) { h.slots[0], h.slots[1] = h.slots[1], h.slots[0] },
		"its timer":                    func(h *Heap[string]) { h.slots[len(h.slots)-1].at++ },
		"comes before its parent":      func(h *Heap[string]) { h.slots[0].at += 1000 },
	} {
		heap := NewHeap(func(a, b string) bool { return a < b })
		for i := range 10 {
			heap.Set(&Timer[string]{Of: fmt.Sprint(i)}, Time(10+i))
		}
		var found []string
		that := func(ok bool, format string, args ...any) {
			if !ok {
				found = append(found, fmt.Sprintf(format, args...))
			}
		}
		if heap.Check(that); found != nil {
			t.Fatalf("a heap that nobody has damaged: %q", found)
		}
		damage(&heap)
		if heap.Check(that); !strings.Contains(strings.Join(found, "\n"), says) {
			t.Errorf("%q is not found: %q", says, found)
		}
	}
}
