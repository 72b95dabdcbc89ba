package kernel_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/leasehold/leasehold"
	"github.com/leasehold/leasehold/internal/core"
)

// restoredFrom is the state with which a cluster begins that has nothing but a backup.
func restoredFrom(backup *core.State, how core.Restoration) (*core.State, error) {
	state, err := core.Restore(copies(backup.Freeze()))
	if err != nil {
		return nil, err
	}
	if _, err := state.FromBackup(how); err != nil {
		return nil, err
	}
	return state, nil
}

// restore does what an entry asks for before its commands.
func (r *replica) restore(e entry) (err error) {
	if e.restore != nil {
		r.State, err = restoredFrom(r.State, *e.restore)
	}
	if err == nil && e.raise && r.Level() < nextLevel {
		err = r.Raise(nextLevel)
	}
	return err
}

func writeRestore(r *core.Restoration) string {
	quarantine := ""
	if r.Quarantine >= 0 {
		quarantine = "quarantine=" + r.Quarantine.String()
	}
	return strings.TrimSpace("restore " + quarantine)
}

func (t *teller) restore(p *phrase) {
	how := core.Restoration{Quarantine: -1, Above: p.number("above")}
	if _, said := p.options["quarantine"]; said {
		how.Quarantine = p.duration("quarantine")
	}
	backup := t.backup
	if backup == nil {
		backup = t.state
	}
	state, err := restoredFrom(backup, how)
	if err != nil {
		t.say("%v", err)
		return
	}
	t.state, t.now = state, time.Duration(state.Now()-start)
	r, _ := state.Restored()
	t.say("at %s, tokens and revisions above %d, quarantine %s", short(t.now), r.Base, short(r.Quarantine))
	if err := t.check(); err != nil {
		t.say("BUT %v", err)
	}
}

// What the model says of a restore.

func (m *model) restore(r *core.Restoration) {
	m.quarantine = r.Quarantine
	if r.Quarantine < 0 {
		m.quarantine = m.longest()
	}
	known, old := m.base, m.base
	for _, sp := range m.spaces {
		known = max(known, uint64(sp.token), uint64(sp.revision))
	}
	for m.base <= known {
		m.base += 1 << 40
	}
	m.resumes, m.resumed = 0, false
	for _, sp := range m.spaces {
		sp.token, sp.revision = leasehold.Token(m.base), int(m.base)
	}
	for _, s := range m.sessions {
		s.before, s.touched = m.base, nil
	}
	m.past = slices.DeleteFunc(m.past, func(p modelPast) bool { return uint64(p.revision) < old })
}

// longest is how long a lease from before may still be alive.
func (m *model) longest() (d time.Duration) {
	if m.quarantined() {
		d = m.quarantine
		if m.resumes != 0 {
			d = time.Duration(m.resumes - m.now)
		}
	}
	for _, c := range m.claims {
		d = max(d, c.ttl)
	}
	for _, s := range m.sessions {
		d = max(d, s.ttl)
	}
	return d
}

func (m *model) quarantined() bool {
	return m.base != 0 && !m.resumed && (m.resumes == 0 || m.now < m.resumes)
}

func (m *model) endQuarantine(c *core.EndQuarantine) modelAnswer {
	switch {
	case c.Reason == "":
		return modelAnswer{text: "invalid"}
	case c.Base != 0 && c.Base != uint64(m.base):
		return modelAnswer{text: "refused"}
	case m.quarantined():
		m.resumes = m.now
	}
	return modelAnswer{text: "done"}
}

// resume lets everybody have their turn who waited for the end of the quarantine.
func (m *model) resume() {
	m.resumed = true
	var places []modelPlace
	for _, c := range m.claims {
		if place := (modelPlace{c.sp, c.resource}); c.token == 0 && !slices.Contains(places, place) {
			places = append(places, place)
		}
	}
	slices.SortFunc(places, func(a, b modelPlace) int {
		if a.sp != b.sp {
			return strings.Compare(a.sp.name, b.sp.name)
		}
		return strings.Compare(a.path, b.path)
	})
	for _, p := range places {
		m.stir(p.sp, p.path)
	}
}

// What a witness knows of a restore.

