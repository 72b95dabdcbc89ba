package kernel_test

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/leasehold/leasehold"
	"github.com/leasehold/leasehold/internal/core"
	"github.com/leasehold/leasehold/internal/core/access"
)

// guardedTown is a town where everybody is asked who it is, by a policy of 10,000 tokens and 1,000 bindings.
func guardedTown(leases int) *town {
	t := &town{state: core.NewAt(core.NewestLevel), chance: rand.New(rand.NewPCG(1, 1)), step: tenth}
	groups := []string{"team", "b1-001", "b2-002"}
	for part := range 10 {
		var put access.Items
		for i := range 1000 {
			id := fmt.Sprintf("t%d-%04d", part, i)
			put.Tokens = append(put.Tokens, &access.Token{ID: id, Hash: fmt.Sprintf("%032s", id), Principal: "p" + id, Groups: groups})
		}
		for i := range 100 {
			name := fmt.Sprintf("b%d-%03d", part, i)
			put.Bindings = append(put.Bindings, &access.Binding{Name: name, Role: "member", Group: name, Namespace: "default", Prefix: name + "/"})
		}
		put.Bindings = append(put.Bindings,
			&access.Binding{Name: "admin", Role: "admin", Principal: "pt0-0000", Namespace: "*"},
			&access.Binding{Name: "team", Role: "member", Group: "team", Namespace: "default", Prefix: "reports/"},
			&access.Binding{Name: "new", Role: "member", Group: "team", Namespace: "default", Prefix: "new"})
		t.do(&core.ChangeAccess{Put: put})
		t.from = []core.From{{Askers: []*access.Asker{{Principal: "pt0-0000", Token: "t0-0000"}}}}
	}
	ann := &access.Asker{Principal: "pt1-0001", Token: "t1-0001", Groups: groups}
	t.from = []core.From{{Askers: []*access.Asker{ann}}}
	return t.settle(leases)
}

// BenchmarkAsked is what it costs to ask, beside the same town where nobody is asked.
func BenchmarkAsked(b *testing.B) {
	for _, town := range []struct {
		name string
		make func(int) *town
	}{{"bare", newTown}, {"asked", guardedTown}} {
		t := town.make(100000)
		for _, op := range []struct {
			name string
			do   func()
		}{
			{"renew", func() { t.do(&core.Renew{Namespace: leasehold.DefaultNamespace, ID: t.ids[t.any()]}) }},
			{"renew-session", func() {
				t.do(&core.RenewSession{Namespace: leasehold.DefaultNamespace, ID: t.sessions[t.chance.IntN(len(t.sessions))]})
			}},
			{"acquire-release", func() {
				id := t.name("new/x")
				t.do(&core.Acquire{Namespace: leasehold.DefaultNamespace, Resource: id, ID: id, Holder: "ann", TTL: leasehold.MaxTTL})
				t.do(&core.Release{Namespace: leasehold.DefaultNamespace, ID: id})
			}},
		} {
			b.Run(op.name+"/"+town.name, func(b *testing.B) {
				b.ReportAllocs()
				for b.Loop() {
					op.do()
				}
			})
		}
	}
}

// weighed are commands that somebody of a guarded town may give.
func weighed(t *town) []struct {
	name string
	core.Command
} {
	ns, txn := leasehold.DefaultNamespace, &core.Txn{Namespace: leasehold.DefaultNamespace}
	for i := range 10 {
		path := fmt.Sprintf("new/%d", i)
		txn.If = append(txn.If, core.Compare{Path: path, What: core.RecordVersion})
		txn.Then = append(txn.Then, core.Op{Do: core.Put, Path: path})
	}
	return []struct {
		name string
		core.Command
	}{
		{"renew", &core.Renew{Namespace: ns, ID: t.ids[7]}},
		{"renew-session", &core.RenewSession{Namespace: ns, ID: t.sessions[7]}},
		{"acquire", &core.Acquire{Namespace: ns, Resource: "new/x", ID: "new", Holder: "ann", TTL: leasehold.MaxTTL}},
		{"release", &core.Release{Namespace: ns, ID: t.ids[7]}},
		{"put", &core.PutRecord{Namespace: ns, Path: "new/x"}},
		{"txn-of-20", txn},
	}
}

// BenchmarkCheck is the check alone, as Apply makes it for each command: beside what the whole command costs, which
// BenchmarkAsked has, it would not be seen.
func BenchmarkCheck(b *testing.B) {
	for _, town := range []struct {
		name string
		town *town
	}{{"bare", newTown(100000)}, {"asked", guardedTown(100000)}} {
		t := town.town
		from := core.From{}
		if len(t.from) > 0 {
			from = t.from[0]
		}
		for _, c := range weighed(t) {
			b.Run(c.name+"/"+town.name, func(b *testing.B) {
				b.ReportAllocs()
				for b.Loop() {
					if !t.state.Allows(c.Command, from) {
						b.Fatal("it was refused")
					}
				}
			})
		}
	}
}

// TestTheCheckAllocatesNothing, whatever is judged.
func TestTheCheckAllocatesNothing(t *testing.T) {
	town := guardedTown(100)
	for _, c := range weighed(town) {
		if n := testing.AllocsPerRun(100, func() {
			if !town.state.Allows(c.Command, town.from[0]) {
				t.Fatalf("%s was refused", c.name)
			}
		}); n > 0 {
			t.Errorf("to judge %s allocates %v times", c.name, n)
		}
	}
}

// TestAskingAllocatesNothing: a renewal of somebody who is known takes as many allocations as one of anybody.
func TestAskingAllocatesNothing(t *testing.T) {
	bare, asked := newTown(100), guardedTown(100)
	renew := func(t *town) func() {
		c := &core.Renew{Namespace: leasehold.DefaultNamespace, ID: t.ids[7]}
		return func() { t.do(c) }
	}
	without, with := testing.AllocsPerRun(1000, renew(bare)), testing.AllocsPerRun(1000, renew(asked))
	if with > without {
		t.Errorf("a renewal allocates %v times, and %v times when somebody is asked for", without, with)
	}
}
