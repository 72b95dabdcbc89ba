package kernel

import (
	"fmt"

	"github.com/tidwall/btree"

	"github.com/leasehold/leasehold"
)

// restoreTask takes a piece over that Pieces made.
func (t *turn) restoreTask(sp *space, value any) error {
	task, ok := value.(*leasehold.Task)
	if !ok {
		return fmt.Errorf("snapshot has a %T, which is unknown here", value)
	}
	if sp.tasks.has(task.Path) || leasehold.TaskFolder(task.Path) == "" {
		return fmt.Errorf("snapshot has the task %q twice, or in no folder", task.Path)
	}
	t.tasks++
	sp.tasks.set(task.Path, task)
	sp.placeTask(task.Path)
	return nil
}

// tasks checks that each task has its record, that the lease on it knows of it, and that it can be claimed if it
// should be.
func (c *checker) tasks(sp *space) {
	ready, folders := 0, btree.Map[string, folder]{}
	sp.tasks.byPath.Scan(func(path string, task *leasehold.Task) bool {
		name := leasehold.TaskFolder(path)
		f, _ := folders.Get(name)
		f.count(task, 1)
		folders.Set(name, f)
		_, recorded := sp.records.Get(path)
		c.that(recorded && path == task.Path, "%s/%s is a task without a record", sp.name, path)
		claim, held := sp.claims.Get(task.Lease)
		doing := held && claim.onTask() && !claim.waiting() && claim.Resource == path && claim.Token == task.Token
		c.that(doing == (task.State == leasehold.TaskDoing), "%s/%s is %v, and lease %q on it: %v", sp.name, path,
			task.State, task.Lease, doing)
		free := sp.claimable(task)
		if free {
			ready++
		}
		listed, ok := sp.tasks.ready.Get(task)
		c.that(ok == free && (!ok || listed == task), "%s/%s can be claimed: %v, and is listed: %v", sp.name, path,
			free, ok)
		c.that(task.Attempts >= 0 && task.Attempts <= task.MaxAttempts && task.Order <= sp.arrivals,
			"%s/%s has %d of %d attempts and the place %d of %d", sp.name, path, task.Attempts, task.MaxAttempts,
			task.Order, sp.arrivals)
		return true
	})
	c.that(ready == sp.tasks.ready.Len(), "%s: %d tasks can be claimed, %d are listed", sp.name, ready,
		sp.tasks.ready.Len())
	c.that(folders.Len() == sp.tasks.folders.Len(), "%s: there are %d folders of tasks, %d are counted", sp.name,
		folders.Len(), sp.tasks.folders.Len())
	folders.Scan(func(name string, f folder) bool {
		counted, _ := sp.tasks.folders.Get(name)
		c.that(counted == f, "%s/%s has %+v tasks, %+v are counted", sp.name, name, f, counted)
		return true
	})
}

// freeTask reports whether the first who waits for tasks of a folder should have been granted one.
func (c *checker) freeTask(s *look, sp *space, head *Claim) bool {
	if s.unresumed(sp, head.Resource) || sp.handsOver(head.Resource) || sp.tasks.first(head.Resource) == nil {
		return false
	}
	_, gone := s.mustLeave(sp, head)
	return !gone
}
