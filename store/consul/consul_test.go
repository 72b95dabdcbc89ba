//go:build linux

package consul_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/hashicorp/consul/api"

	"github.com/leasehold/leasehold"
	"github.com/leasehold/leasehold/internal/peer"
	"github.com/leasehold/leasehold/store"
)

func acquire(t testing.TB, s store.Store, r store.Request) store.Grant {
	t.Helper()
	grant, err := s.Acquire(t.Context(), r)
	if err != nil {
		t.Fatalf("%s was not granted to %s: %v", r.Resource, r.ID, err)
	}
	return grant
}

func release(t testing.TB, s store.Store, resource, id string) {
	t.Helper()
	err := s.Release(t.Context(), store.ReleaseRequest{Leases: []store.Ref{{Resource: resource, ID: id}}})
	if err != nil {
		t.Fatalf("release of %s: %v", id, err)
	}
}

func renew(t testing.TB, s store.Store, resource, id string) store.Renewal {
	t.Helper()
	renewals, err := s.Renew(t.Context(), store.Ref{Resource: resource, ID: id})
	if err != nil {
		t.Fatalf("renewal of %s: %v", id, err)
	}
	return renewals[0]
}

func TestTheURL(t *testing.T) {
	server := peer.StartConsul(t, short)
	host := server.Members[0].Address
	s, err := store.Open(t.Context(), "consul://"+host+"/a/prefix?min_ttl=1s", store.Settings{Namespace: "ns"})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = s.Close() }()
	if f := s.Features(); f.MinTTL != time.Second {
		t.Errorf("the shortest TTL is %v", f.MinTTL)
	}
	acquire(t, s, store.Request{Resource: "reports/nightly", ID: "a", Holder: "ann", TTL: 10 * time.Second})
	kv, _, err := driver(t, host, "").KV().Get("a/prefix/ns/l/reports/nightly", nil)
	if err != nil || kv == nil || !strings.Contains(string(kv.Value), `"holder":"ann"`) || kv.Session == "" {
		t.Errorf("the key is %+v, %v", kv, err)
	}
	for address, want := range map[string]string{
		"consul://" + host + "?timeout=3":           `unknown parameter "timeout"; known parameters: ca, cert`,
		"consul://" + host + "?ca=x.pem":            "need TLS",
		"consuls://" + host + "?ca=/does/not/exist": "cannot be read",
		"consul://ann:secret@" + host:               "CONSUL_HTTP_TOKEN",
		"consul://" + host + "?min_ttl=1":           "a duration such as 10s",
	} {
		_, err := store.Open(t.Context(), address, store.Settings{})
		if !errors.Is(err, leasehold.ErrInvalid) || !strings.Contains(err.Error(), want) ||
			strings.Contains(err.Error(), "secret") {
			t.Errorf("%s: %v", address, err)
		}
	}
	_, err = store.Open(t.Context(), "consul://127.0.0.1:1", store.Settings{})
	if !errors.Is(err, leasehold.ErrUnavailable) {
		t.Errorf("Consul does not run: %v", err)
	}
}

// A restart within the TTL starts the time of every session again: late, never early.
func TestARestartWithinTheTTL(t *testing.T) {
	if !*full {
		t.Skip("left out: needs -full")
	}
	member := peer.StartConsul(t, short).Members[0]
	s := open(t, member.Address)
	ttl := 4 * time.Second
	began := time.Now()
	first := acquire(t, s, store.Request{Resource: "r", ID: "a", TTL: ttl})
	member.Kill()
	member.Restart()
	next := acquire(t, s, store.Request{Resource: "r", ID: "b", TTL: ttl, Wait: time.Minute})
	if took := time.Since(began); took < 2*ttl || next.Token <= first.Token {
		t.Errorf("token %d was granted after %v, the first was %d", next.Token, took, first.Token)
	}
	if renewal := renew(t, s, "r", "a"); renewal.Ended == nil || renewal.Ended.How != leasehold.ByTTL {
		t.Errorf("the first holder renewed: %+v", renewal)
	}
}

