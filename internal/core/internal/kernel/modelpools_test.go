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

// A dumb model of pools: lists that are walked from the beginning, and sets of names. It shares no code with the core.

type poolModelUnit struct {
	name, host, model, unfit, drained string
	removed, taken                    bool
	lease, holder                     string
	freed                             time.Duration
	rests                             time.Duration // until when
}

func (u *poolModelUnit) fit() bool { return !u.removed && u.unfit == "" && u.drained == "" && !u.taken }

type poolModelJob struct {
	id, holder, model string
	n, priority       int
	spread            bool
	named             []string
	order             int
	grace             time.Duration
	held              bool
	units             []string
	ends              time.Duration // of its session
}

func (j *poolModelJob) wants(u *poolModelUnit) bool {
	if j.named != nil {
		return slices.Contains(j.named, u.name)
	}
	return j.model == "" || j.model == u.model
}

func (j *poolModelJob) oneHost() bool { return !j.spread && j.named == nil }

type poolModel struct {
	now   time.Duration
	units []*poolModelUnit
	jobs  []*poolModelJob // that hold or wait
	most  int             // units of each holder; 0: no limit
}

func (m *poolModel) free(u *poolModelUnit) bool { return u.lease == "" && u.fit() && u.rests <= m.now }

func (m *poolModel) hosts() (names []string) {
	for _, u := range m.units {
		names = append(names, u.host)
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// of returns the units that a job wants and that pass a test, on one host, or on any if it is empty.
func (m *poolModel) of(j *poolModelJob, host string, ok func(*poolModelUnit) bool) (list []*poolModelUnit) {
	for _, u := range m.units {
		if (host == "" || u.host == host) && j.wants(u) && ok(u) {
			list = append(list, u)
		}
	}
	return list
}

func (m *poolModel) overLimit(j *poolModelJob) bool {
	has := 0
	for _, other := range m.jobs {
		if other.held && other.holder == j.holder {
			has += other.n
		}
	}
	return m.most > 0 && has+j.n > m.most
}

// never reports whether a job can never be granted.
func (m *poolModel) never(j *poolModelJob) bool {
	there := func(u *poolModelUnit) bool { return !u.removed }
	if m.overLimit(j) {
		return j.n > m.most // what there is, is looked at when it is its turn
	}
	if !j.oneHost() {
		return len(m.of(j, "", there)) < j.n
	}
	for _, host := range m.hosts() {
		if len(m.of(j, host, there)) >= j.n {
			return false
		}
	}
	return true
}

// could returns the units that are kept for a job that waits.
func (m *poolModel) could(j *poolModelJob, first bool) (list []*poolModelUnit) {
	any := func(*poolModelUnit) bool { return true }
	if !j.oneHost() {
		if len(m.of(j, "", (*poolModelUnit).fit)) >= j.n {
			list = m.of(j, "", any)
		}
		return list
	}
	most := -1
	for _, host := range m.hosts() {
		if len(m.of(j, host, (*poolModelUnit).fit)) < j.n {
			continue
		}
		if !first {
			list = append(list, m.of(j, host, any)...)
		} else if free := len(m.of(j, host, m.free)); free > most {
			most, list = free, m.of(j, host, any)
		}
	}
	return list
}

// pick returns the units that a job gets.
func (m *poolModel) pick(j *poolModelJob, kept []*poolModelUnit) []*poolModelUnit {
	usable := func(u *poolModelUnit) bool { return m.free(u) && !slices.Contains(kept, u) }
	mine := func(u *poolModelUnit) int {
		if u.freed != 0 && u.holder == j.holder {
			return 0
		}
		return 1
	}
	sorted := func(list []*poolModelUnit) []*poolModelUnit {
		slices.SortFunc(list, func(a, b *poolModelUnit) int {
			return cmp.Or(mine(a)-mine(b), cmp.Compare(a.freed, b.freed), cmp.Compare(a.host, b.host), cmp.Compare(a.name, b.name))
		})
		return list
	}
	if !j.oneHost() {
		list := sorted(m.of(j, "", usable))
		if len(list) < j.n {
			return nil
		}
		return list[:j.n]
	}
	var best []*poolModelUnit
	var bestRank []int64
	for _, host := range m.hosts() {
		list := sorted(m.of(j, host, usable))
		if len(list) < j.n {
			continue
		}
		others := 0
		for _, u := range list[:j.n] {
			others += mine(u)
		}
		rank := []int64{int64(others), int64(len(list)), int64(list[j.n-1].freed)}
		if best == nil || slices.Compare(rank, bestRank) < 0 {
			best, bestRank = list[:j.n], rank
		}
	}
	return best
}

// handOver grants what can be granted, from the first waiter on.
func (m *poolModel) handOver() {
	slices.SortFunc(m.jobs, func(a, b *poolModelJob) int { return cmp.Or(b.priority-a.priority, a.order-b.order) })
	var kept []*poolModelUnit
	again := false
	for _, j := range slices.Clone(m.jobs) {
		switch {
		case j.held:
		case m.never(j):
			m.drop(j)
		case m.overLimit(j):
		default:
			if units := m.pick(j, kept); units != nil {
				j.held = true
				for _, u := range units {
					u.lease, u.holder = j.id, j.holder
					j.units = append(j.units, u.name)
				}
				slices.Sort(j.units)
				again = true
				continue
			}
			kept = append(kept, m.could(j, len(kept) == 0)...)
		}
	}
	if again {
		m.handOver() // somebody may be over its limit by now, and keep nothing any more
	}
}

func (m *poolModel) drop(j *poolModelJob) {
	m.jobs = slices.DeleteFunc(m.jobs, func(other *poolModelJob) bool { return other == j })
}

// end ends a job. One that crashed leaves its units at rest.
func (m *poolModel) end(j *poolModelJob, crashedAt time.Duration) {
	m.drop(j)
	for _, u := range m.units {
		if u.lease == j.id {
			u.lease, u.freed = "", m.now
			if crashedAt != 0 && j.grace > 0 {
				u.rests = crashedAt + j.grace
			}
		}
	}
	m.units = slices.DeleteFunc(m.units, func(u *poolModelUnit) bool { return u.removed && u.lease == "" })
	m.handOver()
}

// setHost sets the units of a host.
func (m *poolModel) setHost(host string, units []poolModelUnit) {
	for _, u := range m.units {
		if u.host == host {
			u.removed = true
		}
	}
	for _, unit := range units {
		i := slices.IndexFunc(m.units, func(u *poolModelUnit) bool { return u.name == unit.name })
		if i < 0 {
			m.units = append(m.units, &unit)
			continue
		}
		m.units[i].model, m.units[i].unfit, m.units[i].removed = unit.model, unit.unfit, false
	}
	m.units = slices.DeleteFunc(m.units, func(u *poolModelUnit) bool { return u.removed && u.lease == "" })
	m.handOver()
}

// A poolTest plays jobs through a pool, in the core and in the model.
type poolTest struct {
	*testing.T
	*rand.Rand
	state *core.State
	model poolModel
	made  int
	all   []*poolModelJob
	log   []string
}

const poolTTL = 30 * time.Second

// do applies a command at the next moment. Sessions end in their order before it, each at a stamp of its own, as ticks
// end them.
func (t *poolTest) do(c core.Command) core.Answer {
	t.Helper()
	t.model.now += time.Millisecond
	var over []*poolModelJob
	for _, j := range t.model.jobs {
		if j.ends <= t.model.now {
			over = append(over, j)
		}
	}
	slices.SortFunc(over, func(a, b *poolModelJob) int { return cmp.Compare(a.ends, b.ends) })
	t.apply(&core.Tick{})
	for _, j := range over {
		t.model.end(j, j.ends)
	}
	t.model.handOver() // a rest may be over
	t.model.now += time.Millisecond
	t.model.handOver()
	return t.apply(c)
}

func (t *poolTest) apply(c core.Command) core.Answer {
	t.Helper()
	t.log = append(t.log, fmt.Sprintf("%v %s", t.model.now, writeCommand(c)))
	result, err := t.state.Apply(core.Time(t.model.now), 0, []core.Command{c})
	if err != nil {
		t.Fatal(err)
	}
	return result.Answers[0]
}

func (t *poolTest) job() {
	t.made++
	j := &poolModelJob{id: fmt.Sprint("j", t.made), holder: fmt.Sprint("h", t.IntN(6)), n: 1 + t.IntN(4), order: t.made}
	if t.IntN(3) == 0 {
		j.grace = time.Duration(1+t.IntN(20)) * time.Second
	}
	if t.IntN(8) == 0 {
		j.priority = t.IntN(3) - 1
	}
	sel := &leasehold.Select{}
	switch t.IntN(6) {
	case 0, 1:
		j.model = []string{"H100", "A100"}[t.IntN(2)]
		sel.Where = "model=" + j.model
	case 2:
		j.spread, sel.Spread = true, true
	case 3:
		j.named = []string{fmt.Sprint([]string{"a", "b"}[t.IntN(2)], t.IntN(4))}
		j.n, sel.Units = 1, j.named
	default:
		sel = nil
	}
	session := "s" + j.id
	t.do(&core.OpenSession{Namespace: ns, ID: session, TTL: poolTTL})
	j.ends = t.model.now + poolTTL
	answer := t.do(&core.Acquire{Namespace: ns, Resource: "gpu", ID: j.id, Holder: j.holder, Session: session, Slots: j.n, Select: sel,
		Wait: leasehold.MaxWait, Priority: j.priority, Grace: j.grace})
	if refused := answer.Err != nil; refused != t.model.never(j) {
		t.Fatalf("%s: the core answers %v, the model says never: %v\n%s", j.id, answer.Err, t.model.never(j), strings.Join(t.log, "\n"))
	}
	if answer.Err != nil {
		return
	}
	t.model.jobs = append(t.model.jobs, j)
	t.all = append(t.all, j)
	t.model.handOver()
}

// host sets the units of a host: mostly all four, sometimes fewer, unfit or of another model.
func (t *poolTest) host(host string) {
	c := &core.SetUnits{Namespace: ns, Resource: "gpu", Host: host}
	var units []poolModelUnit
	for i := range 4 {
		u := poolModelUnit{name: fmt.Sprint(host, i), host: host, model: "H100"}
		if i >= 2 {
			u.model = "A100"
		}
		switch t.IntN(10) {
		case 0:
			u.unfit = "ill"
		case 1:
			if len(t.all) > 0 {
				continue
			}
		}
		units = append(units, u)
		c.Units = append(c.Units, core.HostUnit{Name: u.name, Unfit: u.unfit, Labels: leasehold.Labels{{Key: "model", Value: u.model}}})
	}
	t.do(c)
	t.model.setHost(host, units)
}

// report says how the units of a host are used: mostly all is well, sometimes one is ill, left out or taken without a lease.
func (t *poolTest) report(host string) {
	c := &core.ReportUse{Namespace: ns, Resource: "gpu", Host: host}
	taken := map[string]bool{}
	for _, u := range t.model.units {
		if u.host != host || u.removed {
			continue
		}
		said := core.UnitReport{Name: u.name, Percent: t.IntN(3), Processes: []core.UnitProcess{{PID: 1, Lease: u.lease}}}
		switch t.IntN(10) {
		case 0:
			said.Unfit = "ill"
		case 1:
			continue
		case 2:
			said.Processes = append(said.Processes, core.UnitProcess{PID: 2, Name: "python"})
			taken[u.name] = true
		}
		if u.lease == "" {
			said.Processes = said.Processes[1:]
		}
		c.Units = append(c.Units, said)
	}
	if answer := t.do(c); answer.Err != nil {
		if t.model.units == nil {
			return // there is no pool
		}
		t.Fatal(answer.Err)
	}
	for _, u := range t.model.units {
		if u.host != host || u.removed {
			continue
		}
		i := slices.IndexFunc(c.Units, func(said core.UnitReport) bool { return said.Name == u.name })
		if u.unfit, u.taken = "gone", false; i >= 0 {
			u.unfit, u.taken = c.Units[i].Unfit, taken[u.name]
		}
	}
	t.model.handOver()
}

func (t *poolTest) step() {
	jobs := t.model.jobs
	switch n := t.IntN(21); {
	case n == 20:
		t.report([]string{"a", "b"}[t.IntN(2)])
	case n < 8 && len(jobs) < 16: // below the number for which units are kept
		t.job()
	case n < 13 && len(jobs) > 0: // one is done
		j := jobs[t.IntN(len(jobs))]
		t.do(&core.CloseSession{Namespace: ns, ID: "s" + j.id})
		if slices.Contains(t.model.jobs, j) {
			t.model.end(j, 0)
		}
	case n < 16: // those that have not crashed renew; what does not comes to its end
		for _, j := range slices.Clone(jobs) {
			if t.IntN(8) > 0 && slices.Contains(t.model.jobs, j) {
				if t.do(&core.RenewSession{Namespace: ns, ID: "s" + j.id}).Err == nil {
					j.ends = t.model.now + poolTTL
				}
			}
		}
		t.model.now += time.Duration(t.IntN(12)) * time.Second
	case n < 17:
		t.host([]string{"a", "b"}[t.IntN(2)])
	case n < 18 && len(t.model.units) > 0:
		u := t.model.units[t.IntN(len(t.model.units))]
		why := []string{"", "repair"}[t.IntN(2)]
		name := u.name
		if t.do(&core.Drain{Namespace: ns, Resource: "gpu", Units: []string{name}, Why: why}).Err == nil {
			if i := slices.IndexFunc(t.model.units, func(u *poolModelUnit) bool { return u.name == name }); i >= 0 {
				t.model.units[i].drained = why
			}
		}
		t.model.handOver()
	case n < 19:
		most := t.IntN(5)
		d := leasehold.Definition{Path: "gpu"}
		if most > 0 {
			d.Limits = []leasehold.UnitLimit{{Most: most}}
		}
		t.do(&core.Define{Namespace: ns, Definition: d, Fields: core.FieldLimits})
		t.model.most = most
		t.model.handOver()
	default:
		t.state = reloaded(t.T, t.state)
	}
}

// compare fails if the core and the model differ about any job.
func (t *poolTest) compare() {
	t.Helper()
	for _, j := range t.all {
		answer := t.state.View(0).Claim(ns, j.id)
		is, want := "over", "over"
		switch {
		case answer.Lease != nil:
			is = fmt.Sprint("has ", answer.Lease.Units)
		case answer.Waiter != nil:
			is = "waits"
		}
		if slices.Contains(t.model.jobs, j) {
			if want = "waits"; j.held {
				want = fmt.Sprint("has ", j.units)
			}
		}
		if is != want {
			t.Fatalf("%s: the core says it %s, the model that it %s\n%s", j.id, is, want, strings.Join(t.log, "\n"))
		}
	}
	if err := t.state.Check(); err != nil {
		shown, _ := t.state.View(0).Pool(ns, "gpu", core.PoolQuery{Most: 100, Waiters: 100})
		for _, w := range shown.Queue {
			t.log = append(t.log, fmt.Sprintf("%s %s %s %+v", w.ID, w.Holder, w.Why, w.Select))
		}
		for _, u := range shown.Units {
			t.log = append(t.log, fmt.Sprintf("%+v", u))
		}
		t.Fatalf("%v\n%s", err, strings.Join(t.log, "\n"))
	}
}

// TestPoolModelAgrees plays 200 jobs, of which some crash, through eight cards on two hosts, for each of some seeds. After each
// step the core and the model agree about who has which card and who waits.
func TestPoolModelAgrees(t *testing.T) {
	seeds := uint64(40)
	if testing.Short() {
		seeds = 4
	}
	for seed := range seeds {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			p := &poolTest{T: t, Rand: rand.New(rand.NewPCG(seed, 8)), state: core.NewAt(core.NewestLevel)}
			p.host("a")
			p.host("b")
			for p.made < 200 {
				p.step()
				p.compare()
			}
		})
	}
}
