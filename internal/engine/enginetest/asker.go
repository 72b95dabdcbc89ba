package enginetest

import (
	"errors"
	"strings"
	"testing"

	"github.com/leasehold/leasehold"
	"github.com/leasehold/leasehold/internal/audit"
	"github.com/leasehold/leasehold/internal/core"
	"github.com/leasehold/leasehold/internal/core/access"
	"github.com/leasehold/leasehold/internal/engine"
)

// asksWho: who asks travels with a command to where it is decided, with renewals too, and stands in the journal.
func asksWho(t *testing.T, d driver) {
	if _, err := d.Do(t.Context(), &core.ChangeAccess{By: "setup", Put: access.Items{
		Tokens: []*access.Token{{ID: "t1", Hash: strings.Repeat("h", 32), Principal: "root"},
			{ID: "t2", Hash: strings.Repeat("i", 32), Principal: "ann", Groups: []string{"team"}}},
		Bindings: []*access.Binding{
			{Name: "root", Role: "admin", Principal: "root", Namespace: access.AllNamespaces},
			{Name: "team", Role: "member", Group: "team", Namespace: "default", Prefix: "r"},
		},
	}}); err != nil {
		t.Fatal(err)
	}
	ann := engine.WithAsker(t.Context(), &access.Asker{Principal: "ann", Groups: []string{"team"}, Token: "t2"})
	for _, c := range []core.Command{ask("r", "worker"), &core.Renew{Namespace: "default", ID: "worker@r"}} {
		d.refused(c, leasehold.ErrDenied)
		if _, err := d.Do(ann, c); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := d.Do(ann, ask("other", "worker")); !errors.Is(err, leasehold.ErrDenied) {
		t.Errorf("outside of what ann may: %v", err)
	}
	if _, err := d.Do(engine.WithAsker(t.Context(), &access.System), ask("other", "server")); err != nil {
		t.Errorf("the server itself: %v", err)
	}
	long := engine.WithAsker(t.Context(), &access.Asker{Principal: strings.Repeat("a", leasehold.MaxName+1)})
	if _, err := d.Do(long, ask("long", "ann")); !errors.Is(err, leasehold.ErrInvalid) {
		t.Errorf("of a name that is too long: %v", err)
	}
	if err := d.Read(t.Context(), func(v core.View) {
		o, want := v.OwnerOfClaim("default", "worker@r"), access.Owner{Principal: "ann", Group: "team"}
		if o == nil || *o != want {
			t.Errorf("it is %v's", o)
		}
	}); err != nil {
		t.Fatal(err)
	}
	d.journalHas(audit.Query{Kind: audit.Operation}, "change-access ok setup   ", "acquire denied worker   worker",
		"acquire ok ann   worker", "acquire denied ann   worker", "acquire ok leasehold   server")
}
