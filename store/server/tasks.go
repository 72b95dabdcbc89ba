package server

import (
	"context"

	"github.com/leasehold/leasehold"
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

// ListTasks returns the tasks below a prefix.
func (s *Store) ListTasks(ctx context.Context, prefix string) (all []leasehold.Task, err error) {
	err = s.once(ctx, func(ctx context.Context, server *v1.Caller) error {
		all = nil
		for t, err := range tasks.All(ctx, server, tasks.Query{Prefix: prefix}) {
			if err != nil {
				return err
			}
			all = append(all, taskOf(&t))
		}
		return nil
	})
	return all, err
}

// taskOf returns a task as the dictionary has it. Its order among others stays the server's.
func taskOf(t *tasks.Task) leasehold.Task {
	state, _ := leasehold.ParseTaskState(t.State) // newer servers may have states unknown here
	return leasehold.Task{Namespace: t.Namespace, Path: t.Path, State: state, Priority: t.Priority,
		Attempts: t.Attempts, MaxAttempts: t.MaxAttempts, Lease: t.Lease, Holder: t.Holder,
		Token: leasehold.Token(t.Token), Result: t.Result, Changed: t.Changed.Time}
}
