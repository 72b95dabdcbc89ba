package kernel_test

import (
	"fmt"
	"math/rand/v2"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/leasehold/leasehold"
	"github.com/leasehold/leasehold/internal/core"
)

// A dumb model of areas: which paths a pattern means is found by trying all that there are, and who is next by walking
// one list. It shares no code with the core.

var (
	areaSegments = []string{"a", "b", "ab", "*", "a*", "*b", "*a", "b*"}
	areaPaths    = allPaths()
	areaMeans    = map[string][]bool{}
)

// allPaths are enough to have one for every two patterns of areaName that overlap.
func allPaths() (all []string) {
	for i, level := 0, []string{""}; i < 4; i++ {
		var next []string
		for _, path := range level {
			for _, text := range []string{"a/", "b/", "ab/", "ba/"} {
				next = append(next, path+text)
			}
		}
		all, level = append(all, next...), next
	}
	return all
}

func areaName(r *rand.Rand) string {
	pick := func() string { return areaSegments[r.IntN(len(areaSegments))] }
	forms := []func() string{
		pick, func() string { return pick() + "/" + pick() }, func() string { return "**/" + pick() },
		func() string { return pick() + "/**" }, func() string { return pick() + "/**/" + pick() },
		func() string { return "a/b/" + pick() }, func() string { return "" }, func() string { return "b/" },
	}
	if r.IntN(3) == 0 { // some names are wanted by many
		return []string{"repo/2:a", "repo/2:a/**/b"}[r.IntN(2)]
	}
	return fmt.Sprintf("repo/%d:%s", r.IntN(2), forms[r.IntN(len(forms))]())
}

// means says which of all paths a name means.
func means(name string) []bool {
	if known, ok := areaMeans[name]; ok {
		return known
	}
	_, path, _ := strings.Cut(name, ":")
	text := "^"
	if path = strings.TrimSuffix(path, "/"); path != "" {
		for _, s := range strings.Split(path, "/") {
			if s == "**" {
				text += "([^/]+/)*"
			} else {
				text += strings.ReplaceAll(regexp.QuoteMeta(s), `\*`, "[^/]*") + "/"
			}
		}
	}
	if strings.Contains(path, "*") {
		text += "$"
	}
	e, set := regexp.MustCompile(text), make([]bool, len(areaPaths))
	for i, p := range areaPaths {
		set[i] = e.MatchString(p)
	}
	areaMeans[name] = set
	return set
}

func modelOverlap(a, b string) bool {
	if a == b {
		return true
	}
	if a[:len("repo/0")] != b[:len("repo/0")] {
		return false
	}
	as, bs := means(a), means(b)
	for i := range as {
		if as[i] && bs[i] {
			return true
		}
	}
	return false
}

// A areaClaim is a lease, a wait for one, or the rest after one.
type areaClaim struct {
	id, name    string
	with        int // the request that it came with
	shared      bool
	held, rests bool
	priority    int
	order       int
	ttl, grace  time.Duration
	ends        time.Duration
}

type areaModel struct {
	now    time.Duration
	claims []*areaClaim // waiters in their order, among others
	orders int
}

// settle ends what is over, and grants what can be, in order.
func (m *areaModel) settle() {
	for _, c := range m.claims {
		if c.held && c.ends <= m.now {
			c.held, c.rests, c.ends = false, true, c.ends+c.grace
		}
	}
	m.claims = slices.DeleteFunc(m.claims, func(c *areaClaim) bool { return c.rests && c.ends <= m.now })
	for {
		gone := slices.IndexFunc(m.claims, func(c *areaClaim) bool { return c.waits() && c.ends <= m.now })
		if gone < 0 {
			break
		}
		m.drop(m.claims[gone].with)
	}
	m.sort()
	for _, c := range m.claims {
		if c.waits() && m.free(c.with) {
			m.grant(c.with)
		}
	}
}

func (m *areaModel) sort() {
	slices.SortStableFunc(m.claims, func(a, b *areaClaim) int {
		if a.priority != b.priority {
			return b.priority - a.priority
		}
		return a.order - b.order
	})
}

func (c *areaClaim) waits() bool { return !c.held && !c.rests }

func (m *areaModel) drop(with int) {
	m.claims = slices.DeleteFunc(m.claims, func(c *areaClaim) bool { return c.waits() && c.with == with })
}

