package storetest

import (
	"context"
	"crypto/rand"
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/leasehold/leasehold"
	"github.com/leasehold/leasehold/store"
)

// A kit is what a case works with: a store, names that nobody else uses, and the verbs. A verb
// without an error in its results fails the case if the store says no.
type kit struct {
	testing.TB
	Config
	store    store.Store
	features store.Features
	salt     string
}

func newKit(t testing.TB, c Config) *kit {
	s := c.Open(t)
	t.Cleanup(func() { _ = s.Close() })
	k := &kit{TB: t, Config: c, store: s, features: s.Features(), salt: strings.ToLower(rand.Text()[:10])}
	k.defaults()
	return k
}

// defaults fills in what the configuration leaves open.
func (k *kit) defaults() {
	if k.TTL == 0 {
		k.TTL = max(time.Second, k.features.MinTTL)
	}
	if k.MassLate == 0 {
		k.MassLate = k.Late
	}
	if k.WaiterLife == 0 {
		k.WaiterLife = k.TTL
	}
	if k.Slack == 0 && !k.Virtual {
		k.Slack = 500 * time.Millisecond
	}
	if k.Wake == 0 && !k.Virtual {
		k.Wake = time.Second
	}
}

// res makes the name of a resource of this case; id that of a lease.
func (k *kit) res(name string) string { return "storetest/" + k.salt + "/" + name }
func (k *kit) id(name string) string  { return k.salt + "-" + name }

func (k *kit) ref(resource, id string) store.Ref {
	return store.Ref{Resource: k.res(resource), ID: k.id(id)}
}

// second opens another handle.
func (k *kit) second() store.Store {
	if k.Second == nil {
		s := k.Open(k.TB)
		k.Cleanup(func() { _ = s.Close() })
		return s
	}
	s := k.Second(k.TB, k.store)
	k.Cleanup(func() { _ = s.Close() })
	return s
}

// limit is how long a call may take that does not wait.
const limit = 30 * time.Second

// within returns a context for a call that takes at most d, and a little more.
func (k *kit) within(d time.Duration) (context.Context, context.CancelFunc) {
	return context.WithTimeout(k.Context(), d+limit)
}

// request returns a request for a lease on a resource.
func (k *kit) request(r store.Ref) store.Request {
	return store.Request{Resource: r.Resource, ID: r.ID, Holder: "holder of " + r.ID, TTL: k.TTL}
}

// ask sends a request.
func (k *kit) ask(r store.Request) (store.Grant, error) { return k.askOf(k.store, r) }

func (k *kit) askOf(s store.Store, r store.Request) (store.Grant, error) {
	ctx, cancel := k.within(r.Wait)
	defer cancel()
	return s.Acquire(ctx, r)
}

// acquire gets a lease.
func (k *kit) acquire(r store.Ref) store.Grant {
	k.Helper()
	return k.get(k.request(r))
}

func (k *kit) get(r store.Request) store.Grant {
	k.Helper()
	grant, err := k.ask(r)
	if err != nil {
		k.Fatalf("%s was not granted to %s: %v", r.Resource, r.ID, err)
	}
	return grant
}

// denied asks for a lease, which must be refused with a code. It returns the error.
func (k *kit) denied(r store.Request, code leasehold.Code) *leasehold.Error {
	k.Helper()
	grant, err := k.ask(r)
	return k.refused(err, code, "acquire of %s by %s, answered with token %d", r.Resource, r.ID, grant.Token)
}

// refused fails unless err is an error of one of a code.
func (k *kit) refused(err error, code leasehold.Code, what string, args ...any) *leasehold.Error {
	k.Helper()
	var e *leasehold.Error
	if !errors.As(err, &e) || e.Code != code {
		k.Fatalf(what+": the error is %s, want %v", append(args, describe(err), code)...)
	}
	return e
}

func describe(err error) string {
	var e *leasehold.Error
	switch {
	case err == nil:
		return "none"
	case errors.As(err, &e):
		return e.Code.String() + " (" + err.Error() + ")"
	}
	return err.Error()
}

// renew renews one lease.
func (k *kit) renew(r store.Ref) store.Renewal {
	k.Helper()
	return k.renewAll(r)[0]
}

func (k *kit) renewAll(refs ...store.Ref) []store.Renewal {
	k.Helper()
	ctx, cancel := k.within(0)
	defer cancel()
	list, err := k.store.Renew(ctx, refs...)
	if err != nil {
		k.Fatalf("renew failed: %v", err)
	}
	if len(list) != len(refs) {
		k.Fatalf("renew of %d leases answers for %d", len(refs), len(list))
	}
	return list
}

// alive fails unless a lease can be renewed.
func (k *kit) alive(r store.Ref) store.Renewal {
	k.Helper()
	renewal := k.renew(r)
	if renewal.Ended != nil || renewal.Err != nil {
		k.Fatalf("%s on %s is not renewed: %s", r.ID, r.Resource, ended(renewal))
	}
	return renewal
}

