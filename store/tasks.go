package store

import (
	"context"

	"github.com/leasehold/leasehold"
)

// TaskPower is that of Tasks.
const TaskPower Power = "tasks"

// Tasks keeps work for the next worker to claim. To claim is to acquire a folder, a path that ends with a slash: the
// lease is on the next task in it, and its Resource says which. What is to be done is the record of that path.
type Tasks interface {
	// PutTask adds a task, or changes one that nobody does. It is idempotent.
	PutTask(ctx context.Context, r TaskRequest) error

	// FinishTask ends the lease on a task, and says what became of that. It is idempotent. If the lease is over,
	// the error is Lost, and nothing is changed, even if nobody else has claimed the task since.
	FinishTask(ctx context.Context, r FinishRequest) error

	// ListTasks returns the tasks whose paths begin with a prefix, in the order of their paths.
	ListTasks(ctx context.Context, prefix string) ([]leasehold.Task, error)
}

// A TaskRequest adds a task.
type TaskRequest struct {
	Path     string // a folder and a name
	Value    []byte
	Priority int
	Attempts int // 0: as many as by default
	By       string
}

// A FinishRequest says what became of a task.
type FinishRequest struct {
	Lease   Ref
	Token   leasehold.Token
	Session string // that the lease is bound to, if any
	Failed  bool
	Result  string // or why it failed
}
