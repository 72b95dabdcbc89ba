package memory

import (
	"context"

	"github.com/leasehold/leasehold"
	"github.com/leasehold/leasehold/internal/core"
	"github.com/leasehold/leasehold/store"
)

// PutTask adds a task.
func (s *Store) PutTask(ctx context.Context, r store.TaskRequest) error {
	_, err := s.do(ctx, &core.PutTask{Namespace: s.namespace, Path: r.Path, Value: string(r.Value),
		Priority: r.Priority, Attempts: r.Attempts, By: r.By})
	return err
}

// FinishTask says what became of a task.
func (s *Store) FinishTask(ctx context.Context, r store.FinishRequest) error {
	_, err := s.do(ctx, &core.FinishTask{Namespace: s.namespace, ID: r.Lease.ID, Token: r.Token, Failed: r.Failed,
		Result: r.Result, Session: r.Session})
	return err
}

// listed is how many tasks one look at the state returns.
const listed = 1000

// ListTasks returns the tasks below a prefix.
func (s *Store) ListTasks(ctx context.Context, prefix string) (all []leasehold.Task, err error) {
	for q := (core.TaskQuery{Prefix: prefix, Most: listed}); ; {
		var page []leasehold.Task
		var next string
		if err := s.read(ctx, func(v core.View) { page, next = v.Tasks(s.namespace, q) }); err != nil {
			return nil, err
		}
		all = append(all, page...)
		if q.After = next; next == "" {
			return all, nil
		}
	}
}
