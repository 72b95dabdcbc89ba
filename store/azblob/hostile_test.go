//go:build linux

package azblob_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"sync"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore/streaming"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/container"

	"github.com/leasehold/leasehold"
	"github.com/leasehold/leasehold/internal/peer"
	"github.com/leasehold/leasehold/store"
	"github.com/leasehold/leasehold/store/azblob"
)

// A fate is what becomes of one request to Azure.
type fate string

const (
	lostRequest fate = "the request is lost"
	lostReply   fate = "the reply is lost"
	late        fate = "the request is late"
)

var errWire = errors.New("the wire is cut")

// A wire carries requests to Azure. One of them may have another fate, and a late one may arrive before one
// of those that come after it.
type wire struct {
	mu     sync.Mutex // guards what follows
	n      int        // requests since aim
	at     int        // the one with a fate; -1: none
	fate   fate
	before int // the request before which the late one arrives; -1: none
	held   *http.Request
}

// aim gives one of the next requests a fate.
func (w *wire) aim(at int, f fate) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.n, w.at, w.fate, w.before = 0, at, f, -1
}

// expect lets the late request arrive before one of the next ones.
func (w *wire) expect(before int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.n, w.at, w.before = 0, -1, before
}

// hit reports whether a request had the fate that was aimed at it.
func (w *wire) hit() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.n > w.at
}

func (w *wire) Do(r *http.Request) (*http.Response, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	n := w.n
	w.n++
	if n == w.before {
		w.deliver()
	}
	if n != w.at {
		return http.DefaultClient.Do(r)
	}
	switch w.fate {
	case lostReply:
		if answer, err := http.DefaultClient.Do(r); err == nil {
			_ = answer.Body.Close()
		}
	case late:
		w.held = r.Clone(context.Background())
		if r.Body != nil {
			body, _ := io.ReadAll(r.Body)
			w.held.Body = io.NopCloser(bytes.NewReader(body))
		}
	}
	return nil, errWire
}

// deliver sends what is late, if it has not been sent.
func (w *wire) deliver() {
	if w.held == nil {
		return
	}
	if answer, err := http.DefaultClient.Do(w.held); err == nil {
		_ = answer.Body.Close()
	}
	w.held = nil
}

// openBy opens a store whose requests go over a wire.
func openBy(t testing.TB, server *peer.Azurite, w *wire) store.Store {
	t.Helper()
	key, err := container.NewSharedKeyCredential(server.Account, server.Key)
	if err != nil {
		t.Fatal(err)
	}
	options := azblob.ClientOptions()
	options.Transport = w
	client, err := container.NewClientWithSharedKeyCredential(server.URL()+"/"+containerOf(t), key, options)
	if err != nil {
		t.Fatal(err)
	}
	s, err := azblob.Open(t.Context(), azblob.Config{Container: client, Prefix: "app"})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// verb carries out a verb for the id of a lease on "r".
func verb(ctx context.Context, s store.Store, name, id string) (leasehold.Token, error) {
	ref := store.Ref{Resource: "r", ID: id}
	switch name {
	case "acquire":
		grant, err := s.Acquire(ctx, store.Request{Resource: "r", ID: id, TTL: ttl})
		return grant.Token, err
	case "renew":
		list, err := s.Renew(ctx, ref)
		if err == nil && list[0].Ended != nil {
			err = fmt.Errorf("it ended as %v", list[0].Ended.How)
		}
		if err == nil {
			err = list[0].Err
		}
		return list[0].Token, err
	case "release":
		return 0, s.Release(ctx, store.ReleaseRequest{Leases: []store.Ref{ref}, Withdraw: true})
	}
	_, err := s.Break(ctx, store.BreakRequest{Ref: ref, By: "op", Reason: "why"})
	return 0, err
}

// next checks that somebody else gets "r" at once, with a larger token, and gives it back.
func next(t *testing.T, s store.Store, what, id string, last leasehold.Token) leasehold.Token {
	t.Helper()
	grant, err := s.Acquire(t.Context(), store.Request{Resource: "r", ID: id, TTL: ttl})
	if err != nil || grant.Token <= last {
		t.Fatalf("%s: the next one gets token %d after %d, %v", what, grant.Token, last, err)
	}
	release(t, s, "r", id)
	return grant.Token
}

// Each request of each verb is lost, or its reply is. The same again finds out what happened.
func lostMessages(t *testing.T, server *peer.Azurite) {
	other := open(t, server)
	w := &wire{at: -1, before: -1}
	s := openBy(t, server, w)
	last := next(t, other, "before", "first", 0)
	for _, name := range []string{"acquire", "renew", "release", "break"} {
		for _, f := range []fate{lostRequest, lostReply} {
			for n := 0; ; n++ {
				what := fmt.Sprintf("%s, call %d: %s", name, n, f)
				var held leasehold.Token
				if name != "acquire" {
					held = acquire(t, s, store.Request{Resource: "r", ID: what, TTL: ttl}).Token
				}
				w.aim(n, f)
				_, err := verb(t.Context(), s, name, what)
				hit := w.hit()
				w.aim(-1, "")
				if hit && err != nil && !store.Transient(err) {
					t.Errorf("%s: %v", what, err)
				}
				last = max(last, again(t, s, other, name, what, held))
				last = next(t, other, what, "after "+what, last)
				if !hit {
					break
				}
			}
		}
	}
}

// again repeats a verb whose first attempt was hit, and checks what it came to. It returns the token of the
// lease, which has ended then.
func again(t *testing.T, s, other store.Store, name, id string, held leasehold.Token) leasehold.Token {
	t.Helper()
	token, err := verb(t.Context(), s, name, id)
	switch name {
	case "acquire", "renew":
		if err != nil || token == 0 || held != 0 && token != held {
			t.Fatalf("%s: the second attempt gets token %d, %v", id, token, err)
		}
		held = token
		if _, err := other.Acquire(t.Context(), store.Request{Resource: "r", ID: "x " + id, TTL: ttl}); !errors.Is(err,
			leasehold.ErrHeld) {
			t.Fatalf("%s: somebody else: %v", id, err)
		}
		release(t, s, "r", id)
	case "release":
		if err != nil {
			t.Fatalf("%s: the second attempt: %v", id, err)
		}
	case "break":
		if err != nil && !errors.Is(err, leasehold.ErrLost) {
			t.Fatalf("%s: the second attempt: %v", id, err)
		}
		for _, handle := range []store.Store{s, other} {
			list, err := handle.Renew(t.Context(), store.Ref{Resource: "r", ID: id})
			if err != nil || list[0].Ended == nil || list[0].Ended.How != leasehold.ByBreak || list[0].Ended.By != "op" {
				t.Fatalf("%s: the holder is told %+v, %v", id, list, err)
			}
		}
	}
	return held
}

// Each request of an acquire arrives late: before each request of the release that takes it back, or after
// all of them. Nobody has the resource then.
func lateMessages(t *testing.T, server *peer.Azurite) {
	other := open(t, server)
	w := &wire{at: -1, before: -1}
	s := openBy(t, server, w)
	last := next(t, other, "before", "first", 0)
	for n := 0; ; n++ {
		for before := 0; ; before++ {
			what := fmt.Sprintf("call %d of an acquire comes before call %d of its release", n, before)
			w.aim(n, late)
			_, err := verb(t.Context(), s, "acquire", what)
			if !w.hit() {
				w.aim(-1, "")
				release(t, s, "r", what)
				return
			}
			if !store.Transient(err) {
				t.Fatalf("%s: %v", what, err)
			}
			w.expect(before)
			if _, err := verb(t.Context(), s, "release", what); err != nil {
				t.Fatalf("%s: release: %v", what, err)
			}
			over := !w.sent(before)
			w.mu.Lock()
			w.deliver()
			w.mu.Unlock()
			last = next(t, other, what, "after "+what, last)
			for _, handle := range []store.Store{s, other} {
				if _, err := verb(t.Context(), handle, "acquire", what); !errors.Is(err, leasehold.ErrLost) {
					t.Fatalf("%s: the id is acquired again: %v", what, err)
				}
			}
			if over {
				break
			}
		}
	}
}

// sent reports whether there was a request of that number.
func (w *wire) sent(n int) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.n > n
}

