package kernel_test

import (
	"testing"
	"time"

	"github.com/leasehold/leasehold"
	"github.com/leasehold/leasehold/internal/core"
)

// A hold says whose it was, from when until when, and how long its holder had waited;
// and each command's events can be told from those of the others in its entry.
func TestHoldsAreToldWhenTheyEnd(t *testing.T) {
	state := core.NewAt(core.NewestLevel)
	const wall = int64(1e18)
	apply := func(at time.Duration, commands ...core.Command) core.Result {
		t.Helper()
		result, err := state.Apply(core.Time(time.Hour+at), wall+int64(at), commands)
		if err != nil {
			t.Fatal(err)
		}
		return result
	}
	want := func(e *leasehold.Event, holder string, token leasehold.Token, since, until, waited time.Duration) {
		t.Helper()
		day := time.Unix(0, wall).UTC()
		if got := *e.Hold; got != (leasehold.Hold{ID: got.ID, Holder: holder, Token: token, Since: day.Add(since), Until: day.Add(until), Waited: waited}) {
			t.Errorf("%v: the hold is %+v", e.Kind, got)
		}
	}
	const s = time.Second
	acquire := func(holder string, wait time.Duration) core.Command {
		return &core.Acquire{Namespace: ns, Resource: "r", ID: holder + "1", Holder: holder, TTL: 10 * s, Wait: wait}
	}
	apply(0, acquire("ann", 0), acquire("bob", time.Minute))
	r := apply(4*s, &core.Renew{Namespace: ns, ID: "ann1"}, &core.Release{Namespace: ns, ID: "ann1"}, &core.Release{Namespace: ns, ID: "ann1"})
	if len(r.Of(0)) != 0 || len(r.Of(1)) != 2 || len(r.Of(2)) != 0 {
		t.Errorf("the commands have %d, %d and %d events", len(r.Of(0)), len(r.Of(1)), len(r.Of(2)))
	}
	want(r.Of(1)[0], "ann", 1, 0, 4*s, 0)

	// A change of id is none of hands; one of the holder ends a hold and begins another.
	if e := apply(5*s, &core.Change{Namespace: ns, ID: "bob1", NewID: "bob2"}).Events[0]; e.Hold != nil {
		t.Errorf("a change of id ended the hold %+v", e.Hold)
	}
	e := apply(6*s, &core.Change{Namespace: ns, ID: "bob2", NewID: "cyd1", Holder: "cyd"}).Events[0]
	want(e, "bob", 2, 4*s, 6*s, 4*s)
	if e.Hold.ID != "bob2" {
		t.Errorf("the hold that ended had the id %s", e.Hold.ID)
	}

	// A lease ends at its deadline, however late anybody looks.
	want(apply(40*s, &core.Tick{}).Events[0], "cyd", 3, 6*s, 14*s, 0)
}
