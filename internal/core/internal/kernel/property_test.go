package kernel_test

import (
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/leasehold/leasehold"
	"github.com/leasehold/leasehold/internal/core"
)

var (
	seeds    = flag.Int("seeds", defaultSeeds, "random logs to try")
	seedFrom = flag.Uint64("seed", 1, "the first seed")
	length   = flag.Int("length", 300, "commands in each random log")
)

// forEachSeed gives the random log of each seed to a judge, who says what is wrong with it. What fails is told as a
// story, as short as it could be made.
func forEachSeed(t *testing.T, short bool, wrong func(seed uint64, j journal) error) {
	t.Helper()
	forEachLog(t, logs(short), drawn, wrong)
}

// logs is how many random logs there are for a judge.
func logs(short bool) int {
	if short {
		return max(1, *seeds/5)
	}
	return *seeds
}

func forEachLog(t *testing.T, logs int, draw func(seed uint64) journal, wrong func(seed uint64, j journal) error) {
	t.Helper()
	t.Parallel()
	for i := range uint64(logs) {
		seed := *seedFrom + i
		j := draw(seed)
		if err := wrong(seed, j); err != nil {
			j, err = shortest(j, err, func(j journal) error { return wrong(seed, j) })
			t.Fatalf("seed %d: %v\n%v", seed, err, j)
		}
	}
}

// journals has the logs that were drawn, by seed: each is drawn once, for all judges.
var journals sync.Map

// drawn returns the log of a seed. Others read it, too, so that nobody may change it.
func drawn(seed uint64) journal {
	draw := sync.OnceValue(func() journal {
		j := writeJournal(*length, seeded(seed))
		for i := range j {
			j[i].commands = slices.Clip(j[i].commands) // who appends to them gets a copy
		}
		return j
	})
	once, _ := journals.LoadOrStore(seed, draw)
	return once.(func() journal)()
}

// shortest leaves out whatever the failure does not need.
func shortest(j journal, failure error, wrong func(journal) error) (journal, error) {
	try := func(shorter journal) bool {
		err := wrong(shorter)
		if err != nil {
			j, failure = shorter, err
		}
		return err != nil
	}
	for size := len(j) / 2; size > 0; size /= 2 {
		for i := 0; i+size <= len(j); {
			if !try(slices.Concat(j[:i], j[i+size:])) {
				i += size
			}
		}
	}
	for i := range j {
		for n := 0; n < len(j[i].commands); {
			shorter := slices.Clone(j)
			shorter[i].commands = slices.Concat(j[i].commands[:n], j[i].commands[n+1:])
			if !try(shorter) {
				n++
			}
		}
	}
	return j, failure
}

// A replica is a state that is fed a log.
type replica struct {
	*core.State
	applied int
}

// apply checks the invariants now and then, since that takes longer than all the rest;
// a failure that is made short is found after any entry.
func (r *replica) apply(e entry) (core.Result, error) {
	r.applied++
	if err := r.restore(e); err != nil {
		return core.Result{}, err
	}
	result, err := r.Apply(stampOf(e.stamp), wallOf(e.stamp), e.commands, e.askers())
	if err == nil && (r.applied < 20 || r.applied%8 == 0) {
		err = r.Check()
	}
	if err != nil {
		return result, fmt.Errorf("at %v: %w", e.stamp, err)
	}
	return result, nil
}

// TestModelAgrees asks the dumb model what each command should come to, what should
// happen, and what is to be seen of every resource after each entry.
func TestModelAgrees(t *testing.T) {
	forEachSeed(t, testing.Short(), func(_ uint64, j journal) error { return againstModel(j) })
}

func againstModel(j journal) error {
	state, m := &replica{State: core.NewAt(core.NewestLevel)}, &model{}
	for _, e := range j {
		result, err := state.apply(e)
		if err != nil {
			return err
		}
		if e.restore != nil {
			m.restore(e.restore)
		}
		answers := m.apply(stampOf(e.stamp), e.commands)
		for i, a := range result.Answers {
			if got := answerText(a); got != answers[i] {
				return fmt.Errorf("at %v, %s\n answered: %s\n expected: %s", e.stamp, writeCommand(e.commands[i]), got, answers[i])
			}
		}
		if got := eventTexts(result.Events); !slices.Equal(got, m.events) {
			return fmt.Errorf("at %v\n happened: %s\n expected: %s", e.stamp, strings.Join(got, "; "), strings.Join(m.events, "; "))
		}
		if err := sameSight(state.State, m); err != nil {
			return fmt.Errorf("after %v: %w", e.stamp, err)
		}
	}
	return nil
}

// sameSight compares what can be read.
func sameSight(state *core.State, m *model) error {
	view := state.View(0)
	for _, r := range m.resources {
		got, want := statusText(view.Status(r.sp.name, r.path, 1000), state), m.status(r.sp, r.path)
		if got != want {
			return fmt.Errorf("\n to be seen: %s\n   expected: %s", got, want)
		}
	}
	if err := sameRecords(view, m); err != nil {
		return err
	}
	if err := sameAlarms(view, m); err != nil {
		return err
	}
	at, ok := trulyDue(state)
	d, expected := m.due()
	if at != d.at || ok != expected {
		return fmt.Errorf("due at %v, expected at %v", time.Duration(at-start), time.Duration(d.at-start))
	}
	return nil
}

