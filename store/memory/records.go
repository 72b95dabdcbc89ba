package memory

import (
	"context"

	"github.com/leasehold/leasehold"
	"github.com/leasehold/leasehold/internal/core"
	"github.com/leasehold/leasehold/store"
)

// Get returns a record.
func (s *Store) Get(ctx context.Context, path string) (store.Record, error) {
	var record *leasehold.Record
	var failure *leasehold.Error
	if err := s.read(ctx, func(v core.View) { record, failure = v.Record(s.namespace, path, 0) }); err != nil {
		return store.Record{}, err
	}
	if failure != nil {
		return store.Record{}, failure
	}
	return store.Record{Value: []byte(record.Value), Token: record.Token}, nil
}

// Put writes a record.
func (s *Store) Put(ctx context.Context, r store.PutRequest) error {
	_, err := s.do(ctx, &core.PutRecord{
		Namespace: s.namespace, Path: r.Path, Value: string(r.Value), Session: r.Session, Fence: toFence(r.Fence),
	})
	return err
}

// Delete deletes a record. One that does not exist is no error.
func (s *Store) Delete(ctx context.Context, path string, fence store.Fence) error {
	_, err := s.do(ctx, &core.DeleteRecord{Namespace: s.namespace, Path: path, Fence: toFence(fence)})
	return err
}

func toFence(f store.Fence) core.Fence { return core.Fence{Lease: f.ID, Token: f.Token} }
