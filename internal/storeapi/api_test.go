package storeapi_test

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/leasehold/leasehold"
	v1 "github.com/leasehold/leasehold/api/v1"
	"github.com/leasehold/leasehold/internal/storeapi"
	"github.com/leasehold/leasehold/store"
	_ "github.com/leasehold/leasehold/store/memory"
)

// A plain store has nothing but the contract.
type plain struct{ store.Store }

func (p plain) Features() store.Features {
	f := p.Store.Features()
	f.Store, f.Powers = "plain", []store.Power{store.FairQueue, store.Detached}
	return f
}

// inBubble runs a test on a caller whose requests a plain store answers, in virtual time.
func inBubble(t *testing.T, test func(t *testing.T, c *v1.Caller)) {
	synctest.Test(t, func(t *testing.T) {
		memory, err := store.Open(t.Context(), "memory:", store.Settings{})
		if err != nil {
			t.Fatal(err)
		}
		defer memory.Close()
		api := storeapi.New("default", func(context.Context) (store.Store, error) { return plain{memory}, nil })
		caller, err := v1.NewCaller(v1.CallerConfig{Server: "http://store", Client: &http.Client{Transport: api}})
		if err != nil {
			t.Fatal(err)
		}
		test(t, caller)
	})
}

func TestVerbs(t *testing.T) {
	inBubble(t, func(t *testing.T, c *v1.Caller) {
		ctx := t.Context()
		ask := v1.AcquireRequest{Resource: "a/b c%2F", Holder: "ann", Reason: "why", Labels: map[string]string{"k": "v"}}
		lease, err := c.Acquire(ctx, ask)
		if err != nil || lease.Token == 0 || lease.State != "leased" || *lease.RemainingMS != 30000 {
			t.Fatalf("acquired %+v, %v", lease, err)
		}
		_, err = c.Acquire(ctx, v1.AcquireRequest{Resource: ask.Resource, Holder: "bob"})
		var held *leasehold.Error
		if !errors.As(err, &held) || held.Code != leasehold.Held || held.Lease.Holder != "ann" {
			t.Fatalf("held: %v", err)
		}
		time.Sleep(10 * time.Second)
		if renewed, err := c.Renew(ctx, v1.RenewRequest{ID: lease.ID}); err != nil || renewed.Token != lease.Token {
			t.Fatalf("renewed %+v, %v", renewed, err)
		}
		seen, err := c.Resource(ctx, ask.Resource, 0)
		if err != nil || len(seen.Holders) != 1 || seen.Holders[0].Reason != "why" || seen.Holders[0].Labels["k"] != "v" {
			t.Fatalf("seen %+v, %v", seen, err)
		}
		if err := c.Release(ctx, v1.ReleaseRequest{ID: lease.ID}); err != nil {
			t.Fatal(err)
		}
		if _, err := c.Renew(ctx, v1.RenewRequest{ID: lease.ID}); !errors.Is(err, leasehold.ErrLost) {
			t.Fatalf("renewed after its release: %v", err)
		}
		if seen, err := c.Resource(ctx, ask.Resource, 0); err != nil || len(seen.Holders) != 0 {
			t.Fatalf("after the release %+v, %v", seen, err)
		}
	})
}

// A lease with an id of the caller's own is found by a search, over several pages.
func TestAnIDWithoutItsResource(t *testing.T) {
	inBubble(t, func(t *testing.T, c *v1.Caller) {
		for i := range 250 {
			r := v1.AcquireRequest{Resource: "r/" + string(rune('a'+i%26)) + strings.Repeat("x", i/26), Holder: "ann"}
			if i == 249 {
				r.ID = "mine"
			}
			if _, err := c.Acquire(t.Context(), r); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := c.Renew(t.Context(), v1.RenewRequest{ID: "mine"}); err != nil {
			t.Error(err)
		}
		if err := c.Release(t.Context(), v1.ReleaseRequest{ID: "mine"}); err != nil {
			t.Error(err)
		}
		if _, err := c.Renew(t.Context(), v1.RenewRequest{ID: "yours"}); !errors.Is(err, leasehold.ErrNotFound) {
			t.Errorf("an unknown id: %v", err)
		}
		n := 0
		for _, err := range c.Resources(t.Context(), v1.ResourceQuery{Prefix: "r/a", Limit: 2}) {
			if err != nil {
				t.Fatal(err)
			}
			n++
		}
		if n != 10 {
			t.Errorf("%d resources are listed", n)
		}
	})
}

// A note goes to a store that has notes, and is refused by one that has none.
func TestANoteIsKept(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		memory, err := store.Open(t.Context(), "memory:", store.Settings{})
		if err != nil {
			t.Fatal(err)
		}
		defer memory.Close()
		text := "half done"
		for _, s := range []store.Store{memory, plain{memory}} {
			api := storeapi.New("default", func(context.Context) (store.Store, error) { return s, nil })
			c, err := v1.NewCaller(v1.CallerConfig{Server: "http://store", Client: &http.Client{Transport: api}})
			if err != nil {
				t.Fatal(err)
			}
			lease, err := c.Acquire(t.Context(), v1.AcquireRequest{Resource: s.Features().Store, Holder: "ann"})
			if err != nil {
				t.Fatal(err)
			}
			_, err = c.Renew(t.Context(), v1.RenewRequest{ID: lease.ID, Note: &text})
			seen, _ := s.Read(t.Context(), lease.Resource)
			if kept := seen.Holders[0].Note == text; kept != (err == nil) || kept != s.Features().Has(store.NotePower) {
				t.Errorf("%s: %q, %v", s.Features().Store, seen.Holders[0].Note, err)
			}
		}
	})
}

