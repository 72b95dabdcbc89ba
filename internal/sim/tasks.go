package sim

import (
	"fmt"
	"strings"
	"time"

	"github.com/leasehold/leasehold"
	"github.com/leasehold/leasehold/internal/core"
)

// Tasks: records that workers claim, do and finish. The witness knows each by what was put and what became of the
// leases on it.

const (
	folder = "jobs/"
	jobs   = 6 // how many names of tasks there are
)

// A task is what is known of one.
type task struct {
	state          leasehold.TaskState
	priority, most int
	attempts       int
	order          int // among those of its priority: when it was put
	lease          string
}

// putTasks puts tasks, again and again: new ones, those that are done, and at times one that somebody does.
func (w *World) putTasks() {
	if w.quiet {
		return
	}
	w.after(w.upTo(2*time.Second), w.putTasks)
	c := newClient(w, 96)
	path := fmt.Sprint(folder, w.random.IntN(jobs))
	if w.chance(5) {
		c.insist(&core.DeleteRecord{Namespace: w.space(), Path: path}, 2)
		return
	}
	put := &core.PutTask{Namespace: w.space(), Path: path, Value: fmt.Sprint("v", w.random.IntN(3)), By: c.name,
		Priority: w.random.IntN(2), Attempts: w.random.IntN(4)}
	if w.chance(30) {
		put.Request = core.Request{Key: fmt.Sprint("task ", w.now)}
	}
	c.insist(put, 3)
	if w.chance(20) {
		w.after(w.upTo(5*time.Second), func() { c.insist(put, 1) }) // an earlier try that comes late
	}
}

// work is a grip on a task.
type work struct{ grip *grip }

// byTask lets a grip claim a task.
func (g *grip) byTask() { g.at.name, g.subject = folder, &work{g} }

func (x *work) asks(a *core.Acquire) { a.Resource, a.Task = folder, true }

func (x *work) begun() {}

// end says what became of the task, sometimes twice and late. Else it is given back.
func (x *work) end() bool {
	g := x.grip
	w := g.client.world
	if w.chance(25) {
		return false
	}
	finish := &core.FinishTask{Namespace: g.at.space, ID: g.id, Token: g.token, Session: g.session}
	finish.Failed = w.chance(30)
	if w.chance(50) {
		finish.Result = "a result"
	}
	g.client.insist(finish, 5)
	if w.chance(30) {
		w.after(w.upTo(5*time.Second), func() { g.client.insist(finish, 1) })
	}
	return true
}

// tasked follows the record of a task.
func (t *witness) tasked(c core.Command, e *leasehold.Event) {
	at := spot{e.Namespace, e.Resource}
	put, ok := c.(*core.PutTask)
	switch before := t.subjects.tasks[at]; {
	case e.Kind == leasehold.RecordDeleted:
		delete(t.subjects.tasks, at)
	case !ok || put.Path != e.Resource:
	case before != nil && before.state == leasehold.TaskDoing:
		t.world.violated("%s is put anew, and %s does it", at.name, before.lease)
	default:
		now := &task{state: leasehold.TaskTodo, priority: put.Priority, most: put.Attempted()}
		now.order = t.subjects.commands
		if before != nil && before.state == leasehold.TaskTodo {
			now.order = before.order
		}
		t.subjects.tasks[at] = now
		t.world.count("tasks put")
	}
}

// claimable reports whether a task can be claimed; with surely, whether it must be offered.
func (t *witness) claimable(at spot, surely bool) bool {
	x, p := t.subjects.tasks[at], t.place(at)
	for _, r := range p.rests {
		if r.until > t.now || surely {
			return false
		}
	}
	return x != nil && x.state == leasehold.TaskTodo && len(p.holders) == 0
}

// earlier reports whether a task is offered before another.
func (x *task) earlier(o *task) bool {
	return x.priority > o.priority || x.priority == o.priority && x.order < o.order
}

// nextTask returns a task of a folder that must be offered; nil if there is none.
func (t *witness) nextTask(in spot) (next *task) {
	for _, at := range sortedSpots(t.subjects.tasks) {
		x := t.subjects.tasks[at]
		if inFolder(at, in) && t.claimable(at, true) && (next == nil || x.earlier(next)) {
			next = x
		}
	}
	return next
}

