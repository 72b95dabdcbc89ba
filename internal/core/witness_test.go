package core_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/leasehold/leasehold"
	"github.com/leasehold/leasehold/internal/core"
)

// A witness watches a log from outside, knows the promises, and nothing of how they
// are kept: it sees commands, answers and events, and remembers what was promised.
type witness struct {
	tokens   map[string]leasehold.Token // the largest of each namespace
	places   map[named]*witnessed       // by namespace and path
	claims   map[named]*promise         // that hold or wait, by namespace and id
	ended    map[named]core.Time        // ids that ended, and when
	sessions map[named]core.Time        // that are open, and when they end at the earliest
	now      core.Time
}

type witnessed struct {
	holder string
	queue  []string
	breaks core.Time // when the lease on it will be broken
	rests  core.Time // it may not be granted before
}

// A promise is what is known of a claim.
type promise struct {
	place   named
	session string
	token   leasehold.Token
	grace   time.Duration
	limit   time.Duration

	priority int // while it waits

	until core.Time // it does not end by time before
	hard  core.Time // it ends then, whatever is renewed; 0: no such moment
}

func newWitness() *witness {
	return &witness{
		tokens: map[string]leasehold.Token{}, places: map[named]*witnessed{}, claims: map[named]*promise{},
		ended: map[named]core.Time{}, sessions: map[named]core.Time{},
	}
}

// TestPromises lets a witness watch random logs, command by command.
func TestPromises(t *testing.T) {
	forEachSeed(t, func(_ uint64, j journal) error {
		state, w := &replica{State: core.New()}, newWitness()
		for _, e := range j {
			for _, c := range e.commands {
				result, err := state.apply(entry{e.stamp, []core.Command{c}})
				if err != nil {
					return err
				}
				if err := w.see(stampOf(e.stamp), c, result); err != nil {
					return fmt.Errorf("at %v, %s: %w", e.stamp, writeCommand(c), err)
				}
				if err := w.look(c, state.State); err != nil {
					return fmt.Errorf("after %v, %s: %w", e.stamp, writeCommand(c), err)
				}
			}
		}
		return nil
	})
}

// forever is the end of what does not end by time.
const forever = core.Time(1 << 62)

func momentOf(t time.Time) core.Time {
	if t.IsZero() {
		return forever
	}
	return stampOf(t.Sub(epoch))
}

func (w *witness) place(p named) *witnessed {
	if w.places[p] == nil {
		w.places[p] = &witnessed{}
	}
	return w.places[p]
}

func (w *witness) see(stamp core.Time, c core.Command, result core.Result) error {
	w.now = stamp
	mustLive := w.renews(c)
	for _, e := range result.Events {
		if err := w.event(c, e); err != nil {
			return fmt.Errorf("%s: %w", tellEvent(e), err)
		}
	}
	answer := result.Answers[0]
	if mustLive && answer.Err != nil {
		return fmt.Errorf("a renewal in time was ignored: %s", answer.Err.Message)
	}
	if answer.Session != nil {
		w.sessions[named{answer.Session.Namespace, answer.Session.ID}] = w.now + core.Time(answer.Session.Remaining)
	}
	if l := answer.Lease; l != nil && (l.State == leasehold.Leased || l.State == leasehold.Breaking) {
		return w.promised(l)
	}
	return nil
}

// renews tells whether a command is a renewal that may not be ignored.
func (w *witness) renews(c core.Command) bool {
	switch c := c.(type) {
	case *core.Renew:
		p := w.claims[named{c.Namespace, c.ID}]
		return p != nil && p.token != 0 && w.now < p.until
	case *core.RenewSession:
		until, open := w.sessions[named{c.Namespace, c.ID}]
		return open && w.now < until
	}
	return false
}

// promised notes what an answer promises, and that it does not promise too much.
func (w *witness) promised(l *leasehold.Lease) error {
	p := w.claims[named{l.Namespace, l.ID}]
	if p == nil || p.token != l.Token {
		return fmt.Errorf("lease %s is shown as held with token %d, but was not granted so", l.ID, l.Token)
	}
	until := forever
	if !l.Expires.IsZero() {
		until = w.now + core.Time(l.Remaining)
	}
	if until <= w.now {
		return fmt.Errorf("lease %s is shown as held, with nothing left", l.ID)
	}
	if p.hard != 0 && until > p.hard {
		return fmt.Errorf("lease %s is promised %v beyond its limit or its break", l.ID, time.Duration(until-p.hard))
	}
	p.until = until
	return nil
}