// answerText says of an answer what the model says of it.
func answerText(a core.Answer) string {
	if r := a.Record; r != nil && (a.Lease != nil || a.Waiter != nil) {
		a.Record = nil
		return recordText(r) + "; " + answerText(a)
	}
	switch {
	case a.Err != nil && a.Err.Code == leasehold.Held:
		return fmt.Sprintf("held (%s) waiting %d place %d forecast %v", inTheWay(a.Err.Lease), a.Err.Waiting, a.Err.Position, a.Err.Forecast)
	case a.Err != nil:
		return a.Err.Code.String() + cycleText(a.Err.Cycle)
	case a.Lease != nil:
		text := leaseText(a.Lease)
		for _, l := range a.Also {
			text += "; " + leaseText(&l)
		}
		return text
	case a.Definition != nil:
		return fmt.Sprintf("definition %+v", *a.Definition)
	case a.Waiter != nil:
		return fmt.Sprintf("waits %s %s slots %d place %d forecast %v", a.Waiter.ID, a.Waiter.Holder, a.Waiter.Slots, a.Waiter.Position, a.Waiter.Forecast)
	case a.Session != nil:
		return fmt.Sprintf("session %s left %v has %d touched %d %q",
			a.Session.ID, a.Session.Remaining, a.Session.Claims, a.Session.Interventions, a.Session.Intervened)
	}
	switch {
	case a.Record != nil:
		return recordText(a.Record)
	case a.Txn != nil:
		return txnText(a.Txn)
	}
	return "done"
}

func inTheWay(l *leasehold.Lease) string {
	switch {
	case l == nil:
		return "free"
	case l.State == leasehold.Leased || l.State == leasehold.Breaking:
		return leaseText(l)
	}
	return "rest after " + l.ID
}

func cycleText(cycle []leasehold.Wait) (text string) {
	for _, w := range cycle {
		text += fmt.Sprintf(" %s>%s", w.Holder, w.Resource)
	}
	return text
}

func leaseText(l *leasehold.Lease) string {
	if l.State == leasehold.Broken {
		return fmt.Sprintf("broken %s token %d", l.ID, l.Token)
	}
	after := ""
	if l.After != nil {
		after = l.After.ID
	}
	return fmt.Sprintf("%v %s %s token %d floor %d slots %d units %v after %q left %v touched %d foreign %q note %q",
		l.State, l.ID, l.Holder, l.Token, l.Floor, l.Slots, l.Units, after, l.Remaining, l.Interventions, l.Foreign, l.Note)
}

func eventTexts(events []*leasehold.Event) (texts []string) {
	for _, e := range events {
		texts = append(texts, fmt.Sprintf("%s %d.%d %s", e.Namespace, e.Revision, e.N, eventText(e)))
	}
	return texts
}

func eventText(e *leasehold.Event) string {
	switch e.Kind {
	case leasehold.Acquired, leasehold.Changed, leasehold.BreakSet, leasehold.Asked:
		return fmt.Sprintf("%v %s token %d", e.Kind, e.ID, e.Token)
	case leasehold.Ended:
		return fmt.Sprintf("ended %s token %d %v", e.ID, e.Token, e.How)
	case leasehold.Left:
		return fmt.Sprintf("left %s %v", e.ID, e.How)
	case leasehold.SessionEnded:
		return fmt.Sprintf("session ended %s %v", e.Session, e.How)
	case leasehold.SessionOpened:
		return "session opened " + e.Session
	case leasehold.RecordPut:
		return "put " + pathValue(e.Record) + " after " + pathValue(e.Previous)
	case leasehold.Alarmed, leasehold.AlarmCleared:
		return fmt.Sprintf("%v %v", e.Kind, e.Alarm)
	case leasehold.RecordDeleted:
		return fmt.Sprintf("deleted %s %d", pathValue(e.Previous), e.How)
	}
	if e.Kind == leasehold.Defined || e.Kind == leasehold.Undefined {
		return fmt.Sprintf("%v %s", e.Kind, e.Resource)
	}
	return fmt.Sprintf("%v %s", e.Kind, e.ID)
}

