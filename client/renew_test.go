package client_test

import (
	"sync"
	"testing"
	"time"

	"github.com/leasehold/leasehold/client"
	"github.com/leasehold/leasehold/leasetest"
)

// A client renews its many sessions, opened at different times, in groups: each interval has ten moments at which any of
// them may be due.
func TestRenewalsOfOneClientGoTogether(t *testing.T) {
	bubble(t, func(t *testing.T, s *leasetest.Server) {
		road, way := on(t, s)
		c := s.Dial(t, way)
		const n, ttl = 100, 30 * time.Second // renewed every ten seconds
		var all []*client.Session
		for range n {
			session, err := c.OpenSession(t.Context(), client.TTL(ttl))
			if err != nil {
				t.Fatal(err)
			}
			all = append(all, session)
			time.Sleep(97 * time.Millisecond)
		}
		time.Sleep(time.Minute)
		var mu sync.Mutex
		renewals, moments := 0, map[time.Time]bool{}
		road.set(func(verb string) {
			mu.Lock()
			defer mu.Unlock()
			if verb == "renew" {
				renewals++
				moments[time.Now()] = true
			}
		}, nil)
		time.Sleep(100 * time.Second)
		road.set(nil, nil)
		mu.Lock() // a renewal that was under way may still be counted
		defer mu.Unlock()
		if renewals < 9*n || renewals > 12*n || len(moments) > 102 {
			t.Errorf("%d renewals of %d sessions at %d moments", renewals, n, len(moments))
		}
		for _, session := range all {
			if !session.Valid() {
				t.Fatal("a session was lost")
			}
		}
	})
}

// A Renewal that was never set is the default, and not one without a pause.
func TestARenewalThatIsNotSet(t *testing.T) {
	bubble(t, func(t *testing.T, s *leasetest.Server) {
		road, way := on(t, s)
		acquire(t, s.Dial(t, way), "r", client.TTL(30*time.Second), client.Renew(client.Renewal{}))
		var mu sync.Mutex
		renewals := 0
		road.set(func(verb string) {
			mu.Lock()
			defer mu.Unlock()
			if renewals++; renewals == 1000 {
				panic("it renews without a pause")
			}
		}, nil)
		time.Sleep(100 * time.Second)
		road.set(nil, nil)
		mu.Lock()
		defer mu.Unlock()
		if renewals < 9 || renewals > 20 {
			t.Errorf("%d renewals in 100 s of a lease of 30 s", renewals)
		}
	})
}
