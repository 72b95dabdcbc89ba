package storetest

import (
	"errors"
	"time"

	"github.com/leasehold/leasehold"
)

// What holds for waiting in every store, whether its queue is fair or not.

func queueTests() []test {
	return []test{
		{name: "wait/until a release", run: waitForRelease},
		{name: "wait/until the end of the TTL", run: waitForExpiry},
		{name: "wait/until a break", run: waitForBreak},
		{name: "wait/is over", run: waitIsOver},
		{name: "wait/withdrawn", run: waitWithdrawn},
		{name: "wait/cancelled", run: waitCancelled},
		{name: "wait/for what is free", run: waitForFree},
	}
}

// awhile is longer than any wait in the suite.
func (k *kit) awhile() time.Duration { return 5*k.TTL + k.WaiterLife + k.Late + k.Slack + k.Wake }

// waitFor begins to wait for a resource.
func (k *kit) waitFor(resource, id string) *try {
	r := k.request(k.ref(resource, id))
	r.Wait = k.awhile()
	return k.begin(k.second(), r)
}

// waited checks the grant of a try that waited, and that it lives once it is renewed.
func (k *kit) waited(t *try, resource, id string, most time.Duration) {
	k.Helper()
	grant, err := k.await(t, most)
	if err != nil {
		k.Fatalf("the wait of %s ended with: %s", id, describe(err))
	}
	if !grant.Waited {
		k.Errorf("%s waited, and its grant does not say so: its holder would count from before the wait", id)
	}
	if now := k.owner(t.store).alive(k.ref(resource, id)); now.Token != grant.Token {
		k.Errorf("%s was granted token %d, and has %d", id, grant.Token, now.Token)
	}
}

func waitForRelease(k *kit) {
	first := k.get(k.longer(k.ref("r", "a")))
	b := k.waitFor("r", "b")
	k.sleep(k.TTL / 4)
	k.pending(b)
	k.release(k.ref("r", "a"))
	k.waited(b, "r", "b", k.Wake+k.Slack+time.Millisecond)
	k.larger(b.grant, first.Token, "a wait")
}

func waitForExpiry(k *kit) {
	sent := time.Now()
	k.acquire(k.ref("r", "a"))
	b := k.waitFor("r", "b")
	k.waited(b, "r", "b", k.TTL+k.Late+k.Wake+k.Slack+time.Millisecond)
	if early := sent.Add(k.TTL).Sub(b.at); early > 0 {
		k.Errorf("it was granted %v before the lease in the way had ended", early)
	}
}

func waitForBreak(k *kit) {
	k.get(k.longer(k.ref("r", "a")))
	b := k.waitFor("r", "b")
	k.sleep(k.TTL / 4)
	if _, err := k.breakLease(k.ref("r", "a")); err != nil {
		k.Fatalf("break: %v", err)
	}
	k.waited(b, "r", "b", k.Wake+k.Slack+time.Millisecond)
}

func waitIsOver(k *kit) {
	a := k.ref("r", "a")
	k.get(k.longer(a))
	r := k.request(k.ref("r", "b"))
	r.Wait = k.TTL
	sent := time.Now()
	e := k.denied(r, leasehold.Held)
	if took := time.Since(sent); took < r.Wait || took > r.Wait+k.Slack+k.Wake+time.Millisecond {
		k.Errorf("a wait of %v was over after %v", r.Wait, took)
	}
	if e.Lease == nil || e.Lease.ID != a.ID {
		k.Errorf("the refusal does not say who holds it: %+v", e)
	}
	// It is not in the way of others.
	if now := k.look(a.Resource); now.Waiting != 0 {
		k.Errorf("the wait is over, and %d still wait", now.Waiting)
	}
	k.release(a)
	k.free(a.Resource)
	k.release(k.ref("r", "b"))
	k.denied(k.request(k.ref("r", "b")), leasehold.Lost)
}

// A waiter that is withdrawn gets nothing, and its call ends.
func waitWithdrawn(k *kit) {
	k.get(k.longer(k.ref("r", "a")))
	b := k.waitFor("r", "b")
	k.sleep(k.TTL / 4)
	k.release(k.ref("r", "b"))
	k.release(k.ref("r", "a"))
	k.free(k.res("r"))
	if grant, err := k.await(b, k.awhile()+limit); !errors.Is(err, leasehold.ErrLost) {
		k.Errorf("the call of a waiter that was withdrawn: token %d, error %s, want lost", grant.Token, describe(err))
	}
	k.free(k.res("r"))
	k.denied(k.request(k.ref("r", "b")), leasehold.Lost)
}

// A call ends with its context. What it asked for is not held by anybody for longer than a waiter lives.
func waitCancelled(k *kit) {
	k.get(k.longer(k.ref("r", "a")))
	b := k.waitFor("r", "b")
	k.sleep(k.TTL / 4)
	b.cancel()
	if grant, err := k.await(b, k.Slack+k.Wake+time.Millisecond); err == nil {
		k.Fatalf("a call that was cancelled got token %d", grant.Token)
	} else if e := (*leasehold.Error)(nil); errors.As(err, &e) && e.Code != leasehold.Undecided {
		k.Errorf("a call that was cancelled: the error is %s, and nobody can know that", describe(err))
	}
	k.release(k.ref("r", "b"))
	k.release(k.ref("r", "a"))
	k.free(k.res("r"))
}

func waitForFree(k *kit) {
	r := k.request(k.ref("r", "a"))
	r.Wait = k.awhile()
	if grant := k.get(r); grant.Token == 0 {
		k.Errorf("granted %+v", grant)
	}
}
