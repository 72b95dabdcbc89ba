package unit

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/leasehold/leasehold"
	"github.com/leasehold/leasehold/internal/btree"
	"github.com/leasehold/leasehold/internal/core/internal/kernel"
	"github.com/leasehold/leasehold/internal/core/pool"
	"github.com/leasehold/leasehold/internal/core/usage"
)

func ofKind(kind string) leasehold.Labels { return leasehold.Labels{{Key: "kind", Value: kind}} }

// A yard is a pool of eight cards on two hosts, on which every lease of a kind takes equally long.
type yard struct {
	t        *testing.T
	s        *kernel.State
	pools    *pools
	at       time.Duration
	begun    map[string]time.Duration // when each lease began
	borrowed map[string]bool          // those that got what was kept for somebody else
}

// The kinds of a yard, by how long they take: times of the scale on which they are learned, so that they are learned
// exactly.
var yardKinds = map[string]time.Duration{
	"eval": usage.Time(100), "test": usage.Time(130), "train": usage.Time(160),
}

func newYard(t *testing.T, backfill bool) *yard {
	s, made := newState()
	y := &yard{t: t, s: s, pools: made, begun: map[string]time.Duration{}, borrowed: map[string]bool{}}
	for _, host := range []string{"a", "b"} {
		units := make([]kernel.HostUnit, 4)
		for i := range units {
			units[i].Name = fmt.Sprint(host, i)
		}
		y.do(&kernel.SetUnits{Namespace: "default", Resource: "gpu", Host: host, Units: units})
	}
	y.do(&kernel.OpenSession{Namespace: "default", ID: "s", TTL: leasehold.MaxTTL})
	if backfill {
		y.do(&kernel.Define{Namespace: "default", Definition: leasehold.Definition{Path: "gpu", Backfill: true}})
	}
	for kind, takes := range yardKinds {
		for i := range 8 {
			id := fmt.Sprint(kind, i)
			y.asks(id, kind, 1)
			y.at += takes
			y.ends(id)
		}
	}
	return y
}

func (y *yard) do(c kernel.Command) {
	y.t.Helper()
	result, err := y.s.Apply(kernel.Time(time.Hour+y.at), int64(y.at), []kernel.Command{c})
	if err == nil && result.Answers[0].Err != nil {
		err = result.Answers[0].Err
	}
	if err != nil {
		y.t.Fatal(err)
	}
	for _, e := range result.Events {
		if e.Kind == leasehold.Acquired {
			y.begun[e.ID], y.borrowed[e.ID] = y.at, e.By == leasehold.ByBackfill
		}
	}
}

// asks sends a request that waits for its units.
func (y *yard) asks(id, kind string, units int) {
	y.t.Helper()
	y.do(&kernel.Acquire{Namespace: "default", Resource: "gpu", ID: id, Holder: id, Labels: ofKind(kind), Slots: units,
		Session: "s", Wait: leasehold.MaxWait})
}

func (y *yard) ends(id string) {
	y.t.Helper()
	y.do(&kernel.Release{Namespace: "default", ID: id})
}

// is checks who has units, and whether they were borrowed.
func (y *yard) is(id, want string) {
	y.t.Helper()
	got := "waits"
	if y.s.View(0).Claim("default", id).Lease != nil {
		got = "has its turn"
		if y.borrowed[id] {
			got = "borrows"
		}
	}
	if got != want {
		y.t.Errorf("%s %s, and should be one that %s", id, got, want)
	}
}

// One unit is free, and kept for big, which needs two on one host. A job that is over before any training can be has
// it meanwhile; nobody else has.
func TestBackfill(t *testing.T) {
	for _, on := range []bool{false, true} {
		t.Run(fmt.Sprint(on), func(t *testing.T) {
			y := newYard(t, on)
			for i := range 7 {
				y.asks(fmt.Sprint("held", i), "train", 1)
			}
			y.at += time.Minute
			y.asks("big", "train", 2)
			y.asks("long", "train", 1)
			y.asks("unknown", "never seen", 1)
			y.asks("short", "eval", 1)
			y.is("big", "waits")
			y.is("long", "waits")
			y.is("unknown", "waits")
			if !on {
				y.is("short", "waits")
				return
			}
			y.is("short", "borrows")

			// Shortly before the trainings are over nobody borrows: big could begin.
			y.at += yardKinds["eval"]
			y.ends("short")
			y.at += yardKinds["train"] - yardKinds["eval"] - time.Minute - time.Second
			y.asks("late", "eval", 1)
			y.is("late", "waits")

			// Nor when they take longer than any before: they may be over at any moment.
			y.at += time.Minute
			y.asks("later", "eval", 1)
			y.is("later", "waits")
			y.ends("held6")
			y.is("big", "has its turn")
		})
	}
}

// A hold limit says for sure when a lease is over, whatever was learned.
func TestBackfillByHoldLimit(t *testing.T) {
	y := newYard(t, true)
	for i := range 7 {
		y.asks(fmt.Sprint("held", i), "train", 1)
	}
	y.asks("big", "train", 2)
	y.do(&kernel.Acquire{Namespace: "default", Resource: "gpu", ID: "brief", Holder: "brief", Slots: 1, Session: "s",
		HoldLimit: time.Minute})
	y.is("brief", "borrows")
}

