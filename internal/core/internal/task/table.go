package task

import (
	"github.com/leasehold/leasehold"
	"github.com/leasehold/leasehold/internal/btree"
	"github.com/leasehold/leasehold/internal/core/internal/kernel"
)

// tasks are those of one namespace. They are never changed in place.
type tasks struct {
	byPath  btree.Map[string, *leasehold.Task]
	ready   *btree.Tree[*leasehold.Task] // those that can be claimed now, by folder, priority and age
	folders btree.Map[string, folder]
}

// A folder counts the tasks that are claimed from one path.
type folder struct{ tasks, todo, doing int }

// New returns those of a namespace that has none.
func New() kernel.Tasks {
	return &tasks{ready: btree.New(func(a, b *leasehold.Task) bool {
		x, y := leasehold.TaskFolder(a.Path), leasehold.TaskFolder(b.Path)
		switch {
		case x != y:
			return x < y
		case a.Priority != b.Priority:
			return a.Priority > b.Priority
		}
		return a.Order < b.Order
	})}
}

func (t *tasks) Copy() kernel.Tasks {
	return &tasks{byPath: *t.byPath.Copy(), ready: t.ready.Copy(), folders: *t.folders.Copy()}
}

// Get returns the task of a path. Most namespaces have none at all.
func (t *tasks) Get(path string) *leasehold.Task {
	if t.byPath.Len() == 0 {
		return nil
	}
	task, _ := t.byPath.Get(path)
	return task
}

func (t *tasks) has(path string) bool { return t.Get(path) != nil }

func (t *tasks) From(path string, yield func(*leasehold.Task) bool) {
	t.byPath.Ascend(path, func(_ string, task *leasehold.Task) bool { return yield(task) })
}

func (t *tasks) Count(path string) (todo, doing int) {
	f, _ := t.folders.Get(path)
	return f.todo, f.doing
}

// set stores a task, or removes that of a path if task is nil.
func (t *tasks) set(path string, task *leasehold.Task) {
	name := leasehold.TaskFolder(path)
	f, _ := t.folders.Get(name)
	if before := t.Get(path); before != nil {
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

// Only two things look at the tree of ready tasks: a claim, for its first of a folder, and the hand-over to those who
// wait there. Neither looks at a second one, so that neither depends on how many there are.

func (t *tasks) First(folder string) (next *leasehold.Task) {
	from := &leasehold.Task{Path: folder + "a", Priority: leasehold.MaxPriority}
	t.ready.Ascend(from, func(task *leasehold.Task) bool {
		if leasehold.TaskFolder(task.Path) == folder {
			next = task
		}
		return false
	})
	return next
}

func (t *tasks) Ready(path string) bool {
	task := t.Get(path)
	if task == nil {
		return false
	}
	_, ready := t.ready.Get(task)
	return ready
}

// Place puts a task among those that can be claimed, or takes it out.
func (t *tasks) Place(n kernel.Namespace, path string) {
	switch task := t.Get(path); {
	case task == nil:
	case claimable(n, task):
		t.ready.Set(task)
	default:
		t.ready.Delete(task)
	}
}

// claimable reports whether a task can be claimed: nobody does it, has or wants the resource of its name, and that
// neither rests nor is kept for a reservation.
func claimable(n kernel.Namespace, task *leasehold.Task) bool {
	r := n.Resource(task.Path)
	return task.State == leasehold.TaskTodo && !n.Kept(task.Path) && (r == nil || !r.InUse())
}
