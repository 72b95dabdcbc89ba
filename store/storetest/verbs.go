package storetest

import (
	"errors"
	"sync"
	"time"

	"github.com/leasehold/leasehold"
	"github.com/leasehold/leasehold/store"
)

// Each verb is tried in each state that an id can be in: alone, and while somebody else holds the
// resource.

func verbTests() []test {
	return []test{
		{name: "acquire/free", run: acquireFree},
		{name: "acquire/held", run: acquireHeld},
		{name: "acquire/each state", run: inEachState(acquireIn, false)},
		{name: "acquire/each state, beside another", run: inEachState(acquireIn, true)},
		{name: "renew/each state", run: inEachState(renewIn, false)},
		{name: "renew/each state, beside another", run: inEachState(renewIn, true)},
		{name: "release/each state", run: inEachState(releaseIn, false)},
		{name: "release/each state, beside another", run: inEachState(releaseIn, true)},
		{name: "break/each state", run: inEachState(breakIn, false)},
		{name: "break/each state, beside another", run: inEachState(breakIn, true)},
	}
}

// A state is what became of an id.
type state string

const (
	unknown   state = "unknown"
	held      state = "held"
	released  state = "released"
	withdrawn state = "withdrawn" // released before it was known
	expired   state = "expired"
	broken    state = "broken"
)

var states = []state{unknown, held, released, withdrawn, expired, broken}

// expire is how long to wait until a lease of the usual TTL has surely ended.
func (k *kit) expire() { k.sleep(k.TTL + k.Late + k.Slack + time.Millisecond) }

// reach brings an id into a state.
func (k *kit) reach(s state, r store.Ref) (grant store.Grant) {
	k.Helper()
	if s == unknown {
		return grant
	}
	if s == withdrawn {
		k.release(r)
		return grant
	}
	grant = k.acquire(r)
	switch s {
	case released:
		k.release(r)
	case expired:
		k.expire()
	case broken:
		if _, err := k.breakLease(r); err != nil {
			k.Fatalf("break of %s failed: %v", r.ID, err)
		}
	}
	return grant
}

// inEachState runs a check for each state. beside lets somebody else hold the resource then, who
// must not notice anything.
func inEachState(check func(*kit, state, store.Ref, store.Grant, bool), beside bool) func(*kit) {
	return func(k *kit) {
		var wg sync.WaitGroup
		for _, s := range states {
			if beside && s == held {
				continue
			}
			wg.Go(func() {
				defer k.survive()
				r := k.ref(string(s), string(s))
				grant := k.reach(s, r)
				if !beside {
					check(k, s, r, grant, false)
					return
				}
				other := k.ref(string(s), "other-"+string(s))
				theirs := k.get(k.longer(other)) // it is not about time
				check(k, s, r, grant, true)
				if now := k.alive(other); now.Token != theirs.Token {
					k.Errorf("%s: the other holder had token %d and has %d now", s, theirs.Token, now.Token)
				}
			})
		}
		wg.Wait()
	}
}

func acquireIn(k *kit, s state, r store.Ref, before store.Grant, beside bool) {
	want := leasehold.Lost
	switch {
	case s == unknown && beside:
		want = leasehold.Held
	case s == unknown:
		k.acquire(r)
		return
	case s == held:
		if again := k.acquire(r); again.Token != before.Token || again.ID != r.ID {
			k.Errorf("acquired again, %s has token %d, and had %d", r.ID, again.Token, before.Token)
		}
		return
	}
	k.denied(k.request(r), want)
	if !beside {
		k.free(r.Resource)
	}
}

func renewIn(k *kit, s state, r store.Ref, before store.Grant, _ bool) {
	switch s {
	case held:
		if now := k.alive(r); now.Token != before.Token {
			k.Errorf("renewed, %s has token %d, and had %d", r.ID, now.Token, before.Token)
		}
	case released:
		k.over(r, leasehold.Released)
	case expired:
		k.over(r, leasehold.ByTTL)
	case broken:
		ending := k.over(r, leasehold.ByBreak)
		if k.ForgetsHow == "" && (ending.By != "operator" || ending.Reason != "maintenance") {
			k.Errorf("the end says that %q broke it because of %q", ending.By, ending.Reason)
		}
	default:
		ending := k.over(r, 0)
		if s == unknown && ending.How != 0 {
			k.Errorf("an id that was never used ended as %v", ending.How)
		}
	}
}

