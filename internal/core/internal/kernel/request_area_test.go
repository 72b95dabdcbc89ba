package kernel_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/leasehold/leasehold"
	"github.com/leasehold/leasehold/internal/core"
)

// crowdedArea is a state in which one holds all of an area, and others wait for names that all overlap: the last of
// them has waited longest.
func crowdedArea(t testing.TB, names int, path func(i int) string) *core.State {
	state, err := core.Restore(func(yield func(core.Piece, error) bool) {
		put := func(space string, value any) { yield(core.Piece{Space: space, Value: value}, nil) }
		put("", &core.Head{Level: core.NewestLevel, Now: stampOf(0), Wall: wallOf(0)})
		put(ns, &core.SpaceHead{Token: 1, Arrivals: uint64(names)})
		put(ns, &core.Resource{Path: "repo/web:", Claim: "holder"})
		for i := range names {
			put(ns, &core.Resource{Path: path(i), Waiting: 1})
		}
		put(ns, &core.Claim{ID: "holder", Resource: "repo/web:", Holder: "ann", Token: 1, Since: stampOf(0)})
		for i := range names {
			put(ns, &core.Claim{
				ID: fmt.Sprint("w", i), Resource: path(i), Holder: fmt.Sprint("h", i), TTL: time.Hour, Since: stampOf(0),
				Expires: stampOf(time.Hour), Wait: &core.Wait{Until: stampOf(time.Hour), Order: uint64(names - i)},
			})
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	return state
}

func deepName(i int) string { return fmt.Sprintf("repo/web:**/x%04d/**", i) }

// slowName takes long to be compared with others like it.
func slowName(i int) string {
	return fmt.Sprintf("repo/web:%s%s*%04d/**", strings.Repeat("*/", 5), strings.Repeat("a/", 25), i)
}

var areaCases = []worstCase{
	{"a release before 1,022 waiters for names that overlap", func(d *desk, part int) func() int {
		d.state = crowdedArea(d.TB, leasehold.MaxAreaNames-2, deepName)
		return d.command(&core.Release{Namespace: ns, ID: "holder"})
	}},
	{"64 releases in such an area", func(d *desk, part int) func() int {
		d.state = crowdedArea(d.TB, leasehold.MaxAreaNames-2, deepName)
		many := []core.Command{&core.Release{Namespace: ns, ID: "holder"}}
		for i := range 63 {
			many = append(many, &core.Release{Namespace: ns, ID: fmt.Sprint("w", leasehold.MaxAreaNames-3-i)})
		}
		return d.entry(many...)
	}},
	{"1,536 renewals of waiters in such an area", func(d *desk, part int) func() int {
		d.state = crowdedArea(d.TB, leasehold.MaxAreaNames-2, deepName)
		var many []core.Command
		for i := range 1536 {
			many = append(many, &core.Renew{Namespace: ns, ID: fmt.Sprint("w", i%1000)})
		}
		return d.entry(many...)
	}},
	{"one more who waits in such an area", func(d *desk, part int) func() int {
		d.state = crowdedArea(d.TB, leasehold.MaxAreaNames-2, deepName)
		return d.command(&core.Acquire{Namespace: ns, Resource: deepName(2000), ID: "x", Holder: "h5", TTL: time.Hour, Wait: time.Hour})
	}},
	{"one more who waits among names that are slow to compare", func(d *desk, part int) func() int {
		d.state = crowdedArea(d.TB, leasehold.MaxAreaNames-2, slowName)
		path := "repo/web:**/" + strings.Repeat("a/", 13) + "*1/**/" + strings.Repeat("a/", 13) + "b/**"
		return d.command(&core.Acquire{Namespace: ns, Resource: path, ID: "x", Holder: "h5", TTL: time.Hour, Wait: time.Hour})
	}},
	{"a look at a name of such an area", func(d *desk, part int) func() int {
		d.state = crowdedArea(d.TB, leasehold.MaxAreaNames-2, deepName)
		return d.read(func(v core.View) { v.Status(ns, deepName(7), 1000) })
	}},
}
