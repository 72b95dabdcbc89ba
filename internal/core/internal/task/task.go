// Package task knows what is to be done and how far it has come. A task is a record with a state. To claim one is to
// acquire whichever task of a folder is next, which is the kernel's: the lease is on the resource of the task's name.
//
// The record, the resource and the task of one name know little of each other, so that each of them can be used
// without the others:
//
//   - the record is what is to be done. Deleting it removes the task; a write to it changes nothing else.
//   - the resource is who does it. Somebody may hold it by its name, and it rests after an unclean end like any other;
//     in either case the task cannot be claimed for that time.
//   - the task is how far it has come: todo, doing, done or failed. It is doing exactly while a lease on the resource
//     was granted by a claim, and Ended is the one place where it follows that lease.
//
// Which tasks can be claimed follows from the three, see Place. It is worked out again whenever one of them changes,
// and never in between: a restored copy of the state must come to the same.
package task

import (
	"fmt"
	"hash/fnv"

	"github.com/leasehold/leasehold"
	"github.com/leasehold/leasehold/internal/core/internal/kernel"
	"github.com/leasehold/leasehold/internal/core/record"
)

// Put adds a task, or changes one that nobody does. The same once more changes nothing: no revision, no event.
func (t *tasks) Put(k kernel.Turn, c *kernel.PutTask) kernel.Answer {
	task := &leasehold.Task{Path: c.Path, State: leasehold.TaskTodo, Priority: c.Priority, MaxAttempts: c.Attempted(),
		Changed: k.Calendar()}
	if t.has(c.Path) {
		k.Settle(c.Path)
	}
	before, old := t.Get(c.Path), k.Record(c.Path)
	if before != nil && before.State == leasehold.TaskDoing {
		return refuse(leasehold.Refused, "%s is being done by %s: wait until it is finished, or break its lease",
			c.Path, before.Holder)
	}
	if before != nil && before.State == leasehold.TaskTodo {
		if before.Priority == task.Priority && before.MaxAttempts == task.MaxAttempts && old.Value == c.Value &&
			old.Large == nil {
			return kernel.Answer{Record: record.WithoutValue(old)}
		}
		task.Order = before.Order
	}
	if failure := t.mayPut(k, c, old); failure != nil {
		return kernel.Answer{Err: failure}
	}
	r, failure := k.Write(old, record.Write{Path: c.Path, Value: c.Value}, c.By, leasehold.TaskTodo.String())
	if failure != nil {
		return kernel.Answer{Err: failure}
	}
	if task.Order == 0 {
		task.Order = k.Arrive()
	}
	t.store(k, task)
	k.WakeQueue(c.Path)
	return kernel.Answer{Record: record.WithoutValue(r)}
}

// mayPut refuses a task for which there is no room, or whose record stands for a lease.
func (t *tasks) mayPut(k kernel.Turn, c *kernel.PutTask, old *leasehold.Record) *leasehold.Error {
	if old != nil && old.Lease != "" {
		return kernel.Refusal(leasehold.Refused, "the record %s stands for lease %q: choose another name for the task",
			c.Path, old.Lease)
	}
	known, folder := t.has(c.Path), leasehold.TaskFolder(c.Path)
	if f, _ := t.folders.Get(folder); !known && f.tasks >= leasehold.MaxFolderTasks {
		return kernel.Refusal(leasehold.Limited, "%s has %d tasks, which is as many as it can have: delete those that "+
			"are done", folder, f.tasks)
	}
	if n := k.Tasks(); !known && n >= leasehold.MaxTasks {
		return kernel.Refusal(leasehold.Limited, "there are %d tasks, which is as many as there can be: delete those "+
			"that are done", n)
	}
	return k.MayWrite(record.Write{Path: c.Path, Value: c.Value})
}

// store stores a task. Its resource may rest, and then needs a timer for as long as the task could be claimed after
// that.
func (t *tasks) store(k kernel.Turn, task *leasehold.Task) {
	k.Take(kernel.RecordCost)
	if !t.has(task.Path) {
		k.CountTasks(1)
	}
	t.set(task.Path, task)
	t.changed(k, task.Path)
}

