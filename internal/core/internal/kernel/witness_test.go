package kernel_test

import (
	"cmp"
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
	defined  map[named]leasehold.Definition
	now      core.Time

	base       leasehold.Token // nothing is granted at or below it
	quarantine time.Duration
	resumes    core.Time // nothing is granted before
	waits      bool      // until there was a tick after that, those who wait may not have been noticed
}

type witnessed struct {
	holders []string
	queue   []string
	rests   []witnessedRest
	agreed  int // slots, by the first who shared it
}

// A witnessedRest keeps slots from being granted.
type witnessedRest struct {
	id    string
	slots int       // 0: all
	until core.Time // at the earliest
	over  core.Time // at the latest
}

// A promise is what is known of a claim.
type promise struct {
	place   named
	session string
	token   leasehold.Token
	grace   time.Duration
	limit   time.Duration

	slots    int           // 0: all
	priority int           // while it waits
	asked    *core.Acquire // by which it began

	breaks core.Time // when it will be broken
	until  core.Time // it does not end by time before
	hard   core.Time // it ends then, whatever is renewed; 0: no such moment
}

func newWitness() *witness {
	return &witness{
		tokens: map[string]leasehold.Token{}, places: map[named]*witnessed{}, claims: map[named]*promise{},
		ended: map[named]core.Time{}, sessions: map[named]core.Time{}, defined: map[named]leasehold.Definition{},
	}
}

