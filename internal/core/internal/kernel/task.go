package kernel

import (
	"fmt"

	"github.com/leasehold/leasehold"
	"github.com/leasehold/leasehold/internal/core/record"
)

// A task is a record with a state. To claim one is to acquire whichever task of a folder is next: the lease is on the
// resource of the task's name. Those who find none wait in the queue of the folder, and their claims get the name of
// a task when they are granted.
//
// The record, the resource and the task of one name know little of each other, so that each of them can be used
// without the others:
//
//   - the record is what is to be done. Deleting it removes the task; a write to it changes nothing else.
//   - the resource is who does it. Somebody may hold it by its name, and it rests after an unclean end like any other;
//     in either case the task cannot be claimed for that time.
//   - the task is how far it has come: todo, doing, done or failed. It is doing exactly while a lease on the resource
//     was granted by a claim, and endTask is the one place where it follows that lease.
//
// Which tasks can be claimed follows from the three, see placeTask. It is worked out again whenever one of them
// changes, and never in between: a restored copy of the state must come to the same.

// putTask adds a task, or changes one that nobody does. The same once more changes nothing: no revision, no event.
func (t *turn) putTask(c *PutTask) Answer {
	sp := t.space(c.Namespace)
	task := &leasehold.Task{Path: c.Path, State: leasehold.TaskTodo, Priority: c.Priority, MaxAttempts: c.Attempted(),
		Changed: calendar(t.wall)}
	before := t.settleTask(sp, c.Path)
	old := t.liveRecord(sp, c.Path)
	if before != nil && before.State == leasehold.TaskDoing {
		return refuse(leasehold.Refused, "%s is being done by %s: wait until it is finished, or break its lease",
			c.Path, before.Holder)
	}
	if before != nil && before.State == leasehold.TaskTodo {
		if before.Priority == task.Priority && before.MaxAttempts == task.MaxAttempts && old.Value == c.Value &&
			old.Large == nil {
			return Answer{Record: record.WithoutValue(old)}
		}
		task.Order = before.Order
	}
	if failure := t.mayPutTask(sp, c, old); failure != nil {
		return Answer{Err: failure}
	}
	sp, failure := t.makeSpace(c.Namespace)
	if failure != nil {
		return Answer{Err: failure}
	}
	if t.changedNow(sp, old) {
		sp.touched = 0
	}
	from := writing{by: c.By, reason: leasehold.TaskTodo.String()}
	r := t.setRecord(sp, record.Write{Path: c.Path, Value: c.Value}, from)
	if task.Order == 0 {
		sp.arrivals++
		task.Order = sp.arrivals
	}
	t.setTask(sp, task)
	t.wakeQueue(sp, c.Path)
	return Answer{Record: record.WithoutValue(r)}
}

// mayPutTask refuses a task for which there is no room, or whose record stands for a lease.
func (t *turn) mayPutTask(sp *space, c *PutTask, old *leasehold.Record) *leasehold.Error {
	if old != nil && old.Lease != "" {
		return refuse(leasehold.Refused, "the record %s stands for lease %q: choose another name for the task", c.Path,
			old.Lease).Err
	}
	name := leasehold.TaskFolder(c.Path)
	if sp != nil && !sp.tasks.has(c.Path) {
		if f, _ := sp.tasks.folders.Get(name); f.tasks >= leasehold.MaxFolderTasks {
			return refuse(leasehold.Limited, "%s has %d tasks, which is as many as it can have: delete those that are "+
				"done", name, f.tasks).Err
		}
	}
	if t.tasks >= leasehold.MaxTasks && (sp == nil || !sp.tasks.has(c.Path)) {
		return refuse(leasehold.Limited, "there are %d tasks, which is as many as there can be: delete those that are "+
			"done", t.tasks).Err
	}
	return t.roomFor(sp, c.Namespace, []record.Write{{Path: c.Path, Value: c.Value}})
}

// settleTask returns the task of a path after what is over on its resource has ended; nil if there is none.
func (t *turn) settleTask(sp *space, path string) *leasehold.Task {
	if sp == nil || !sp.tasks.has(path) {
		return nil
	}
	t.settle(sp, path)
	return sp.tasks.get(path)
}

// setTask stores a task. Its resource may rest, and then needs a timer for as long as the task could be claimed after
// that.
func (t *turn) setTask(sp *space, task *leasehold.Task) {
	t.work.take(recordCost)
	if !sp.tasks.has(task.Path) {
		t.tasks++
	}
	sp.tasks.set(task.Path, task)
	t.taskChanged(sp, task.Path)
}

