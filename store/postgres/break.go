package postgres

import (
	"context"
	"fmt"

	"github.com/leasehold/leasehold"
	"github.com/leasehold/leasehold/store"
)

// Break ends a lease, or a wait, as an operator.
func (s *Store) Break(ctx context.Context, r store.BreakRequest) (leasehold.Lease, error) {
	err := first(checkName("resource", r.Resource), checkName("lease id", r.ID), checkText("by", r.By),
		checkText("reason", r.Reason))
	if err == nil && (r.Period < 0 || r.Period > leasehold.MaxTTL) {
		err = invalid("the period is %v: 0 to %v are allowed", r.Period, leasehold.MaxTTL)
	}
	if err != nil {
		return leasehold.Lease{}, err
	}
	answers, err := s.ask(ctx, "break($1::bytea, $2::bytea, $3::bytea, $4::bigint, $5::text::json)", s.namespace,
		[]byte(r.Resource), []byte(r.ID), r.Period.Microseconds(), note{By: r.By, Reason: r.Reason}.encode())
	if err != nil {
		return leasehold.Lease{}, err
	}
	a := answers[0]
	lease := s.lease(a, r.Resource)
	switch a.verdict {
	case "breaking":
		return lease, nil
	case "broken", "removed":
		lease.State, lease.Remaining, lease.Expires = leasehold.Broken, 0, a.now
		return lease, nil
	case "lost":
		return leasehold.Lease{}, &leasehold.Error{Code: leasehold.Lost, Message: fmt.Sprintf(
			"the lease %s of %s has already ended (%s)", r.ID, r.Resource, leasehold.How(a.how))}
	}
	return leasehold.Lease{}, &leasehold.Error{Code: leasehold.NotFound, Message: fmt.Sprintf(
		"%s neither holds %s nor waits for it", r.ID, r.Resource)}
}
