package kernel_test

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/leasehold/leasehold"
	"github.com/leasehold/leasehold/internal/core"
)

// A dumb model of tasks: two lists that are walked from the beginning. It shares no code with the core.

type modelTask struct {
	path, state     string
	priority, order int
	attempts, most  int
	lease           string
	rests           time.Duration // until when it may not be claimed
}

type modelWorker struct {
	id, folder, task string // no task: it waits
	priority, order  int
	ttl              time.Duration
	ends             time.Duration
	until            time.Duration // of its wait
}

func (w *modelWorker) over() time.Duration {
	if w.task == "" {
		return min(w.ends, w.until)
	}
	return w.ends
}

type taskModel struct {
	now     time.Duration
	tasks   []*modelTask
	workers []*modelWorker
	rests   []*modelTask // deleted ones, whose resources may rest
	orders  int
	grace   time.Duration
	said    map[string]string // of tasks, by the lease that ended with it
}

func (m *taskModel) task(path string) *modelTask {
	i := slices.IndexFunc(m.tasks, func(t *modelTask) bool { return t.path == path })
	if i < 0 {
		return nil
	}
	return m.tasks[i]
}

func (m *taskModel) worker(id string) *modelWorker {
	i := slices.IndexFunc(m.workers, func(w *modelWorker) bool { return w.id == id })
	if i < 0 {
		return nil
	}
	return m.workers[i]
}

// next returns the task of a folder that is claimed next.
func (m *taskModel) next(folder string) (next *modelTask) {
	for _, t := range m.tasks {
		if !strings.HasPrefix(t.path, folder) || t.state != "todo" || t.rests > m.now {
			continue
		}
		if next == nil || t.priority > next.priority || t.priority == next.priority && t.order < next.order {
			next = t
		}
	}
	return next
}

func (m *taskModel) first(folder string) (first *modelWorker) {
	for _, w := range m.workers {
		if w.folder != folder || w.task != "" || w.over() <= m.now {
			continue
		}
		if first == nil || w.priority > first.priority || w.priority == first.priority && w.order < first.order {
			first = w
		}
	}
	return first
}

func (m *taskModel) give(t *modelTask, w *modelWorker) {
	t.state, t.lease, t.attempts = "doing", w.id, t.attempts+1
	w.task, w.ends = t.path, m.now+w.ttl
}

func (m *taskModel) handOver() {
	for _, folder := range taskFolders {
		for {
			w, t := m.first(folder), m.next(folder)
			if w == nil || t == nil {
				break
			}
			m.give(t, w)
		}
	}
}

func (m *taskModel) drop(w *modelWorker) {
	m.workers = slices.DeleteFunc(m.workers, func(other *modelWorker) bool { return other == w })
}

// end ends a lease or a wait.
func (m *taskModel) end(w *modelWorker, clean bool, at time.Duration) {
	m.drop(w)
	t := m.task(w.task)
	if t == nil || t.lease != w.id {
		return
	}
	if t.state == "doing" {
		t.state = "todo"
		switch {
		case clean:
			t.attempts--
		case t.attempts >= t.most:
			t.state = "failed"
		}
	}
	if !clean && m.grace > 0 {
		t.rests = at + m.grace
	}
	m.handOver()
}

// pass ends what is over, in the order of time.
func (m *taskModel) pass() {
	for {
		var over *modelWorker
		for _, w := range m.workers {
			if w.over() <= m.now && (over == nil || cmp.Or(cmp.Compare(w.over(), over.over()), cmp.Compare(w.id, over.id)) < 0) {
				over = w
			}
		}
		if over == nil {
			m.handOver()
			return
		}
		m.end(over, false, over.over())
	}
}

var taskFolders = []string{"jobs/", "night/jobs/"}

type taskTest struct {
	*testing.T
	*rand.Rand
	state *core.State
	model taskModel
	log   []string
	made  int
	known []leaseToken
}

type leaseToken struct {
	id    string
	token leasehold.Token
}

