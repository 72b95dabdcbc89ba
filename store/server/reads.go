package server

import (
	"context"
	"errors"
	"fmt"
	"iter"

	"github.com/leasehold/leasehold"
	v1 "github.com/leasehold/leasehold/api/v1"
	"github.com/leasehold/leasehold/store"
)

// Read returns the state of a resource, with as much of its queue as a server shows.
func (s *Store) Read(ctx context.Context, resource string) (store.Resource, error) {
	return s.read(ctx, resource, v1.MaxLimit)
}

// ReadHolders is Read for those who do not look at the queue, which may be long.
func (s *Store) ReadHolders(ctx context.Context, resource string) (store.Resource, error) {
	return s.read(ctx, resource, 1)
}

func (s *Store) read(ctx context.Context, resource string, waiters int) (store.Resource, error) {
	r, err := ask(ctx, s, func(ctx context.Context, server *v1.Caller) (v1.Resource, error) {
		return server.Resource(ctx, resource, waiters)
	})
	if errors.Is(err, leasehold.ErrNotFound) {
		free := leasehold.Status{Resource: resource, State: leasehold.Available, Capacity: 1}
		return store.Resource{Status: free}, nil
	}
	return store.Resource{Status: status(r)}, err
}

// List returns one page of resources.
func (s *Store) List(ctx context.Context, q store.Query) (store.Page, error) {
	limit := q.Limit
	if limit == 0 {
		limit = store.DefaultLimit
	}
	page, err := ask(ctx, s, func(ctx context.Context, server *v1.Caller) (v1.ResourcePage, error) {
		return server.ResourcePage(ctx, v1.ResourceQuery{Prefix: q.Prefix, After: q.After, Limit: limit})
	})
	list := store.Page{Next: page.Next}
	for _, r := range page.Items {
		if s := status(r); s.Holding > 0 || s.Waiting > 0 { // and not one that remembers an unclean end
			list.Items = append(list.Items, store.Resource{Status: s})
		}
	}
	return list, err
}

// History returns the newest events of a resource.
func (s *Store) History(ctx context.Context, resource string) ([]leasehold.Event, error) {
	page, err := ask(ctx, s, func(ctx context.Context, server *v1.Caller) (v1.EventPage, error) {
		return server.History(ctx, v1.HistoryQuery{Resource: resource, Limit: v1.MaxLimit})
	})
	var events []leasehold.Event
	for _, e := range page.Items {
		events = append(events, event(e))
	}
	return events, err
}

// Watch yields events until ctx ends or the connection is lost.
func (s *Store) Watch(ctx context.Context, q store.WatchQuery) iter.Seq2[leasehold.Event, error] {
	return func(yield func(leasehold.Event, error) bool) {
		chosen := s.servers.Choose()
		query := v1.WatchQuery{
			Prefix: q.Prefix, Session: q.Session, Since: q.Since, Passed: q.Passed, Once: true,
			Interventions: q.Interventions,
			Started: func(v1.Hello) {
				if q.Started != nil {
					q.Started()
				}
			},
		}
		for e, err := range chosen.Watch(ctx, query) {
			if v1.Transient(err) {
				s.servers.Leave(chosen)
			}
			if !yield(event(e), err) {
				return
			}
		}
	}
}

// Get returns a record.
func (s *Store) Get(ctx context.Context, path string) (store.Record, error) {
	r, err := ask(ctx, s, func(ctx context.Context, server *v1.Caller) (v1.Record, error) {
		return server.Record(ctx, path, 0)
	})
	if err == nil && r.Large != nil {
		return store.Record{}, &leasehold.Error{Code: leasehold.Refused,
			Message: fmt.Sprintf("%s has a large value of %d bytes: read it with v1.Caller.OpenRecord", path,
				r.Large.Size)}
	}
	return store.Record{Value: r.Value, Token: leasehold.Token(r.Token)}, err
}

// Put writes a record.
func (s *Store) Put(ctx context.Context, r store.PutRequest) error {
	return s.once(ctx, func(ctx context.Context, server *v1.Caller) error {
		request := v1.PutRequest{Path: r.Path, Value: r.Value, Session: r.Session, Fence: fence(r.Fence)}
		_, err := server.PutRecord(ctx, request)
		return err
	})
}

// Delete deletes a record.
func (s *Store) Delete(ctx context.Context, path string, f store.Fence) error {
	return s.once(ctx, func(ctx context.Context, server *v1.Caller) error {
		_, err := server.DeleteRecord(ctx, v1.DeleteRequest{Path: path, Fence: fence(f)})
		return err
	})
}

func fence(f store.Fence) v1.Fence { return v1.Fence{Lease: f.ID, Token: uint64(f.Token)} }
