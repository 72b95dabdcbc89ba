package kernel_test

import (
	"fmt"
	"time"

	"github.com/leasehold/leasehold"
	"github.com/leasehold/leasehold/internal/core"
	"github.com/leasehold/leasehold/internal/core/reservation"
)

// reserve makes a reservation of an hour.
func reserve(path string, i, slots int, from time.Duration) *core.Reserve {
	return &core.Reserve{Namespace: ns, ID: fmt.Sprint(path, i), Resource: path, Holder: "ann", Slots: slots,
		From: reservation.Moment(wallOf(from)), Length: time.Hour}
}

var reserveCases = []worstCase{
	{"1,536 renewals beside 4,096 reservations", func(d *desk, part int) func() int {
		d.must(&core.Define{Namespace: ns, Definition: leasehold.Definition{Path: "r", Capacity: leasehold.MaxCapacity}})
		for i := range leasehold.MaxReservationsOf {
			d.must(reserve("r", i, 1, 20*time.Hour))
		}
		var renewals []core.Command
		d.share("r", 1536, "")
		for i := range 1536 {
			renewals = append(renewals, &core.Renew{Namespace: ns, ID: fmt.Sprint("r-", i)})
		}
		return d.entry(renewals...)
	}},
	{"a tick in which 256 reservations are freed that nobody claimed, before 1,024 waiters", func(d *desk, part int) func() int {
		const n = 256
		d.units("gpu", 1, n)
		d.open("s")
		for i := range n {
			d.must(reserve("gpu", i, 1, time.Hour))
		}
		d.at(time.Hour)
		for range 20 {
			d.must(&core.Tick{})
		}
		d.must(&core.OpenSession{Namespace: ns, ID: "w", TTL: 24 * time.Hour})
		for i := range 4 * n {
			d.must(&core.Acquire{Namespace: ns, Resource: "gpu", ID: fmt.Sprint("w", i), Holder: "w", Session: "w", Slots: 1, Wait: 20 * time.Hour})
		}
		d.at(time.Hour + 16*time.Minute)
		return d.command(&core.Tick{})
	}},
}
