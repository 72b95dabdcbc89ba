package kernel

import (
	"fmt"
	"strings"
	"testing"

	"github.com/leasehold/leasehold/internal/core/access"
	"github.com/leasehold/leasehold/internal/core/command"
)

// Each verb has a rule but those of the servers themselves: what has none is denied, to the admin, too.
func TestEveryCommandHasARule(t *testing.T) {
	s := guarded(t)
	turn := s.begin()
	turn.asker = &access.Asker{Principal: "root", Token: "t1"}
	turn.permit = s.policy.Permit(turn.asker)
	for _, v := range command.Verbs() {
		failure := turn.allowCommand(v.New())
		denied := failure != nil && strings.HasSuffix(failure.Message, "nobody said who may")
		if internal := v.Class == command.Internal; denied != internal {
			t.Errorf("%s has no rule: %v, want %v; say in allow.go who may do it", v.Name, denied, internal)
		}
	}
}

func guarded(t *testing.T) *State {
	t.Helper()
	s := newState()
	put := access.Items{
		Tokens:   []*access.Token{{ID: "t1", Hash: string(make([]byte, 32)), Principal: "root"}},
		Bindings: []*access.Binding{{Name: "root", Role: "admin", Principal: "root", Namespace: "*"}},
	}
	if a := apply(t, s, 0, &ChangeAccess{Put: put}); a.Err != nil {
		t.Fatal(a.Err)
	}
	return s
}

// BenchmarkAllow is the check alone: of a lease by its id, and of a resource that is asked for.
func BenchmarkAllow(b *testing.B) {
	s := newState()
	put := access.Items{
		Tokens: []*access.Token{{ID: "t1", Hash: string(make([]byte, 32)), Principal: "root"}},
		Bindings: []*access.Binding{
			{Name: "root", Role: "admin", Principal: "root", Namespace: "*"},
			{Name: "team", Role: "member", Group: "team", Namespace: "default", Prefix: "reports/"},
		},
	}
	for i := range 1000 {
		put.Bindings = append(put.Bindings,
			&access.Binding{Name: fmt.Sprint("b", i), Role: "member", Group: fmt.Sprint("g", i%100), Namespace: "default", Prefix: fmt.Sprintf("p%d/", i)})
	}
	apply := func(a *access.Asker, c Command) {
		result, err := s.Apply(s.now+1, 0, []Command{c}, From{Askers: []*access.Asker{a}})
		if err != nil || result.Answers[0].Err != nil {
			b.Fatal(err, result.Answers)
		}
	}
	apply(nil, &ChangeAccess{Put: put})
	ann := &access.Asker{Principal: "azure:ann", Groups: []string{"team", "g1", "g2"}}
	acquire := &Acquire{Namespace: "default", Resource: "reports/2026/nightly", ID: "id", Holder: "ann"}
	apply(ann, acquire)
	acquire = &Acquire{Namespace: "default", Resource: "reports/2026/daily", ID: "id2", Holder: "ann"}
	for name, c := range map[string]Command{"renew": &Renew{Namespace: "default", ID: "id"}, "acquire": acquire} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			turn := s.begin()
			turn.asker = ann
			for b.Loop() {
				if _, not := turn.allow(c); not {
					b.Fatal("it is denied")
				}
			}
		})
	}
}