func (w *witness) event(c core.Command, e *leasehold.Event) error {
	switch e.Kind {
	case leasehold.SessionOpened:
		w.sessions[named{e.Namespace, e.Session}] = momentOf(e.Until)
	case leasehold.SessionEnded:
		return w.sessionEnded(e)
	case leasehold.Queued:
		return w.begins(c, e)
	case leasehold.Acquired:
		return w.acquired(c, e)
	case leasehold.Changed:
		return w.changed(e)
	case leasehold.BreakSet:
		return w.breakSet(e)
	case leasehold.Ended, leasehold.Left:
		return w.ends(e)
	case leasehold.Moved:
		return w.moved(c, e)
	}
	return nil
}

func (w *witness) sessionEnded(e *leasehold.Event) error {
	session := named{e.Namespace, e.Session}
	until := w.sessions[session]
	delete(w.sessions, session)
	if e.How == leasehold.SessionExpired && w.now < until {
		return fmt.Errorf("it was to last for another %v", time.Duration(until-w.now))
	}
	return nil
}

// begins notes a claim that was not there before.
func (w *witness) begins(c core.Command, e *leasehold.Event) error {
	a, ok := c.(*core.Acquire)
	if !ok || a.ID != e.ID || a.Namespace != e.Namespace {
		return fmt.Errorf("nobody asked for it")
	}
	id := named{e.Namespace, e.ID}
	if w.remembers(id) {
		return fmt.Errorf("its id ended %v ago", time.Duration(w.now-w.ended[id]))
	}
	w.claims[id] = &promise{place: named{e.Namespace, e.Resource}, session: e.Session, grace: a.Grace, limit: a.HoldLimit}
	if e.Kind == leasehold.Queued {
		w.claims[id].priority = a.Priority
		w.stands(id)
	}
	return nil
}

// stands puts a waiter in its queue, behind those of its priority.
func (w *witness) stands(id named) {
	claim := w.claims[id]
	p := w.place(claim.place)
	i := slices.IndexFunc(p.queue, func(other string) bool { return w.claims[named{id.namespace, other}].priority < claim.priority })
	if i < 0 {
		i = len(p.queue)
	}
	p.queue = slices.Insert(p.queue, i, id.id)
}

// moved puts a waiter where an operator wants it.
func (w *witness) moved(c core.Command, e *leasehold.Event) error {
	m, ok := c.(*core.Move)
	if !ok || m.ID != e.ID || m.Namespace != e.Namespace {
		return fmt.Errorf("nobody moved it")
	}
	id := named{e.Namespace, e.ID}
	p := w.place(w.claims[id].place)
	p.queue = slices.DeleteFunc(p.queue, func(other string) bool { return other == e.ID })
	w.claims[id].priority = m.Priority
	w.stands(id)
	return nil
}

// remembers tells whether an id ended so lately that it can not be used.
func (w *witness) remembers(id named) bool {
	at, over := w.ended[id]
	return over && w.now < at+core.Time(10*time.Minute)
}

func (w *witness) acquired(c core.Command, e *leasehold.Event) error {
	id, p := named{e.Namespace, e.ID}, w.place(named{e.Namespace, e.Resource})
	waited := slices.Contains(p.queue, e.ID)
	switch {
	case p.holder != "":
		return fmt.Errorf("it is held by %s", p.holder)
	case w.now < p.rests:
		return fmt.Errorf("it rests for another %v", time.Duration(p.rests-w.now))
	case waited && p.queue[0] != e.ID, !waited && len(p.queue) > 0:
		return fmt.Errorf("it was the turn of %s", p.queue[0])
	case e.Token <= w.tokens[e.Namespace]:
		return fmt.Errorf("token %d was there before", w.tokens[e.Namespace])
	}
	if waited {
		p.queue = p.queue[1:]
	} else if err := w.begins(c, e); err != nil {
		return err
	}
	claim := w.claims[id]
	w.tokens[e.Namespace] = e.Token
	p.holder, p.breaks = e.ID, 0
	claim.token, claim.until = e.Token, momentOf(e.Until)
	if claim.limit != 0 {
		claim.hard = w.now + core.Time(claim.limit)
	}
	return nil
}

