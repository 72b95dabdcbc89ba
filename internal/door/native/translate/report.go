package translate

import (
	"cmp"

	"github.com/leasehold/leasehold"
	"github.com/leasehold/leasehold/internal/report"
)

// AddUnit adds a unit that is held to the hold of its lease.
func AddUnit(
	leases map[string]*report.Hold, u *leasehold.PoolUnit, labels func(id string) leasehold.Labels,
) {
	if u.Lease == "" || u.Since.IsZero() {
		return
	}
	h := leases[u.Lease]
	if h == nil {
		h = &report.Hold{Holder: u.Holder, Since: u.Since, Share: leasehold.Share{Labels: labels(u.Lease)}}
		leases[u.Lease] = h
	}
	h.Share.Units++
	if n := len(h.Share.Hosts); n > 0 && h.Share.Hosts[n-1].Host == u.Host {
		h.Share.Hosts[n-1].Units++
	} else {
		h.Share.Hosts = append(h.Share.Hosts, leasehold.HostUnits{Host: u.Host, Units: 1})
	}
	use := cmp.Or(u.Use, &leasehold.UnitUse{})
	h.Busy, h.Idle = h.Busy+use.Busy, h.Idle+use.Idle
}