// A server that read a snapshot forgot when the queue was looked at last, and looks at it again where the others do not.
// Time alone makes nobody a borrower: else one server would grant what the others do not.
func TestBackfillIsTheSameAfterASnapshot(t *testing.T) {
	y := newYard(t, true)
	for i := range 10 {
		id := fmt.Sprint("mixed", i)
		y.asks(id, "mixed", 1)
		y.at += []time.Duration{usage.Time(90), usage.Time(160)}[i%2]
		y.ends(id)
	}
	for i := range 7 {
		y.asks(fmt.Sprint("held", i), "mixed", 1)
	}
	y.asks("big", "mixed", 2)
	y.asks("short", "eval", 1)
	y.is("short", "waits") // the others may be over before it

	y.at += usage.Time(90) + time.Second // and now none of them will be for long
	for range 2 {
		if err := y.s.Check(); err != nil {
			t.Error(err)
		}
		y.asks("short", "eval", 1) // it shows that it is alive
		y.is("short", "waits")
		y.pools.quiet = btree.Map[string, kernel.Time]{} // as after a snapshot
	}
	y.ends("held6") // the queue is looked at everywhere
	y.is("big", "has its turn")
}

// Jobs of one to four cards come in a random order, and each takes exactly as long as its kind. Nobody who was passed
// ever waits for a borrower: whenever it could begin without those, they are over. And all wait less.
func TestBackfillDelaysNobody(t *testing.T) {
	for seed := range uint64(20) {
		plain, borrowed := newYard(t, false).play(seed), newYard(t, true).play(seed)
		if plain.borrows != 0 || borrowed.borrows == 0 || borrowed.waited >= plain.waited {
			t.Errorf("seed %d: without backfill %+v, with it %+v", seed, plain, borrowed)
		}
	}
}

// A tallySheet is how the jobs of one run fared.
type tallySheet struct {
	waited  time.Duration
	borrows int
}

// play lets 300 jobs of a seed come and go.
func (y *yard) play(seed uint64) (sum tallySheet) {
	y.t.Helper()
	random := rand.New(rand.NewPCG(seed, 1))
	kinds := []string{"eval", "eval", "eval", "test", "train"}
	came, kind := map[string]time.Duration{}, map[string]string{}
	next := y.at
	for n := 0; n < 300 || len(kind) > 0; {
		// The next to end, or the next to come.
		first, over := "", leasehold.MaxHold
		for id := range kind {
			if at, runs := y.begun[id]; runs && (at+yardKinds[kind[id]] < over || at+yardKinds[kind[id]] == over && id < first) {
				first, over = id, at+yardKinds[kind[id]]
			}
		}
		if n < 300 && next < over {
			id := fmt.Sprintf("job%03d", n)
			y.at, came[id], kind[id] = next, next, kinds[random.IntN(len(kinds))]
			y.asks(id, kind[id], 1+random.IntN(4))
			next += time.Duration(random.Int64N(int64(yardKinds["train"] / 4)))
			n++
		} else {
			y.at = over
			y.ends(first)
			sum.waited += y.begun[first] - came[first]
			if y.borrowed[first] {
				sum.borrows++
			}
			delete(kind, first)
		}
		y.nobodyIsDelayed(kind)
	}
	return sum
}

// nobodyIsDelayed checks that no waiter could begin if those who borrowed were not there. One that ends at this very
// moment is no obstacle.
func (y *yard) nobodyIsDelayed(kind map[string]string) {
	y.t.Helper()
	queue := y.s.View(0).Status("default", "gpu", 1).Queue
	if len(queue) == 0 {
		return
	}
	head := queue[0]
	free := map[string]int{}
	y.pools.units.Units("gpu", nil, func(u *pool.Unit) bool {
		ends := y.begun[u.Lease] + yardKinds[kind[u.Lease]]
		if u.Lease == "" || y.borrowed[u.Lease] && ends > y.at {
			free[u.Host]++
		}
		return true
	})
	for host, n := range free {
		if n >= head.Slots {
			y.t.Fatalf("after %v %s waits for %d units on %s, and only borrowers are in its way", y.at, head.ID, head.Slots, host)
		}
	}
}

// BenchmarkBackfill gives a unit back to a pool as large as backfill is for, in which sixteen wait for whole hosts, and
// a thousand behind them whose kind takes too long to borrow anything.
func BenchmarkBackfill(b *testing.B) {
	s, _ := newState()
	at := time.Hour
	do := func(c kernel.Command) {
		at++
		result, err := s.Apply(kernel.Time(at), int64(at), []kernel.Command{c})
		if err == nil && result.Answers[0].Err != nil {
			err = result.Answers[0].Err
		}
		if err != nil {
			b.Fatal(err)
		}
	}
	for h := range 128 {
		c := &kernel.SetUnits{Namespace: "default", Resource: "gpu", Host: fmt.Sprintf("h%03d", h), Units: make([]kernel.HostUnit, 8)}
		for i := range c.Units {
			c.Units[i].Name = fmt.Sprintf("%s-%d", c.Host, i)
		}
		do(c)
	}
	do(&kernel.OpenSession{Namespace: "default", ID: "s", TTL: leasehold.MaxTTL})
	do(&kernel.Define{Namespace: "default", Definition: leasehold.Definition{Path: "gpu", Backfill: true}})
	n := 0
	ask := func(kind string, units int) string {
		n++
		id := fmt.Sprint("id", n)
		do(&kernel.Acquire{Namespace: "default", Resource: "gpu", ID: id, Holder: id, Labels: ofKind(kind), Slots: units,
			Session: "s", Wait: leasehold.MaxWait})
		return id
	}
	for range 8 {
		id := ask("train", 1)
		at += time.Hour
		do(&kernel.Release{Namespace: "default", ID: id})
	}
	held := make([]string, 1024)
	for i := range held {
		held[i] = ask("train", 1)
	}
	at += time.Minute
	for i := range 1000 {
		ask("train", 8-i%16/2)
	}
	b.ReportAllocs()
	for b.Loop() {
		do(&kernel.Release{Namespace: "default", ID: held[n%1024]})
		n++
	}
}
