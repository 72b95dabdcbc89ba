package kernel

import (
	"fmt"

	"github.com/leasehold/leasehold"
)

// A task is claimed by acquiring whichever of a folder is next: the lease is on the resource of the task's name. Those
// who find none wait in the queue of the folder, and their claims get the name of a task when they are granted.

// Tasks are those of one namespace: what is to be done, how far it has come, and which of it can be claimed: see
// package task.
type Tasks interface {
	// Get returns the task of a path; nil if there is none.
	Get(path string) *leasehold.Task
	// From calls yield with the tasks from a path on, in the order of their paths, until it returns false.
	From(path string, yield func(*leasehold.Task) bool)
	// First returns the task of a folder that is claimed next; nil if there is none.
	First(folder string) *leasehold.Task
	// Ready reports whether the task of a path can be claimed.
	Ready(path string) bool
	// Count returns how many tasks of a folder are to do, and how many are being done.
	Count(folder string) (todo, doing int)

	Put(t Turn, c *PutTask) Answer
	Finish(t Turn, c *FinishTask) Answer

	// Begin notes who does a task, and Ended that the lease on a resource ended.
	Begin(t Turn, task *leasehold.Task, c *Claim)
	Ended(t Turn, c *Claim, how leasehold.How)
	// Place sees whether the task of a path can be claimed by now: its resource, or what is kept of it, has changed.
	Place(n Namespace, path string)
	// Drop removes the task whose record is deleted. Who does it keeps its lease.
	Drop(t Turn, path string)

	Restore(t Turn, task *leasehold.Task) error
	Copy() Tasks
	Check(n Namespace, that func(ok bool, format string, args ...any))
}

// claimTask grants the next task of a folder, or waits for one. Like an acquire it refuses before the first change.
func (t *turn) claimTask(sp *space, c *Acquire) Answer {
	t.passTime()
	if claim := t.touch(sp, c.ID); claim != nil {
		return t.acquireAgain(sp, c)
	}
	items := c.Items()
	claims, failure := t.prepare(sp, c, items)
	if failure != nil {
		return Answer{Err: failure}
	}
	task := t.nextTask(sp, c)
	if task == nil && c.Wait == 0 {
		return t.noTask(sp, c.Resource)
	}
	if failure := t.roomForClaims(sp, 1, task == nil); failure != nil {
		return Answer{Err: failure}
	}
	r, known := sp.resources.Get(c.Resource)
	if !known {
		r = &Resource{Path: c.Resource}
	}
	if task == nil {
		if r.Waiting >= leasehold.MaxQueue {
			return refuse(leasehold.Limited, "%d wait for tasks from %s, which is as many as can", r.Waiting, r.Path)
		}
		t.grantOrQueue(sp, c, items, claims, r)
		return t.askedAnswer(sp, claims)
	}
	claims[0].Resource = task.Path
	t.grantOrQueue(sp, c, items, claims, nil)
	answer := t.askedAnswer(sp, claims)
	sp.tasks.Begin(t.in(sp), task, claims[0])
	return answer
}

// nextTask returns the task that a newcomer gets; nil if there is none for it. Those who wait go first, unless they
// have a lower priority.
func (s *State) nextTask(sp *space, c *Acquire) *leasehold.Task {
	if s.quarantined() {
		return nil
	}
	if waiter := first(sp, c.Resource); waiter != nil && waiter.Wait.Priority >= c.Priority {
		return nil
	}
	return sp.tasks.First(c.Resource)
}

// noTask tells those who do not wait that there is nothing for them.
func (s *State) noTask(sp *space, path string) Answer {
	todo, doing := sp.tasks.Count(path)
	r, known := sp.resources.Get(path)
	if !known {
		r = &Resource{Path: path}
	}
	failure := &leasehold.Error{Code: leasehold.Held, Waiting: r.Waiting, Message: fmt.Sprintf(
		"no task from %s can be claimed now: %d to do, %d being done, %d waiting", path, todo, doing, r.Waiting)}
	if s.quarantined() {
		failure.Message += "; " + s.whyQuarantined()
	}
	return Answer{Err: failure}
}

// waitsForTasks reports whether those who wait for a path wait for tasks. All of them do, or none: see mixesTasks.
func (sp *space) waitsForTasks(path string) bool {
	if !leasehold.IsTaskFolder(path) {
		return false
	}
	waiter := first(sp, path)
	return waiter != nil && waiter.OnTask()
}