// Locks of Consul are advisory: anyone can write to a held key.
func TestAPlainSetOfAHeldKey(t *testing.T) {
	address := peer.StartConsul(t, short).Members[0].Address
	s, kv := open(t, address), driver(t, address, "").KV()
	r := store.Request{Resource: "r", ID: "a", TTL: time.Minute}
	first := acquire(t, s, r)
	pair, _, err := kv.Get("leasehold/default/l/r", nil)
	if err != nil {
		t.Fatal(err)
	}
	// The same value: the lease goes on, with the token that it had.
	if _, err := kv.Put(&api.KVPair{Key: pair.Key, Value: pair.Value}, nil); err != nil {
		t.Fatal(err)
	}
	if renewal := renew(t, s, "r", "a"); renewal.Token != first.Token {
		t.Errorf("after a write of the same value the lease is %+v, its token was %d", renewal, first.Token)
	}
	if again := acquire(t, s, r); again.Token != first.Token {
		t.Errorf("asked again, its token is %d, and was %d", again.Token, first.Token)
	}
	// Another value: whose lease that is cannot be told.
	if _, err := kv.Put(&api.KVPair{Key: pair.Key, Value: []byte("mine!")}, nil); err != nil {
		t.Fatal(err)
	}
	if renewal := renew(t, s, "r", "a"); renewal.Ended == nil {
		t.Errorf("after a write by somebody else: %+v", renewal)
	}
	_, err = s.Acquire(t.Context(), store.Request{Resource: "r", ID: "b", TTL: time.Minute})
	if !errors.Is(err, leasehold.ErrHeld) {
		t.Errorf("the key is still locked: %v", err)
	}
}

func TestAPlainDeleteOfAHeldKey(t *testing.T) {
	address := peer.StartConsul(t, short).Members[0].Address
	s, kv := open(t, address), driver(t, address, "").KV()
	first := acquire(t, s, store.Request{Resource: "r", ID: "a", TTL: time.Minute})
	if _, err := kv.Delete("leasehold/default/l/r", nil); err != nil {
		t.Fatal(err)
	}
	next := acquire(t, s, store.Request{Resource: "r", ID: "b", TTL: time.Minute})
	if next.Token <= first.Token {
		t.Errorf("token %d after %d", next.Token, first.Token)
	}
	if renewal := renew(t, s, "r", "a"); renewal.Ended == nil {
		t.Errorf("the session lives and its key is somebody else's: %+v", renewal)
	}
	release(t, s, "r", "a")
	if renewal := renew(t, s, "r", "b"); renewal.Ended != nil || renewal.Err != nil {
		t.Errorf("the release of the first ended the second: %+v", renewal)
	}
}