func TestABreakEndsWhatWasSeen(t *testing.T) {
	inBubble(t, func(t *testing.T, c *v1.Caller) {
		lease, err := c.Acquire(t.Context(), v1.AcquireRequest{Resource: "r", Holder: "ann"})
		if err != nil {
			t.Fatal(err)
		}
		now := v1.Duration(0)
		late := v1.BreakRequest{Resource: "r", Token: lease.Token + 1, Period: &now, By: "bob"}
		if _, err := c.Break(t.Context(), late); !errors.Is(err, leasehold.ErrLost) {
			t.Errorf("another token: %v", err)
		}
		_, err = c.Break(t.Context(), v1.BreakRequest{ID: lease.ID, By: "bob", Reason: "stuck"})
		if !errors.Is(err, leasehold.ErrRefused) || !strings.Contains(err.Error(), "--now") {
			t.Errorf("a period that the store does not have: %v", err)
		}
		if _, err := c.Break(t.Context(), v1.BreakRequest{ID: lease.ID, Period: &now, By: "bob", Reason: "stuck"}); err != nil {
			t.Fatal(err)
		}
		if seen, err := c.Resource(t.Context(), "r", 0); err != nil || len(seen.Holders) != 0 {
			t.Errorf("after the break %+v, %v", seen, err)
		}
		err = c.Release(t.Context(), v1.ReleaseRequest{ID: lease.ID})
		if !errors.Is(err, leasehold.ErrLost) || !strings.Contains(err.Error(), "broken by bob: stuck") {
			t.Errorf("released after the break: %v", err)
		}
	})
}

func TestWhatTheStoreLacksIsSaid(t *testing.T) {
	inBubble(t, func(t *testing.T, c *v1.Caller) {
		ctx := t.Context()
		acquire := func(r v1.AcquireRequest) error {
			r.Resource, r.Holder = "r", "ann"
			_, err := c.Acquire(ctx, r)
			return err
		}
		_, session := c.OpenSession(ctx, v1.SessionRequest{})
		_, record := c.Record(ctx, "r", 0)
		_, history := c.History(ctx, v1.HistoryQuery{})
		_, filter := c.ResourcePage(ctx, v1.ResourceQuery{Filter: v1.ResourceFilter{Holder: "ann"}})
		_, cluster := c.Cluster(ctx)
		for what, err := range map[string]error{
			"plain has no sessions": session, "plain has no records": record, "plain has no history": history,
			"plain cannot filter by holder": filter, "plain cannot do this": cluster,
			"plain has no slots":        acquire(v1.AcquireRequest{Slots: 1, Capacity: 2}),
			"several resources at once": acquire(v1.AcquireRequest{Also: []v1.AcquireItem{{Resource: "b"}}}),
			"plain needs a TTL":         acquire(v1.AcquireRequest{TTL: v1.TTL{None: true}}),
		} {
			if !errors.Is(err, leasehold.ErrRefused) || !strings.Contains(err.Error(), what) {
				t.Errorf("%s: %v", what, err)
			}
		}
	})
}

func TestWatchWithoutAWatch(t *testing.T) {
	inBubble(t, func(t *testing.T, c *v1.Caller) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		time.AfterFunc(2500*time.Millisecond, func() {
			lease, err := c.Acquire(ctx, v1.AcquireRequest{Resource: "r/1", Holder: "ann"})
			if err != nil {
				t.Error(err)
			}
			time.Sleep(3 * time.Second)
			if err := c.Release(ctx, v1.ReleaseRequest{ID: lease.ID}); err != nil {
				t.Error(err)
			}
		})
		var seen []string
		for e, err := range c.Watch(ctx, v1.WatchQuery{Prefix: "r/", Once: true}) {
			if err != nil {
				break
			}
			if seen = append(seen, e.Kind+" "+e.Resource+" "+e.Holder); len(seen) == 2 {
				cancel()
			}
		}
		if strings.Join(seen, ", ") != "acquired r/1 ann, ended r/1 ann" {
			t.Errorf("seen: %q", seen)
		}
	})
}

// Nobody but this API knows the id of a request without one. If its caller goes away, nothing of it may
// stay in the queue, or be granted later.
func TestAnAbandonedWaitIsWithdrawn(t *testing.T) {
	inBubble(t, func(t *testing.T, c *v1.Caller) {
		if _, err := c.Acquire(t.Context(), v1.AcquireRequest{Resource: "r", Holder: "ann"}); err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		wait := v1.AcquireRequest{Resource: "r", Holder: "bob", Wait: v1.Duration(time.Hour)}
		if _, err := c.Acquire(ctx, wait); err == nil {
			t.Fatal("acquired")
		}
		if seen, err := c.Resource(t.Context(), "r", 0); err != nil || seen.Waiting != 0 {
			t.Errorf("afterwards %d wait: %+v, %v", seen.Waiting, seen.Queue, err)
		}
	})
}
