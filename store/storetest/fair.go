package storetest

import (
	"strconv"
	"time"

	"github.com/leasehold/leasehold"
	"github.com/leasehold/leasehold/store"
)

// What holds for waiting in a store with a fair queue.

func fairTests() []test {
	fair := []store.Power{store.FairQueue}
	return []test{
		{name: "queue/first come, first served", run: firstComeFirstServed, needs: fair},
		{name: "queue/position", run: position, needs: fair},
		{name: "queue/outlives the call", run: outlivesTheCall, needs: fair},
		{name: "queue/a dead waiter is skipped", run: deadWaiter, needs: fair},
		{name: "queue/a withdrawn waiter is skipped", run: withdrawnWaiter, needs: fair},
		{name: "queue/a broken waiter is skipped", run: brokenWaiter, needs: fair},
		{name: "queue/nobody overtakes", run: nobodyOvertakes, needs: fair},
	}
}

// line makes waiters wait for a resource, one after the other.
func (k *kit) line(resource string, ids ...string) []*try {
	k.Helper()
	tries := make([]*try, len(ids))
	for i, id := range ids {
		tries[i] = k.waitFor(resource, id)
		k.queued(k.res(resource), i+1)
	}
	return tries
}

// wakes is how long it takes at most until the next waiter has a resource that was given back.
func (k *kit) wakes() time.Duration { return k.Wake + k.Slack + time.Millisecond }

func firstComeFirstServed(k *kit) {
	k.get(k.longer(k.ref("r", "a")))
	ids := []string{"b", "c", "d", "e"}
	tries := k.line("r", ids...)
	last := "a"
	for i, id := range ids {
		k.release(k.ref("r", last))
		if grant, err := k.await(tries[i], k.wakes()); err != nil {
			k.Fatalf("%s is next, and its wait ended with token %d, error %s", id, grant.Token, describe(err))
		}
		for _, later := range tries[i+1:] {
			k.pending(later)
		}
		last = id
	}
}

func position(k *kit) {
	k.get(k.longer(k.ref("r", "a")))
	k.line("r", "b", "c")
	for i, id := range []string{"b", "c"} {
		e := k.denied(k.request(k.ref("r", id)), leasehold.Held)
		if e.Position != i+1 {
			k.Errorf("%s has position %d, want %d", id, e.Position, i+1)
		}
	}
	status := k.look(k.res("r"))
	if status.Waiting != 2 || len(status.Queue) != 2 {
		k.Fatalf("%d wait, and the queue shows %d", status.Waiting, len(status.Queue))
	}
	for i, id := range []string{"b", "c"} {
		if w := status.Queue[i]; w.ID != k.id(id) || w.Position != i+1 || w.Holder != "holder of "+k.id(id) {
			k.Errorf("number %d of the queue is %+v", i+1, w)
		}
	}
}

// A waiter whose call was lost asks again, and still has its place.
func outlivesTheCall(k *kit) {
	k.get(k.longer(k.ref("r", "a")))
	b := k.line("r", "b")[0]
	b.cancel()
	<-b.done
	c := k.waitFor("r", "c")
	k.queued(k.res("r"), 2)
	r := k.request(k.ref("r", "b"))
	r.Wait = k.awhile()
	asks := b.store
	if k.features.Has(store.Detached) {
		asks = k.second()
	}
	again := k.begin(asks, r)
	k.sleep(k.TTL / 10)
	k.release(k.ref("r", "a"))
	k.waited(again, "r", "b", k.wakes())
	k.pending(c)
}

// deadWaiter lets the first waiter die. The queue must not stop at it.
func deadWaiter(k *kit) {
	a := k.ref("r", "a")
	k.get(k.longer(a))
	tries := k.line("r", "b", "c")
	tries[0].cancel()
	<-tries[0].done
	k.sleep(k.WaiterLife + k.Late + k.Slack + time.Millisecond)
	k.release(a)
	k.waited(tries[1], "r", "c", k.wakes())
	k.over(k.ref("r", "b"), 0)
}

func withdrawnWaiter(k *kit) {
	k.get(k.longer(k.ref("r", "a")))
	tries := k.line("r", "b", "c")
	k.release(k.ref("r", "b"))
	k.queued(k.res("r"), 1)
	k.release(k.ref("r", "a"))
	k.waited(tries[1], "r", "c", k.wakes())
	if _, err := k.await(tries[0], k.awhile()); err == nil {
		k.Errorf("a waiter that was withdrawn was granted")
	}
}

func brokenWaiter(k *kit) {
	k.get(k.longer(k.ref("r", "a")))
	tries := k.line("r", "b", "c")
	if _, err := k.breakLease(k.ref("r", "b")); err != nil {
		k.Fatalf("break of a waiter: %v", err)
	}
	k.queued(k.res("r"), 1)
	k.release(k.ref("r", "a"))
	k.waited(tries[1], "r", "c", k.wakes())
	if _, err := k.await(tries[0], k.awhile()); err == nil {
		k.Errorf("a waiter that was broken was granted")
	}
	k.denied(k.request(k.ref("r", "b")), leasehold.Lost)
}

// While somebody waits, those who come later and do not wait get nothing, also at the moment of a
// hand-over.
func nobodyOvertakes(k *kit) {
	k.get(k.longer(k.ref("r", "a")))
	tries := k.line("r", "b", "c", "d")
	last := "a"
	for i, id := range []string{"b", "c", "d"} {
		k.release(k.ref("r", last))
		for n := range 5 {
			r := k.request(k.ref("r", "pushy-"+strconv.Itoa(10*i+n)))
			if grant, err := k.ask(r); err == nil {
				k.Fatalf("somebody who does not wait got token %d before %s", grant.Token, id)
			}
		}
		k.waited(tries[i], "r", id, k.wakes())
		last = id
	}
}
