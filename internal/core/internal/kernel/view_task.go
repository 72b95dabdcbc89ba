package kernel

import (
	"strings"

	"github.com/leasehold/leasehold"
)

// What is shown of a task is what the log has: a lease that is over by the clock, and that nothing has collected yet,
// is still the one that does it.

// A TaskQuery says which tasks to show.
type TaskQuery struct {
	Prefix string
	After  string // the path that the page before ended with
	Most   int
	State  leasehold.TaskState // 0: any
	May    func(path string) bool
}

// Task returns the task of a path. One whose holder's lease is over is shown as the log has it.
func (v *view) Task(namespace, path string) (task leasehold.Task, ok bool) {
	sp := v.s.space(namespace)
	if sp == nil || sp.tasks.Get(path) == nil {
		return task, false
	}
	v.work.take(LookCost)
	task = *sp.tasks.Get(path)
	task.Namespace = namespace
	return task, true
}

// Tasks returns tasks in the order of their paths, and the path to go on after; empty if there are no more. A page may
// be short, or empty, because it looks at a bounded number of them.
func (v *view) Tasks(namespace string, q TaskQuery) (list []leasehold.Task, next string) {
	sp := v.s.space(namespace)
	if sp == nil {
		return nil, ""
	}
	last := ""
	sp.tasks.From(max(q.Prefix, q.After), func(task *leasehold.Task) bool {
		switch path := task.Path; {
		case path == q.After:
			return true
		case !strings.HasPrefix(path, q.Prefix):
			return false
		case len(list) == q.Most || v.work.spent():
			next = last
			return false
		}
		v.work.take(LookCost)
		last = task.Path
		if (q.State == 0 || q.State == task.State) && (q.May == nil || q.May(task.Path)) {
			shown := *task
			shown.Namespace = namespace
			list = append(list, shown)
		}
		return true
	})
	return list, next
}
