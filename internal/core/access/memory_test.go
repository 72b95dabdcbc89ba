//go:build !race

package access

import (
	"fmt"
	"runtime"
	"testing"
)

func heap() int64 {
	runtime.GC()
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	return int64(stats.HeapAlloc)
}

// TestMemoryOfAnAsker holds the memory of what askers may do to a little for each, however much is bound to their
// groups. (The race detector takes memory too, and is left out.)
func TestMemoryOfAnAsker(t *testing.T) {
	const askers = 2048
	for _, c := range []struct{ bindings, groups int }{{1, 1}, {1000, 1}, {1000, 3}, {1000, 10}, {10000, 1}} {
		t.Run(fmt.Sprintf("%d-bindings-to-%d-groups", c.bindings, c.groups), func(t *testing.T) {
			p, list := crowd(c.bindings, c.groups, askers)
			p.Permit(list[0]) // what is shared is no asker's
			before := heap()
			for _, a := range list[1:] {
				if !p.Permit(a).May(Renew, "default", "team-0/jobs/nightly", &Owner{Principal: a.Principal}) {
					t.Fatal("it may not")
				}
			}
			most := int64(1024 + 64*c.groups) // of a group it has an owner
			each := (heap() - before) / (askers - 1)
			t.Logf("an asker takes %d bytes", each)
			if each > most {
				t.Errorf("an asker takes %d bytes, and should take %d at most", each, most)
			}
			runtime.KeepAlive(list)
			runtime.KeepAlive(p)
		})
	}
}

// TestCompilingAllocatesLittle holds what the first asker of a subject costs, which is a part of a command: most of
// the time would go into memory.
func TestCompilingAllocatesLittle(t *testing.T) {
	for _, groups := range []int{1, MaxGroups} {
		p, list := crowd(MaxBindings-2, groups, 2)
		made := testing.AllocsPerRun(3, func() {
			p.rules = new(rules)
			p.Compile(list[0])
		})
		if most := 1.5 * MaxBindings; made > most {
			t.Errorf("%d bindings to %d groups: %.0f allocations, and at most %.0f are expected", MaxBindings, groups, made, most)
		}
	}
}
