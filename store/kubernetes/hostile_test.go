//go:build linux

package kubernetes

import (
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/leasehold/leasehold"
	"github.com/leasehold/leasehold/store"
)

// A process that makes new Leases does not look for them first; one that finds them does.
func newLeases(t *testing.T, r *rig) {
	other := openWith(t, configOf(t, r.Kubernetes))
	for _, name := range []string{"there-1", "there-2", "there-3"} {
		release(t, other, name, "nobody")
	}
	var requests []string
	s := r.hooked(t, func(q *http.Request) *http.Response {
		requests = append(requests, q.Method)
		return nil
	})
	for _, step := range []struct{ name, want string }{
		{"there-1", "GET PUT"}, {"new-1", "GET POST PUT"}, {"new-2", "POST PUT"}, {"new-2", "PUT"},
		{"there-2", "POST GET PUT"}, {"there-3", "GET PUT"}, {"new-3", "GET POST PUT"},
	} {
		requests = nil
		id := fmt.Sprint(step, rand.Int())
		acquire(t, s, step.name, id)
		if got := strings.Join(requests, " "); got != step.want {
			t.Errorf("an acquire of %s sent %s, want %s", step.name, got, step.want)
		}
		release(t, s, step.name, id)
	}
	// What is not known is looked at before it is said to have ended, and nothing is made for it.
	acquire(t, s, "new-4", "a")
	acquire(t, other, "elsewhere", "a")
	if renewal := renew(t, s, "elsewhere", "a"); renewal.Ended != nil || renewal.Err != nil {
		t.Errorf("a lease of another process: %+v", renewal)
	}
	acquire(t, s, "new-5", "a")
	if renewal := renew(t, s, "new-6", "a"); renewal.Ended == nil {
		t.Errorf("a lease of nobody: %+v", renewal)
	}
	if status, _ := r.do(t, http.MethodGet, leasesPath+"/new-6", nil); status != http.StatusNotFound {
		t.Errorf("the renewal of nothing made a Lease: %d", status)
	}
	release(t, s, "new-7", "a")
	denied(t, other, "new-7", "a", leasehold.ErrLost)
}

// A process that asked for nothing in hours releases its lease. The mark is as old as the release.
func releaseAfterHours(t *testing.T, r *rig) {
	s, clock := r.watching(t)
	request := store.Request{Resource: "hours", ID: "a", TTL: 5 * time.Hour}
	if _, err := s.Acquire(t.Context(), request); err != nil {
		t.Fatal(err)
	}
	clock.pass(4 * time.Hour)
	s.ahead.Add(-int64(4 * time.Hour)) // they passed for the API server, too, and have not: it was shown earlier
	release(t, s, "hours", "a")
	other := openWith(t, configOf(t, r.Kubernetes))
	acquire(t, other, "hours", "b")
	release(t, other, "hours", "b")
	denied(t, other, "hours", "a", leasehold.ErrLost)
	if ago := time.Since(r.lease(t, "hours").ending("a").At); ago > time.Minute {
		t.Errorf("it was released just now, and shown is %v ago", ago)
	}
}

// What is between us and the API server says that there is nothing. That ends no lease.
func anotherServer(t *testing.T, r *rig) {
	var lies atomic.Bool
	s := r.hooked(t, func(*http.Request) *http.Response {
		if !lies.Load() {
			return nil
		}
		return &http.Response{StatusCode: http.StatusNotFound, Body: io.NopCloser(strings.NewReader("no such host"))}
	})
	grant := acquire(t, s, "proxied", "a")
	lies.Store(true)
	s.watch.doubt("proxied")
	if renewal := renew(t, s, "proxied", "a"); !store.Transient(renewal.Err) {
		t.Errorf("behind a proxy that says 404: %+v", renewal)
	}
	_, err := s.Acquire(t.Context(), store.Request{Resource: "other", ID: "b", TTL: 2 * time.Second})
	if !store.Transient(err) {
		t.Errorf("behind a proxy that says 404: %v", err)
	}
	lies.Store(false)
	if renewal := renew(t, s, "proxied", "a"); renewal.Token != grant.Token {
		t.Errorf("afterwards: %+v", renewal)
	}
}