func (w *witness) restores(state *replica, e entry) error {
	if e.restore == nil {
		return nil
	}
	if err := state.restore(e); err != nil {
		return err
	}
	r, _ := state.Restored()
	if leasehold.Token(r.Base) <= w.base {
		return fmt.Errorf("tokens are above %d after a restore, and were above %d before", r.Base, w.base)
	}
	for namespace, token := range w.tokens {
		if leasehold.Token(r.Base) <= token {
			return fmt.Errorf("tokens are above %d after a restore, and %s had %d", r.Base, namespace, token)
		}
	}
	w.base, w.quarantine, w.resumes, w.waits = leasehold.Token(r.Base), r.Quarantine, forever, true
	return nil
}

// quarantined notes what a command means for the quarantine.
func (w *witness) quarantined(c core.Command, answer core.Answer) {
	switch c.(type) {
	case *core.Lead:
		if w.resumes == forever {
			w.resumes = w.now + core.Time(w.quarantine)
		}
	case *core.EndQuarantine:
		if answer.Err == nil && w.base != 0 {
			w.resumes = min(w.resumes, w.now)
		}
	case *core.Tick:
		w.waits = w.waits && w.now < w.resumes
	}
}

// A guard is a store that outlives the clusters whose holders write to it.
type guard struct {
	seen   map[string]leasehold.Token    // the largest of each namespace
	events map[string]leasehold.Revision // and the newest that a watcher saw
}

func newGuard() *guard {
	return &guard{map[string]leasehold.Token{}, map[string]leasehold.Revision{}}
}

// see takes what happened in a cluster, and refuses what another one may have told
// somebody already.
func (g *guard) see(other *guard, events []*leasehold.Event) error {
	for _, e := range events {
		if e.Kind == leasehold.Acquired && e.Token <= other.seen[e.Namespace] {
			return fmt.Errorf("%s: token %d is granted again, up to %d were seen", e.Namespace, e.Token, other.seen[e.Namespace])
		}
		if e.Revision <= other.events[e.Namespace] {
			return fmt.Errorf("%s: there is another event at %d, where a watcher was at %d", e.Namespace, e.Revision, other.events[e.Namespace])
		}
		g.events[e.Namespace] = max(g.events[e.Namespace], e.Revision)
		if e.Kind == leasehold.Acquired || e.Kind == leasehold.Changed {
			g.seen[e.Namespace] = max(g.seen[e.Namespace], e.Token)
		}
	}
	return nil
}

// twoLives lets a cluster go on after a backup, and then another one from that backup:
// nothing of what the first granted and told may come again, in no namespace, and a
// watcher of the first is told that its place is gone.
func twoLives(j journal) error {
	for i := range j {
		j[i].restore = nil
	}
	third := len(j) / 3
	first := &replica{State: core.NewAt(core.NewestLevel)}
	saw, nothing, forgotten := newGuard(), newGuard(), map[string]bool{}
	forget := func(s *core.State) {
		for _, namespace := range s.View(0).Forgot() {
			forgotten[namespace] = true
		}
	}
	for _, e := range j[:third] {
		result, err := first.apply(e)
		forget(first.State)
		if err == nil {
			err = saw.see(nothing, result.Events)
		}
		if err != nil {
			return err
		}
	}
	backup := first.Freeze()
	atBackup := func(namespace string) leasehold.Revision { return backup.View(0).History(namespace).Revision }
	for _, e := range j[third : 2*third] {
		result, err := first.apply(e)
		if err == nil {
			err = saw.see(nothing, result.Events)
		}
		if err != nil {
			return err
		}
	}
	second, err := restoredFrom(backup, core.Restoration{Quarantine: time.Second})
	if err != nil {
		return err
	}
	granted := newGuard()
	for i, e := range j[2*third:] {
		commands := e.commands
		if i == 0 {
			commands = append([]core.Command{&core.Lead{Node: 9}}, commands...)
		}
		result, err := second.Apply(stampOf(e.stamp), wallOf(e.stamp), commands)
		if err == nil {
			err = granted.see(saw, result.Events)
		}
		forget(second)
		if err != nil {
			return err
		}
	}
	return watchersAreTold(second, saw, atBackup, forgotten)
}

// watchersAreTold makes sure that who has seen more than the backup never goes on in
// silence, and that who has not misses nothing. Of a namespace that was forgotten nobody knows.
func watchersAreTold(s *core.State, saw *guard, atBackup func(string) leasehold.Revision, forgotten map[string]bool) error {
	for namespace, newest := range saw.events {
		history := s.View(0).History(namespace)
		backup := atBackup(namespace)
		_, known := history.After(newest, core.AllOf)
		if known && newest > backup || !known && newest <= backup && !forgotten[namespace] {
			return fmt.Errorf("%s: a watcher at %d is said to know all: %v; the backup had %d", namespace, newest, known, backup)
		}
		events, known := history.After(backup, core.AllOf)
		if backup != 0 && !forgotten[namespace] && (!known || slices.ContainsFunc(events, func(e *leasehold.Event) bool { return e.Revision <= newest })) {
			return fmt.Errorf("%s: a watcher at %d, where the backup was, does not go on with what happens next", namespace, backup)
		}
	}
	return nil
}

