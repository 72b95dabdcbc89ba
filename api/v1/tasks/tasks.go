// Package tasks has the part of the API that is about tasks: records with a state, which workers claim from a folder.
//
//	err := tasks.Put(ctx, caller, "jobs/resize-42", tasks.PutRequest{Value: []byte(`{"image":"42.png"}`)})
//
// To claim is to acquire a folder: the lease is on the next task in it, and its path is the lease's resource.
//
//	lease, err := caller.Acquire(ctx, v1.AcquireRequest{
//		Resource: "jobs/", Holder: "worker-1", Wait: v1.Duration(time.Minute),
//	})
//	task, err := tasks.Get(ctx, caller, lease.Resource)
//	…
//	err = tasks.Finish(ctx, caller, tasks.FinishRequest{ID: lease.ID, Token: lease.Token, Outcome: tasks.Done})
//
// A result sent after the lease has ended is refused, even if nobody else has claimed the task since.
package tasks

import (
	"context"
	"iter"
	"net/url"
	"strconv"

	v1 "github.com/leasehold/leasehold/api/v1"
)

// The outcomes of a task, which are also its last two states.
const (
	Done   = "done"
	Failed = "failed"
)

// A PutRequest adds a task, or changes one that nobody does at that moment.
type PutRequest struct {
	Value    []byte `json:"value,omitempty"`    // of its record, in base64
	Priority int    `json:"priority,omitempty"` // larger ones are claimed first
	Attempts int    `json:"attempts,omitempty"` // it fails after so many; 0: after 3
	By       string `json:"by,omitempty"`
}

// A FinishRequest says what became of a task, and ends the lease on it. After Failed the task is tried again while it
// has attempts left.
type FinishRequest struct {
	ID      string `json:"id"` // of the lease
	Token   uint64 `json:"token"`
	Outcome string `json:"outcome"`           // Done or Failed
	Result  string `json:"result,omitempty"`  // or why it failed; at most 4 KiB
	Session string `json:"session,omitempty"` // that the lease is of, if the sender keeps it
}

// A Task is one task.
type Task struct {
	Namespace   string  `json:"namespace"`
	Path        string  `json:"path"`
	State       string  `json:"state"` // todo, doing, done or failed
	Priority    int     `json:"priority,omitempty"`
	Attempts    int     `json:"attempts"`
	MaxAttempts int     `json:"max_attempts"`
	Lease       string  `json:"lease,omitempty"`  // of who does it, or did it last
	Holder      string  `json:"holder,omitempty"` // the same
	Token       uint64  `json:"token,omitempty"`  // the same
	Result      string  `json:"result,omitempty"` // what the last attempt came to
	Changed     v1.Time `json:"changed"`
	Value       []byte  `json:"value,omitempty"` // in base64; only where one task is asked for
}

// A Query says which tasks to list.
type Query struct {
	Prefix string
	State  string // empty: any
	After  string // Next of the previous page
	Limit  int    // 0: the server's default
}

// Put adds a task, or changes it.
func Put(ctx context.Context, c *v1.Caller, path string, r PutRequest) error {
	return c.Send(ctx, "PUT", urlPath(path), nil, r, &v1.Nothing{})
}

// Get returns a task with its value.
func Get(ctx context.Context, c *v1.Caller, path string) (task Task, err error) {
	err = c.Send(ctx, "GET", urlPath(path), nil, nil, &task)
	return task, err
}

// Finish says what became of a task.
func Finish(ctx context.Context, c *v1.Caller, r FinishRequest) error {
	return c.Send(ctx, "POST", "/v1/finish", nil, r, &v1.Nothing{})
}

// Page returns one page of tasks, in the order of their paths.
func Page(ctx context.Context, c *v1.Caller, q Query) (page v1.List[Task], err error) {
	query := url.Values{}
	for name, value := range map[string]string{"prefix": q.Prefix, "state": q.State, "after": q.After} {
		if value != "" {
			query.Set(name, value)
		}
	}
	if q.Limit != 0 {
		query.Set("limit", strconv.Itoa(q.Limit))
	}
	err = c.Send(ctx, "GET", "/v1/tasks", query, nil, &page)
	return page, err
}

// All returns all tasks that a query asks for, page by page, until the first error.
func All(ctx context.Context, c *v1.Caller, q Query) iter.Seq2[Task, error] {
	return func(yield func(Task, error) bool) {
		for {
			page, err := Page(ctx, c, q)
			if err != nil {
				yield(Task{}, err)
				return
			}
			for _, task := range page.Items {
				if !yield(task, nil) {
					return
				}
			}
			if q.After = page.Next; q.After == "" {
				return
			}
		}
	}
}

func urlPath(path string) string { return "/v1/tasks/" + url.PathEscape(path) }
