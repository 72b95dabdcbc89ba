package kernel_test

import (
	"fmt"
	"math/rand/v2"
	"runtime"
	"testing"
	"time"

	"github.com/leasehold/leasehold"
	"github.com/leasehold/leasehold/internal/core"
)

// A town is a state with many leases in it, and the means to go on. What a command
// costs must not depend on how many there are: the aim is at most four times the time
// at a million as at a thousand, and the same allocations.
type town struct {
	state  *core.State
	chance *rand.Rand
	now    time.Duration
	step   time.Duration // that passes with each command
	made   int
	turn   int

	paths    []string // of the resources that are held
	ids      []string // of the leases on them
	sessions []string
	entry    [1]core.Command
	from     []core.From // who asks; empty: nobody is asked who it is
}

// Towns are built once, since that takes longer than to measure in them. Every
// measurement leaves as many leases as it found.
var towns = map[int]*town{}

var sizes = []int{1000, 1000000}

// inTowns measures in a small town and in a large one.
func inTowns(b *testing.B, op func(t *town)) {
	for _, leases := range sizes {
		b.Run(fmt.Sprint("leases=", leases), func(b *testing.B) {
			t := townOf(leases)
			b.ReportAllocs()
			for b.Loop() {
				op(t)
			}
		})
	}
}

func townOf(leases int) *town {
	if towns[leases] == nil {
		towns[leases] = newTown(leases)
	}
	return towns[leases]
}

// newTown has leases with a TTL of their own, and one in ten with a session. Ids are
// random, as those of clients are: neighbours in a tree are far apart in memory.
func newTown(leases int) *town {
	t := &town{state: core.NewAt(core.NewestLevel), chance: rand.New(rand.NewPCG(1, 1)), step: tenth}
	return t.settle(leases)
}

// settle fills a town.
func (t *town) settle(leases int) *town {
	for i := range leases {
		c := &core.Acquire{
			Namespace: leasehold.DefaultNamespace, Resource: fmt.Sprintf("reports/%08d", i), ID: t.randomID(),
			Holder: fmt.Sprintf("worker-%d", i%1000), TTL: leasehold.MaxTTL,
		}
		if i%10 == 0 {
			session := t.randomID()
			t.do(&core.OpenSession{Namespace: leasehold.DefaultNamespace, ID: session, TTL: leasehold.MaxTTL})
			t.sessions = append(t.sessions, session)
			c.TTL, c.Session = 0, session
		}
		t.do(c)
		t.paths, t.ids = append(t.paths, c.Resource), append(t.ids, c.ID)
	}
	return t
}

func (t *town) do(c core.Command) core.Answer { return t.apply(c).Answers[0] }

// tenth of a second: as much time passes with each command, so that what is remembered
// for ten minutes is a few thousand things, in small towns and large ones.
const tenth = 100 * time.Millisecond

func (t *town) apply(c core.Command) core.Result {
	t.now += t.step
	t.entry[0] = c
	result, err := t.state.Apply(stampOf(t.now), wallOf(t.now), t.entry[:], t.from...)
	if err != nil {
		panic(err)
	}
	if failure := result.Answers[0].Err; failure != nil && failure.Code != leasehold.Held {
		panic(failure)
	}
	return result
}

func (t *town) name(what string) string {
	t.made++
	return fmt.Sprintf("%s-%09d", what, t.made)
}

func (t *town) randomID() string {
	return fmt.Sprintf("%016x%016x", t.chance.Uint64(), t.chance.Uint64())
}

func (t *town) any() int { return t.chance.IntN(len(t.ids)) }

// BenchmarkAcquireRelease takes names at random: those that ascend are always next to each other in memory.
func BenchmarkAcquireRelease(b *testing.B) {
	inTowns(b, func(t *town) {
		id := t.randomID()
		t.do(&core.Acquire{Namespace: leasehold.DefaultNamespace, Resource: id, ID: id, Holder: "ann", TTL: time.Hour})
		t.do(&core.Release{Namespace: leasehold.DefaultNamespace, ID: id})
	})
}

func BenchmarkRenew(b *testing.B) {
	inTowns(b, func(t *town) {
		t.do(&core.Renew{Namespace: leasehold.DefaultNamespace, ID: t.ids[t.any()]})
	})
}

func BenchmarkRenewSession(b *testing.B) {
	inTowns(b, func(t *town) {
		t.do(&core.RenewSession{Namespace: leasehold.DefaultNamespace, ID: t.sessions[t.chance.IntN(len(t.sessions))]})
	})
}

func BenchmarkChange(b *testing.B) {
	inTowns(b, func(t *town) {
		t.do(&core.Change{Namespace: leasehold.DefaultNamespace, ID: t.ids[t.any()], Holder: t.name("holder")})
	})
}

// BenchmarkBreak is an acquire, a break that leaves a minute, and one that leaves nothing.
func BenchmarkBreak(b *testing.B) {
	inTowns(b, func(t *town) {
		id := t.name("new")
		t.do(&core.Acquire{Namespace: leasehold.DefaultNamespace, Resource: id, ID: id, Holder: "ann", TTL: time.Hour})
		t.do(&core.Break{Namespace: leasehold.DefaultNamespace, ID: id, By: "root", Period: time.Minute})
		t.do(&core.Break{Namespace: leasehold.DefaultNamespace, ID: id, By: "root"})
	})
}

func BenchmarkHeld(b *testing.B) {
	inTowns(b, func(t *town) {
		t.do(&core.Acquire{Namespace: leasehold.DefaultNamespace, Resource: t.paths[t.any()], ID: "late", Holder: "bob", TTL: time.Hour})
	})
}

