package kernel_test

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/leasehold/leasehold"
	"github.com/leasehold/leasehold/internal/core"
	"github.com/leasehold/leasehold/internal/core/internal/kernel"
)

// manyClaims opens a session with leases, waiters and records: more than one entry ends.
func manyClaims(d *desk, ttl time.Duration) {
	d.must(&core.OpenSession{Namespace: ns, ID: "s", TTL: ttl})
	d.must(&core.OpenSession{Namespace: ns, ID: "other", TTL: time.Hour})
	for i := range 3000 {
		d.must(&core.Acquire{Namespace: ns, Resource: fmt.Sprintf("r%04d", i), ID: fmt.Sprintf("i%04d", i), Holder: "ann", Session: "s"})
		d.must(&core.PutRecord{Namespace: ns, Path: fmt.Sprintf("p%04d", i), Value: "x", Session: "s"})
	}
	for i := range 1500 {
		d.must(&core.Acquire{Namespace: ns, Resource: "shared", ID: fmt.Sprintf("k%04d", i), Holder: "ann", Session: "s", Slots: 1, Capacity: 1500})
	}
	d.must(&core.Acquire{Namespace: ns, Resource: "r2999", ID: "bob", Holder: "bob", Session: "other", Wait: time.Hour})
	d.must(&core.Acquire{Namespace: ns, Resource: "carl's", ID: "carl2", Holder: "carl"})
	d.must(&core.Acquire{Namespace: ns, Resource: "carl's", ID: "w", Holder: "ann", Session: "s", Wait: time.Hour})
}

// TestALargeSessionIsOverAtOnce ends a session that has more than an entry can end: nobody
// sees anything of it as there from that entry on, wherever the collecting has come to.
func TestALargeSessionIsOverAtOnce(t *testing.T) {
	for _, reload := range []bool{false, true} {
		t.Run(fmt.Sprint("reloaded ", reload), func(t *testing.T) {
			d := newDesk(t)
			manyClaims(d, time.Hour)
			d.must(&core.CloseSession{Namespace: ns, ID: "s"})
			if d.state.Chores() == 0 || d.state.View(0).Counts().Leases < 2000 {
				t.Fatalf("it is collected already: %d leases are left", d.state.View(0).Counts().Leases)
			}
			if reload {
				d.state = reloaded(t, d.state)
			}
			d.seesNothingOfIt(t)
			d.tickAll()
			d.seesNothingOfIt(t)
			if n := d.state.View(0).Counts(); n.Waiters != 0 || n.Records != 1 || d.state.Chores() != 0 {
				t.Errorf("left are %+v and %d chores", n, d.state.Chores())
			}
		})
	}
}

func (d *desk) seesNothingOfIt(t *testing.T) {
	t.Helper()
	view := d.state.View(0)
	for _, path := range []string{"r0000", "r2998", "shared"} {
		if s := view.Status(ns, path, 10); s.Holding != 0 || s.State != leasehold.Available {
			t.Errorf("%s is %v, and held by %d", path, s.State, s.Holding)
		}
	}
	for _, id := range []string{"i0000", "i2998", "k1499", "w"} {
		if a := view.Claim(ns, id); a.Err == nil || a.Err.Code != leasehold.Lost {
			t.Errorf("%s is there: %+v", id, a)
		}
		d.refused(&core.Renew{Namespace: ns, ID: id}, leasehold.Lost, "has ended")
		d.refused(&core.Release{Namespace: ns, ID: id}, leasehold.Lost, "has ended")
		d.refused(&core.PutRecord{Namespace: ns, Path: "fenced", Fence: core.Fence{Lease: id}}, leasehold.Lost, "has ended")
	}
	d.refused(&core.RenewSession{Namespace: ns, ID: "s"}, leasehold.Lost, "has ended")
	d.refused(&core.OpenSession{Namespace: ns, ID: "s", TTL: time.Hour}, leasehold.Lost, "has ended")
	if _, failure := view.Record(ns, "p2998", 0); failure == nil {
		t.Error("its record is there")
	}
	if page, failure := view.Records(ns, core.RecordQuery{From: "p2998", Count: true}); failure != nil || page.Count != 0 || len(page.Records) != 0 {
		t.Errorf("%d of its records are read, %d counted: %v", len(page.Records), page.Count, failure)
	}
	d.must(&core.PutRecord{Namespace: ns, Path: "p2997", IfAbsent: d.state.Chores() > 0})
	if l := d.must(&core.Acquire{Namespace: ns, Resource: "r2997", ID: "carl", Holder: "carl"}).Lease; l == nil {
		t.Error("what is free was not granted")
	}
	if l := d.must(&core.Acquire{Namespace: ns, Resource: "r2999", ID: "bob", Holder: "bob", Session: "other", Wait: time.Hour}).Lease; l == nil {
		t.Error("the first who waited does not have it")
	}
}