// free reports whether all waiters of a request can be granted. They must be in the list, in order.
func (m *areaModel) free(with int) bool {
	for i, c := range m.claims {
		if c.with != with || !c.waits() {
			continue
		}
		for j, other := range m.claims {
			switch {
			case other.with == with && other.waits() || !modelOverlap(c.name, other.name):
			case other.waits() && j < i, !other.waits() && (!other.shared || !c.shared):
				return false
			}
		}
	}
	return true
}

func (m *areaModel) grant(with int) {
	for _, c := range m.claims {
		if c.with == with && c.waits() {
			c.held, c.ends = true, m.now+c.ttl
		}
	}
}

// place is that of a request in the queue where it is furthest back.
func (m *areaModel) place(with int) (place int) {
	for i, c := range m.claims {
		if c.with != with {
			continue
		}
		ahead := 1
		for _, other := range m.claims[:i] {
			if other.waits() && other.with != with && modelOverlap(c.name, other.name) {
				ahead++
			}
		}
		place = max(place, ahead)
	}
	return place
}

type areaTest struct {
	*testing.T
	*rand.Rand
	model  areaModel
	state  *core.State
	ids    int
	grants int
	waits  int
	tokens map[string]leasehold.Token // of each path: the largest that a holder of it had
}

func (t *areaTest) do(c core.Command) core.Answer {
	t.Helper()
	from := core.From{Origins: []leasehold.Origin{{Door: "native"}}} // by which it is known how they were acquired
	r, err := t.state.Apply(core.Time(t.model.now), int64(t.model.now), []core.Command{c}, from)
	if err != nil {
		t.Fatal(err)
	}
	return r.Answers[0]
}

func (t *areaTest) step() {
	m := &t.model
	m.now += time.Duration(t.IntN(4)) * time.Second
	if t.IntN(3) == 0 {
		t.do(&core.Tick{})
	}
	m.settle()
	switch t.IntN(7) {
	case 0, 1, 2, 3:
		t.acquire()
	case 4:
		t.release()
	case 5:
		t.breakOne()
	case 6:
		t.move()
	}
	m.settle()
	t.do(&core.Tick{})
}

func (t *areaTest) acquire() {
	m := &t.model
	t.ids++
	id := fmt.Sprint("c", t.ids)
	c := &core.Acquire{Namespace: ns, Resource: areaName(t.Rand), ID: id, Holder: id, Slots: t.IntN(2),
		TTL: time.Duration(1+t.IntN(20)) * time.Second, Grace: time.Duration(t.IntN(3)*2) * time.Second,
		Wait: time.Duration(t.IntN(3)*7) * time.Second, Priority: t.IntN(2)}
	if other := areaName(t.Rand); t.IntN(4) == 0 {
		c.Also = []core.Item{{Resource: other, ID: id + "+", Slots: t.IntN(2)}}
	}
	answer := t.do(c)
	if len(c.Also) > 0 && modelOverlap(c.Resource, c.Also[0].Resource) {
		if answer.Err == nil || answer.Err.Code != leasehold.Invalid {
			t.Fatalf("%s and %s are asked for at once: %v", c.Resource, c.Also[0].Resource, answer.Err)
		}
		return
	}
	m.orders++
	for _, item := range c.Items() {
		m.claims = append(m.claims, &areaClaim{id: item.ID, name: item.Resource, with: t.ids, shared: item.Slots > 0,
			priority: c.Priority, order: m.orders, ttl: c.TTL, grace: c.Grace, ends: m.now + min(c.Wait, 15*time.Second)})
	}
	m.sort()
	switch {
	case m.free(t.ids):
		m.grant(t.ids)
		if answer.Lease == nil {
			t.Fatalf("%s on %s got %v, and should be granted", id, c.Resource, answer.Err)
		}
		t.grants++
	case c.Wait == 0:
		m.drop(t.ids)
		if answer.Err == nil || answer.Err.Code != leasehold.Held {
			t.Fatalf("%s on %s got %+v, %v, and is not free", id, c.Resource, answer.Lease, answer.Err)
		}
	default:
		if answer.Waiter == nil || answer.Waiter.Position != m.place(t.ids) {
			t.Fatalf("%s on %s got %+v, %v, and should wait at %d", id, c.Resource, answer.Waiter, answer.Err, m.place(t.ids))
		}
		t.waits++
	}
}

// some returns a claim that waits or is held; nil if there is none.
func (t *areaTest) some() *areaClaim {
	live := slices.DeleteFunc(slices.Clone(t.model.claims), func(c *areaClaim) bool { return c.rests })
	if len(live) == 0 {
		return nil
	}
	return live[t.IntN(len(live))]
}