func statusText(s leasehold.Status, state *core.State) string {
	held, queue, last := "", "", ""
	for _, l := range s.Holders {
		held += leaseText(&l) + ";"
	}
	for _, w := range s.Queue {
		queue += fmt.Sprintf(" %s %q", w.ID, w.Foreign)
	}
	if s.Last != nil {
		last = fmt.Sprintf(" last %s token %d %v foreign %q ttl %v", s.Last.ID, s.Last.Token, s.Last.How, s.Last.Foreign, s.Last.TTL)
	}
	rests := time.Duration(0)
	if !s.AvailableAt.IsZero() {
		rests = s.AvailableAt.Sub(epoch) - time.Duration(state.Now()-start)
	}
	units, unacknowledged := "", ""
	for _, u := range slices.SortedFunc(slices.Values(s.Units), func(a, b leasehold.Unit) int { return strings.Compare(a.Name, b.Name) }) {
		units += fmt.Sprintf(" %s:%s:%s:%v", u.Name, u.Lease, u.Holder, u.Rests)
	}
	if s.Unacknowledged != nil {
		unacknowledged = " unacknowledged " + s.Unacknowledged.ID
	}
	return fmt.Sprintf("%s/%s %v %d of %d by %d [%s] units%s rests %v%s queue%s%s usual %s",
		s.Namespace, s.Resource, s.State, s.Used, s.Capacity, s.Holding, held, units, rests, unacknowledged, queue, last, usualText(s.Usual))
}

// TestReplicasAgree feeds the same log to three replicas, one of which is put together
// anew from its records now and then. They must be the same byte for byte, and what was
// frozen must stay as it was.
func TestReplicasAgree(t *testing.T) {
	forEachSeed(t, testing.Short(), func(seed uint64, j journal) error { return againstReplicas(t, seed, j) })
}

func againstReplicas(t *testing.T, seed uint64, j journal) error {
	chance := rand.New(rand.NewPCG(seed, 2))
	one, two := &replica{State: core.NewAt(core.NewestLevel)}, &replica{State: core.NewAt(core.NewestLevel)}
	var frozen []*core.State
	var texts, sights []string
	for _, e := range j {
		a, err := one.apply(e)
		if err != nil {
			return err
		}
		b, err := two.apply(e)
		if err != nil {
			return err
		}
		if !reflect.DeepEqual(a, b) {
			return fmt.Errorf("at %v the replicas say\n%s\n%s", e.stamp, renderAny(a), renderAny(b))
		}
		if chance.IntN(60) > 0 {
			continue
		}
		text := render(one.State)
		if text != render(two.State) {
			return fmt.Errorf("at %v the replicas have\n%s\n%s", e.stamp, text, render(two.State))
		}
		frozen, texts, sights = append(frozen, one.Freeze()), append(texts, text), append(sights, sight(one.State))
		two.State = reloaded(t, two.State)
	}
	for i, f := range frozen {
		if render(f) != texts[i] || sight(f) != sights[i] {
			return fmt.Errorf("what was frozen has changed from\n%s\nto\n%s", texts[i], render(f))
		}
	}
	if render(one.State) != render(two.State) {
		return fmt.Errorf("at the end the replicas have\n%s\n%s", render(one.State), render(two.State))
	}
	return nil
}

// sight is what can be seen of all resources.
func sight(s *core.State) (text string) {
	view := s.View(0)
	for _, namespace := range view.Namespaces() {
		list, _ := view.List(namespace, "", "", 1000, true)
		for _, status := range list {
			text += renderAny(view.Status(namespace, status.Resource, 1000)) + "\n"
		}
	}
	for _, namespace := range view.Namespaces() {
		page, _ := view.Records(namespace, core.RecordQuery{})
		text += renderAny(page) + "\n"
	}
	return text + renderAny(view.Counts())
}

// TestCalendarDecidesNothing feeds the same log to replicas whose leaders had quite
// different calendars: only what is shown of the calendar may differ.
func TestCalendarDecidesNothing(t *testing.T) {
	forEachSeed(t, testing.Short(), func(seed uint64, j journal) error {
		chance := rand.New(rand.NewPCG(seed, 3))
		one, two := &replica{State: core.NewAt(core.NewestLevel)}, &replica{State: core.NewAt(core.NewestLevel)}
		for _, e := range j {
			if err := errors.Join(one.restore(e), two.restore(e)); err != nil {
				return err
			}
			a, err := one.Apply(stampOf(e.stamp), wallOf(e.stamp), e.commands)
			if err != nil {
				return err
			}
			b, err := two.Apply(stampOf(e.stamp), chance.Int64N(1<<60), e.commands)
			if err != nil {
				return err
			}
			if !slices.Equal(eventTexts(a.Events), eventTexts(b.Events)) {
				return fmt.Errorf("at %v different things happened", e.stamp)
			}
			for i := range a.Answers {
				if answerText(a.Answers[i]) != answerText(b.Answers[i]) {
					return fmt.Errorf("at %v, %s: %s or %s", e.stamp, writeCommand(e.commands[i]), answerText(a.Answers[i]), answerText(b.Answers[i]))
				}
			}
		}
		return nil
	})
}

// TestStoriesSayTheCommands makes sure that a log which fails can be told: what is
// written of a command must be read as that command.
func TestStoriesSayTheCommands(t *testing.T) {
	for _, e := range writeJournal(2000, seeded(*seedFrom)) {
		for _, c := range e.commands {
			again, err := parseCommand(writeCommand(c))
			if err != nil || !reflect.DeepEqual(again, c) {
				t.Fatalf("%s is read as %s: %v", writeCommand(c), writeCommand(again), err)
			}
		}
	}
}