// TestALargeSessionThatExpires raises one alarm, when all of it is collected.
func TestALargeSessionThatExpires(t *testing.T) {
	d := newDesk(t)
	manyClaims(d, time.Minute)
	d.at(2 * time.Minute)
	d.must(&core.Tick{})
	if d.state.Chores() == 0 {
		t.Fatal("it is collected already")
	}
	d.tickAll()
	list, _ := d.state.View(0).Alarms(ns, core.AlarmQuery{Kind: leasehold.UncleanEnd, Most: 10})
	want := "session s expired, and with it the lease of ann on r0000, and 4499 more"
	if len(list) != 1 || list[0].Text != want {
		t.Errorf("the alarms are %+v", list)
	}
}

// TestQueuesFollowADefinitionLater changes a definition over more queues than an entry
// looks at: all of them follow, in order, within the next ticks.
func TestQueuesFollowADefinitionLater(t *testing.T) {
	const queues = 6000
	d := newDesk(t)
	d.open("s", "t")
	define := func(capacity int) {
		d.must(&core.Define{Namespace: ns, Definition: leasehold.Definition{Path: "/", Capacity: capacity}})
	}
	define(1)
	for i := range queues {
		for _, who := range []string{"s", "t"} {
			d.must(&core.Acquire{
				Namespace: ns, Resource: fmt.Sprintf("r%05d", i), ID: fmt.Sprint(who, i), Holder: who, Session: who, Slots: 1, Wait: time.Hour,
			})
		}
	}
	define(2)
	if n := d.state.View(0).Counts().Waiters; n == 0 || n > queues-500 {
		t.Errorf("%d of %d still wait", n, queues)
	}
	d.state = reloaded(t, d.state)
	d.tickAll()
	if n := d.state.View(0).Counts().Waiters; n != 0 {
		t.Errorf("%d of %d still wait", n, queues)
	}
}

// TestALongHandOverKeepsItsOrder frees a resource that more wait for than an entry grants.
func TestALongHandOverKeepsItsOrder(t *testing.T) {
	d := newDesk(t)
	d.must(&core.Acquire{Namespace: ns, Resource: "r", ID: "r", Holder: "h"})
	d.queueUp("r", 3000)
	d.must(&core.Release{Namespace: ns, ID: "r"})
	n := d.state.View(0).Counts()
	if n.Leases == 0 || n.Waiters == 0 {
		t.Fatalf("%d were granted, %d wait", n.Leases, n.Waiters)
	}
	// Whoever comes now stands behind them.
	d.refused(&core.Acquire{Namespace: ns, Resource: "r", ID: "late", Holder: "late", Slots: 1, Capacity: 65536}, leasehold.Held, "")
	d.tickAll()
	last := leasehold.Token(0)
	for i := range 3000 {
		l := d.state.View(0).Claim(ns, fmt.Sprint("r-w", i)).Lease
		if l == nil || l.Token <= last {
			t.Fatalf("waiter %d has %+v after token %d", i, l, last)
		}
		last = l.Token
	}
}