// A turn is how long somebody counted on a Lease.
type turn struct {
	who      string
	from, to time.Time
}

// Electors and our clients want the same Lease at the same time. Some release it, some die.
func electorsBeside(t *testing.T, r *rig) {
	var mu sync.Mutex
	var turns []turn
	note := func(who string, from, to time.Time) {
		mu.Lock()
		defer mu.Unlock()
		turns = append(turns, turn{who, from, to})
	}
	until := time.Now().Add(8 * time.Second)
	var all sync.WaitGroup
	for n := range 2 {
		s := openWith(t, configOf(t, r.Kubernetes))
		release(t, s, "beside", fmt.Sprint("nobody-", n))
		all.Go(func() { contend(t, s, fmt.Sprint("ours-", n), until, note) })
		e := &elector{r: r, identity: fmt.Sprint("elector-", n), duration: 2}
		all.Go(func() { e.contend(t, until, note) })
	}
	all.Wait()
	slices.SortFunc(turns, func(a, b turn) int { return a.from.Compare(b.from) })
	had := map[string]int{}
	for i, next := range turns {
		had[next.who]++
		if i > 0 && turns[i-1].to.After(next.from) {
			before := turns[i-1]
			t.Errorf("%s counted on it until %v after %s had it", before.who, before.to.Sub(next.from), next.who)
		}
	}
	t.Logf("turns: %v", had)
	if had["ours-0"]+had["ours-1"] == 0 || had["elector-0"]+had["elector-1"] == 0 {
		t.Errorf("one kind never had it: %v", had)
	}
}

// contend takes turns on a Lease: it renews a few times, then releases it or dies.
func contend(t *testing.T, s *Store, who string, until time.Time, note func(string, time.Time, time.Time)) {
	const ttl = time.Second
	for n := 0; time.Now().Before(until); n++ {
		ref := store.Ref{Resource: "beside", ID: fmt.Sprint(who, n)}
		sent := time.Now()
		_, err := s.Acquire(t.Context(), store.Request{Resource: ref.Resource, ID: ref.ID, Holder: who, TTL: ttl})
		if err != nil {
			time.Sleep(30 * time.Millisecond)
			continue
		}
		from := time.Now()
		for range rand.IntN(4) {
			time.Sleep(100 * time.Millisecond)
			again := time.Now()
			list, err := s.Renew(t.Context(), ref)
			if err != nil || list[0].Err != nil || list[0].Ended != nil {
				break
			}
			sent = again
		}
		if n%2 == 0 { // it dies
			note(who, from, sent.Add(ttl))
			time.Sleep(ttl + 1500*time.Millisecond) // let another have it
			continue
		}
		note(who, from, time.Now())
		if err := s.Release(t.Context(), store.ReleaseRequest{Leases: []store.Ref{ref}}); err != nil {
			t.Error(err)
		}
		time.Sleep(200 * time.Millisecond)
	}
}

// contend takes turns as an elector. It counts on its turn for a second less than the duration in the Lease (its
// RenewDeadline), because other electors do not see renewals within a second.
func (e *elector) contend(t *testing.T, until time.Time, note func(string, time.Time, time.Time)) {
	for n := 0; time.Now().Before(until); n++ {
		sent := time.Now()
		if !e.try(t, "beside") {
			time.Sleep(30 * time.Millisecond)
			continue
		}
		from := time.Now()
		for range rand.IntN(4) {
			time.Sleep(100 * time.Millisecond)
			again := time.Now()
			if !e.try(t, "beside") {
				break
			}
			sent = again
		}
		if n%2 == 0 { // it dies
			note(e.identity, from, sent.Add(time.Duration(e.duration-1)*time.Second))
			time.Sleep(time.Duration(e.duration)*time.Second + 500*time.Millisecond)
			continue
		}
		o := e.r.lease(t, "beside")
		if o.Spec.HolderIdentity != e.identity {
			note(e.identity, from, sent)
			continue
		}
		note(e.identity, from, time.Now())
		o.Spec.HolderIdentity, o.Spec.LeaseDurationSeconds = "", 1
		e.r.put(t, o)
		time.Sleep(200 * time.Millisecond)
	}
}
