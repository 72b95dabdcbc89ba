//go:build linux

package etcd_test

import (
	"context"
	"errors"
	"flag"
	"strings"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/leasehold/leasehold"
	"github.com/leasehold/leasehold/internal/peer"
	"github.com/leasehold/leasehold/store"
	"github.com/leasehold/leasehold/store/etcd"
)

var full = flag.Bool("full", false, "run the long tests, too")

func open(t testing.TB, endpoints ...string) *etcd.Store {
	t.Helper()
	s, err := etcd.Open(t.Context(), etcd.Config{Endpoints: endpoints})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return s
}

// driver returns a client of etcd's own.
func driver(t testing.TB, endpoints ...string) *clientv3.Client {
	t.Helper()
	c, err := clientv3.New(clientv3.Config{Endpoints: endpoints})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	return c
}

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
	t.Parallel()
	server := peer.StartEtcd(t, peer.EtcdConfig{})
	host := server.Members[0].Address
	s, err := store.Open(t.Context(), "etcd://"+host+","+host+"/a/prefix", store.Settings{Namespace: "ns"})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = s.Close() }()
	acquire(t, s, store.Request{Resource: "reports/nightly", ID: "a", Holder: "ann", TTL: 10 * time.Second})
	answer, err := driver(t, server.Endpoints()...).Get(t.Context(), "/a/prefix/ns/l/reports/nightly##h")
	if err != nil || len(answer.Kvs) != 1 || string(answer.Kvs[0].Value) != "a" || answer.Kvs[0].Lease == 0 {
		t.Errorf("the key is %v, %v", answer, err)
	}
	for address, want := range map[string]string{
		"etcd://" + host + "?timeout=3":           `unknown parameter "timeout"; known parameters: ca, cert, key`,
		"etcd://" + host + "?ca=x.pem":            "need TLS",
		"etcds://" + host + "?ca=/does/not/exist": "cannot be read",
		"etcds://" + host + "?cert=/a":            "cannot be read",
		"etcd://," + host:                         "empty host",
		"etcd:///prefix":                          "empty host",
		"etcd://ann:secret@" + host + "?a=b":      "unknown parameter",
	} {
		_, err := store.Open(t.Context(), address, store.Settings{})
		if !errors.Is(err, leasehold.ErrInvalid) || !strings.Contains(err.Error(), want) ||
			strings.Contains(err.Error(), "secret") {
			t.Errorf("%s: %v", address, err)
		}
	}
}

func TestNobodyAnswers(t *testing.T) {
	t.Parallel()
	for _, user := range []string{"", "ann"} {
		t.Run(user, func(t *testing.T) {
			t.Parallel()
			_, err := etcd.Open(t.Context(),
				etcd.Config{Endpoints: []string{"http://127.0.0.1:1"}, Username: user, Password: "x"})
			if !errors.Is(err, leasehold.ErrUnavailable) || !strings.Contains(err.Error(), "http://127.0.0.1:1") {
				t.Errorf("etcd does not run, user %q: %v", user, err)
			}
		})
	}
}

// etcd raises short TTLs without a word.
func TestShortTTLsAreRefused(t *testing.T) {
	t.Parallel()
	server := peer.StartEtcd(t, peer.EtcdConfig{Args: []string{"--election-timeout", "3000"}})
	s := open(t, server.Endpoints()...)
	if f := s.Features(); f.MinTTL != 5*time.Second {
		t.Errorf("with an election timeout of 3 s, the shortest TTL is %v", f.MinTTL)
	}
	for _, ttl := range []time.Duration{time.Second, 4 * time.Second, 5500 * time.Millisecond} {
		_, err := s.Acquire(t.Context(), store.Request{Resource: "r", ID: "a", TTL: ttl})
		if !errors.Is(err, leasehold.ErrInvalid) {
			t.Errorf("a TTL of %v: %v", ttl, err)
		}
	}
	grant := acquire(t, s, store.Request{Resource: "r", ID: "a", TTL: 5 * time.Second})
	if grant.Remaining > 5*time.Second {
		t.Errorf("%v are left of 5 s", grant.Remaining)
	}
}

// A restored copy has smaller revisions than the tokens that were granted since.
func TestARestoredCopyGrantsNothing(t *testing.T) {
	t.Parallel()
	server := peer.StartEtcd(t, peer.EtcdConfig{})
	s := open(t, server.Endpoints()...)
	ten := 10 * time.Second
	acquire(t, s, store.Request{Resource: "r", ID: "a", TTL: ten})
	release(t, s, "r", "a")
	member := server.Members[0]
	old := member.Copy()
	for _, id := range []string{"b", "c", "d"} {
		acquire(t, s, store.Request{Resource: "r", ID: id, TTL: ten})
		release(t, s, "r", id)
	}
	floor := acquire(t, s, store.Request{Resource: "r", ID: "e", TTL: ten}).Token
	member.Restore(old)

	s = open(t, server.Endpoints()...)
	_, err := s.Acquire(t.Context(), store.Request{Resource: "r", ID: "f", TTL: ten, Floor: floor})
	if !errors.Is(err, leasehold.ErrRefused) || !strings.Contains(err.Error(), "--bump-revision") {
		t.Errorf("the grant after the restore: %v", err)
	}
	if r, err := s.Read(t.Context(), "r"); err != nil || r.State != leasehold.Available {
		t.Errorf("what was refused is held: %+v, %v", r, err)
	}
	if grant := acquire(t, s, store.Request{Resource: "r", ID: "g", TTL: ten, Floor: 1}); grant.Token >= floor {
		t.Errorf("the restore did not lose anything: token %d after %d", grant.Token, floor)
	}
}

