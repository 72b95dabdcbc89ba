package kernel_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/leasehold/leasehold"
	"github.com/leasehold/leasehold/internal/core"
)

// BenchmarkPool takes and gives back units of a pool of 10,000 on 1,000 hosts.
func BenchmarkPool(b *testing.B) {
	for _, one := range []struct {
		name  string
		taken int // units that others have
		line  int // others that wait for what there is not
		ask   core.Acquire
	}{
		{"free", 0, 0, core.Acquire{Slots: 2, Select: &leasehold.Select{Where: "model=H100, memory>=40"}}},
		{"full", 9000, 0, core.Acquire{Slots: 2, Select: &leasehold.Select{Where: "model=H100, memory>=40"}}},
		{"spread", 0, 0, core.Acquire{Slots: 64, Select: &leasehold.Select{Where: "model=H100", Spread: true}}},
		{"queue", 0, 1000, core.Acquire{Slots: 2, Select: &leasehold.Select{Where: "model=H100"}}},
	} {
		b.Run(one.name, func(b *testing.B) {
			t := newTown(10)
			t.step = time.Nanosecond // those who wait stay
			for h := range 1000 {
				c := &core.SetUnits{Namespace: ns, Resource: "gpu", Host: fmt.Sprintf("h%04d", h)}
				model := []string{"H100", "A100"}[h%2]
				for i := range 10 {
					c.Units = append(c.Units, core.HostUnit{Name: fmt.Sprintf("%s-%d", c.Host, i),
						Labels: leasehold.Labels{{Key: "memory", Value: "80"}, {Key: "model", Value: model}}})
				}
				t.do(c)
			}
			for i := range one.taken / 10 {
				t.do(&core.Acquire{Namespace: ns, Resource: "gpu", ID: fmt.Sprint("t", i), Holder: "x", Slots: 10})
			}
			if one.line > 0 {
				t.do(&core.Acquire{Namespace: ns, Resource: "gpu", ID: "a", Holder: "x", Slots: 1, Select: &leasehold.Select{Where: "model=A100"}})
			}
			for i := range one.line {
				t.do(&core.Acquire{Namespace: ns, Resource: "gpu", ID: fmt.Sprint("w", i), Holder: "x", Slots: 5000, Wait: leasehold.MaxWait,
					Select: &leasehold.Select{Where: "model=A100", Spread: true}})
			}
			b.ReportAllocs()
			for b.Loop() {
				ask := one.ask
				ask.Namespace, ask.Resource, ask.ID, ask.Holder, ask.TTL = ns, "gpu", t.name("new"), "ann", leasehold.MaxTTL
				if answer := t.do(&ask); answer.Err != nil {
					b.Fatal(answer.Err)
				}
				t.do(&core.Release{Namespace: ns, ID: ask.ID})
			}
		})
	}
}
