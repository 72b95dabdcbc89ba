package server

import (
	"context"

	v1 "github.com/leasehold/leasehold/api/v1"
	"github.com/leasehold/leasehold/api/v1/tasks"
	"github.com/leasehold/leasehold/store"
)

// PutTask adds a task.
func (s *Store) PutTask(ctx context.Context, r store.TaskRequest) error {
	return s.once(ctx, func(ctx context.Context, server *v1.Caller) error {
		return tasks.Put(ctx, server, r.Path,
			tasks.PutRequest{Value: r.Value, Priority: r.Priority, Attempts: r.Attempts, By: r.By})
	})
}

// FinishTask says what became of a task.
func (s *Store) FinishTask(ctx context.Context, r store.FinishRequest) error {
	outcome := tasks.Done
	if r.Failed {
		outcome = tasks.Failed
	}
	return s.once(ctx, func(ctx context.Context, server *v1.Caller) error {
		return tasks.Finish(ctx, server, tasks.FinishRequest{ID: r.Lease.ID, Token: uint64(r.Token), Outcome: outcome,
			Result: r.Result, Session: r.Session})
	})
}
