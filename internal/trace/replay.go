package trace

import (
	"cmp"
	"container/heap"
	"fmt"
	"slices"
	"time"

	"github.com/leasehold/leasehold"
	"github.com/leasehold/leasehold/internal/core"
)

// A choice is a way to choose TTLs: one for all, or, if it is 0, what is learned by kind.
type choice struct {
	name string
	ttl  time.Duration
}

// figures are what a choice came to.
type figures struct {
	choice   string
	jobs     int
	crashed  losses          // of jobs that renew
	silent   losses          // of those that do not
	renewals int             // by those who hold something
	cut      int             // jobs whose lease ended while they were at work
	errors   []time.Duration // of forecasts, sorted
	within   int             // forecasts that were as exact as they said
	unsaid   int             // waits without a forecast
}

// losses are what crashes cost.
type losses struct {
	crashes int
	lost    time.Duration // that leases lasted after them, in all
}

// each returns how long a lease lasted after a crash on average.
func (l losses) each() time.Duration { return l.lost / time.Duration(max(1, l.crashes)) }

// lost is what all crashes cost.
func (f *figures) lost() time.Duration { return f.crashed.lost + f.silent.lost }

const (
	space = "default"
	gpus  = "gpu"
	start = core.Time(time.Hour)
)

// A world is one replay: the state, what happens next, and who is at work.
type world struct {
	state  *core.State
	choice choice
	now    time.Duration
	events events
	order  int
	at     map[string]*worker
	figures
}

// A worker is a job that was begun.
type worker struct {
	job
	ttl      time.Duration
	queued   time.Duration
	forecast leasehold.Waiter
	granted  bool
	began    time.Duration
	dead     bool // its host is
	over     bool
}

// replay brings the jobs to a pool of eight cards on two hosts.
func replay(list []job, c choice) (figures, error) {
	w := &world{state: core.NewAt(core.NewestLevel), choice: c, at: map[string]*worker{}}
	w.figures = figures{choice: c.name, jobs: len(list)}
	for host := range 2 {
		set := &core.SetUnits{Namespace: space, Resource: gpus, Host: fmt.Sprint("host", host)}
		for n := range 4 {
			set.Units = append(set.Units, core.HostUnit{Name: fmt.Sprintf("card%d-%d", host, n)})
		}
		w.do(set)
	}
	for _, j := range list {
		w.later(j.at, func() { w.arrive(&worker{job: j}) })
	}
	for w.events.Len() > 0 {
		if w.tick(w.events[0].at) {
			continue // it may have let somebody begin, who is done before that
		}
		next := heap.Pop(&w.events).(event)
		w.now = next.at
		next.do()
	}
	slices.Sort(w.errors)
	return w.figures, w.state.Check()
}

// later lets something happen at a moment.
func (w *world) later(at time.Duration, do func()) {
	w.order++
	heap.Push(&w.events, event{at, w.order, do})
}

// tick lets time alone do the first thing that it has to do before a moment, and reports whether there was any.
func (w *world) tick(before time.Duration) bool {
	due, ok := w.state.Due()
	at := max(w.now, time.Duration(due-start))
	if !ok || at > before {
		return false
	}
	// A renewal may have moved what was due: then there is nothing to do yet.
	if w.state.DueBy(start.Add(at)) {
		w.now = at
		w.do(&core.Tick{})
	}
	return true
}

// do applies a command, and tells those whom it concerns.
func (w *world) do(c core.Command) core.Answer {
	result, err := w.state.Apply(start.Add(w.now), int64(w.now), []core.Command{c})
	if err != nil {
		panic(err)
	}
	for _, e := range result.Events {
		one := w.at[e.ID]
		switch {
		case one == nil:
		case e.Kind == leasehold.Acquired && !one.granted:
			w.begin(one)
		case e.Kind == leasehold.Ended && !one.over:
			w.ended(one)
		}
	}
	return result.Answers[0]
}