// over fails unless a lease cannot be renewed because it ended in a way; 0: in any way, or the
// store does not know it.
func (k *kit) over(r store.Ref, how leasehold.How) *leasehold.Ending {
	k.Helper()
	renewal := k.renew(r)
	if renewal.Ended == nil {
		k.Fatalf("renew of %s on %s: %s, want that it is over (%v)", r.ID, r.Resource, ended(renewal), how)
	}
	if how != 0 && k.ForgetsHow == "" && renewal.Ended.How != how {
		k.Errorf("renew of %s on %s: it ended as %v, want %v", r.ID, r.Resource, renewal.Ended.How, how)
	}
	return renewal.Ended
}

func ended(r store.Renewal) string {
	switch {
	case r.Err != nil:
		return "the error is " + describe(r.Err)
	case r.Ended != nil:
		return "it ended as " + r.Ended.How.String()
	}
	return "it goes on for " + r.Remaining.String()
}

// release gives leases back, whether or not the store knows them.
func (k *kit) release(refs ...store.Ref) {
	k.Helper()
	ctx, cancel := k.within(0)
	defer cancel()
	if err := k.store.Release(ctx, store.ReleaseRequest{Leases: refs, Withdraw: true}); err != nil {
		k.Fatalf("release of %v failed: %v", refs, err)
	}
}

// breakLease breaks a lease as an operator.
func (k *kit) breakLease(r store.Ref) (leasehold.Lease, error) {
	ctx, cancel := k.within(0)
	defer cancel()
	return k.store.Break(ctx, store.BreakRequest{Ref: r, By: "operator", Reason: "maintenance"})
}

// look reads a resource.
func (k *kit) look(resource string) store.Resource {
	k.Helper()
	ctx, cancel := k.within(0)
	defer cancel()
	r, err := k.store.Read(ctx, resource)
	if err != nil {
		k.Fatalf("read of %s failed: %v", resource, err)
	}
	return r
}

// free fails unless somebody new gets a resource at once. It gives it back.
func (k *kit) free(resource string) store.Grant {
	k.Helper()
	r := store.Ref{Resource: resource, ID: k.id("probe-" + rand.Text())}
	grant := k.acquire(r)
	k.release(r)
	return grant
}

// owner returns the kit with a handle that acquired something, if the store has no detached leases: then
// no other can renew them, or ask for them again.
func (k *kit) owner(s store.Store) *kit {
	if k.features.Has(store.Detached) {
		return k
	}
	owner := *k
	owner.store = s
	return &owner
}

// A try is an acquire that is under way.
type try struct {
	store  store.Store
	grant  store.Grant
	err    error
	done   chan struct{}
	at     time.Time // when it was answered
	cancel context.CancelFunc
}

// begin sends a request that may wait. It is cancelled at the end of the case.
func (k *kit) begin(s store.Store, r store.Request) *try {
	t := &try{store: s, done: make(chan struct{})}
	ctx, cancel := k.within(r.Wait)
	t.cancel = cancel
	go func() {
		defer close(t.done)
		defer k.survive()
		t.grant, t.err = s.Acquire(ctx, r)
		t.at = time.Now()
	}()
	k.Cleanup(func() { cancel(); <-t.done })
	return t
}

// await waits for the answer of a try for at most d.
func (k *kit) await(t *try, d time.Duration) (store.Grant, error) {
	k.Helper()
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-t.done:
		return t.grant, t.err
	case <-timer.C:
		k.Fatalf("an acquire was not answered within %v", d)
		return store.Grant{}, nil
	}
}

// pending fails if a try was answered.
func (k *kit) pending(t *try) {
	k.Helper()
	select {
	case <-t.done:
		k.Fatalf("an acquire that should wait was answered: token %d, error %s", t.grant.Token, describe(t.err))
	default:
	}
}

// queued waits until some number of waiters for a resource can be seen.
func (k *kit) queued(resource string, n int) {
	k.Helper()
	var seen int
	for range 200 {
		if seen = k.look(resource).Waiting; seen == n {
			return
		}
		time.Sleep(k.TTL / 100)
	}
	k.Fatalf("%d wait for %s, want %d", seen, resource, n)
}

// sleep lets time pass.
func (k *kit) sleep(d time.Duration) { time.Sleep(d) }

// together runs a function n times at once.
func (k *kit) together(n int, fn func(i int)) {
	var wg sync.WaitGroup
	for i := range n {
		wg.Go(func() {
			defer k.survive()
			fn(i)
		})
	}
	wg.Wait()
}

// survive is deferred in each goroutine of a case: a panic there would end the program, and nobody would learn by which
// case.
func (k *kit) survive() {
	if p := recover(); p != nil {
		k.Errorf("panic: %v", p)
	}
}
