package redis

import (
	"context"
	"slices"

	"github.com/leasehold/leasehold/store"
)

// Release ends leases and waits. It marks ids that Redis does not know.
func (s *Store) Release(ctx context.Context, r store.ReleaseRequest) error {
	if err := checkNames(r.Leases...); err != nil {
		return err
	}
	if r.Session != "" {
		return store.Require(s, store.SessionPower)
	}
	for part := range slices.Chunk(r.Leases, chunk) {
		keys, args := []string{s.names.index()}, []string{s.names.channel()}
		for _, l := range part {
			keys = append(keys, s.names.lease(l.Resource), s.names.mark(l.ID))
			keys = append(keys, s.names.queue(l.Resource)...)
			args = append(args, l.ID, l.Resource)
		}
		if _, err := s.call(ctx, releaseScript, keys, args...); err != nil {
			return err
		}
	}
	return nil
}