// An acquire that was sent before the release, and arrives after it.
func TestALateAcquireIsRefused(t *testing.T) {
	t.Parallel()
	server := peer.StartEtcd(t, peer.EtcdConfig{})
	link := peer.StartProxy(t, server.Members[0].Address)
	s, other := open(t, "http://"+link.Address), open(t, server.Endpoints()...)
	// The second id uses the etcd lease of the first, so that its acquire is one message.
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
}

// An etcd lease that an operator revokes is replaced if nothing was bound to it, and takes the hold
// with it if something was.
func TestARevokedLease(t *testing.T) {
	t.Parallel()
	server := peer.StartEtcd(t, peer.EtcdConfig{})
	s, direct := open(t, server.Endpoints()...), driver(t, server.Endpoints()...)
	revoke := func(resource string) {
		t.Helper()
		answer, err := direct.Get(t.Context(), "/leasehold/default/l/"+resource+"##h")
		if err != nil || len(answer.Kvs) != 1 {
			t.Fatalf("%v, %v", answer, err)
		}
		if _, err := direct.Revoke(t.Context(), clientv3.LeaseID(answer.Kvs[0].Lease)); err != nil {
			t.Fatal(err)
		}
	}
	acquire(t, s, store.Request{Resource: "r", ID: "a", TTL: time.Minute})
	revoke("r")
	if renewal := renew(t, s, "r", "a"); renewal.Ended == nil || renewal.Ended.How != leasehold.ByTTL {
		t.Errorf("the renewal after the revoke: %+v", renewal)
	}
	_, err := s.Acquire(t.Context(), store.Request{Resource: "r", ID: "a", TTL: time.Minute})
	if !errors.Is(err, leasehold.ErrLost) {
		t.Errorf("the same id again: %v", err)
	}
	first := acquire(t, s, store.Request{Resource: "r", ID: "b", TTL: time.Minute})
	answer, err := direct.Get(t.Context(), "/leasehold/default/l/r##h")
	if err != nil {
		t.Fatal(err)
	}
	release(t, s, "r", "b") // its etcd lease is idle now
	if _, err := direct.Revoke(t.Context(), clientv3.LeaseID(answer.Kvs[0].Lease)); err != nil {
		t.Fatal(err)
	}
	if next := acquire(t, s, store.Request{Resource: "r", ID: "c", TTL: time.Minute}); next.Token <= first.Token {
		t.Errorf("token %d after %d", next.Token, first.Token)
	}
}

// Somebody else writes to the key: it would not end by time any more.
func TestAKeyThatSomebodyElseWrote(t *testing.T) {
	t.Parallel()
	server := peer.StartEtcd(t, peer.EtcdConfig{})
	s, direct := open(t, server.Endpoints()...), driver(t, server.Endpoints()...)
	acquire(t, s, store.Request{Resource: "r", ID: "a", TTL: time.Minute})
	if _, err := direct.Put(t.Context(), "/leasehold/default/l/r##h", "a"); err != nil {
		t.Fatal(err)
	}
	if renewal := renew(t, s, "r", "a"); renewal.Ended == nil {
		t.Errorf("the key has no lease, and was renewed: %+v", renewal)
	}
	_, err := s.Acquire(t.Context(), store.Request{Resource: "r", ID: "b", TTL: time.Minute})
	if !errors.Is(err, leasehold.ErrHeld) {
		t.Errorf("a key that is there: %v", err)
	}
}

// protected starts an etcd with a user that has the permission which the documentation names, and one
// that has none. It returns what opens the store as one of them.
func protected(t testing.TB) func(user string) store.Store {
	t.Helper()
	server := peer.StartEtcd(t, peer.EtcdConfig{})
	root, ctx := driver(t, server.Endpoints()...), t.Context()
	do := func(_ any, err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	do(root.UserAdd(ctx, "root", "root"))
	do(root.UserGrantRole(ctx, "root", "root"))
	for _, user := range []string{"worker", "stranger"} {
		do(root.UserAdd(ctx, user, user))
		do(root.RoleAdd(ctx, user))
		do(root.UserGrantRole(ctx, user, user))
	}
	end := clientv3.GetPrefixRangeEnd("/leasehold/default/")
	do(root.RoleGrantPermission(ctx, "worker", "/leasehold/default/", end,
		clientv3.PermissionType(clientv3.PermReadWrite)))
	do(root.AuthEnable(ctx))
	host := server.Members[0].Address
	for _, user := range []string{"", "worker:wrong@"} {
		_, err := store.Open(ctx, "etcd://"+user+host, store.Settings{})
		if !errors.Is(err, leasehold.ErrDenied) || strings.Contains(err.Error(), "wrong") {
			t.Errorf("as %q: %v", user, err)
		}
	}
	return func(user string) store.Store {
		t.Helper()
		s, err := store.Open(ctx, "etcd://"+user+":"+user+"@"+host, store.Settings{})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = s.Close() })
		return s
	}
}

func TestPermissions(t *testing.T) {
	t.Parallel()
	as := protected(t)
	worker, stranger := as("worker"), as("stranger")
	acquire(t, worker, store.Request{Resource: "r", ID: "a", TTL: time.Minute})
	if renewal := renew(t, worker, "r", "a"); renewal.Ended != nil || renewal.Err != nil {
		t.Errorf("with the permission of the page: %+v", renewal)
	}
	_, err := stranger.Acquire(t.Context(), store.Request{Resource: "r", ID: "b", TTL: time.Minute})
	if !errors.Is(err, leasehold.ErrDenied) || !strings.Contains(err.Error(), "readwrite '/leasehold/default/'") {
		t.Errorf("without a permission: %v", err)
	}
	if _, err := stranger.Read(t.Context(), "r"); !errors.Is(err, leasehold.ErrDenied) {
		t.Errorf("read without a permission: %v", err)
	}
	release(t, worker, "r", "a")
}