func (t *taskTest) do(c core.Command) core.Answer {
	t.Helper()
	t.log = append(t.log, fmt.Sprintf("%v %s", t.model.now, writeCommand(c)))
	result, err := t.state.Apply(core.Time(t.model.now), int64(t.model.now), []core.Command{c})
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range result.Events {
		if e.Kind == leasehold.Acquired {
			t.known = append(t.known, leaseToken{e.ID, e.Token})
		}
	}
	return result.Answers[0]
}

func (t *taskTest) fail(format string, args ...any) {
	t.Helper()
	t.Fatalf(format+"\n%s", append(args, strings.Join(t.log, "\n"))...)
}

func (t *taskTest) step() {
	m := &t.model
	m.now += time.Duration(1+t.IntN(4000)) * time.Millisecond
	action := t.IntN(10)
	if action > 2 { // a claim lets time pass by itself
		t.do(&core.Tick{})
	}
	m.pass()
	switch {
	case action <= 2:
		t.claim()
	case action <= 5:
		t.put()
	case action <= 7 && len(t.known) > 0:
		t.finish()
	case action == 8 && len(m.workers) > 0:
		w := m.workers[t.IntN(len(m.workers))]
		t.do(&core.Renew{Namespace: ns, ID: w.id})
		if w.ends = m.now + w.ttl; w.task == "" {
			w.ends = m.now + 15*time.Second
		}
	case len(m.workers) > 0:
		w := m.workers[t.IntN(len(m.workers))]
		t.do(&core.Release{Namespace: ns, ID: w.id})
		m.end(w, true, m.now)
	}
}

func (t *taskTest) claim() {
	t.made++
	m := &t.model
	w := &modelWorker{id: fmt.Sprintf("w%04d", t.made), folder: taskFolders[t.IntN(2)], priority: t.IntN(2), order: t.made,
		ttl: time.Duration(5+t.IntN(20)) * time.Second}
	c := &core.Acquire{Namespace: ns, Resource: w.folder, ID: w.id, Holder: w.id, TTL: w.ttl, Priority: w.priority, Task: true}
	if t.IntN(2) == 0 {
		c.Wait = time.Duration(1+t.IntN(30)) * time.Second
	}
	answer := t.do(c)
	first, task := m.first(w.folder), m.next(w.folder)
	switch {
	case task != nil && (first == nil || first.priority < w.priority):
		m.workers = append(m.workers, w)
		m.give(task, w)
		if answer.Lease == nil || answer.Lease.Resource != task.path {
			t.fail("the claim of %s got %+v, %v, and not %s", w.id, answer.Lease, answer.Err, task.path)
		}
	case c.Wait == 0:
		if answer.Err == nil || answer.Err.Code != leasehold.Held {
			t.fail("the claim of %s got %+v, and there was nothing for it", w.id, answer.Lease)
		}
	default:
		w.ends, w.until = m.now+15*time.Second, m.now+c.Wait
		m.workers = append(m.workers, w)
		if answer.Waiter == nil {
			t.fail("the claim of %s got %+v, %v, and should wait", w.id, answer.Lease, answer.Err)
		}
	}
	if again := t.do(c); answer.Err == nil && answerText(again) != answerText(answer) {
		t.fail("claimed again: %s, and was %s", answerText(again), answerText(answer))
	}
}

