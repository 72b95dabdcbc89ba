package kernel_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/leasehold/leasehold"
	"github.com/leasehold/leasehold/internal/core"
	"github.com/leasehold/leasehold/internal/core/access"
	"github.com/leasehold/leasehold/internal/core/internal/kernel"
)

var root = &access.Asker{Principal: "root", Token: "t0"}

// crewPolicy lets root do everything, and others what a role allows that ends leases.
func crewPolicy(bindings ...*access.Binding) *core.ChangeAccess {
	c := &core.ChangeAccess{Put: access.Items{
		Tokens: []*access.Token{{ID: "t0", Hash: strings.Repeat("0", 32), Principal: "root"}},
		Roles:  []*access.Role{{Name: "crew", Any: access.All &^ access.Of(access.Admin), EndOnRevoke: true}},
		Issuers: []*access.Issuer{{Name: "ci", URL: "https://ci.example", Audiences: []string{"leases"},
			Groups: []access.ClaimRule{{Claim: "team", Value: "team", Group: "team"}}}},
		Bindings: []*access.Binding{{Name: "root", Role: "admin", Principal: "root", Namespace: access.AllNamespaces}},
	}}
	c.Put.Bindings = append(c.Put.Bindings, bindings...)
	return c
}

// as applies commands of one asker.
func (d *desk) as(a *access.Asker, commands ...core.Command) core.Result {
	d.Helper()
	askers := make([]*access.Asker, len(commands))
	for i := range askers {
		askers[i] = a
	}
	result, err := d.state.Apply(stampOf(d.now), wallOf(d.now), commands, core.From{Askers: askers})
	if err != nil {
		d.Fatal(err)
	}
	for i, answer := range result.Answers {
		if answer.Err != nil {
			d.Fatalf("%s: %s", writeCommand(commands[i]), tellError(answer.Err))
		}
	}
	return result
}

// TestRevokingVeryMuch takes a role from principals with 100,000 leases in several namespaces. No entry does more than it
// may, a state that is read from a snapshot on the way goes on alike, and those of others stay.
func TestRevokingVeryMuch(t *testing.T) {
	const leases, batch = 100000, 250
	d := newDesk(t)
	crew := []*access.Asker{{Principal: "ci:ann"}, {Principal: "ci:bob", Groups: []string{"team"}}, {Principal: "ci:cyd"}}
	begin := crewPolicy(
		&access.Binding{Name: "c", Role: "crew", Principal: "ci:cyd", Namespace: access.AllNamespaces},
		&access.Binding{Name: "b", Role: "crew", Group: "team", Namespace: access.AllNamespaces})
	for i := range 300 { // very much to look at for each lease
		begin.Put.Bindings = append(begin.Put.Bindings, &access.Binding{
			Name: fmt.Sprintf("a%04d", i), Role: "crew", Principal: "ci:ann", Namespace: access.AllNamespaces, Prefix: fmt.Sprintf("r%04d/", i),
		})
	}
	d.must(begin)
	for i := 0; i < leases; i += batch {
		var list []core.Command
		for n := i; n < i+batch; n++ {
			list = append(list, &core.Acquire{
				Namespace: fmt.Sprint("n", n%2), Resource: fmt.Sprintf("r%04d/%d", n%300, n), ID: fmt.Sprint("i", n), Holder: "h", TTL: time.Hour,
			})
		}
		d.as(crew[i/batch%3], list...)
	}
	remove := access.Keys{Bindings: []string{"b"}}
	for i := range 300 {
		remove.Bindings = append(remove.Bindings, fmt.Sprintf("a%04d", i))
	}
	d.as(root, &core.ChangeAccess{Remove: remove})
	if n := d.state.View(0).Counts().Leases; n != leases {
		t.Fatalf("%d leases are left at once", n)
	}
	other, ticks := core.NewAt(core.NewestLevel), 0
	for ; d.state.DueBy(d.state.Now()); ticks++ {
		if ticks == 7 {
			other = reloaded(t, d.state)
		}
		result := d.apply(&core.Tick{})
		if work := d.state.Work(); work > kernel.MaxWork+500 {
			t.Fatalf("a tick did %d units of work", work)
		}
		for _, e := range result.Events {
			if e.Kind == leasehold.Ended && (e.By != "root" || e.Reason != "access revoked") {
				t.Fatalf("it ended by %q, because of %q", e.By, e.Reason)
			}
		}
		if ticks >= 7 {
			if _, err := other.Apply(stampOf(d.now), wallOf(d.now), []core.Command{&core.Tick{}}); err != nil {
				t.Fatal(err)
			}
		}
	}
	if n := d.state.View(0).Counts().Leases; n != leases/3-leases/3%batch && n != leases/3-leases/3%batch+batch {
		t.Errorf("%d leases are left", n)
	}
	if ticks < 50 || render(other) != render(d.state) {
		t.Errorf("after %d ticks the states differ", ticks)
	}
}