// Somebody writes over the blob of a resource while it is free, and its token is gone.
func overwrittenBlob(t *testing.T, server *peer.Azurite) {
	s := open(t, server)
	last := next(t, s, "before", "a", 0)
	client := direct(t, server).NewBlockBlobClient("app/default/l/r")
	if _, err := client.Upload(t.Context(), streaming.NopCloser(bytes.NewReader([]byte("mine"))), nil); err != nil {
		t.Fatal(err)
	}
	next(t, s, "somebody wrote over the blob", "b", last)
}

func deletedContainer(t *testing.T, server *peer.Azurite) {
	s := open(t, server)
	acquire(t, s, store.Request{Resource: "r", ID: "a", TTL: ttl})
	if _, err := direct(t, server).Delete(t.Context(), nil); err != nil {
		t.Fatal(err)
	}
	if _, err := verb(t.Context(), s, "acquire", "b"); !errors.Is(err, leasehold.ErrUnavailable) {
		t.Errorf("the container was deleted: %v", err)
	}
	again := open(t, server)
	acquire(t, again, store.Request{Resource: "r", ID: "c", TTL: ttl})
}

// The write of a token is lost, and the id asks again late. Its time counts from then, also at Azure.
func lateRetry(t *testing.T, server *peer.Azurite) {
	long(t)
	other := open(t, server)
	w := &wire{at: -1, before: -1}
	s := openBy(t, server, w)
	next(t, other, "before", "first", 0)
	w.aim(3, lostRequest) // after a look, the lease and a look for a mark
	if _, err := verb(t.Context(), s, "acquire", "a"); !store.Transient(err) || !w.hit() {
		t.Fatalf("the token was written: %v", err)
	}
	time.Sleep(ttl / 2)
	w.aim(-1, "")
	sent := time.Now()
	grant := acquire(t, s, store.Request{Resource: "r", ID: "a", TTL: ttl})
	for time.Since(sent) < grant.Remaining-grant.Remaining/100 {
		if _, err := verb(t.Context(), other, "acquire", fmt.Sprint("b", time.Since(sent))); !errors.Is(err, leasehold.ErrHeld) {
			t.Fatalf("%v after it was granted for %v: %v", time.Since(sent), grant.Remaining, err)
		}
		time.Sleep(time.Second)
	}
}