func (t *areaTest) release() {
	c := t.some()
	if c == nil {
		return
	}
	if answer := t.do(&core.Release{Namespace: ns, ID: c.id}); answer.Err != nil {
		t.Fatal(answer.Err)
	}
	if c.waits() {
		t.model.drop(c.with)
		return
	}
	t.model.claims = slices.DeleteFunc(t.model.claims, func(other *areaClaim) bool { return other == c })
}

func (t *areaTest) breakOne() {
	c := t.some()
	if c == nil || c.waits() {
		return
	}
	if answer := t.do(&core.Break{Namespace: ns, ID: c.id, By: "op"}); answer.Err != nil {
		t.Fatal(answer.Err)
	}
	c.ends = t.model.now
}

func (t *areaTest) move() {
	c := t.some()
	if c == nil || !c.waits() {
		return
	}
	to := &core.Move{Namespace: ns, ID: c.id, Priority: 1 - c.priority}
	if answer := t.do(to); answer.Err != nil {
		t.Fatal(answer.Err)
	}
	t.model.orders++
	for _, other := range t.model.claims {
		if other.with == c.with && other.waits() {
			other.priority, other.order = to.Priority, t.model.orders
		}
	}
}

// compare compares who holds what, and checks that each path was given to holders with larger and larger tokens.
func (t *areaTest) compare() {
	var want, got []string
	for _, c := range t.model.claims {
		if !c.rests {
			want = append(want, fmt.Sprint(c.name, " ", c.id, " ", c.held, " ", c.shared))
		}
	}
	list, _ := t.state.View(0).List(ns, "", "", 1000, false)
	for _, r := range list {
		status := t.state.View(0).Status(ns, r.Resource, 1000)
		for _, l := range status.Holders {
			got = append(got, fmt.Sprint(l.Resource, " ", l.ID, " true ", l.Slots > 0))
			t.fence(&l)
		}
		for _, w := range status.Queue {
			got = append(got, fmt.Sprint(w.Resource, " ", w.ID, " false ", w.Slots > 0))
		}
		t.compareOverlapping(status)
	}
	slices.Sort(want)
	slices.Sort(got)
	if !slices.Equal(want, got) {
		t.Fatalf("the core has\n%s\nthe model\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	if err := t.state.Check(); err != nil {
		t.Fatal(err)
	}
	if t.IntN(4) == 0 {
		t.state = reloaded(t, t.state)
	}
}

func (t *areaTest) compareOverlapping(s leasehold.Status) {
	n := 0
	for _, c := range t.model.claims {
		if c.held && c.name != s.Resource && modelOverlap(c.name, s.Resource) {
			n++
		}
	}
	if min(n, 10) != len(s.Overlapping) {
		t.Fatalf("%s overlaps %d leases, and shows %d", s.Resource, n, len(s.Overlapping))
	}
}

// fence is what guards of all paths see: an exclusive holder has the largest token of all that ever held the path.
func (t *areaTest) fence(l *leasehold.Lease) {
	for i, yes := range means(l.Resource) {
		path := l.Resource[:len("repo/0")] + areaPaths[i]
		if !yes {
			continue
		}
		if l.Slots == 0 && l.Token < t.tokens[path] {
			t.Fatalf("%s holds %s with token %d, below %d that was granted before", l.Holder, path, l.Token, t.tokens[path])
		}
		t.tokens[path] = max(t.tokens[path], l.Token)
	}
}

// TestAreaModelAgrees lets many take patterns of three areas, exclusive and shared, one or two at once, wait for them, give
// them back, lose them and be broken, for each of some seeds. After each step the core and the model agree about who has
// what, and who waits at which place.
func TestAreaModelAgrees(t *testing.T) {
	seeds := uint64(40)
	if testing.Short() {
		seeds = 6
	}
	for seed := range seeds {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			p := &areaTest{T: t, Rand: rand.New(rand.NewPCG(seed, 46)), state: core.NewAt(core.NewestLevel),
				tokens: map[string]leasehold.Token{}}
			p.model.now = time.Second
			for range 200 {
				p.step()
				p.compare()
			}
			if p.grants < 10 || p.waits < 10 {
				t.Errorf("%d were granted at once and %d waited: the test says little", p.grants, p.waits)
			}
		})
	}
}