func (w *witness) changed(e *leasehold.Event) error {
	p := w.place(named{e.Namespace, e.Resource})
	from, to := named{e.Namespace, p.holder}, named{e.Namespace, e.ID}
	claim := w.claims[from]
	switch {
	case claim == nil:
		return fmt.Errorf("nobody held it")
	case e.Token != claim.token && e.Token <= w.tokens[e.Namespace]:
		return fmt.Errorf("token %d was there before", w.tokens[e.Namespace])
	}
	if from != to {
		if w.remembers(to) || w.claims[to] != nil {
			return fmt.Errorf("its new id was used before")
		}
		delete(w.claims, from)
		w.ended[from] = w.now
	}
	w.tokens[e.Namespace] = max(w.tokens[e.Namespace], e.Token)
	w.claims[to], p.holder, claim.token = claim, e.ID, e.Token
	return nil
}

func (w *witness) breakSet(e *leasehold.Event) error {
	p, claim := w.place(named{e.Namespace, e.Resource}), w.claims[named{e.Namespace, e.ID}]
	at := momentOf(e.Until)
	if p.breaks != 0 && at >= p.breaks {
		return fmt.Errorf("a break that was promised was put off")
	}
	p.breaks = at
	if claim.hard == 0 || at < claim.hard {
		claim.hard = at
	}
	claim.until = min(claim.until, at)
	return nil
}

func (w *witness) ends(e *leasehold.Event) error {
	id, p := named{e.Namespace, e.ID}, w.place(named{e.Namespace, e.Resource})
	claim := w.claims[id]
	if claim == nil {
		return fmt.Errorf("it is not there")
	}
	delete(w.claims, id)
	w.ended[id] = w.now
	if e.Kind == leasehold.Left {
		p.queue = slices.DeleteFunc(p.queue, func(other string) bool { return other == e.ID })
		return nil
	}
	byTime := e.How == leasehold.ByTTL || e.How == leasehold.ByHoldLimit || e.How == leasehold.SessionExpired
	switch {
	case p.holder != e.ID:
		return fmt.Errorf("it is held by %q", p.holder)
	case byTime && w.now < claim.until:
		return fmt.Errorf("it was to last for another %v", time.Duration(claim.until-w.now))
	case claim.hard != 0 && claim.hard <= w.now && e.How.Clean():
		return fmt.Errorf("it was over before, by its limit or its break")
	}
	p.holder, p.breaks, p.rests = "", 0, 0
	if !e.How.Clean() {
		// At the earliest it ended when it could, or now.
		p.rests = min(w.now, claim.until) + core.Time(claim.grace)
	}
	return nil
}

// look reads the state and compares it with what was promised.
func (w *witness) look(c core.Command, state *core.State) error {
	for id, claim := range w.claims {
		if _, open := w.sessions[named{id.namespace, claim.session}]; claim.session != "" && !open {
			return fmt.Errorf("%s outlived its session", id.id)
		}
	}
	if _, tick := c.(*core.Tick); !tick {
		return nil
	}
	if at, ok := trulyDue(state); ok && at <= w.now {
		return fmt.Errorf("something is due after a tick")
	}
	for name, p := range w.places {
		if p.breaks != 0 && p.breaks <= w.now {
			return fmt.Errorf("%s was to be broken before", name.id)
		}
		status := state.View(0).Status(name.namespace, name.id, 0)
		if held := len(status.Holders) == 1; held != (p.holder != "") || status.Waiting != len(p.queue) {
			return fmt.Errorf("%s is %v with %d waiting, which is not what happened", name.id, status.State, status.Waiting)
		}
		if p.holder == "" && len(p.queue) > 0 && momentOf(status.AvailableAt) == forever {
			return fmt.Errorf("%s is free, and %s waits for it", name.id, p.queue[0])
		}
	}
	return nil
}