func (t *taskTest) put() {
	m := &t.model
	path := fmt.Sprint(taskFolders[t.IntN(2)], t.IntN(12))
	before := m.task(path)
	if before != nil && before.state != "doing" && t.IntN(4) == 0 {
		t.do(&core.DeleteRecord{Namespace: ns, Path: path})
		m.tasks = slices.DeleteFunc(m.tasks, func(task *modelTask) bool { return task == before })
		m.rests = append(m.rests, before)
		return
	}
	c := &core.PutTask{Namespace: ns, Path: path, Priority: t.IntN(2), Attempts: 1 + t.IntN(3)}
	answer := t.do(c)
	if refused := answer.Err != nil; refused != (before != nil && before.state == "doing") {
		t.fail("%s: the core answers %v", path, answer.Err)
	}
	after := &modelTask{path: path, state: "todo", priority: c.Priority, most: c.Attempts}
	switch {
	case answer.Err != nil:
		return
	case before == nil:
		for _, deleted := range m.rests { // the resource rests on
			if deleted.path == path {
				after.rests = max(after.rests, deleted.rests)
			}
		}
		m.tasks = append(m.tasks, after)
	case before.state == "todo" && before.priority == c.Priority && before.most == c.Attempts:
		return
	default:
		if after.rests = before.rests; before.state == "todo" {
			after.order = before.order
		}
		*before = *after
		after = before
	}
	if after.order == 0 {
		m.orders++
		after.order = m.orders
	}
	m.handOver()
}

// finish says what became of a task, with a token that may be of a lease that ended.
func (t *taskTest) finish() {
	m := &t.model
	lease := t.known[len(t.known)-1-t.IntN(min(len(t.known), 12))]
	c := &core.FinishTask{Namespace: ns, ID: lease.id, Token: lease.token, Failed: t.IntN(3) == 0, Result: fmt.Sprint("r", t.IntN(2))}
	answer := t.do(c)
	w := m.worker(lease.id)
	if w == nil {
		same := m.said[lease.id] == fmt.Sprint(c.Failed, c.Result)
		if (answer.Err == nil) != same || !same && answer.Err.Code != leasehold.Lost {
			t.fail("%s finished late: %v", lease.id, answer.Err)
		}
		return
	}
	if answer.Err != nil {
		t.fail("%s could not finish: %v", lease.id, answer.Err)
	}
	task := m.task(w.task)
	task.state, m.said[lease.id] = "done", fmt.Sprint(c.Failed, c.Result)
	if c.Failed {
		if task.state = "failed"; task.attempts < task.most {
			m.orders++
			task.state, task.order = "todo", m.orders
		}
	}
	m.drop(w)
	m.handOver()
}

func (t *taskTest) compare() {
	m := &t.model
	list, _ := t.state.View(0).Tasks(ns, core.TaskQuery{Most: 1000})
	slices.SortFunc(m.tasks, func(a, b *modelTask) int { return cmp.Compare(a.path, b.path) })
	if len(list) != len(m.tasks) {
		t.fail("there are %d tasks, and should be %d", len(list), len(m.tasks))
	}
	for i, task := range list {
		is := fmt.Sprint(task.Path, task.State.String(), task.Attempts, task.MaxAttempts, task.Lease)
		if want := m.tasks[i]; is != fmt.Sprint(want.path, want.state, want.attempts, want.most, want.lease) {
			t.fail("%+v should be %+v", task, want)
		}
	}
	if err := t.state.Check(); err != nil {
		t.fail("%v", err)
	}
	if t.IntN(4) == 0 {
		t.state = reloaded(t, t.state)
	}
}

// TestTaskModelAgrees lets workers claim, finish, lose and give back tasks of two folders, for each of some seeds. After
// each step the core and the model agree about who does what, and a result is taken from nobody but the holder.
func TestTaskModelAgrees(t *testing.T) {
	seeds := uint64(60)
	if testing.Short() {
		seeds = 6
	}
	for seed := range seeds {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			p := &taskTest{T: t, Rand: rand.New(rand.NewPCG(seed, 43)), state: core.NewAt(core.NewestLevel)}
			p.model.said = map[string]string{}
			p.model.now = time.Second
			if seed%2 == 1 {
				p.model.grace = 7 * time.Second
				for _, path := range taskFolders {
					p.do(&core.Define{Namespace: ns, Definition: leasehold.Definition{Path: path, Grace: p.model.grace}})
				}
			}
			for range 250 {
				p.step()
				p.compare()
			}
		})
	}
}
