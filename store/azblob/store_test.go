//go:build linux

package azblob_test

import (
	"context"
	"errors"
	"flag"
	"net/url"
	"path"
	"strings"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/container"
	azure "github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/lease"

	"github.com/leasehold/leasehold"
	"github.com/leasehold/leasehold/internal/peer"
	"github.com/leasehold/leasehold/store"
	_ "github.com/leasehold/leasehold/store/azblob"
	"github.com/leasehold/leasehold/store/storetest"
)

var full = flag.Bool("full", false, "run the long tests, too")

// address is the URL of a container in an emulator.
func address(server *peer.Azurite, name string) string {
	u := url.URL{Scheme: "azblob", User: url.UserPassword(server.Account, server.Key), Host: server.Address,
		Path: "/" + name, RawQuery: "http=true&path-style=true"}
	return u.String()
}

// TestAzurite runs the tests that leave their server alone, at once: each has a container of its own.
func TestAzurite(t *testing.T) {
	server := peer.StartAzurite(t)
	for name, test := range map[string]func(*testing.T, *peer.Azurite){
		"verbs": verbs, "late acquire": lateAcquire, "deleted blob": deletedBlob, "late renewal": lateRenewal,
		"addresses": addresses, "lost messages": lostMessages, "late messages": lateMessages,
		"overwritten blob": overwrittenBlob, "deleted container": deletedContainer, "late retry": lateRetry,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(t, server)
		})
	}
}

// long leaves a test out that takes longer than a lease.
func long(t *testing.T) {
	t.Helper()
	if !*full {
		t.Skip("left out: it takes half a minute (-full)")
	}
}

// containerOf is the container of a test.
func containerOf(t testing.TB) string {
	name := strings.ToLower(path.Base(t.Name()))
	return strings.Trim(strings.Map(func(r rune) rune {
		if r < 'a' || r > 'z' {
			return '-'
		}
		return r
	}, name), "-")
}

func open(t testing.TB, server *peer.Azurite) store.Store { return openIn(t, server, containerOf(t)) }

