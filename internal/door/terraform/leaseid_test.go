package terraform

import (
	"testing"

	"github.com/leasehold/leasehold/internal/core"
)

// TestLocksAcrossTheRaise takes locks below level 4, where the ID is the lease's own, and goes on
// with them after the level was raised, when it is a field.
func TestLocksAcrossTheRaise(t *testing.T) {
	b := newBenchAt(t, core.Level3)
	for _, state := range []string{"kept", "freed", "given"} {
		b.ask("LOCK", "/terraform/"+state, info("id-"+state)).expect(200)
		if l := b.status(state).Holders[0]; l.ID != "id-"+state || l.Foreign != "" {
			t.Fatalf("the lock is %+v", l)
		}
	}
	b.ask("UNLOCK", "/terraform/freed", info("id-freed")).expect(200)
	if err := b.engine.Raise(core.Level4); err != nil {
		t.Fatal(err)
	}

	b.ask("LOCK", "/terraform/kept", info("id-kept")).expect(200, `"ID":"id-kept"`)
	if l := b.status("kept").Holders[0]; l.Foreign != "id-kept" {
		t.Errorf("a lock that was asked for again is %+v", l)
	}
	b.ask("LOCK", "/terraform/kept", info("another")).expect(423, `"ID":"id-kept`)
	b.ask("UNLOCK", "/terraform/kept", info("id-kept")).expect(200)
	b.ask("UNLOCK", "/terraform/kept", info("id-kept")).expect(200) // again
	b.ask("UNLOCK", "/terraform/given", info("id-given")).expect(200)

	// A late copy of a request for a lock that was given back, at either level.
	for _, state := range []string{"kept", "freed", "given"} {
		b.ask("LOCK", "/terraform/"+state, info("id-"+state)).expect(409)
	}
	b.ask("LOCK", "/terraform/freed", info("id-next")).expect(200)
	if l := b.status("freed").Holders[0]; l.ID == "id-next" || l.Foreign != "id-next" {
		t.Errorf("a new lock is %+v", l)
	}
}
