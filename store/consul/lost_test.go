//go:build linux

package consul_test

import (
	"errors"
	"fmt"
	"net/http"
	"sync/atomic"
	"testing"
	"time"

	"github.com/hashicorp/consul/api"

	"github.com/leasehold/leasehold"
	"github.com/leasehold/leasehold/internal/peer"
	"github.com/leasehold/leasehold/store"
	"github.com/leasehold/leasehold/store/consul"
)

// forgetful loses the answer to one request.
type forgetful struct {
	left atomic.Int64
	next http.RoundTripper
}

var errLost = errors.New("the answer was lost")

func (f *forgetful) RoundTrip(r *http.Request) (*http.Response, error) {
	response, err := f.next.RoundTrip(r)
	if err == nil && f.left.Add(-1) == 0 {
		_ = response.Body.Close()
		return nil, errLost
	}
	return response, err
}

// The answer to each request of a lease's life is lost once. The caller asks again, and it is the same lease.
func TestEachAnswerIsLostOnce(t *testing.T) {
	address := peer.StartConsul(t, short).Members[0].Address
	other := open(t, address)
	transport := &http.Transport{}
	defer transport.CloseIdleConnections()
	token := leasehold.Token(0)
	for n, lost := int64(1), true; lost; n++ {
		f := &forgetful{next: transport}
		client, err := api.NewClient(&api.Config{Address: address, HttpClient: &http.Client{Transport: f}})
		if err != nil {
			t.Fatal(err)
		}
		s, err := consul.Open(t.Context(), consul.Config{Client: client, MinTTL: time.Second})
		if err != nil {
			t.Fatal(err)
		}
		f.left.Store(n)
		again := func(what string, call func() error) {
			t.Helper()
			for range 3 {
				if err := call(); !store.Transient(err) {
					if err != nil {
						t.Errorf("answer %d was lost: %s: %v", n, what, err)
					}
					return
				}
			}
			t.Errorf("answer %d was lost: %s fails", n, what)
		}
		life(t, lived{s: s, other: other, again: again, name: fmt.Sprint("r", n), token: &token})
		lost = f.left.Load() <= 0
		_ = s.Close()
	}
	sessions, _, err := driver(t, address, "").Session().List(nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("%d sessions are left", len(sessions))
}

type lived struct {
	s, other store.Store
	again    func(string, func() error)
	name     string
	token    *leasehold.Token
}

// life is the life of two leases, one after the other.
func life(t *testing.T, l lived) {
	t.Helper()
	acquire := func(id string) {
		var grant store.Grant
		l.again("acquire", func() (err error) {
			grant, err = l.s.Acquire(t.Context(), store.Request{Resource: l.name, ID: id, TTL: 10 * time.Second})
			return err
		})
		if grant.Token <= *l.token {
			t.Errorf("%s: token %d after %d", l.name, grant.Token, *l.token)
		}
		*l.token = grant.Token
	}
	ref := func(id string) store.Ref { return store.Ref{Resource: l.name, ID: id} }
	renew := func(by store.Store, id string) {
		l.again("renew", func() error {
			renewals, err := by.Renew(t.Context(), ref(id))
			if err != nil {
				return err
			}
			if r := renewals[0]; r.Err == nil && (r.Ended != nil || r.Token != *l.token) {
				t.Errorf("%s: the renewal of %s says %+v", l.name, id, r)
			}
			return renewals[0].Err
		})
	}
	a, b := l.name+"a", l.name+"b"
	acquire(a)
	renew(l.s, a)
	renew(l.other, a)
	renew(l.s, a) // which gives it another session
	_, err := l.other.Acquire(t.Context(), store.Request{Resource: l.name, ID: "x" + l.name, TTL: 10 * time.Second})
	if !errors.Is(err, leasehold.ErrHeld) {
		t.Errorf("%s is held: %v", l.name, err)
	}
	l.again("release", func() error {
		return l.s.Release(t.Context(), store.ReleaseRequest{Leases: []store.Ref{ref(a)}})
	})
	acquire(b)
	l.again("release of what was released", func() error {
		return l.s.Release(t.Context(), store.ReleaseRequest{Leases: []store.Ref{ref(a)}})
	})
	renew(l.s, b)
	l.again("break", func() error {
		_, err := l.s.Break(t.Context(), store.BreakRequest{Ref: ref(b)})
		if errors.Is(err, leasehold.ErrLost) { // by the break whose answer was lost
			return nil
		}
		return err
	})
	if r, err := l.other.Read(t.Context(), l.name); err != nil || r.Holding != 0 || r.State != leasehold.Broken {
		t.Errorf("%s was broken: %+v, %v", l.name, r, err)
	}
}