func (t *tasks) Drop(k kernel.Turn, path string) {
	if t.has(path) {
		k.CountTasks(-1)
		t.set(path, nil)
		t.changed(k, path)
	}
}

// changed lets a resource follow its task: nobody may have noticed yet that a rest is over.
func (t *tasks) changed(k kernel.Turn, path string) {
	t.Place(k.Namespace, path)
	k.PassRests(path)
}

func (t *tasks) Begin(k kernel.Turn, task *leasehold.Task, c *kernel.Claim) {
	begun := *task
	begun.State, begun.Changed, begun.Result = leasehold.TaskDoing, k.Calendar(), ""
	begun.Attempts++
	begun.Lease, begun.Holder, begun.Token = c.ID, c.Holder, c.Token
	t.store(k, &begun)
}

// Ended lets a task follow the lease that ends on it. A lease that ended uncleanly has cost an attempt.
func (t *tasks) Ended(k kernel.Turn, c *kernel.Claim, how leasehold.How) {
	task := t.Get(c.Resource)
	if !c.OnTask() || task == nil || task.State != leasehold.TaskDoing || task.Lease != c.ID {
		return
	}
	free := *task
	free.State, free.Changed = leasehold.TaskTodo, k.Calendar()
	switch {
	case how.Clean():
		free.Attempts--
	case free.Attempts >= free.MaxAttempts:
		free.State = leasehold.TaskFailed
		free.Result = fmt.Sprintf("the last of %d attempts was lost (%v)", free.Attempts, how)
	}
	t.store(k, &free)
}

// Finish says what became of a task. It is judged by the lease and its token alone: a worker that was paused, and
// whose lease has ended since, changes nothing.
func (t *tasks) Finish(k kernel.Turn, c *kernel.FinishTask) kernel.Answer {
	fence := kernel.Fence{Lease: c.ID, Token: c.Token}
	claim := k.Touch(c.ID)
	if claim == nil {
		if finishedBefore(k, c) {
			return kernel.Answer{}
		}
		return kernel.Answer{Err: k.LostFence(fence)}
	}
	if _, failure := k.CheckFence(fence); failure != nil {
		return kernel.Answer{Err: failure}
	}
	task := t.Get(claim.Resource)
	switch {
	case !claim.OnTask():
		return refuse(leasehold.Refused, "lease %q on %s is not one on a task: release it", c.ID, claim.Resource)
	case task == nil || task.Lease != c.ID:
		return refuse(leasehold.NotFound, "task %s was deleted while it was done: release lease %q", claim.Resource,
			c.ID)
	}
	finished := *task
	finished.State, finished.Result, finished.Changed = leasehold.TaskDone, c.Result, k.Calendar()
	if c.Failed {
		finished.State = leasehold.TaskFailed
		if finished.Attempts < finished.MaxAttempts { // behind the others
			finished.State, finished.Order = leasehold.TaskTodo, k.Arrive()
		}
	}
	t.store(k, &finished)
	k.Release(claim, c.Session, outcome(c))
	k.Remember(c.ID, short(c))
	return kernel.Answer{}
}

// outcome is what the event says of the end of a lease on a task.
func outcome(c *kernel.FinishTask) string {
	if !c.Failed {
		return leasehold.TaskDone.String()
	}
	if c.Result == "" || len(c.Result) >= leasehold.MaxName {
		return leasehold.TaskFailed.String()
	}
	return leasehold.TaskFailed.String() + ": " + c.Result
}

// finishedBefore reports whether an earlier try said the same. What became of the task since does not matter, and to
// give the lease back is to say nothing.
func finishedBefore(k kernel.Turn, c *kernel.FinishTask) bool {
	ended := k.Ended(c.ID)
	return ended != nil && ended.Token == c.Token && ended.Said == short(c)
}

// short is what is said of a task in short, and never 0.
func short(c *kernel.FinishTask) uint64 {
	sum := fnv.New64a() // nobody but who held the lease can look for another text with the same sum, to no use
	_, _ = sum.Write([]byte(c.Result))
	said := sum.Sum64() | 3
	if c.Failed {
		said ^= 1
	}
	return said
}

func refuse(code leasehold.Code, format string, args ...any) kernel.Answer {
	return kernel.Answer{Err: kernel.Refusal(code, format, args...)}
}
