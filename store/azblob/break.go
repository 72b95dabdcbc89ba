package azblob

import (
	"context"
	"fmt"
	"time"

	azure "github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/lease"

	"github.com/leasehold/leasehold"
	"github.com/leasehold/leasehold/store"
)

// Break ends a lease as an operator. Azure breaks whatever lease there is, so it is conditioned on what
// its grant wrote. A mark tells the holder who did it.
func (s *Store) Break(ctx context.Context, r store.BreakRequest) (leasehold.Lease, error) {
	if err := s.ready(ctx); err != nil {
		return leasehold.Lease{}, err
	}
	if r.Period > 0 {
		return leasehold.Lease{}, store.Require(s, store.BreakPeriod)
	}
	broken, err := s.breakNow(ctx, r)
	return broken, s.failure(err)
}

func (s *Store) breakNow(ctx context.Context, r store.BreakRequest) (leasehold.Lease, error) {
	v, err := s.look(ctx, r.Resource)
	if err != nil {
		return leasehold.Lease{}, err
	}
	if v != nil && v.id() == r.ID && v.state == azure.StateTypeBroken {
		return s.brokenBefore(ctx, r, v)
	}
	if v == nil || v.id() != r.ID || !v.leased() {
		return leasehold.Lease{}, s.notThere(ctx, r.Ref)
	}
	client, err := s.azureLease(r.Resource, r.ID)
	if err != nil {
		return leasehold.Lease{}, err
	}
	now := int32(0)
	_, err = client.BreakLease(ctx, &azure.BlobBreakOptions{BreakPeriod: &now,
		ModifiedAccessConditions: &azure.ModifiedAccessConditions{IfMatch: &v.etag}})
	if changed(err) || missing(err) {
		return leasehold.Lease{}, s.notThere(ctx, r.Ref)
	}
	if err != nil {
		return leasehold.Lease{}, err
	}
	return s.markBroken(ctx, r, v)
}

// brokenBefore answers for a lease that is broken. If it has no mark, the answer to the break was lost, or the
// one to the mark: the holder shall learn who it was.
func (s *Store) brokenBefore(ctx context.Context, r store.BreakRequest, v *view) (leasehold.Lease, error) {
	m, err := s.markOf(ctx, r.ID)
	if err != nil {
		return leasehold.Lease{}, err
	}
	if m != nil {
		return leasehold.Lease{}, lost(r.ID, r.Resource, m.ending(r.ID))
	}
	return s.markBroken(ctx, r, v)
}

func (s *Store) markBroken(ctx context.Context, r store.BreakRequest, v *view) (leasehold.Lease, error) {
	m := mark{How: leasehold.ByBreak.String(), By: r.By, Reason: r.Reason, At: time.Now().UTC(), Token: v.token()}
	s.over(r.ID, m.ending(r.ID))
	if err := s.put(ctx, r.ID, m); err != nil {
		return leasehold.Lease{}, err
	}
	lease := s.toLease(r.Resource, v.note, v.token(), 0)
	lease.State = leasehold.Broken
	return lease, nil
}

// notThere is why a lease cannot be broken that has ended, or never was.
func (s *Store) notThere(ctx context.Context, ref store.Ref) error {
	e, err := s.howEnded(ctx, ref.Resource, ref.ID)
	if err != nil {
		return err
	}
	if e.How != 0 {
		return lost(ref.ID, ref.Resource, e)
	}
	return &leasehold.Error{Code: leasehold.NotFound,
		Message: fmt.Sprintf("%s neither holds %s nor waits for it", ref.ID, ref.Resource)}
}
