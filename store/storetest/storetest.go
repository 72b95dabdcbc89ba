package storetest

import (
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/leasehold/leasehold/store"
)

// Config says what to test, and what the harness can do with it.
type Config struct {
	// Open opens the store. It is called for each case, and more than once if a case needs
	// several handles and there is no Second. The suite closes the handles.
	Open func(t testing.TB) store.Store

	// Second opens another handle on what an open one shows, as another process would. Nil: Open
	// does that.
	Second func(t testing.TB, first store.Store) store.Store

	// Virtual runs each case in a testing/synctest bubble. The store must keep its time by package
	// time, and Open must give each case a state of its own.
	Virtual bool

	// TTL is that of nearly all leases. In real time it decides how long the suite takes. 0: one
	// second, or the shortest that the store allows.
	TTL time.Duration

	// Late is how long after its TTL a lease may still be held, and MassLate is that for 100 that
	// end at once; 0: Late.
	Late, MassLate time.Duration

	// Slack is how late this machine may be. 0: half a second in real time.
	Slack time.Duration

	// Wake is how long after a release a waiter may still wait. 0: a second in real time.
	Wake time.Duration

	// WaiterLife is how long a waiter that no longer asks keeps its place in the queue. 0: the TTL.
	WaiterLife time.Duration

	// ForgetsHow is why the store cannot tell how a lease ended, by whom and why. Empty: it can.
	ForgetsHow string

	// Full runs the long form, which takes a minute or more in real time: contenders go on for ten
	// times as long, and the store is killed in their midst.
	Full bool

	brief bool // the short form even in virtual time: for tests of the suite

	// Names are further names of resources that have to work.
	Names []string

	// Omit says why cases are left out, by their names.
	Omit map[string]string

	// Apart opens another store, which has a server of its own, for the cases that do to it what
	// others would notice. They run one after the other, but at the same time as all others. Nil: they
	// run on the store of Open, after the others.
	Apart func(t testing.TB) store.Store

	// What follows does something to the store: that of Apart, if there is one. Nil: it cannot be
	// done, and is left out.
	Restart func(t testing.TB)                 // ends the store and starts it again, so that it answers
	Kill    func(t testing.TB)                 // the same without a chance to write anything
	Hang    func(t testing.TB) (resume func()) // makes it silent
	Wipe    func(t testing.TB)                 // deletes everything that it has

	// What follows leaves the store as it is. Nil: it cannot be done, and is left out.
	Denied  func(t testing.TB) store.Store // opens a handle of the store of Open that may do nothing
	Clock   func(t testing.TB) Clock       // starts a store for one case, whose clock can be set
	Standby func(t testing.TB) Standby     // starts a store for one case, with a standby
}

// A Clock is a store that judges by a wall clock which can be set.
type Clock struct {
	Open func(t testing.TB) store.Store
	Step func(by time.Duration) // sets it forward, or back
}

// A Standby is a store whose server has another that follows it and can take its place.
type Standby struct {
	Open func(t testing.TB) store.Store // opens the store, at whichever server it is

	// Lag waits until the standby has all that was written, and keeps from it whatever comes later.
	Lag func()

	// Promote ends the server and puts the standby into its place.
	Promote func()
}

// A test is one case of the suite.
type test struct {
	name  string
	run   func(*kit)
	needs []store.Power
	lacks func(*Config) string // why it cannot run; empty: it can
	alone bool                 // it does something to the store that others would notice
	own   bool                 // it starts servers of its own: in the long form, while nothing else begins
}

// tests returns all cases.
func tests() []test {
	return slices.Concat(verbTests(), idTests(), tokenTests(), timeTests(), renewTests(), queueTests(),
		fairTests(), readTests(), nameTests(), messageTests(), contenderTests(), clientTests(),
		powerTests(), clockTests(), faultTests())
}

// Run runs the suite.
func Run(t *testing.T, c Config) {
	f := c.features(t)
	left := c.lacking(f)
	var together, alone []test
	for _, one := range tests() {
		switch why := c.leavesOut(f, one); {
		case why == lacking:
		case why != "":
			left = append(left, one.name+": "+why)
		case one.alone || one.own && !c.short():
			alone = append(alone, one)
		default:
			together = append(together, one)
		}
	}
	if c.Virtual {
		for _, one := range slices.Concat(together, alone) {
			t.Run(one.name, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) { report(t, c.check(t, one)) })
			})
		}
	} else {
		c.runReal(t, together, alone)
	}
	if len(left) > 0 {
		t.Logf("left out:\n\t%s", strings.Join(left, "\n\t"))
	}
}

// runReal runs cases at the same time, and those that have to be alone one after the other. It does so
// by itself, because go test runs only as many at once as there are processors, and these cases sleep.
func (c Config) runReal(t *testing.T, together, alone []test) {
	list := slices.Concat(together, alone)
	results := make([]result, len(list))
	var wg sync.WaitGroup
	for i, one := range together {
		wg.Go(func() { results[i] = c.check(t, one) })
	}
	apart := c
	if c.Apart == nil {
		wg.Wait()
	} else {
		apart.Open = c.Apart
	}
	for i, one := range alone {
		results[len(together)+i] = apart.check(t, one)
	}
	wg.Wait()
	for i, one := range list {
		t.Run(one.name, func(t *testing.T) { report(t, results[i]) })
	}
}

// features asks the store what it can do.
func (c Config) features(t *testing.T) (f store.Features) {
	look := func(t *testing.T) {
		s := c.Open(t)
		f = s.Features()
		_ = s.Close()
	}
	if c.Virtual {
		synctest.Test(t, look)
	} else {
		look(t)
	}
	return f
}

// leavesOut returns why a case is left out; empty if it is not.
func (c Config) leavesOut(f store.Features, one test) string {
	if why := c.Omit[one.name]; why != "" {
		return why
	}
	if one.lacks != nil {
		if why := one.lacks(&c); why != "" {
			return why
		}
	}
	for _, p := range one.needs {
		if !f.Has(p) {
			return lacking
		}
	}
	return ""
}

// lacking is why a case is left out that needs a power which the store does not have.
const lacking = "the store cannot do it"

// lacking returns the powers that the store does not have, in one line if there are any.
func (c Config) lacking(f store.Features) []string {
	var names []string
	for _, one := range tests() {
		if c.leavesOut(f, one) == lacking {
			names = append(names, one.name)
		}
	}
	if names == nil {
		return nil
	}
	return []string{"what " + f.Store + " cannot do: " + strings.Join(names, ", ")}
}

// A result is what a case came to.
type result struct {
	failures []string
	logs     []string
	skipped  string
	took     time.Duration
}

func (r result) failed() bool { return len(r.failures) > 0 }

func report(t *testing.T, r result) {
	t.Helper()
	for _, line := range r.logs {
		t.Log(line)
	}
	for _, failure := range r.failures {
		t.Error(failure)
	}
	if r.took > 0 {
		t.Logf("took %v", r.took.Round(time.Millisecond))
	}
	if r.skipped != "" {
		t.Skip(r.skipped)
	}
}

// check runs one case and returns what it came to. The store may do anything, also what blocks or
// panics.
func (c Config) check(t testing.TB, one test) result {
	began := time.Now()
	tb := newRecorder(t, one.name)
	done := make(chan struct{})
	go func() {
		defer close(done)
		defer tb.finish()
		defer func() {
			if p := recover(); p != nil {
				tb.Errorf("panic: %v", p)
			}
		}()
		one.run(newKit(tb, c))
	}()
	<-done
	r := tb.result()
	if r.took = time.Since(began); c.Virtual {
		r.took = 0
	}
	return r
}
