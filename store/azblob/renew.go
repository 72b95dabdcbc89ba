package azblob

import (
	"context"
	"time"

	azure "github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/lease"

	"github.com/leasehold/leasehold"
	"github.com/leasehold/leasehold/store"
)

// atOnce is how many leases of one call are asked about at the same time.
const atOnce = 16

// Renew renews leases, a request each.
func (s *Store) Renew(ctx context.Context, leases ...store.Ref) ([]store.Renewal, error) {
	if err := s.ready(ctx); err != nil {
		return nil, err
	}
	start := s.clock.Now()
	renewals := make([]store.Renewal, len(leases))
	store.Each(len(leases), atOnce, func(i int) {
		renewals[i] = s.renewOne(ctx, leases[i], start)
		renewals[i].Err = s.failure(renewals[i].Err)
	})
	return renewals, nil
}

func (s *Store) renewOne(ctx context.Context, ref store.Ref, start time.Duration) (r store.Renewal) {
	l, e := s.known(ref.ID)
	if e != nil {
		r.Ended = e
		return r
	}
	if l == nil || l.token == 0 {
		if l = s.foreign(ctx, ref, &r); l == nil {
			return r
		}
	}
	client, err := s.azureLease(ref.Resource, ref.ID)
	if err != nil {
		r.Err = err
		return r
	}
	_, err = client.RenewLease(ctx, nil)
	switch {
	case missing(err) || changed(err):
		if r.Ended, r.Err = s.howEnded(ctx, ref.Resource, ref.ID); r.Err == nil {
			s.ended(ref.ID, r.Ended)
		}
	case err != nil:
		r.Err = err
	default:
		s.renewed(ctx, l, start, &r)
	}
	return r
}

// renewed answers for a lease of this process. If its time was over before the answer came, it may have been
// over when Azure renewed it, which Azure does. It is given back then: it is not the same lease any more.
func (s *Store) renewed(ctx context.Context, l *lease, start time.Duration, r *store.Renewal) {
	_, e := s.known(l.note.ID)
	if e != nil {
		r.Ended = e
		if _, err := s.unlease(ctx, l.resource, l.note.ID); err != nil {
			s.log.Warn("a lease that has ended was not given back", "resource", l.resource, "error", s.failure(err))
		}
		return
	}
	s.prolong(l.note.ID, start+l.note.ttl())
	r.Lease = s.toLease(l.resource, l.note, l.token, l.note.ttl())
}

// foreign returns a lease that another process acquired; nil if it is not held, and then r says so. It looks
// before it renews: Azure would renew a lease that has expired. The token is in the blob, if it was granted.
func (s *Store) foreign(ctx context.Context, ref store.Ref, r *store.Renewal) *lease {
	v, err := s.look(ctx, ref.Resource)
	switch {
	case err != nil:
		r.Err = err
	case v == nil || v.id() != ref.ID || v.state != azure.StateTypeLeased:
		r.Ended, r.Err = s.howEnded(ctx, ref.Resource, ref.ID)
	default:
		l := &lease{resource: ref.Resource, note: v.note, token: v.token()}
		if l.note.TTL == 0 { // somebody wrote over it; Azure has no shorter leases
			l.note.TTL = minTTL.Milliseconds()
		}
		return l
	}
	return nil
}

// howEnded returns how the lease of an id ended, given that it has.
func (s *Store) howEnded(ctx context.Context, resource, id string) (*leasehold.Ending, error) {
	m, err := s.markOf(ctx, id)
	if err != nil {
		return nil, err
	}
	if m != nil {
		return m.ending(id), nil
	}
	v, err := s.look(ctx, resource)
	if err != nil {
		return nil, err
	}
	e := &leasehold.Ending{ID: id}
	if l, _ := s.known(id); l != nil && l.token != 0 {
		e = l.end(leasehold.ByTTL)
	}
	if v == nil || v.id() != id {
		return e, nil
	}
	e.Token, e.Holder, e.How = v.token(), v.note.Holder, leasehold.ByTTL
	switch v.state {
	case azure.StateTypeBroken, azure.StateTypeBreaking:
		e.How = leasehold.ByBreak
	case azure.StateTypeAvailable:
		e.How = leasehold.Released
	}
	return e, nil
}