func inFolder(at, in spot) bool { return at.space == in.space && strings.HasPrefix(at.name, in.name) }

// begunTask checks that a task which is granted can be claimed, and that it is the next.
func (t *witness) begunTask(p *promise) {
	x := t.subjects.tasks[p.at]
	if x == nil || !t.claimable(p.at, false) {
		t.world.violated("%s is granted %s, which is not to be done: %+v", p.id, p.at.name, x)
		return
	}
	if next := t.nextTask(spot{p.at.space, p.waiting.folder}); next != nil && next.earlier(x) {
		t.world.violated("%s is granted %s, %+v, and the next is %+v", p.id, p.at.name, *x, *next)
	}
	if x.attempts++; x.attempts > x.most {
		t.world.violated("%s is done for the %dth time of %d", p.at.name, x.attempts, x.most)
	}
	x.state, x.lease = leasehold.TaskDoing, p.id
	t.world.count("tasks claimed")
}

// finishing checks, before a command, that only who holds a task says what became of it, or said so before.
func (t *witness) finishing(c core.Command, answer core.Answer) {
	t.subjects.commands++
	f, ok := c.(*core.FinishTask)
	if !ok {
		return
	}
	id := spot{f.Namespace, f.ID}
	p, before := t.claims[id], t.subjects.finished[id]
	holds := p != nil && p.token == f.Token && t.now < p.ends()
	said := *f
	said.Session = before.Session
	switch {
	case answer.Err == nil && !holds && said != before:
		t.world.violated("%s finishes its task, and does not have it", f.ID)
	case answer.Err != nil && holds && t.doing(p):
		t.world.violated("%s has %s and cannot finish it: %v", f.ID, p.at.name, answer.Err)
	case answer.Err == nil:
		t.subjects.finished[id] = said
	}
}

// doing reports whether a lease is that of who does a task.
func (t *witness) doing(p *promise) bool {
	x := t.subjects.tasks[p.at]
	return x != nil && x.state == leasehold.TaskDoing && x.lease == p.id
}

// endedTask follows what the end of a lease means for its task.
func (t *witness) endedTask(c core.Command, p *promise, e *leasehold.Event) {
	if !t.doing(p) {
		return
	}
	x := t.subjects.tasks[p.at]
	f, ok := c.(*core.FinishTask)
	ok = ok && e.How == leasehold.Released
	x.state = leasehold.TaskTodo
	switch {
	case ok && f.ID == e.ID && !f.Failed:
		x.state = leasehold.TaskDone
		t.world.count("tasks done")
	case ok && f.ID == e.ID && x.attempts < x.most:
		x.order = t.subjects.commands
	case ok && f.ID == e.ID || !e.How.Clean() && x.attempts >= x.most:
		x.state = leasehold.TaskFailed
	case e.How.Clean():
		x.attempts--
	default:
		t.world.count("tasks of lost workers")
	}
}

// refusedSubject checks that nobody is told that there is no task while there is one.
func (t *witness) refusedSubject(a *core.Acquire, answer core.Answer, events []*leasehold.Event) {
	in := spot{a.Namespace, a.Resource}
	if !a.Task || answer.Err == nil || answer.Err.Code != leasehold.Held || len(events) > 0 || t.quarantined() ||
		len(t.place(in).queue) > 0 || t.claims[spot{a.Namespace, a.ID}] != nil || t.known(a) != nil {
		return
	}
	if t.nextTask(in) != nil {
		t.world.violated("%s is told that there is no task, and there is one: %v", a.ID, answer.Err)
	}
}

// tasksOf compares the tasks of a state with what became of them.
func (t *witness) tasksOf(s *server) {
	view := s.node.State().View(0)
	for _, at := range sortedSpots(t.subjects.tasks) {
		x := t.subjects.tasks[at]
		is, ok := view.Task(at.space, at.name)
		if !ok || is.State != x.state || is.Attempts != x.attempts || is.MaxAttempts != x.most ||
			is.Priority != x.priority {
			t.world.violated("server %d has %s as %v, %d of %d attempts, and should have %+v", s.id, at.name, is.State,
				is.Attempts, is.MaxAttempts, *x)
		}
	}
}
