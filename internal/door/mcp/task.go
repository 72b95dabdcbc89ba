package mcp

import (
	"strings"
	"unicode/utf8"

	"github.com/leasehold/leasehold"
	"github.com/leasehold/leasehold/internal/core"
	"github.com/leasehold/leasehold/internal/door"
)

// Agents claim a task by acquiring its folder, a name that ends with a slash, and finish it by releasing the lease
// with an outcome. A tool of its own for either would cost every agent its text in every turn.

// maxTaskText is how much of a task an agent is shown; it reads more from the record.
const maxTaskText = 8 << 10

// checkNames refuses names that cannot be leased. What ends with a slash is a folder of tasks, and claimed alone.
func (a *acquiring) checkNames() error {
	for _, name := range a.Resources {
		path := name
		if leasehold.IsTaskFolder(name) {
			if len(a.Resources) > 1 || a.Slots != 0 {
				return door.Invalid("%s is a folder of tasks: claim it alone, without slots", door.Brief(name))
			}
			path = strings.TrimSuffix(name, "/")
		}
		err := door.First(door.CheckName("resource", name, leasehold.MaxName), door.CheckSegments("resource", path))
		if err != nil {
			return err
		}
	}
	return nil
}

// taskOf returns what is to be done for a lease on a task, as text; empty if it is not one.
func (c *call) taskOf(l *leasehold.Lease) (text string) {
	_ = c.look(func(v core.View) {
		if task, ok := v.Task(c.namespace, l.Resource); !ok || task.Lease != l.ID {
			return
		}
		if r, failure := v.Record(c.namespace, l.Resource, 0); failure == nil && utf8.ValidString(r.Value) {
			text = r.Value
		}
	})
	return text[:min(len(text), maxTaskText)]
}

// finishTask says what became of the task of a grip, if it is on one. It ends the lease, and its token is judged in
// that step: an agent that lost it changes nothing.
func (c *call) finishTask(g *grip, outcome string) error {
	if len(g.leases) != 1 || g.lost != nil || outcome != outcomeDone && outcome != outcomeFailed {
		return nil
	}
	l := &g.leases[0]
	isTask := false
	err := c.look(func(v core.View) {
		task, ok := v.Task(c.namespace, l.Resource)
		isTask = ok && task.Lease == l.ID
	})
	if err != nil || !isTask {
		return err
	}
	_, err = c.do(&core.FinishTask{Namespace: c.namespace, ID: l.ID, Token: l.Token, Session: l.Session,
		Failed: outcome == outcomeFailed})
	return err
}
