package terraform

import (
	"cmp"
	"testing"

	"github.com/leasehold/leasehold/internal/audit"
	"github.com/leasehold/leasehold/internal/door"
	"github.com/leasehold/leasehold/internal/tfstate"
)

// refusals are the lines of the journal that tell of one, oldest first.
func (b *bench) refusals() (lines []string) {
	b.t.Helper()
	page, err := b.engine.Journal().Find(b.t.Context(), audit.Query{Kind: audit.Operation, Namespace: "default", Oldest: true, Limit: 1000})
	if err != nil {
		b.t.Fatal(err)
	}
	for _, l := range page.Lines {
		if l.Outcome == audit.OK || l.Outcome == audit.Queued {
			continue
		}
		if l.Reason == "" || l.Door != doorName || l.Address == "" {
			b.t.Errorf("a refusal without a reason, a door or an address: %+v", l)
		}
		lines = append(lines, l.Verb+" "+l.Resource+" "+cmp.Or(l.Foreign, l.ID)+" "+l.Outcome)
	}
	return lines
}

func TestRefusalsAreInTheJournal(t *testing.T) {
	b := newBench(t)
	path := tfstate.Path("s")
	expect := func(want ...string) {
		t.Helper()
		got := b.refusals()
		if len(got) != len(want) {
			t.Fatalf("got %q, want %q", got, want)
		}
		for i := range want {
			if got[i] != want[i] {
				t.Errorf("refusal %d is %q, want %q", i, got[i], want[i])
			}
		}
	}
	b.ask("LOCK", "/terraform/s", info("one")).expect(200)
	b.ask("POST", "/terraform/s?ID=one", state(1, "l", "")).expect(200)
	b.ask("GET", "/terraform/s", "").expect(200)
	expect()

	want := []string{}
	refused := func(line string) {
		t.Helper()
		want = append(want, line)
		expect(want...)
	}
	b.ask("LOCK", "/terraform/s", info("two")).expect(423)
	refused("acquire " + path + " two held")
	b.ask("POST", "/terraform/s?ID=two", state(2, "l", "")).expect(423)
	refused("put-record " + path + " two held")
	b.ask("POST", "/terraform/s", state(2, "l", "")).expect(423)
	refused("put-record " + path + "  held")
	b.ask("POST", "/terraform/s?ID=one", state(1, "other", "")).expect(409)
	refused("put-record " + path + " one refused")
	b.ask("DELETE", "/terraform/s?ID=two", "").expect(423)
	refused("delete-record " + path + " two held")
	b.ask("UNLOCK", "/terraform/s", info("two")).expect(423)
	refused("release " + path + " two held")
	b.ask("UNLOCK", "/terraform/s", "").expect(200) // by force
	// A writer that is late.
	b.ask("POST", "/terraform/s?ID=one", state(3, "l", "")).expect(409)
	refused("put-record " + path + " one lost")
	b.ask("UNLOCK", "/terraform/s", info("one")).expect(409)
	refused("release " + path + " one lost")

	// What is wrong in itself is not kept, and neither are reads.
	b.ask("POST", "/terraform/s", "nonsense").expect(400)
	b.ask("GET", "/terraform/s/lock", "").expect(404)
	expect(want...)
}

// A user saw: terraform force-unlock with a wrong ID freed a colleague's lock, as it does with every
// http backend.
func TestForceUnlockCanNeedTheID(t *testing.T) {
	b := newBench(t)
	settings := door.Settings{}
	for _, s := range Kind.Settings {
		settings[s.Name] = s.Default
	}
	for value, good := range map[string]bool{"any": true, "id": true, "": false, "ID": false} {
		if err := Kind.Settings[0].Check(value); (err == nil) != good {
			t.Errorf("%q: %v", value, err)
		}
	}
	settings[forceUnlock] = "id"
	opened, err := Kind.Open(door.NewBackend(b.engine, door.Options{}), settings)
	if err != nil {
		t.Fatal(err)
	}
	b.door = opened.HTTP.Routes[0].Handler
	b.ask("UNLOCK", "/terraform/s", "").expect(200) // nothing is locked
	b.ask("LOCK", "/terraform/s", info("mine")).expect(200)
	b.ask("UNLOCK", "/terraform/s", "").expect(403, "locked by ann@ci-42 with the ID mine",
		"leasehold state unlock s --reason WHY")
	b.ask("UNLOCK", "/terraform/s", info("wrong")).expect(423)
	b.ask("DELETE", "/terraform/s/lock", "").expect(403)
	if s := b.status("s"); len(s.Holders) != 1 {
		t.Fatal("the lock was freed without its ID")
	}
	if got := b.refusals(); len(got) < 2 || got[0] != "break terraform/s  denied" {
		t.Errorf("the journal has %q", got)
	}
	b.ask("UNLOCK", "/terraform/s", `{"ID":"mine","Created":"0001-01-01T00:00:00Z"}`).expect(200) // as OpenTofu does
	b.ask("LOCK", "/terraform/s?namespace=team", info("other")).expect(200)
	b.ask("UNLOCK", "/terraform/s?namespace=team", "").expect(403, "unlock s --namespace team --reason")
}