func releaseIn(k *kit, s state, r store.Ref, _ store.Grant, beside bool) {
	if s == held {
		// Its holder knows that it has it. The second time its first answer was lost.
		for range 2 {
			if err := k.store.Release(k.Context(), store.ReleaseRequest{Leases: []store.Ref{r}}); err != nil {
				k.Errorf("release of what is held: %v", err)
			}
		}
	}
	k.release(r)
	k.release(r) // its first answer may have been lost
	k.denied(k.request(r), leasehold.Lost)
	k.over(r, 0)
	if !beside {
		k.free(r.Resource)
	}
}

func breakIn(k *kit, s state, r store.Ref, before store.Grant, beside bool) {
	lease, err := k.breakLease(r)
	switch {
	case s == held:
		if err != nil || lease.ID != r.ID || lease.Token != before.Token {
			k.Errorf("break answers with %q and token %d (%v), want %q and %d", lease.ID, lease.Token, err, r.ID,
				before.Token)
		}
		k.over(r, leasehold.ByBreak)
	case s == broken && err == nil: // the first answer may have been lost
	case !errors.Is(err, leasehold.ErrNotFound) && !errors.Is(err, leasehold.ErrLost):
		k.Errorf("break of an id that is %s: the error is %s, want not-found or lost", s, describe(err))
	}
	if !beside {
		k.free(r.Resource)
	}
}

// acquireFree takes a free resource: everything that was said of the lease is read back.
func acquireFree(k *kit) {
	r := k.request(k.ref("r", "a"))
	r.Holder, r.Reason = "Jürgen \"jj\" O'Neil", "nightly report; 100 %"
	r.Labels = leasehold.Labels{{Key: "host", Value: "w-1"}, {Key: "who", Value: "jürgen"}}
	sent := time.Now()
	grant := k.get(r)
	took := time.Since(sent)
	l := grant.Lease
	if l.Resource != r.Resource || l.ID != r.ID || l.Holder != r.Holder || grant.Waited {
		k.Errorf("asked for %+v\ngranted %+v", r, grant)
	}
	if l.Token == 0 || l.Token > leasehold.MaxToken {
		k.Errorf("the token is %d: it must be above 0 and below 2^53", l.Token)
	}
	if l.Floor > l.Token {
		k.Errorf("the floor is %d and the token %d", l.Floor, l.Token)
	}
	if l.Remaining <= 0 || l.Remaining > k.TTL || l.Remaining < k.TTL-took-k.Slack {
		k.Errorf("%v remain of a lease that was asked for with %v, %v ago", l.Remaining, k.TTL, took)
	}
	status := k.look(r.Resource)
	if status.State != leasehold.Leased || len(status.Holders) != 1 {
		k.Fatalf("the resource is %v with %d holders", status.State, len(status.Holders))
	}
	seen := status.Holders[0]
	if seen.ID != r.ID || seen.Holder != r.Holder || seen.Reason != r.Reason || seen.Token != l.Token {
		k.Errorf("read shows %+v\nof %+v", seen, l)
	}
	if len(seen.Labels) != 2 || seen.Labels[0] != r.Labels[0] || seen.Labels[1] != r.Labels[1] {
		k.Errorf("read shows the labels %v, want %v", seen.Labels, r.Labels)
	}
}

func acquireHeld(k *kit) {
	first := k.ref("r", "a")
	grant := k.acquire(first)
	e := k.denied(k.request(k.ref("r", "b")), leasehold.Held)
	if e.Lease == nil || e.Lease.Holder != "holder of "+first.ID {
		k.Fatalf("the refusal does not say who holds it: %+v", e)
	}
	if e.Lease.Token != grant.Token || e.Lease.Remaining <= 0 || e.Lease.Remaining > k.TTL {
		k.Errorf("the refusal shows token %d and %v, want %d and at most %v", e.Lease.Token, e.Lease.Remaining,
			grant.Token, k.TTL)
	}
	if e.Position != 0 {
		k.Errorf("the refusal of a request that does not wait has the position %d", e.Position)
	}
	// It left no trace: it does not wait, and its id can be asked for again.
	k.release(first)
	k.acquire(k.ref("r", "b"))
}
