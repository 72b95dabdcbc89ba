package access

import (
	"strings"
	"testing"
)

// A note about the use of a token comes every minute from each server. It must not make anybody be judged anew.
func TestTheUseOfATokenLeavesPermitsAsTheyAre(t *testing.T) {
	p := policy(&Binding{Role: "admin", Principal: "ann", Namespace: "*"}).With(Keys{}, Items{Tokens: []*Token{
		{ID: "t", Hash: strings.Repeat("h", 32), Principal: "ann"}}})
	ann := &Asker{Principal: "ann", Token: "t"}
	permit, used := p.Permit(ann), p.WithUses([]Use{{"t", 1}})
	if used == p || used.Permit(ann) != permit {
		t.Error("a permit was made again since a token was used")
	}
	if again := used.WithUses([]Use{{"t", 2}}); again.Permit(ann) != permit {
		t.Error("a permit was made again since a token was used twice")
	}
	revoked := used.With(Keys{Tokens: []string{"t"}}, Items{})
	if !revoked.WithUses([]Use{{"t", 3}}).Permit(ann).Revoked() || !revoked.Permit(ann).Revoked() {
		t.Error("a revoked token may do something")
	}
	// Those of two snapshots have nothing in common, though nobody made either by a change.
	one, two := &Policy{Revision: 1}, &Policy{Revision: 1}
	one.Put(p.Items())
	if one.SameRules(two) || !one.Permit(ann).MayCluster(Admin) || two.Permit(ann).MayCluster(Admin) {
		t.Error("a policy of another snapshot decides")
	}
}