func TestNothingIsGrantedAgainAfterRestore(t *testing.T) {
	forEachSeed(t, testing.Short(), func(_ uint64, j journal) error { return twoLives(slices.Clone(j)) })
}

// TestQuarantineEndsInPieces lets very many wait for its end: no tick does all of it, a
// snapshot between two of them changes nothing, and everybody has their turn.
func TestQuarantineEndsInPieces(t *testing.T) {
	const waiters = 3000
	one, err := restoredFrom(core.NewAt(core.NewestLevel), core.Restoration{Quarantine: 5 * time.Second})
	if err != nil {
		t.Fatal(err)
	}
	commands := []core.Command{&core.Lead{Node: 1}}
	for i := range waiters {
		id := fmt.Sprintf("w%04d", i)
		commands = append(commands, &core.Acquire{Namespace: fmt.Sprint("n", i%3), Resource: id, ID: id, Holder: id, TTL: time.Minute, Wait: time.Minute})
	}
	mustApply(t, one, 0, commands...)
	two := reloaded(t, one)
	granted, ticks := 0, 0
	for at, due := one.Due(); due && at <= stampOf(5*time.Second); at, due = one.Due() {
		a := mustApply(t, one, 5*time.Second, &core.Tick{})
		b := mustApply(t, two, 5*time.Second, &core.Tick{})
		if !slices.Equal(eventTexts(a.Events), eventTexts(b.Events)) {
			t.Fatal("a replica from a snapshot grants to others")
		}
		if len(a.Events) > 1100 {
			t.Fatalf("one tick made %d grants", len(a.Events))
		}
		granted, ticks = granted+len(a.Events), ticks+1
		mustBeSound(t, one)
		two = reloaded(t, two)
		if render(one) != render(two) {
			t.Fatal("the replicas differ")
		}
		if ticks > 100 {
			t.Fatal("it never ends")
		}
	}
	if r, _ := one.Restored(); granted != waiters || ticks < 3 || !r.Over {
		t.Errorf("%d of %d were granted in %d ticks, over: %v", granted, waiters, ticks, r.Over)
	}
}

func mustApply(t *testing.T, s *core.State, at time.Duration, commands ...core.Command) core.Result {
	t.Helper()
	result, err := s.Apply(stampOf(at), wallOf(at), commands)
	if err != nil {
		t.Fatal(err)
	}
	return result
}

// TestTokensRunOut: there is room for thousands of restores, and then an error, not a
// token that no reader of JSON can tell from the next.
func TestTokensRunOut(t *testing.T) {
	s := core.NewAt(core.NewestLevel)
	if _, err := s.FromBackup(core.Restoration{Above: uint64(leasehold.MaxToken) - 1<<41}); err != nil {
		t.Fatal(err)
	}
	if _, err := s.FromBackup(core.Restoration{}); err == nil || !strings.Contains(err.Error(), "none left") {
		t.Errorf("restored beyond the largest token: %v", err)
	}
}

// TestRestoredPieceMustMakeSense refuses pieces that no state has written.
func TestRestoredPieceMustMakeSense(t *testing.T) {
	for name, bad := range map[string][]core.Restored{
		"twice":           {{Base: 1 << 40}, {Base: 1 << 40}},
		"no base":         {{}},
		"a crooked base":  {{Base: 1<<40 + 1}},
		"a base too high": {{Base: 1 << 53}},
		"below zero":      {{Base: 1 << 40, Quarantine: -1}},
		"over and not":    {{Base: 1 << 40, Over: true, Space: "default"}},
	} {
		_, err := core.Restore(func(yield func(core.Piece, error) bool) {
			more := yield(core.Piece{Value: &core.Head{Level: core.NewestLevel}}, nil)
			for i := 0; more && i < len(bad); i++ {
				more = yield(core.Piece{Value: &bad[i]}, nil)
			}
		})
		if err == nil || errors.Is(err, errors.ErrUnsupported) {
			t.Errorf("%s: it is taken", name)
		}
	}
}