// mixesTasks refuses a claim on a folder that others use as a resource, and the other way round: one queue has one
// order.
func (sp *space) mixesTasks(c *Acquire, path string) *leasehold.Error {
	if !leasehold.IsTaskFolder(path) {
		return nil
	}
	r, known := sp.resources.Get(path)
	switch {
	case !c.Task && sp.waitsForTasks(path):
		return refuse(leasehold.Refused, "workers wait for tasks from %s: it cannot be leased itself", path).Err
	case c.Task && (sp.isPool(path) || sp.mirrored(path) != "" ||
		known && (r.Held() || r.Waiting > 0 && !sp.waitsForTasks(path))):
		return refuse(leasehold.Refused, "%s is leased itself: no tasks can be claimed from it", path).Err
	}
	return nil
}

// passTime lets time do what is due at the stamp, as a tick would. A task whose holder's lease is over goes before
// younger ones, whether or not a tick came in between; and nobody knows which leases these are without a look at time.
func (t *turn) passTime() {
	for !t.work.spent() {
		due := t.due.Due(t.now)
		if due == nil {
			return
		}
		t.expire(due)
	}
}

// A folder is a resource that nobody ever holds: it has a queue, and nothing else. That its waiters are in the tree of
// all waiters gives them their order, their place, their end by time or with a session, breaks and moves, by the same
// code as everybody's.

// handOverTasks grants the tasks of a folder that can be claimed to those who wait for them.
func (t *turn) handOverTasks(sp *space, path string) {
	for !t.quarantined() {
		waiter, task := first(sp, path), sp.tasks.First(path)
		if waiter == nil || task == nil {
			return
		}
		if t.work.spent() {
			t.putOff(sp, &Chore{Kind: HandOver, Name: path})
			return
		}
		if how, gone := t.mustLeave(sp, waiter); gone {
			t.leave(sp, t.dismissed(waiter, how), how)
			continue
		}
		t.grantTask(sp, waiter, task)
	}
}

// grantTask gives a task to a waiter, whose claim is on the task from here on and no longer on the folder.
func (t *turn) grantTask(sp *space, waiter *Claim, task *leasehold.Task) {
	t.dequeue(sp, waiter)
	r, _ := sp.resources.Get(waiter.Resource)
	shorter := *r
	shorter.Waiting--
	t.setResource(sp, &shorter)
	claim := *waiter
	claim.Resource = task.Path
	taken := Resource{Path: task.Path}
	if r, ok := sp.resources.Get(task.Path); ok {
		taken = *r
	}
	sp.tasks.Begin(t.in(sp), task, t.grant(sp, taken, &claim))
	t.shortened(sp, waiter.Resource)
}

// offerTask lets the first who waits for a task of its folder have it, if it can be claimed.
func (t *turn) offerTask(sp *space, path string) {
	if sp.tasks.Ready(path) {
		t.wakeQueue(sp, leasehold.TaskFolder(path))
	}
}

// isTodo reports whether there is a task at a path that nobody does.
func (sp *space) isTodo(path string) bool {
	task := sp.tasks.Get(path)
	return task != nil && task.State == leasehold.TaskTodo
}

// OnTask reports whether a claim is on a task, or waits for one.
func (c *Claim) OnTask() bool { return c.Terms != nil && c.Terms.Task }

// staysWithHolder refuses another holder, or another id, for a lease that has to stay with its own.
func (s *State) staysWithHolder(sp *space, claim *Claim) *leasehold.Error {
	if claim.OnTask() {
		return refuse(leasehold.Refused, "%s was claimed as a task, which stays with who claimed it: release it, and "+
			"let the other claim it", claim.Resource).Err
	}
	return s.staysInOrder(sp, claim, "a lease on it stays with its holder and its id")
}

// asked reports whether a claim is what was asked for under its id.
func (c *Claim) asked(path string, task bool) bool {
	if task && c.OnTask() && !c.Waiting() {
		return leasehold.TaskFolder(c.Resource) == path
	}
	return c.OnTask() == task && c.Resource == path
}

// freeTask reports whether the first who waits for tasks of a folder should have been granted one.
func (c *checker) freeTask(s *look, sp *space, head *Claim) bool {
	if s.unresumed(sp, head.Resource) || sp.handsOver(head.Resource) || sp.tasks.First(head.Resource) == nil {
		return false
	}
	_, gone := s.mustLeave(sp, head)
	return !gone
}
