package postgres

import (
	"context"
	"sync"

	"github.com/leasehold/leasehold"
	"github.com/leasehold/leasehold/store"
)

// Limits of a renewal.
const (
	renewAtOnce   = 500 // leases in one transaction
	renewPatience = 500 // ms that the renewal of one lease waits for a row that somebody has locked
	renewAlone    = 4   // such renewals at the same time
)

// Renew renews leases. A row that somebody else has locked does not hold the others up: it is tried again
// alone, and if it stays locked, nothing is known about this one.
func (s *Store) Renew(ctx context.Context, leases ...store.Ref) ([]store.Renewal, error) {
	renewals := make([]store.Renewal, 0, len(leases))
	for begin := 0; begin < len(leases); begin += renewAtOnce {
		part, err := s.renew(ctx, leases[begin:min(begin+renewAtOnce, len(leases))])
		if err != nil {
			return nil, err
		}
		renewals = append(renewals, part...)
	}
	return renewals, nil
}

func (s *Store) renew(ctx context.Context, leases []store.Ref) ([]store.Renewal, error) {
	renewals, busy, err := s.renewOnce(ctx, leases, 0)
	if err != nil || len(busy) == 0 {
		return renewals, err
	}
	var alone sync.WaitGroup
	slots := make(chan struct{}, renewAlone)
	for _, i := range busy {
		slots <- struct{}{}
		alone.Go(func() {
			defer func() { <-slots }()
			one, _, err := s.renewOnce(ctx, leases[i:i+1], renewPatience)
			if err != nil {
				renewals[i].Err = err
				return
			}
			renewals[i] = one[0]
		})
	}
	alone.Wait()
	return renewals, nil
}

// renewOnce renews leases in one transaction. It returns which of them are locked by somebody else.
func (s *Store) renewOnce(ctx context.Context, leases []store.Ref, patience int) ([]store.Renewal, []int, error) {
	names, ids, err := split(leases)
	if err != nil {
		return nil, nil, err
	}
	answers, err := s.askBy(ctx, s.callAtOnce, "renew($1::bytea, $2::bytea[], $3::bytea[], $4::integer)",
		s.namespace, names, ids, patience)
	if err != nil {
		return nil, nil, err
	}
	renewals := make([]store.Renewal, len(leases))
	for i := range renewals {
		renewals[i].Err = undecided("%s: PostgreSQL has not answered about it", leases[i].Resource)
	}
	var busy []int
	for _, a := range answers {
		i := int(a.n) - 1
		switch a.verdict {
		case "granted":
			renewals[i] = store.Renewal{Grant: store.Grant{Lease: s.lease(a, leases[i].Resource)}}
		case "lost":
			ending := s.ending(a)
			renewals[i] = store.Renewal{Ended: &ending}
		case "unknown":
			renewals[i] = store.Renewal{Ended: &leasehold.Ending{ID: leases[i].ID}}
		case "busy":
			renewals[i] = store.Renewal{Err: unavailable("%s: another session has locked its row", leases[i].Resource)}
			busy = append(busy, i)
		}
	}
	return renewals, busy, nil
}

// ending returns how the lease of an answer ended.
func (s *Store) ending(a answer) leasehold.Ending {
	broken := decodeNote(a.broken)
	return leasehold.Ending{ID: string(a.id), Holder: decodeNote(a.note).Holder, Token: leasehold.Token(a.token),
		How: leasehold.How(a.how), By: broken.By, Reason: broken.Reason, At: a.ended, TTL: micros(a.ttl)}
}