// dropTask removes the task whose record is deleted. Who does it keeps its lease.
func (t *turn) dropTask(sp *space, path string) {
	if sp.tasks.has(path) {
		t.tasks--
		sp.tasks.set(path, nil)
		t.taskChanged(sp, path)
	}
}

// taskChanged lets a resource follow its task: nobody may have noticed yet that a rest is over.
func (t *turn) taskChanged(sp *space, path string) {
	sp.placeTask(path)
	if r, ok := sp.resources.Get(path); ok && len(r.more().Rests) > 0 {
		again, more := *r, r.more()
		more.Rests = more.resting(t.now)
		again.setMore(more)
		t.setResource(sp, &again)
	}
}

// offerTask lets the first who waits for a task of its folder have it, if it can be claimed.
func (t *turn) offerTask(sp *space, path string) {
	if task := sp.tasks.get(path); task != nil && !t.plants(KeepLost) {
		if _, ready := sp.tasks.ready.Get(task); ready {
			t.wakeQueue(sp, leasehold.TaskFolder(path))
		}
	}
}

// endTask lets a task follow the lease that ends on it. A lease that ended uncleanly has cost an attempt.
func (t *turn) endTask(sp *space, c *Claim, how leasehold.How) {
	task := sp.tasks.get(c.Resource)
	if !c.onTask() || task == nil || task.State != leasehold.TaskDoing || task.Lease != c.ID {
		return
	}
	free := *task
	free.State, free.Changed = leasehold.TaskTodo, calendar(t.wall)
	switch {
	case how.Clean():
		free.Attempts--
	case free.Attempts >= free.MaxAttempts:
		free.State = leasehold.TaskFailed
		free.Result = fmt.Sprintf("the last of %d attempts was lost (%v)", free.Attempts, how)
	}
	t.setTask(sp, &free)
}

// finishTask says what became of a task. It is judged by the lease and its token alone: a worker that was paused, and
// whose lease has ended since, changes nothing.
func (t *turn) finishTask(c *FinishTask) Answer {
	sp := t.space(c.Namespace)
	claim := t.touch(sp, c.ID)
	if claim == nil {
		if t.finishedBefore(sp, c) || t.plants(FinishLate) {
			return Answer{}
		}
		return Answer{Err: t.lostFence(sp, Fence{Lease: c.ID, Token: c.Token})}
	}
	if _, failure := t.leaseFence(sp, Fence{Lease: c.ID, Token: c.Token}); failure != nil {
		return Answer{Err: failure}
	}
	task := sp.tasks.get(claim.Resource)
	switch {
	case !claim.onTask():
		return refuse(leasehold.Refused, "lease %q on %s is not one on a task: release it", c.ID, claim.Resource)
	case task == nil || task.Lease != c.ID:
		return refuse(leasehold.NotFound, "task %s was deleted while it was done: release lease %q", claim.Resource,
			c.ID)
	}
	finished := *task
	finished.State, finished.Result, finished.Changed = leasehold.TaskDone, c.Result, calendar(t.wall)
	if c.Failed {
		finished.State = leasehold.TaskFailed
		if finished.Attempts < finished.MaxAttempts { // behind the others
			sp.arrivals++
			finished.State, finished.Order = leasehold.TaskTodo, sp.arrivals
		}
	}
	if t.plants(OfferDone) {
		finished.State = leasehold.TaskTodo
	}
	t.setTask(sp, &finished)
	t.endFinished(sp, claim, c)
	return Answer{}
}

// endFinished ends the lease on a task, and says in the event what became of that.
func (t *turn) endFinished(sp *space, claim *Claim, c *FinishTask) {
	outcome := leasehold.TaskDone.String()
	if c.Failed {
		outcome = leasehold.TaskFailed.String()
		if why := c.Result; why != "" && len(why) < leasehold.MaxName {
			outcome += ": " + why
		}
	}
	own := c.Session == claim.Session && t.uses(c.Namespace, c.Session)
	t.finish(sp, claim, end{how: leasehold.Released, at: t.now, own: own, outcome: outcome})
}

// finishedBefore reports whether an earlier try said the same. Once somebody else has the task, nothing is left of a
// failure but that the lease was given back.
func (s *State) finishedBefore(sp *space, c *FinishTask) bool {
	if sp == nil {
		return false
	}
	ended, ok := sp.ended.Get(c.ID)
	if !ok || ended.Token != c.Token || ended.How != leasehold.Released {
		return false
	}
	task := sp.tasks.get(ended.Resource)
	if task == nil || task.Lease != c.ID {
		return c.Failed
	}
	return task.Result == c.Result && (task.State == leasehold.TaskDone) != c.Failed
}
