package kernel_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/leasehold/leasehold"
	"github.com/leasehold/leasehold/internal/core"
)

// BenchmarkSlots takes a slot and gives it back, among others who share the resource.
// What it costs must not depend on how many they are.
func BenchmarkSlots(b *testing.B) {
	for _, sharers := range []int{10, 10000} {
		b.Run(fmt.Sprint("sharers=", sharers), func(b *testing.B) {
			t := newTown(1000) // of its own: the sharers stay
			take := func(id string) {
				t.do(&core.Acquire{Namespace: ns, Resource: "pool", ID: id, Holder: id, TTL: leasehold.MaxTTL, Slots: 1, Capacity: leasehold.MaxCapacity})
			}
			for i := range sharers {
				take(fmt.Sprint("s", i))
			}
			b.ReportAllocs()
			for b.Loop() {
				id := t.name("new")
				take(id)
				t.do(&core.Release{Namespace: ns, ID: id})
			}
		})
	}
}

// BenchmarkSlotsQueue hands one of three slots over in a queue that stays as long as it
// is: a release, and a newcomer at the end.
func BenchmarkSlotsQueue(b *testing.B) {
	const capacity = 3
	for _, waiters := range []int{10, 10000} {
		b.Run(fmt.Sprint("waiters=", waiters), func(b *testing.B) {
			t := newTown(1000) // of its own: the queue stays
			t.step = time.Nanosecond
			stand := func(i int) string {
				id := fmt.Sprintf("q%08d", i)
				t.do(&core.Acquire{Namespace: ns, Resource: "pool", ID: id, Holder: id, TTL: leasehold.MaxTTL, Wait: leasehold.MaxWait, Slots: 1, Capacity: capacity})
				return id
			}
			var ids []string
			for i := range waiters + capacity {
				ids = append(ids, stand(i))
			}
			b.ReportAllocs()
			for i := waiters + capacity; b.Loop(); i++ {
				t.do(&core.Release{Namespace: ns, ID: ids[0]})
				ids = append(ids[1:], stand(i))
			}
		})
	}
}

// BenchmarkTogether is an acquire of eight resources at once, and the release of each.
func BenchmarkTogether(b *testing.B) {
	inTowns(b, func(t *town) {
		c := together(t.name("new"), 8)
		t.do(c)
		for _, item := range itemsOf(c) {
			t.do(&core.Release{Namespace: ns, ID: item.ID})
		}
	})
}

// BenchmarkWriter is a wait for all of a resource that others share, or for a slot behind
// such a wait, given up again: to see that nobody waits in a circle takes a look at the
// holders, of which there may be many.
func BenchmarkWriter(b *testing.B) {
	for _, sharers := range []int{10, 10000} {
		for _, slots := range []int{0, 1} {
			b.Run(fmt.Sprint("sharers=", sharers, "/slots=", slots), func(b *testing.B) {
				t := newTown(1000) // of its own: the sharers stay
				t.step = time.Nanosecond
				for i := range sharers {
					id := fmt.Sprint("s", i)
					t.do(&core.Acquire{Namespace: ns, Resource: "book", ID: id, Holder: id, TTL: leasehold.MaxTTL, Slots: 1})
				}
				t.do(&core.Acquire{Namespace: ns, Resource: "book", ID: "writer", Holder: "writer", Wait: leasehold.MaxWait})
				b.ReportAllocs()
				for b.Loop() {
					id := t.name("new")
					t.do(&core.Acquire{Namespace: ns, Resource: "book", ID: id, Holder: id, Wait: leasehold.MaxWait, Slots: slots})
					t.do(&core.Release{Namespace: ns, ID: id})
				}
			})
		}
	}
}