// arrive asks for units, and waits as long as it takes.
func (w *world) arrive(one *worker) {
	w.at[one.id], one.queued = one, w.now
	ask := &core.Acquire{Namespace: space, Resource: gpus, ID: one.id, Holder: one.holder, Slots: one.units,
		Wait: leasehold.MaxWait}
	one.ttl = w.choice.ttl
	if w.choice.ttl == 0 {
		ask.Labels = one.labels
	}
	if one.renewed {
		if one.ttl == 0 { // as leasehold run --ttl auto does
			name := core.KindName(one.labels, one.holder)
			one.ttl = w.state.View(0).Kinds(space, gpus, name)[0].TTL
		}
		w.do(&core.OpenSession{Namespace: space, ID: one.id, TTL: one.ttl})
		ask.Session = one.id
		w.later(w.now+one.ttl/3, func() { w.renew(one) })
	} else if ask.TTL = one.ttl; one.ttl == 0 {
		ask.TTL, ask.Pick = leasehold.DefaultTTL, core.TTLUnattended
	}
	answer := w.do(ask)
	if answer.Waiter != nil {
		one.forecast = *answer.Waiter
		if !one.renewed {
			w.later(w.now+10*time.Second, func() { w.stay(one, ask) })
		}
	}
}

// stay shows that somebody still waits, who has no session.
func (w *world) stay(one *worker, ask *core.Acquire) {
	if !one.granted && !one.over {
		w.do(ask)
		w.later(w.now+10*time.Second, func() { w.stay(one, ask) })
	}
}

// begin lets a job work, until it is done or its host dies.
func (w *world) begin(one *worker) {
	one.granted, one.began = true, w.now
	if waited := w.now - one.queued; one.forecast.ID != "" && one.forecast.Forecast == 0 {
		w.unsaid++
	} else if one.forecast.ID != "" {
		off := (waited - one.forecast.Forecast).Abs()
		w.errors = append(w.errors, off)
		if off <= one.forecast.ForecastError {
			w.within++
		}
	}
	if one.crash != 0 {
		w.later(w.now+one.crash, func() {
			one.dead = !one.over
		})
		return
	}
	w.later(w.now+one.takes, func() { w.finish(one) })
}

// finish gives back what a job had.
func (w *world) finish(one *worker) {
	if one.over {
		return
	}
	one.over = true
	w.do(&core.Release{Namespace: space, ID: one.id})
	if one.renewed {
		w.do(&core.CloseSession{Namespace: space, ID: one.id})
	}
}

// ended notes that time ended a lease.
func (w *world) ended(one *worker) {
	one.over = true
	if !one.dead {
		w.cut++
		return
	}
	into := &w.silent
	if one.renewed {
		into = &w.crashed
	}
	into.crashes++
	into.lost += w.now - one.began - one.crash
}

// renew renews a session, and does so again after a third of its TTL; later, if its host pauses.
func (w *world) renew(one *worker) {
	if one.over || one.dead {
		return
	}
	// The pause begins in the middle of the work, when a renewal would be due.
	if one.pause != 0 && one.granted && w.now >= one.began+one.takes/2 {
		pause := one.pause
		one.pause = 0
		w.later(w.now+pause, func() { w.renew(one) })
		return
	}
	if one.granted {
		w.renewals++
	}
	w.do(&core.RenewSession{Namespace: space, ID: one.id})
	w.later(w.now+one.ttl/3, func() { w.renew(one) })
}

// percentile returns what so many percent of the forecasts were not further off than.
func (f *figures) percentile(percent int) time.Duration {
	if len(f.errors) == 0 {
		return 0
	}
	return f.errors[(len(f.errors)-1)*percent/100]
}

// An event is something that happens at a moment; of several at the same one, the first that was thought of.
type event struct {
	at    time.Duration
	order int
	do    func()
}

type events []event

func (e events) Len() int { return len(e) }
func (e events) Less(i, j int) bool {
	return cmp.Or(cmp.Compare(e[i].at, e[j].at), e[i].order-e[j].order) < 0
}
func (e events) Swap(i, j int) { e[i], e[j] = e[j], e[i] }
func (e *events) Push(x any)   { *e = append(*e, x.(event)) }

func (e *events) Pop() any {
	last := (*e)[len(*e)-1]
	*e = (*e)[:len(*e)-1]
	return last
}
