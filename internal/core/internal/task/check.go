package task

import (
	"fmt"

	"github.com/leasehold/leasehold"
	"github.com/leasehold/leasehold/internal/btree"
	"github.com/leasehold/leasehold/internal/core/internal/kernel"
)

// Restore takes over a task that was in a snapshot.
func (t *tasks) Restore(k kernel.Turn, task *leasehold.Task) error {
	if t.has(task.Path) || leasehold.TaskFolder(task.Path) == "" {
		return fmt.Errorf("snapshot has the task %q twice, or in no folder", task.Path)
	}
	k.CountTasks(1)
	t.set(task.Path, task)
	t.Place(k.Namespace, task.Path)
	return nil
}

// Check checks that each task has its record, that the lease on it knows of it, and that it can be claimed if it
// should be.
func (t *tasks) Check(n kernel.Namespace, that func(ok bool, format string, args ...any)) {
	ready, folders := 0, btree.Map[string, folder]{}
	t.byPath.Scan(func(path string, task *leasehold.Task) bool {
		name := leasehold.TaskFolder(path)
		f, _ := folders.Get(name)
		f.count(task, 1)
		folders.Set(name, f)
		that(n.HasRecord(path) && path == task.Path, "%s/%s is a task without a record", n.Name(), path)
		claim := n.Claim(task.Lease)
		doing := claim != nil && claim.OnTask() && !claim.Waiting() && claim.Resource == path &&
			claim.Token == task.Token
		that(doing == (task.State == leasehold.TaskDoing), "%s/%s is %v, and lease %q on it: %v", n.Name(), path,
			task.State, task.Lease, doing)
		free := claimable(n, task)
		if free {
			ready++
		}
		listed, ok := t.ready.Get(task)
		that(ok == free && (!ok || listed == task), "%s/%s can be claimed: %v, and is listed: %v", n.Name(), path, free,
			ok)
		that(task.Attempts >= 0 && task.Attempts <= task.MaxAttempts && task.Order <= n.Arrivals(),
			"%s/%s has %d of %d attempts and the place %d of %d", n.Name(), path, task.Attempts, task.MaxAttempts,
			task.Order, n.Arrivals())
		return true
	})
	that(ready == t.ready.Len(), "%s: %d tasks can be claimed, %d are listed", n.Name(), ready, t.ready.Len())
	that(folders.Len() == t.folders.Len(), "%s: there are %d folders of tasks, %d are counted", n.Name(), folders.Len(),
		t.folders.Len())
	folders.Scan(func(name string, f folder) bool {
		counted, _ := t.folders.Get(name)
		that(counted == f, "%s/%s has %+v tasks, %+v are counted", n.Name(), name, f, counted)
		return true
	})
}
