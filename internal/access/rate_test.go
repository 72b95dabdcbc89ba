package access

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/leasehold/leasehold"
	"github.com/leasehold/leasehold/internal/core"
	policy "github.com/leasehold/leasehold/internal/core/access"
	"github.com/leasehold/leasehold/internal/engine"
)

func (w *world) quota(q policy.Quota) {
	w.change(policy.Keys{}, policy.Items{Quotas: []*policy.Quota{&q}})
}

func TestRequestsAreCounted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.acquire("ann", space, "a/x", "held")
		w.quota(policy.Quota{Principal: "ann", Requests: 10, Renewals: 50})
		time.Sleep(time.Minute)
		read := func(who string) error { return w.guard.Read(as(who), func(core.View) {}) }
		renew := func() error {
			_, err := w.guard.Do(as("ann"), &core.Renew{Namespace: space, ID: "held"})
			return err
		}
		count := func(do func() error) (n int, err error) {
			for ; n < 1000; n++ {
				if err = do(); err != nil {
					break
				}
			}
			return n, err
		}
		n, err := count(func() error { return read("ann") })
		var limited *leasehold.Error
		if n != 10 || !errors.As(err, &limited) || limited.Code != leasehold.Limited || limited.Forecast != 100*time.Millisecond {
			t.Errorf("after %d requests: %v, %+v", n, err, limited)
		}
		want := "the quota of ann allows 10 requests a second, and 10 were sent within the last one: try again in 100ms"
		if err == nil || err.Error() != want {
			t.Errorf("it says %q, want %q", err, want)
		}
		// A flood costs nobody a lease.
		if n, err := count(renew); n != 50 || !errors.Is(err, leasehold.ErrLimited) {
			t.Errorf("after %d renewals: %v", n, err)
		}
		if n, err := count(func() error { return read("bob") }); err != nil {
			t.Errorf("bob has no quota: %v after %d", err, n)
		}
		time.Sleep(limited.Forecast)
		if n, _ := count(func() error { return read("ann") }); n != 1 {
			t.Errorf("%d more after the time it was told", n)
		}
		// Everybody's is that of each who has none of its own.
		w.quota(policy.Quota{Principal: policy.Everybody, Requests: 3})
		time.Sleep(time.Minute)
		for _, who := range []string{"bob", "op"} {
			if n, _ := count(func() error { return read(who) }); n != 3 {
				t.Errorf("%s has %d requests", who, n)
			}
		}
		w.quota(policy.Quota{Namespace: space, Renewals: 5})
		time.Sleep(time.Minute)
		if n, err := count(renew); n != 5 || !strings.Contains(fmt.Sprint(err), "of namespace "+space) {
			t.Errorf("%d in the namespace: %v", n, err)
		}
	})
}

// What a waiting request does by itself was not asked for.
func TestAWaitIsOneRequest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.acquire("ann", space, "a/x", "held")
		w.quota(policy.Quota{Principal: "ann", Requests: 1, Renewals: 1})
		time.Sleep(time.Minute)
		_, err := engine.Acquire(as("ann"), w.guard, &core.Acquire{Namespace: space, Resource: "a/x", ID: "w", Holder: "h",
			TTL: time.Minute, Wait: 20 * time.Minute}, true)
		if !errors.Is(err, leasehold.ErrHeld) {
			t.Errorf("the wait ended with %v", err)
		}
	})
}

func TestWatchesAreCounted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.quota(policy.Quota{Principal: "ann", Watches: 2})
		ctx, cancel := context.WithCancel(as("ann"))
		watch := func() error {
			_, err := engine.Watch(ctx, w.guard, engine.Filter{Namespace: space}, nil)
			return err
		}
		if err := errors.Join(watch(), watch()); err != nil {
			t.Fatal(err)
		}
		if err := watch(); !errors.Is(err, leasehold.ErrLimited) || !strings.Contains(err.Error(), "allows 2 watches") {
			t.Errorf("a third: %v", err)
		}
		cancel()
		synctest.Wait()
		ctx, cancel = context.WithCancel(as("ann"))
		if err := watch(); err != nil {
			t.Errorf("after they ended: %v", err)
		}
		cancel()
		synctest.Wait()
		if len(w.guard.rates.watches) != 0 {
			t.Errorf("%v are remembered", w.guard.rates.watches)
		}
	})
}

// However many principals there are, the memory for them is bounded, and who was limited stays so.
func TestRatesAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var r rates
		q, now := &policy.Quota{Requests: 1}, time.Now()
		if err := r.admit(q, bucketKey{whose: "first"}); err != nil {
			t.Fatal(err)
		}
		for i := range 5 * maxBuckets {
			r.take(bucketKey{whose: fmt.Sprint(i)}, 1, now)
			if i%1000 == 0 && r.admit(q, bucketKey{whose: "first"}) == nil {
				t.Fatal("others made room for it")
			}
		}
		if n := len(r.buckets) + len(r.before); n > 2*maxBuckets {
			t.Errorf("%d buckets", n)
		}
	})
}
