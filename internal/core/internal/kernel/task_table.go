package kernel

import (
	"github.com/tidwall/btree"

	"github.com/leasehold/leasehold"
)

// A taskTable is the tasks of one namespace. They are never changed in place.
type taskTable struct {
	byPath  btree.Map[string, *leasehold.Task]
	ready   *btree.BTreeG[*leasehold.Task] // those that can be claimed now, by folder, priority and age
	folders btree.Map[string, folder]
}

// A folder counts the tasks that are claimed from one path.
type folder struct{ tasks, todo, doing int }

func newTaskTable() taskTable {
	return taskTable{ready: btree.NewBTreeGOptions(func(a, b *leasehold.Task) bool {
		x, y := leasehold.TaskFolder(a.Path), leasehold.TaskFolder(b.Path)
		switch {
		case x != y:
			return x < y
		case a.Priority != b.Priority:
			return a.Priority > b.Priority
		}
		return a.Order < b.Order
	}, noLocks)}
}

func (t *taskTable) copy() taskTable {
	return taskTable{byPath: *t.byPath.Copy(), ready: t.ready.Copy(), folders: *t.folders.Copy()}
}

// get returns the task of a path; nil if there is none. Most namespaces have none at all.
func (t *taskTable) get(path string) *leasehold.Task {
	if t.byPath.Len() == 0 {
		return nil
	}
	task, _ := t.byPath.Get(path)
	return task
}

func (t *taskTable) has(path string) bool { return t.get(path) != nil }

// todo reports whether there is a task at a path that nobody does.
func (t *taskTable) todo(path string) bool {
	task := t.get(path)
	return task != nil && task.State == leasehold.TaskTodo
}

// set stores a task, or removes that of a path if task is nil.
func (t *taskTable) set(path string, task *leasehold.Task) {
	name := leasehold.TaskFolder(path)
	f, _ := t.folders.Get(name)
	if before := t.get(path); before != nil {
		f.count(before, -1)
		t.ready.Delete(before)
		t.byPath.Delete(path)
	}
	if task != nil {
		f.count(task, 1)
		t.byPath.Set(path, task)
	}
	if f == (folder{}) {
		t.folders.Delete(name)
		return
	}
	t.folders.Set(name, f)
}

func (f *folder) count(task *leasehold.Task, n int) {
	f.tasks += n
	switch task.State {
	case leasehold.TaskTodo:
		f.todo += n
	case leasehold.TaskDoing:
		f.doing += n
	}
}

// first returns the task of a folder that is claimed next; nil if there is none.
func (t *taskTable) first(folder string) (next *leasehold.Task) {
	from := &leasehold.Task{Path: folder + "a", Priority: leasehold.MaxPriority}
	t.ready.Ascend(from, func(task *leasehold.Task) bool {
		if leasehold.TaskFolder(task.Path) == folder {
			next = task
		}
		return false
	})
	return next
}

// Only two things look at the tree of ready tasks: a claim, for its first of a folder, and the hand-over to those who
// wait there. Neither looks at a second one, so that neither depends on how many there are.

// placeTask puts a task among those that can be claimed, or takes it out.
func (sp *space) placeTask(path string) {
	switch task := sp.tasks.get(path); {
	case task == nil:
	case sp.claimable(task):
		sp.tasks.ready.Set(task)
	default:
		sp.tasks.ready.Delete(task)
	}
}

// claimable reports whether a task can be claimed: nobody does it, has or wants the resource of its name, and that
// neither rests nor is kept for a reservation.
func (sp *space) claimable(task *leasehold.Task) bool {
	r, known := sp.resources.Get(task.Path)
	return task.State == leasehold.TaskTodo && sp.keeper(task.Path) == nil &&
		(!known || !r.Held() && r.Waiting == 0 && len(r.more().Rests) == 0)
}
