//go:build linux

package consul_test

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/leasehold/leasehold"
	"github.com/leasehold/leasehold/internal/peer"
	"github.com/leasehold/leasehold/store"
	"github.com/leasehold/leasehold/store/consul"
)

// Consul answers a renewal of a session that it is about to destroy: its time is over, and the command that
// destroys it is on its way. Another process renews at that moment; what it is answered must hold.
func TestARenewalAtTheEndOfASession(t *testing.T) {
	address := peer.StartConsul(t, short).Members[0].Address
	const n, ttl = 64, time.Second
	var all sync.WaitGroup
	defer all.Wait()
	for i := range n {
		name := fmt.Sprint("r", i)
		var created time.Time
		first := openHooked(t, address, hooked{after: func(r *http.Request) {
			if strings.Contains(r.URL.Path, "/session/create") && created.IsZero() {
				created = time.Now()
			}
		}})
		acquire(t, first, store.Request{Resource: name, ID: name, TTL: ttl})
		end := created.Add(2*ttl + time.Duration(i%8-2)*time.Millisecond/2)
		other := openHooked(t, address, hooked{before: func(r *http.Request) {
			if strings.Contains(r.URL.Path, "/session/renew/") {
				time.Sleep(time.Until(end))
			}
		}})
		all.Go(func() {
			time.Sleep(time.Until(end) - ttl/20)
			sent := time.Now()
			renewal := renew(t, other, name, name) // which waits for the end of the session
			if renewal.Err != nil || renewal.Ended != nil {
				return
			}
			time.Sleep(ttl / 4)
			r, err := other.Read(t.Context(), name)
			if took := time.Since(sent); took < renewal.Remaining && (err != nil || r.Holding == 0) {
				t.Errorf("%s was renewed for %v, and is free %v later: %v", name, renewal.Remaining, took, err)
			}
		})
	}
}

// A late renewal, or one by another process, gives the lease another session. It stays the same lease.
func TestALeaseThatGetsAnotherSession(t *testing.T) {
	address := peer.StartConsul(t, short).Members[0].Address
	s, other := open(t, address), open(t, address)
	const ttl = 2 * time.Second
	r := store.Request{Resource: "r", ID: "a", Holder: "ann", TTL: ttl, Value: []byte("v")}
	first := acquire(t, s, r)
	before := sessionOf(t, address)
	time.Sleep(ttl * 7 / 4)
	for i, by := range []*consul.Store{s, other, s} {
		renewal := renew(t, by, "r", "a")
		if renewal.Err != nil || renewal.Ended != nil || renewal.Token != first.Token {
			t.Fatalf("renewal %d: %+v, the token was %d", i, renewal, first.Token)
		}
		after := sessionOf(t, address)
		if after == before {
			t.Errorf("renewal %d left the session", i)
		}
		before = after
	}
	if again := renew(t, s, "r", "a"); again.Err != nil || sessionOf(t, address) != before {
		t.Errorf("a renewal in time changed the session: %+v", again)
	}
	if again := acquire(t, s, r); again.Token != first.Token {
		t.Errorf("asked again, its token is %d, and was %d", again.Token, first.Token)
	}
	_, err := other.Acquire(t.Context(), store.Request{Resource: "r", ID: "b", TTL: ttl})
	var held *leasehold.Error
	if !errors.As(err, &held) || held.Code != leasehold.Held || held.Lease.Token != first.Token {
		t.Errorf("somebody else: %+v", err)
	}
	if is, err := other.Read(t.Context(), "r"); err != nil || is.Holders[0].Token != first.Token || string(is.Value) != "v" {
		t.Errorf("it is %+v, %v", is, err)
	}
	release(t, s, "r", "a")
	if next := acquire(t, other, store.Request{Resource: "r", ID: "c", TTL: ttl}); next.Token <= first.Token {
		t.Errorf("token %d after %d", next.Token, first.Token)
	}
}

func sessionOf(t testing.TB, address string) string {
	t.Helper()
	pair, _, err := driver(t, address, "").KV().Get("leasehold/default/l/r", nil)
	if err != nil || pair == nil {
		t.Fatalf("the key: %v, %v", pair, err)
	}
	return pair.Session
}