// TestPromises lets a witness watch random logs, command by command.
func TestPromises(t *testing.T) {
	forEachSeed(t, testing.Short(), func(_ uint64, j journal) error {
		state, w := &replica{State: core.NewAt(core.NewestLevel)}, newWitness()
		for _, e := range j {
			if err := w.restores(state, e); err != nil {
				return err
			}
			for _, c := range e.commands {
				result, err := state.apply(entry{stamp: e.stamp, commands: []core.Command{c}})
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
	w.quarantined(c, result.Answers[0])
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
	leases := answer.Also
	if answer.Lease != nil {
		leases = append(leases, *answer.Lease)
	}
	for _, l := range leases {
		if l.State != leasehold.Leased && l.State != leasehold.Breaking {
			continue
		}
		if err := w.promised(&l); err != nil {
			return err
		}
	}
	return nil
}

// definition is what was defined for a place.
func (w *witness) definition(p named) (longest leasehold.Definition) {
	for at, d := range w.defined {
		if at.namespace == p.namespace && covers(d.Path, p.id) && len(d.Path) > len(longest.Path) {
			longest = d
		}
	}
	return longest
}

// room is how many slots of a place are not taken and do not rest; none if somebody has
// all of them.
func (w *witness) room(p named, rests []witnessedRest) int {
	at, d := w.place(p), w.definition(p)
	room := cmp.Or(len(d.Units), d.Capacity, at.agreed, leasehold.MaxCapacity)
	for _, id := range at.holders {
		if room -= w.claims[named{p.namespace, id}].slots; w.claims[named{p.namespace, id}].slots == 0 {
			return 0
		}
	}
	for _, rest := range rests {
		if room -= rest.slots; rest.slots == 0 {
			return 0
		}
	}
	return room
}

// fits reports whether so many slots of a place may be granted; or, if that is asked,
// whether they surely may.
func (w *witness) fits(p named, slots int, surely bool) bool {
	at := w.place(p)
	at.rests = slices.DeleteFunc(at.rests, func(r witnessedRest) bool { return r.over <= w.now })
	rests := slices.DeleteFunc(slices.Clone(at.rests), func(r witnessedRest) bool { return !surely && r.until <= w.now })
	if slots == 0 {
		return len(at.holders) == 0 && len(rests) == 0
	}
	return w.room(p, rests) >= slots
}

// renews reports whether a command is a renewal that may not be ignored.
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
	// Whoever was promised something that is not over counts; whoever is over may.
	living, all := l.Token, l.Token
	for _, id := range w.place(p.place).holders {
		other := w.claims[named{l.Namespace, id}]
		if all = min(all, other.token); other.until > w.now {
			living = min(living, other.token)
		}
	}
	if l.Floor > living || l.Floor < all || l.Slots != p.slots {
		return fmt.Errorf("lease %s is shown with %d slots and floor %d, not %d and %d to %d", l.ID, l.Slots, l.Floor, p.slots, all, living)
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
		return w.changed(c, e)
	case leasehold.BreakSet:
		return w.breakSet(e)
	case leasehold.Ended, leasehold.Left:
		return w.ends(e)
	case leasehold.Moved:
		return w.moved(c, e)
	case leasehold.Defined:
		before := w.defined[named{e.Namespace, e.Resource}]
		before.Path = e.Resource
		w.defined[named{e.Namespace, e.Resource}] = c.(*core.Define).Over(&before)
	case leasehold.Undefined:
		delete(w.defined, named{e.Namespace, e.Resource})
	case leasehold.Acknowledged:
		p := w.place(named{e.Namespace, e.Resource})
		p.rests = slices.DeleteFunc(p.rests, func(r witnessedRest) bool { return r.id == e.ID })
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
	a := acquireIn(c, e)
	if a == nil || a.Namespace != e.Namespace {
		return fmt.Errorf("nobody asked for it")
	}
	i := slices.IndexFunc(itemsOf(a), func(i core.Item) bool { return i.ID == e.ID && i.Resource == e.Resource })
	if i < 0 {
		return fmt.Errorf("nobody asked for it")
	}
	item, id, place := itemsOf(a)[i], named{e.Namespace, e.ID}, named{e.Namespace, e.Resource}
	if w.remembers(id) {
		return fmt.Errorf("its id ended %v ago", time.Duration(w.now-w.ended[id]))
	}
	claim := &promise{place: place, session: e.Session, grace: a.Grace, limit: a.HoldLimit, slots: item.Slots, asked: a}
	d := w.definition(place)
	if claim.limit == 0 || d.HoldLimit != 0 && d.HoldLimit < claim.limit {
		claim.limit = d.HoldLimit
	}
	if p := w.place(place); item.Slots != 0 && p.agreed == 0 {
		p.agreed = cmp.Or(len(d.Units), d.Capacity, item.Capacity, leasehold.MaxCapacity)
	}
	w.claims[id] = claim
	if e.Kind == leasehold.Queued {
		claim.priority = a.Priority
		w.stands(id)
	}
	return nil
}

// acquireIn finds what asked for what happened: the command, or an operation of it.
func acquireIn(c core.Command, e *leasehold.Event) *core.Acquire {
	var list []*core.Acquire
	switch c := c.(type) {
	case *core.Acquire:
		list = append(list, c)
	case *core.Txn:
		for _, o := range slices.Concat(c.Then, c.Else) {
			if o.Do == core.AcquireLease {
				list = append(list, o.Acquire)
			}
		}
	}
	for _, a := range list {
		if slices.ContainsFunc(itemsOf(a), func(i core.Item) bool { return i.ID == e.ID && i.Resource == e.Resource }) {
			return a
		}
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
	id := named{e.Namespace, e.ID}
	if !ok || m.Namespace != e.Namespace || w.claims[id].asked != w.claims[named{e.Namespace, m.ID}].asked {
		return fmt.Errorf("nobody moved it")
	}
	p := w.place(w.claims[id].place)
	p.queue = slices.DeleteFunc(p.queue, func(other string) bool { return other == e.ID })
	w.claims[id].priority = m.Priority
	w.stands(id)
	return nil
}

// remembers reports whether an id ended so lately that it cannot be used.
func (w *witness) remembers(id named) bool {
	at, over := w.ended[id]
	return over && w.now < at+core.Time(10*time.Minute)
}

func (w *witness) acquired(c core.Command, e *leasehold.Event) error {
	id, place := named{e.Namespace, e.ID}, named{e.Namespace, e.Resource}
	p := w.place(place)
	waited := slices.Contains(p.queue, e.ID)
	if !waited {
		if err := w.begins(c, e); err != nil {
			return err
		}
	}
	claim := w.claims[id]
	switch {
	case !w.fits(place, claim.slots, false):
		return fmt.Errorf("it is held by %v, or rests: %v", p.holders, p.rests)
	case waited && p.queue[0] != e.ID, !waited && !w.mayPass(place, claim):
		return fmt.Errorf("it was the turn of %s", p.queue[0])
	case e.Token <= max(w.base, w.tokens[e.Namespace]):
		return fmt.Errorf("token %d was there before", max(w.base, w.tokens[e.Namespace]))
	case w.now < w.resumes:
		return fmt.Errorf("nothing should be granted before %v", time.Duration(w.resumes-start))
	}
	if waited {
		p.queue = p.queue[1:]
	}
	w.tokens[e.Namespace] = e.Token
	p.holders = append(p.holders, e.ID)
	claim.token, claim.until = e.Token, momentOf(e.Until)
	if claim.limit != 0 {
		claim.hard = w.now + core.Time(claim.limit)
	}
	return nil
}

// mayPass reports whether somebody who did not wait may be granted before those who do.
func (w *witness) mayPass(place named, claim *promise) bool {
	queue := w.place(place).queue
	return len(queue) == 0 || w.claims[named{place.namespace, queue[0]}].priority < claim.asked.Priority
}

func (w *witness) changed(c core.Command, e *leasehold.Event) error {
	p := w.place(named{e.Namespace, e.Resource})
	from, to := named{e.Namespace, c.(*core.Change).ID}, named{e.Namespace, e.ID}
	claim, i := w.claims[from], slices.Index(p.holders, from.id)
	switch {
	case claim == nil || i < 0:
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
	w.claims[to], p.holders[i], claim.token = claim, e.ID, e.Token
	return nil
}

func (w *witness) breakSet(e *leasehold.Event) error {
	claim, at := w.claims[named{e.Namespace, e.ID}], momentOf(e.Until)
	if claim.breaks != 0 && at >= claim.breaks {
		return fmt.Errorf("a break that was promised was put off")
	}
	claim.breaks = at
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
	if len(p.holders)+len(p.queue) == 1 {
		p.agreed = 0
	}
	if e.Kind == leasehold.Left {
		p.queue = slices.DeleteFunc(p.queue, func(other string) bool { return other == e.ID })
		return nil
	}
	byTime := e.How == leasehold.ByTTL || e.How == leasehold.ByHoldLimit || e.How == leasehold.SessionExpired
	switch {
	case !slices.Contains(p.holders, e.ID):
		return fmt.Errorf("it is held by %q", p.holders)
	case byTime && w.now < claim.until:
		return fmt.Errorf("it was to last for another %v", time.Duration(claim.until-w.now))
	case claim.hard != 0 && claim.hard <= w.now && e.How.Clean():
		return fmt.Errorf("it was over before, by its limit or its break")
	}
	p.holders = slices.DeleteFunc(p.holders, func(other string) bool { return other == e.ID })
	if e.How.Clean() {
		return nil
	}
	d := w.definition(claim.place)
	// At the earliest it ended when it could, and at the latest now.
	grace := core.Time(max(claim.grace, d.Grace))
	rest := witnessedRest{e.ID, claim.slots, min(w.now, claim.until) + grace, w.now + grace}
	if d.Unclean == leasehold.AwaitAcknowledgement {
		rest.until, rest.over = forever, forever
	}
	p.rests = append(p.rests, rest)
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
	for id, claim := range w.claims {
		if claim.breaks != 0 && claim.breaks <= w.now {
			return fmt.Errorf("%s was to be broken before", id.id)
		}
	}
	for name, p := range w.places {
		if err := w.lookAt(name, p, state.View(0).Status(name.namespace, name.id, 0)); err != nil {
			return fmt.Errorf("%s: %w", name.id, err)
		}
	}
	return nil
}

func (w *witness) lookAt(name named, p *witnessed, status leasehold.Status) error {
	if status.Holding != len(p.holders) || status.Waiting != len(p.queue) {
		return fmt.Errorf("it is %v with %d waiting, which is not what happened", status.State, status.Waiting)
	}
	if len(p.queue) > 0 && w.turn(name.namespace, p.queue[0]) {
		return fmt.Errorf("it is free, and %s waits for it", p.queue[0])
	}
	owner := map[string]string{}
	for _, l := range status.Holders {
		for _, unit := range l.Units {
			if owner[unit] != "" {
				return fmt.Errorf("%s and %s have unit %s", owner[unit], l.ID, unit)
			}
			owner[unit] = l.ID
		}
	}
	return nil
}

// turn reports whether a waiter should have been granted: wherever it and those with it
// wait, they are the first, and there is room.
func (w *witness) turn(namespace, id string) bool {
	if w.waits {
		return false
	}
	asked := w.claims[named{namespace, id}].asked
	for _, item := range itemsOf(asked) {
		place := named{namespace, item.Resource}
		if queue := w.place(place).queue; len(queue) == 0 || queue[0] != item.ID || !w.fits(place, item.Slots, true) {
			return false
		}
	}
	return true
}
