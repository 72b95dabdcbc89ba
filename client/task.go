package client

import (
	"context"
	"errors"
	"fmt"

	"github.com/leasehold/leasehold"
	"github.com/leasehold/leasehold/internal/limit"
	"github.com/leasehold/leasehold/store"
)

// A NewTask is work for the next worker to claim.
type NewTask struct {
	Path     string // a folder and a name, such as jobs/resize-42
	Value    []byte // what is to be done
	Priority int    // larger ones are claimed first
	Attempts int    // it fails after so many; 0: after 3
}

// AddTask adds a task. The same once more changes nothing, one that is done or has failed begins again, and one that
// somebody does at that moment is refused.
func (c *Client) AddTask(ctx context.Context, t NewTask) error {
	tasks, err := power[store.Tasks](c, store.TaskPower)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	request := store.TaskRequest{Path: t.Path, Value: t.Value, Priority: t.Priority, Attempts: t.Attempts,
		By: c.config.Holder}
	return c.retry(ctx, callTimeout/3, func(ctx context.Context) error { return tasks.PutTask(ctx, request) })
}

// Tasks returns the tasks whose paths begin with a prefix, in the order of their paths: their states, who does them,
// and what they came to. What is to be done is a record, and Get returns it.
func (c *Client) Tasks(ctx context.Context, prefix string) (all []leasehold.Task, err error) {
	tasks, err := power[store.Tasks](c, store.TaskPower)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	err = c.retry(ctx, callTimeout/3, func(ctx context.Context) (err error) {
		all, err = tasks.ListTasks(ctx, prefix)
		return err
	})
	return all, err
}

// A Task is a task that this client does: the hold on it, whose Resource is its path, and what is to be done. End it
// with Done or Fail; Release gives it back for another to do.
type Task struct {
	*Hold
	value []byte
}

// Claim takes the next task of a folder, such as "jobs/". It waits until there is one, or until ctx or Wait end; who
// waits is served in the order of arrival. If this process is lost, the task is offered to others again.
func (c *Client) Claim(ctx context.Context, folder string, options ...Option) (*Task, error) {
	if !leasehold.IsTaskFolder(folder) {
		return nil, &leasehold.Error{Code: leasehold.Invalid,
			Message: "tasks are claimed from a folder, such as jobs/: " + folder + " does not end with a slash"}
	}
	if _, err := power[store.Tasks](c, store.TaskPower); err != nil {
		return nil, err
	}
	h, err := c.Acquire(ctx, folder, options...)
	if err != nil {
		return nil, err
	}
	value, err := c.Get(ctx, h.Resource())
	if err != nil {
		h.releaseOrLog()
		return nil, err
	}
	return &Task{h, value}, nil
}

// Value returns what is to be done.
func (t *Task) Value() []byte { return t.value }

// Done says that the task is done, with at most leasehold.MaxResult bytes about what it came to, and gives it back. The
// hold ends with the call, whatever comes of it: call Done when the work has ended.
//
// If the hold was lost before, the error is an ErrLost: somebody else may do the task by now, and nothing has changed.
// A result that is too long changes nothing either, and the hold goes on. If a server refuses for another reason, the
// task is given back for another to do. Any other error means that no server has answered until ctx ended, or for 15 s:
// the client goes on trying in the background, and Done can be called again to learn what came of it.
func (t *Task) Done(ctx context.Context, result string) error { return t.finish(ctx, false, result) }

// Fail says that the task failed, and why. It is tried again, behind the others, while it has attempts left. Hold and
// errors are as with Done.
func (t *Task) Fail(ctx context.Context, reason string) error { return t.finish(ctx, true, reason) }

// finish asks the server also where the hold is lost by the clock of this machine: the server decides, by the token.
func (t *Task) finish(ctx context.Context, failed bool, result string) error {
	s := t.session
	tasks, err := power[store.Tasks](s.client, store.TaskPower)
	if err != nil {
		return err
	}
	if len(result) > leasehold.MaxResult {
		return &leasehold.Error{Code: leasehold.Invalid, Message: fmt.Sprintf(
			"the result of %s has %d bytes: at most %d are kept", t.Resource(), len(result), leasehold.MaxResult)}
	}
	ref := t.ref()
	s.beginRelease(ref)
	// The hold ends here before the server is asked: from this line on nobody may rely on it. Nothing else would end
	// it if the answer is lost, since what a session does itself is not an intervention.
	t.lose(&LostError{How: leasehold.Released})
	f := finish{task: t, tasks: tasks, request: store.FinishRequest{Lease: ref,
		Token: leasehold.Token(t.token.Load()), Session: s.storeID(), Failed: failed, Result: result}}
	limited := limit.After(ctx, callTimeout)
	defer limited.Stop()
	if err = f.ask(limited); f.unanswered(err) {
		s.client.background(f.goOn) // often only ctx has ended
	} else {
		f.answered(err)
	}
	return err
}

// A finish is the end of a task, until a server has answered.
type finish struct {
	task    *Task
	tasks   store.Tasks
	request store.FinishRequest
}

// unanswered reports whether to ask again. A server that limits requests has not judged this one.
func (f *finish) unanswered(err error) bool {
	return store.Transient(err) || errors.Is(err, leasehold.ErrLimited)
}

// ask says what became of the task until a server has answered.
func (f *finish) ask(ctx context.Context) error {
	s := f.task.session
	return s.client.retry(ctx, s.attemptLimit(), func(ctx context.Context) error {
		return f.tasks.FinishTask(ctx, f.request)
	})
}

// goOn asks for as long as the session keeps the lease alive: if nobody asked, the task would be neither done nor
// offered to others.
func (f *finish) goOn(ctx context.Context) {
	both := limit.Both(ctx, f.task.session.done)
	defer both.Stop()
	for n := 1; backoff.Sleep(both, n); n++ {
		if err := f.ask(both); !f.unanswered(err) {
			f.answered(err)
			return
		}
	}
}

// answered makes sure that nothing of the lease stays on the server.
func (f *finish) answered(err error) {
	t, s := f.task, f.task.session
	if err == nil || errors.Is(err, ErrLost) {
		t.mu.Lock()
		t.freed = true // in either case the server has ended it
		t.mu.Unlock()
	} else if !s.private || s.local {
		s.releaseLater(f.request.Lease)
	}
	s.endRelease(f.request.Lease)
	if s.private && !s.local {
		s.client.background(func(ctx context.Context) { _ = s.close(ctx) })
	}
}