// A lock that was sent before the release, and arrives after it; and one whose session was destroyed.
func TestALateLockIsRefused(t *testing.T) {
	member := peer.StartConsul(t, short).Members[0]
	link := peer.StartProxy(t, member.Address)
	s, other := open(t, link.Address), open(t, member.Address)
	direct := driver(t, member.Address, "")
	// The second id uses the session of the first, so that its acquire is one message.
	acquire(t, s, store.Request{Resource: "r", ID: "first", TTL: time.Minute})
	release(t, s, "r", "first")

	link.Hang()
	ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	if _, err := s.Acquire(ctx, store.Request{Resource: "r", ID: "late", TTL: time.Minute}); !store.Transient(err) {
		t.Fatalf("through a link that hangs: %v", err)
	}
	release(t, other, "r", "late")
	link.Forward()
	_, err := s.Acquire(t.Context(), store.Request{Resource: "r", ID: "late", TTL: time.Minute})
	if !errors.Is(err, leasehold.ErrLost) {
		t.Errorf("the id that was released: %v", err)
	}
	if r, err := other.Read(t.Context(), "r"); err != nil || r.Holding != 0 {
		t.Errorf("the late message was granted: %+v, %v", r, err)
	}

	acquire(t, s, store.Request{Resource: "r", ID: "again", TTL: time.Minute})
	release(t, s, "r", "again") // its session is idle now
	sessions, _, err := direct.Session().List(nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, one := range sessions {
		if _, err := direct.Session().Destroy(one.ID, nil); err != nil {
			t.Fatal(err)
		}
	}
	acquire(t, s, store.Request{Resource: "r", ID: "next", TTL: time.Minute})
}

// A grant that took longer than its TTL has ended; it must not look like one without an end.
func TestASlowGrantHasAnEnd(t *testing.T) {
	member := peer.StartConsul(t, short).Members[0]
	link := peer.StartProxy(t, member.Address)
	s := open(t, link.Address)
	acquire(t, s, store.Request{Resource: "r", ID: "a", TTL: time.Minute}) // makes the session of marks
	release(t, s, "r", "a")
	link.Delay(600 * time.Millisecond)
	grant, err := s.Acquire(t.Context(), store.Request{Resource: "r", ID: "b", TTL: time.Second})
	if errors.Is(err, leasehold.ErrLost) || errors.Is(err, leasehold.ErrUndecided) {
		t.Skipf("left out: this machine is too slow: %v", err)
	}
	if err != nil || grant.Expires.IsZero() || grant.Remaining <= 0 || grant.Remaining > time.Millisecond {
		t.Errorf("granted until %v, for %v: %v", grant.Expires, grant.Remaining, err)
	}
}

// Consul refuses connections above a limit before it reads the request: nothing happened.
func TestTooManyConnections(t *testing.T) {
	address := peer.StartConsul(t, peer.ConsulConfig{Settings: map[string]any{
		"limits": map[string]any{"http_max_conns_per_client": 2},
	}}).Members[0].Address
	s := open(t, address)
	acquire(t, s, store.Request{Resource: "r", ID: "a", TTL: 10 * time.Second})
	ctx, cancel := context.WithCancel(t.Context())
	var all sync.WaitGroup
	defer all.Wait()
	defer cancel()
	refused := make(chan error, 8)
	for i := range cap(refused) {
		all.Go(func() {
			_, err := s.Acquire(ctx, store.Request{Resource: "r", ID: fmt.Sprint("w", i), TTL: 10 * time.Second,
				Wait: time.Minute})
			if ctx.Err() == nil {
				refused <- err
			}
		})
	}
	err := <-refused
	for errors.Is(err, leasehold.ErrUndecided) { // the answer came before the request, which Go takes for a failure
		err = <-refused
	}
	if !errors.Is(err, leasehold.ErrUnavailable) || !strings.Contains(err.Error(), "http_max_conns_per_client") {
		t.Errorf("above the limit: %v", err)
	}
}

func TestTheFloor(t *testing.T) {
	s := open(t, peer.StartConsul(t, short).Members[0].Address)
	_, err := s.Acquire(t.Context(), store.Request{Resource: "r", ID: "a", TTL: time.Minute, Floor: 1 << 40})
	if !errors.Is(err, leasehold.ErrRefused) || !strings.Contains(err.Error(), "consul snapshot restore") {
		t.Errorf("a new cluster: %v", err)
	}
	if r, err := s.Read(t.Context(), "r"); err != nil || r.State != leasehold.Available {
		t.Errorf("what was refused is held: %+v, %v", r, err)
	}
	acquire(t, s, store.Request{Resource: "r", ID: "b", TTL: time.Minute, Floor: 1})
}

// protected starts a Consul that denies everything by default, and returns what opens the store with
// the policy that the documentation names, or with none.
func protected(t testing.TB) func(policy string) store.Store {
	t.Helper()
	address := peer.StartConsul(t, peer.ConsulConfig{Settings: map[string]any{
		"session_ttl_min": "1s",
		"acl": map[string]any{"enabled": true, "default_policy": "deny",
			"tokens": map[string]any{"initial_management": "root", "agent": "root"}},
	}}).Members[0].Address
	acl := driver(t, address, "root").ACL()
	return func(policy string) store.Store {
		t.Helper()
		token := &api.ACLToken{}
		if policy != "" {
			made, _, err := acl.PolicyCreate(&api.ACLPolicy{Name: "leasehold", Rules: policy}, nil)
			if err != nil {
				t.Fatal(err)
			}
			token.Policies = []*api.ACLLink{{ID: made.ID}}
		}
		token, _, err := acl.TokenCreate(token, nil)
		if err != nil {
			t.Fatal(err)
		}
		return openAs(t, address, token.SecretID)
	}
}

func TestPermissions(t *testing.T) {
	as := protected(t)
	s := as(`key_prefix "leasehold/default/" { policy = "write" } session_prefix "" { policy = "write" }`)
	acquire(t, s, store.Request{Resource: "r", ID: "a", TTL: time.Minute})
	if renewal := renew(t, s, "r", "a"); renewal.Ended != nil || renewal.Err != nil {
		t.Errorf("with the policy of the page: %+v", renewal)
	}
	if page, err := s.List(t.Context(), store.Query{}); err != nil || len(page.Items) != 1 {
		t.Errorf("with the policy of the page: %+v, %v", page, err)
	}
	release(t, s, "r", "a")
}