// TestAnEntryThatIsTooMuch holds more than its budget: what did not begin is told to come
// again, also under its request key, and nobody loses a lease by it.
func TestAnEntryThatIsTooMuch(t *testing.T) {
	d := newDesk(t)
	mine := d.must(&core.Acquire{Namespace: ns, Resource: "mine", ID: "mine", Holder: "h", TTL: 10 * time.Second}).Lease
	d.at(9 * time.Second)
	var many []core.Command
	for i := range 2000 {
		many = append(many, &core.Acquire{Namespace: ns, Resource: fmt.Sprint("r", i), ID: fmt.Sprint("i", i), Holder: "h", TTL: time.Hour, Request: core.Request{Key: fmt.Sprint("k", i)}})
	}
	many = append(many, &core.Renew{Namespace: ns, ID: "mine"})
	result := d.apply(many...)
	if a := result.Answers[2000]; a.Err != nil || a.Lease.Remaining != mine.Remaining {
		t.Errorf("the renewal answers %+v", a)
	}
	last := result.Answers[1999]
	if !errors.Is(last.Err, leasehold.ErrUnavailable) || d.state.Work() > kernel.MaxWork+1000 {
		t.Fatalf("after %d units of work the last answers %+v", d.state.Work(), last)
	}
	if d.must(many[1999]).Lease == nil {
		t.Error("it was not granted the second time")
	}
}

// TestAPutThatRenewsIsCarriedOut: who renews by putting its record loses no lease because an entry has much to do.
func TestAPutThatRenewsIsCarriedOut(t *testing.T) {
	d := newDesk(t)
	put := &core.PutRecord{Namespace: ns, Path: "k", Value: "1", Link: &core.Link{Resource: "k", ID: "k", Holder: "h", TTL: time.Minute, Stay: true}}
	d.must(put)
	var many []core.Command
	for i := range 3000 {
		many = append(many, &core.Acquire{Namespace: ns, Resource: fmt.Sprint("r", i), ID: fmt.Sprint("i", i), Holder: "h", TTL: time.Minute})
	}
	again, begins := *put, *put
	again.Value, again.Fence.Lease = "2", "k"
	begins.Path, begins.Link = "other", &core.Link{Resource: "other", ID: "other", Holder: "h", TTL: time.Minute}
	result := d.apply(append(many, &again, &begins)...)
	if a := result.Answers[3000]; a.Err != nil || a.Lease == nil || a.Record.Version != 2 {
		t.Errorf("the renewal answers %+v", a)
	}
	if a := result.Answers[3001]; !errors.Is(a.Err, leasehold.ErrUnavailable) {
		t.Errorf("a put that takes something answers %+v", a)
	}
}

// TestSmallBudgets applies random logs with budgets so small that much is put off: the
// state is sound after each entry, one that is read from a snapshot now and then stays the
// same, and what was put off gets done.
func TestSmallBudgets(t *testing.T) {
	forEachSeed(t, testing.Short(), withSmallBudget)
}

func withSmallBudget(seed uint64, j journal) error {
	budget := int(8 + seed%40)
	s, again := &replica{State: core.NewAt(core.NewestLevel)}, core.NewAt(core.NewestLevel)
	s.SetWork(budget)
	for i, e := range j {
		e.restore, e.raise = nil, false
		if e.commands = append(e.commands, &core.Tick{}); i%5 == 0 {
			var err error
			if again, err = core.Restore(copies(again.Freeze())); err != nil {
				return err
			}
		}
		again.SetWork(budget)
		if _, err := s.apply(e); err != nil {
			return err
		}
		if _, err := again.Apply(stampOf(e.stamp), wallOf(e.stamp), e.commands); err != nil {
			return err
		}
		if i%7 == 6 && render(s.State) != render(again) {
			return fmt.Errorf("at %v the state that was read from a snapshot differs", e.stamp)
		}
	}
	for range 10000 {
		if s.Chores() == 0 {
			return s.Check()
		}
		if _, err := s.Apply(s.Now(), s.Wall(), []core.Command{&core.Tick{}}); err != nil {
			return err
		}
	}
	return fmt.Errorf("%d chores are never done", s.Chores())
}