func openIn(t testing.TB, server *peer.Azurite, container string) store.Store {
	t.Helper()
	s, err := store.Open(t.Context(), address(server, container+"/app"), store.Settings{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return s
}

const ttl = 15 * time.Second

// The whole suite takes minutes, since Azure's shortest lease is 15 s.
func TestStore(t *testing.T) {
	if !*full {
		t.Skip("left out: it takes three minutes (-full)")
	}
	server := peer.StartAzurite(t)
	// Azurite runs on one processor, and 70 cases begin at once.
	storetest.Run(t, storetest.Config{
		Open: func(t testing.TB) store.Store { return openIn(t, server, "leases") },
		TTL:  ttl,
		Late: time.Second, MassLate: 2 * time.Second, Slack: 2 * time.Second, Wake: 3 * time.Second,
		// No Restart: for Azurite every lease has expired after one, also one of 60 s a second later.
		Hang: func(testing.TB) func() {
			server.Pause()
			return server.Resume
		},
	})
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

// direct returns a client of the container.
func direct(t testing.TB, server *peer.Azurite) *container.Client {
	t.Helper()
	key, err := container.NewSharedKeyCredential(server.Account, server.Key)
	if err != nil {
		t.Fatal(err)
	}
	client, err := container.NewClientWithSharedKeyCredential(server.URL()+"/"+containerOf(t), key, nil)
	if err != nil {
		t.Fatal(err)
	}
	return client
}

func verbs(t *testing.T, server *peer.Azurite) {
	s, other := open(t, server), open(t, server)
	request := store.Request{Resource: "reports/nightly", ID: "a", Holder: "ann", TTL: ttl, Value: []byte("v")}
	first := acquire(t, s, request)
	if again := acquire(t, s, request); again.Token != first.Token || again.Remaining > ttl {
		t.Errorf("the same again: %+v after %+v", again, first)
	}
	_, err := other.Acquire(t.Context(), store.Request{Resource: request.Resource, ID: "b", TTL: ttl})
	held := (*leasehold.Error)(nil)
	if !errors.As(err, &held) || held.Code != leasehold.Held || held.Lease.Holder != "ann" {
		t.Errorf("somebody else: %v", err)
	}
	for _, handle := range []store.Store{s, other} {
		list, err := handle.Renew(t.Context(), store.Ref{Resource: request.Resource, ID: "a"})
		if err != nil || list[0].Err != nil || list[0].Ended != nil || list[0].Token != first.Token {
			t.Errorf("the renewal: %+v, %v", list, err)
		}
	}
	lease, err := other.Break(t.Context(), store.BreakRequest{
		Ref: store.Ref{Resource: request.Resource, ID: "a"}, By: "op", Reason: "why"})
	if err != nil || lease.Token != first.Token {
		t.Errorf("the break: %+v, %v", lease, err)
	}
	list, err := s.Renew(t.Context(), store.Ref{Resource: request.Resource, ID: "a"})
	if err != nil || list[0].Ended == nil || list[0].Ended.How != leasehold.ByBreak || list[0].Ended.By != "op" {
		t.Errorf("the renewal after the break: %+v, %v", list, err)
	}
	next := acquire(t, other, store.Request{Resource: request.Resource, ID: "c", TTL: ttl, Floor: first.Token + 1000})
	if next.Token != first.Token+1001 {
		t.Errorf("token %d after %d with a floor 1,000 above", next.Token, first.Token)
	}
}

// An acquire that was cancelled reaches Azure after the release that took it back.
func lateAcquire(t *testing.T, server *peer.Azurite) {
	s := open(t, server)
	acquire(t, s, store.Request{Resource: "r", ID: "a", TTL: ttl})
	release(t, s, "r", "a")
	blob := direct(t, server).NewBlobClient("app/default/l/r")
	before, err := blob.GetProperties(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	release(t, s, "r", "late")
	client, err := azure.NewBlobClient(blob, nil)
	if err != nil {
		t.Fatal(err)
	}
	_, err = client.AcquireLease(t.Context(), 15, &azure.BlobAcquireOptions{
		ModifiedAccessConditions: &azure.ModifiedAccessConditions{IfMatch: before.ETag}})
	if err == nil {
		t.Error("a request that was conditioned on what was before the release was granted")
	}
	if _, err := open(t, server).Acquire(t.Context(), store.Request{Resource: "r", ID: "late", TTL: ttl}); !errors.Is(
		err, leasehold.ErrLost) {
		t.Errorf("the id that was withdrawn: %v", err)
	}
}

// A blob that is deleted and made again goes on with larger tokens, also within a second.
func deletedBlob(t *testing.T, server *peer.Azurite) {
	s := open(t, server)
	var last leasehold.Token
	for _, id := range []string{"a", "b", "c"} {
		grant := acquire(t, s, store.Request{Resource: "r", ID: id, TTL: ttl})
		if grant.Token <= last {
			t.Errorf("token %d after %d", grant.Token, last)
		}
		last = grant.Token
		release(t, s, "r", id)
		if _, err := direct(t, server).NewBlobClient("app/default/l/r").Delete(t.Context(), nil); err != nil {
			t.Fatal(err)
		}
	}
}

// Azure renews a lease that has expired. For its holder it has ended, and others get it.
func lateRenewal(t *testing.T, server *peer.Azurite) {
	long(t)
	s, other := open(t, server), open(t, server)
	request := store.Request{Resource: "r", ID: "a", TTL: ttl}
	first := acquire(t, s, request)
	time.Sleep(ttl / 2)
	if again := acquire(t, s, request); again.Token != first.Token || again.Remaining > ttl/2 {
		t.Errorf("asked again after half of the TTL, %v remain: that is no renewal", again.Remaining)
	}
	time.Sleep(ttl/2 + time.Second)
	list, err := s.Renew(t.Context(), store.Ref{Resource: "r", ID: "a"})
	if err != nil || list[0].Ended == nil || list[0].Ended.How != leasehold.ByTTL {
		t.Errorf("the renewal: %+v, %v", list, err)
	}
	// Another process does not know when it was acquired, and revives it neither.
	list, err = other.Renew(t.Context(), store.Ref{Resource: "r", ID: "a"})
	if err != nil || list[0].Ended == nil || list[0].Ended.How != leasehold.ByTTL {
		t.Errorf("the renewal by another process: %+v, %v", list, err)
	}
	if next := acquire(t, other, store.Request{Resource: "r", ID: "b", TTL: ttl}); next.Token <= first.Token {
		t.Errorf("token %d after %d", next.Token, first.Token)
	}
}

func addresses(t *testing.T, server *peer.Azurite) {
	for text, want := range map[string]error{
		"azblob://host":                    leasehold.ErrInvalid,
		"azblob://host/c?timeout=3":        leasehold.ErrInvalid,
		"azblob://a:%2a@host/c":            leasehold.ErrInvalid,
		"azblob://host/c?http=maybe":       leasehold.ErrInvalid,
		"azblob://127.0.0.1:1/c?http=true": leasehold.ErrUnavailable,
		"azblob://leasehold:" + url.QueryEscape("c2VjcmV0") + "@" + server.Address +
			"/leases?http=true&path-style=true": leasehold.ErrDenied,
	} {
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		_, err := store.Open(ctx, text, store.Settings{})
		cancel()
		if !errors.Is(err, want) {
			t.Errorf("%s: %v, want %v", text, err, want)
		}
	}
}