// TestTooMuchIsRevoked takes away more at once than is kept in mind.
func TestTooMuchIsRevoked(t *testing.T) {
	d := newDesk(t)
	d.must(crewPolicy())
	change := func(n int, put bool) (c *core.ChangeAccess) {
		c = &core.ChangeAccess{}
		for i := range access.MaxChange {
			b := &access.Binding{Name: fmt.Sprint("b", n, "-", i), Role: "crew", Principal: fmt.Sprint("ci:", i), Namespace: "default"}
			if put {
				c.Put.Bindings = append(c.Put.Bindings, b)
			} else {
				c.Remove.Bindings = append(c.Remove.Bindings, b.Name)
			}
		}
		return c
	}
	for i := range 4 {
		d.as(root, change(i, true))
	}
	for i := range 4 {
		d.as(root, change(i, false))
	}
	for i := range 2 {
		d.as(root, change(i, true))
	}
	d.as(root, change(0, false))
	result, err := d.state.Apply(stampOf(0), wallOf(0), []core.Command{change(1, false)}, core.From{Askers: []*access.Asker{root}})
	if err != nil || result.Answers[0].Err == nil || result.Answers[0].Err.Code != leasehold.Unavailable {
		t.Fatalf("it is answered %+v", result.Answers)
	}
	d.state = reloaded(t, d.state)
	d.must(&core.Tick{})
	d.as(root, change(1, false))
	if d.state.DueBy(d.state.Now()) {
		d.must(&core.Tick{})
	}
	if d.state.DueBy(d.state.Now()) {
		t.Error("there is something left to do")
	}
}

// TestWithdrawingVeryMany takes the right to what they wait for from thousands of waiters, of one queue and of many.
func TestWithdrawingVeryMany(t *testing.T) {
	const waiters, batch = 8000, 50
	d := newDesk(t)
	ann, bob := &access.Asker{Principal: "ci:ann"}, &access.Asker{Principal: "ci:bob"}
	d.must(crewPolicy(&access.Binding{Name: "a", Role: "crew", Principal: "ci:ann", Namespace: access.AllNamespaces},
		&access.Binding{Name: "b", Role: "operator", Principal: "ci:bob", Namespace: access.AllNamespaces}))
	for i := 0; i < waiters; i += batch {
		var list []core.Command
		for n := i; n < i+batch; n++ {
			path := "one"
			if n%2 == 0 {
				path = fmt.Sprint("r", n/4)
			}
			list = append(list, &core.Acquire{
				Namespace: fmt.Sprint("n", n%4/2), Resource: path, ID: fmt.Sprint("i", n), Holder: fmt.Sprint("h", n), TTL: time.Hour, Wait: time.Hour,
			})
		}
		who := bob
		if i/batch%2 == 1 {
			who = ann
		}
		d.as(who, list...)
	}
	d.as(root, &core.ChangeAccess{Remove: access.Keys{Bindings: []string{"b"}}})
	other, ticks := core.NewAt(core.NewestLevel), 0
	for ; d.state.DueBy(d.state.Now()); ticks++ {
		if ticks == 3 {
			other = reloaded(t, d.state)
		}
		result := d.apply(&core.Tick{})
		if work := d.state.Work(); work > kernel.MaxWork+500 {
			t.Fatalf("a tick did %d units of work", work)
		}
		for _, e := range result.Events {
			if e.Kind != leasehold.Left || !strings.HasPrefix(e.Owner.Principal, "ci:bob") || e.Reason != "access revoked" {
				t.Fatalf("it happened: %+v", e)
			}
		}
		if ticks >= 3 {
			if _, err := other.Apply(stampOf(d.now), wallOf(d.now), []core.Command{&core.Tick{}}); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := d.state.Check(); err != nil {
		t.Error(err)
	}
	if ticks < 4 || render(other) != render(d.state) {
		t.Errorf("after %d ticks the states differ", ticks)
	}
}
