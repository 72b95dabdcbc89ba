package core_test

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
}