// BenchmarkHandOver is an acquire that waits and the release that it waits for.
func BenchmarkHandOver(b *testing.B) {
	inTowns(b, func(t *town) {
		i, id := t.any(), t.name("new")
		t.do(&core.Acquire{
			Namespace: leasehold.DefaultNamespace, Resource: t.paths[i], ID: id, Holder: "bob", TTL: leasehold.MaxTTL, Wait: time.Hour,
		})
		t.do(&core.Release{Namespace: leasehold.DefaultNamespace, ID: t.ids[i]})
		t.ids[i] = id
	})
}

// BenchmarkExpire is an acquire and the tick that ends it.
func BenchmarkExpire(b *testing.B) {
	inTowns(b, func(t *town) {
		id := t.name("new")
		t.do(&core.Acquire{Namespace: leasehold.DefaultNamespace, Resource: id, ID: id, Holder: "ann", TTL: leasehold.MinTTL})
		if result := t.apply(&core.Tick{}); len(result.Events) < 2 { // the end, and the alarm of it
			panic("the tick did not end it")
		}
	})
}

// BenchmarkRenewInTurn renews the lease that would end first, as happens when all have
// the same TTL, and asks what is due, as the pacemaker does after every entry.
func BenchmarkRenewInTurn(b *testing.B) {
	inTowns(b, func(t *town) {
		t.turn = (t.turn + 1) % len(t.ids)
		t.do(&core.Renew{Namespace: leasehold.DefaultNamespace, ID: t.ids[t.turn]})
		t.state.DueBy(core.Time(t.now))
	})
}

func BenchmarkStatus(b *testing.B) {
	inTowns(b, func(t *town) {
		status := t.state.View(0).Status(leasehold.DefaultNamespace, t.paths[t.any()], 10)
		if len(status.Holders) != 1 {
			panic("it is not held")
		}
	})
}

// BenchmarkFreeze is how long a snapshot holds up the log.
func BenchmarkFreeze(b *testing.B) {
	inTowns(b, func(t *town) { t.state.Freeze() })
}

// BenchmarkAfterFreeze is the cost of the first thousand renewals after a snapshot began,
// when the parts of the trees that they change are still shared with it.
func BenchmarkAfterFreeze(b *testing.B) {
	for _, leases := range sizes {
		b.Run(fmt.Sprint("leases=", leases), func(b *testing.B) {
			t := townOf(leases)
			b.ReportAllocs()
			slowest := time.Duration(0)
			for b.Loop() {
				frozen := t.state.Freeze()
				for range 1000 {
					begun := time.Now()
					t.do(&core.Renew{Namespace: leasehold.DefaultNamespace, ID: t.ids[t.any()]})
					slowest = max(slowest, time.Since(begun))
				}
				runtime.KeepAlive(frozen)
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/1000, "ns/command")
			b.ReportMetric(float64(slowest.Microseconds()), "slowest-µs")
		})
	}
}

// BenchmarkOneDies renews all leases and then ends one that nobody renewed. The figure to
// look at is how long that last entry took: it must not pay for all the others.
func BenchmarkOneDies(b *testing.B) {
	for _, leases := range sizes {
		b.Run(fmt.Sprint("leases=", leases), func(b *testing.B) {
			t := townOf(leases)
			slowest := time.Duration(0)
			for b.Loop() {
				t.step = time.Microsecond
				id := t.name("new")
				t.do(&core.Acquire{Namespace: leasehold.DefaultNamespace, Resource: id, ID: id, Holder: "ann", TTL: time.Hour})
				for i := range t.ids {
					t.do(&core.Renew{Namespace: leasehold.DefaultNamespace, ID: t.ids[i]})
				}
				begun := time.Now()
				t.do(&core.Release{Namespace: leasehold.DefaultNamespace, ID: id})
				t.state.Due()
				slowest = max(slowest, time.Since(begun))
				t.step = tenth
			}
			b.ReportMetric(float64(slowest.Microseconds()), "slowest-µs")
		})
	}
}

// BenchmarkMemory builds a town and weighs it.
func BenchmarkMemory(b *testing.B) {
	const leases = 1000000
	b.Run(fmt.Sprint("leases=", leases), func(b *testing.B) {
		for b.Loop() {
			before := heap()
			t := newTown(leases)
			t.paths, t.ids = nil, nil // of which the state has its own
			b.ReportMetric(float64(heap()-before)/leases, "bytes/lease")
			runtime.KeepAlive(t)
		}
	})
}

func heap() int64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

// BenchmarkQueue hands a resource over in a queue that stays as long as it is: a release,
// and a newcomer at the end. What it costs must not depend on the length.
func BenchmarkQueue(b *testing.B) {
	for _, length := range []int{10, 10000} {
		b.Run(fmt.Sprint("waiters=", length), func(b *testing.B) {
			t := newTown(1000) // of its own: the queue stays
			stand := func(i int) string {
				id := fmt.Sprintf("q%08d", i)
				t.do(&core.Acquire{Namespace: leasehold.DefaultNamespace, Resource: "queue", ID: id, Holder: "ann", TTL: 24 * time.Hour, Wait: 24 * time.Hour})
				return id
			}
			t.step = time.Nanosecond // nobody's sign of life is missed
			var ids []string
			for i := range length + 1 {
				ids = append(ids, stand(i))
			}
			b.ReportAllocs()
			for i := length + 1; b.Loop(); i++ {
				t.do(&core.Release{Namespace: leasehold.DefaultNamespace, ID: ids[0]})
				ids = append(ids[1:], stand(i))
			}
		})
	}
}
