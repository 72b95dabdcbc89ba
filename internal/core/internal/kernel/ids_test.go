package kernel

import (
	"fmt"
	"math/rand/v2"
	"testing"
)

// TestIDsOfOneHash compares the table of ids with a map, while most ids have the hash of others.
func TestIDsOfOneHash(t *testing.T) {
	t.Parallel()
	for seed := range uint64(50) {
		chance := rand.New(rand.NewPCG(seed, 0))
		table, want := newIDs(), map[string]knownID{}
		table.hash = func(id string) uint64 { return uint64(id[0]%3) * 5 }
		for range 400 {
			id := fmt.Sprint(chance.IntN(30))
			switch was := want[id]; chance.IntN(3) {
			case 0:
				c := &Claim{ID: id}
				if before, known := table.Set(c); before != was.claim || known != (was.claim != nil) {
					t.Fatalf("seed %d: Set of %s returned %v, and not %v", seed, id, before, was.claim)
				}
				want[id] = knownID{claim: c}
			case 1:
				e := &EndedClaim{ID: id}
				if before := table.End(e); before != was.claim {
					t.Fatalf("seed %d: End of %s returned %v, and not %v", seed, id, before, was.claim)
				}
				want[id] = knownID{ended: e}
			default:
				if table.forget(id); was.claim == nil {
					delete(want, id)
				}
			}
			sameIDs(t, &table, want)
		}
	}
}

func sameIDs(t *testing.T, table *ids, want map[string]knownID) {
	t.Helper()
	alive := 0
	for i := range 30 {
		id := fmt.Sprint(i)
		if k, _ := table.find(id); k != want[id] {
			t.Fatalf("%s is %v, and not %v", id, k, want[id])
		}
		if want[id].claim != nil {
			alive++
		}
	}
	if table.Len() != alive || table.endedLen() != len(want)-alive {
		t.Fatalf("there are %d and %d, and not %d and %d", table.Len(), table.endedLen(), alive, len(want)-alive)
	}
}
