package storetest

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/leasehold/leasehold"
	"github.com/leasehold/leasehold/store"
)

// A stream is what a watch has yielded.
type stream struct {
	events   chan leasehold.Event
	position chan string
}

// watch begins to watch the resources of the case.
func (k *kit) watch(since string) *stream {
	k.Helper()
	s := &stream{events: make(chan leasehold.Event, 1000), position: make(chan string, 1000)}
	ctx, cancel := context.WithCancel(k.Context())
	started, done := make(chan struct{}), make(chan struct{})
	q := store.WatchQuery{
		Prefix: k.res(""), Since: since, Started: sync.OnceFunc(func() { close(started) }),
		Passed: func(p string) { s.position <- p },
	}
	go func() {
		defer close(done)
		defer k.survive()
		for e, err := range with[store.Watcher](k).Watch(ctx, q) {
			if err != nil {
				if ctx.Err() == nil {
					k.Errorf("the watch ended with: %v", err)
				}
				return
			}
			s.events <- e
		}
	}()
	k.Cleanup(func() { cancel(); <-done })
	select {
	case <-started:
	case <-done:
	case <-time.After(limit):
		k.Fatalf("the watch did not start")
	}
	return s
}

// next returns the next event of a kind.
func (k *kit) next(s *stream, kind leasehold.Kind) (leasehold.Event, string) {
	k.Helper()
	for {
		select {
		case e := <-s.events:
			position := ""
			select {
			case position = <-s.position:
			case <-time.After(limit):
				k.Fatalf("the watch did not pass %v", e.Kind)
			}
			if e.Kind == kind {
				return e, position
			}
		case <-time.After(k.awhile()):
			k.Fatalf("the watch does not show that something was %v", kind)
		}
	}
}

func watches(k *kit) {
	s := k.watch("")
	r := k.ref("r", "a")
	grant := k.acquire(r)
	e, position := k.next(s, leasehold.Acquired)
	if e.Resource != r.Resource || e.ID != r.ID || e.Token != grant.Token {
		k.Errorf("the watch shows %+v of %+v", e, grant.Lease)
	}
	k.release(r)
	if e, _ := k.next(s, leasehold.Ended); e.ID != r.ID || e.How != leasehold.Released {
		k.Errorf("the watch shows %+v of a release", e)
	}
	b := k.ref("r", "b")
	k.acquire(b)
	if _, err := k.breakLease(b); err != nil {
		k.Fatalf("break: %v", err)
	}
	if e, _ := k.next(s, leasehold.Ended); e.ID != b.ID || e.How != leasehold.ByBreak || e.By != "operator" {
		k.Errorf("the watch shows %+v of a break", e)
	}
	// From a position on, nothing is missing.
	again := k.watch(position)
	if e, _ := k.next(again, leasehold.Ended); e.ID != r.ID {
		k.Errorf("watched from %s, the first end is that of %s, want %s", position, e.ID, r.ID)
	}
}

// records writes a record under a lease; after the release the same write is refused and changes nothing.
func records(k *kit) {
	db := with[store.Records](k)
	ctx, cancel := k.within(0)
	defer cancel()
	path := k.res("record")
	if _, err := db.Get(ctx, path); !errors.Is(err, leasehold.ErrNotFound) {
		k.Errorf("a record that was never written: %s", describe(err))
	}
	r := k.ref("r", "a")
	grant := k.acquire(r)
	fence := store.Fence{ID: r.ID, Token: grant.Token}
	put := func(text string) error {
		return db.Put(ctx, store.PutRequest{Path: path, Value: []byte(text), Fence: fence})
	}
	if err := put("one\x00\xff"); err != nil {
		k.Fatalf("put: %v", err)
	}
	if got, err := db.Get(ctx, path); err != nil || string(got.Value) != "one\x00\xff" || got.Token != grant.Token {
		k.Errorf("the record is %q with token %d, %v", got.Value, got.Token, err)
	}
	k.release(r)
	if err := put("late"); err == nil || store.Transient(err) {
		k.Errorf("a write under a lease that was released: %s", describe(err))
	}
	if got, err := db.Get(ctx, path); err != nil || string(got.Value) != "one\x00\xff" {
		k.Errorf("after a late write the record is %q, %v", got.Value, err)
	}
	if err := db.Delete(ctx, path, store.Fence{}); err != nil {
		k.Errorf("delete: %v", err)
	}
	if _, err := db.Get(ctx, path); !errors.Is(err, leasehold.ErrNotFound) {
		k.Errorf("a record that was deleted: %s", describe(err))
	}
}

func changes(k *kit) {
	r := k.ref("r", "a")
	first := k.acquire(r)
	ctx, cancel := k.within(0)
	defer cancel()
	moved, err := with[store.Changer](k).Change(ctx, r, "", k.id("b"))
	if err != nil || moved.ID != k.id("b") || moved.Token != first.Token {
		k.Fatalf("with another id it is %s with token %d, %v", moved.ID, moved.Token, err)
	}
	k.over(r, 0)
	// The old id releases nothing.
	err = k.store.Release(ctx, store.ReleaseRequest{Leases: []store.Ref{r}})
	if err != nil && !errors.Is(err, leasehold.ErrLost) && !errors.Is(err, leasehold.ErrNotFound) {
		k.Errorf("release by the id that it had: %s", describe(err))
	}
	r = k.ref("r", "b")
	k.alive(r)
	given, err := with[store.Changer](k).Change(ctx, r, "somebody else", "")
	if err != nil || given.Holder != "somebody else" {
		k.Fatalf("given to another holder it is %q's, %v", given.Holder, err)
	}
	k.larger(given, first.Token, "a change of the holder")
	k.denied(k.request(k.ref("r", "c")), leasehold.Held)
}

// sendsMessages asks a holder for its lease: the message arrives once, however often it is sent.
func sendsMessages(k *kit) {
	m := store.Message{Resource: k.res("r"), Text: "please release", By: "ann", Key: k.id("key")}
	ctx, cancel := k.within(0)
	defer cancel()
	ask := with[store.Messenger](k).Ask
	err := ask(ctx, store.Message{Resource: m.Resource, Text: "x", Key: k.id("none")})
	if !errors.Is(err, leasehold.ErrNotFound) {
		k.Errorf("a message to nobody: %s", describe(err))
	}
	r := k.ref("r", "a")
	k.get(k.longer(r))
	for range 2 {
		if err := ask(ctx, m); err != nil {
			k.Fatalf("ask: %v", err)
		}
	}
	h, ok := k.store.(store.Historian)
	if !ok {
		return
	}
	events, err := h.History(ctx, m.Resource)
	if err != nil {
		k.Fatalf("history: %v", err)
	}
	count := 0
	for _, e := range events {
		if e.Kind == leasehold.Asked && e.Reason == m.Text && e.By == m.By && e.ID == r.ID {
			count++
		}
	}
	if count != 1 {
		k.Errorf("a message that was sent twice with one key was delivered %d times", count)
	}
}

func notes(k *kit) {
	r := k.ref("r", "a")
	k.acquire(r)
	ctx, cancel := k.within(0)
	defer cancel()
	if err := with[store.Noter](k).Note(ctx, r, "3 of 10"); err != nil {
		k.Fatalf("note: %v", err)
	}
	if got := k.look(r.Resource).Holders[0].Note; got != "3 of 10" {
		k.Errorf("the note is %q", got)
	}
	k.release(r)
	if err := with[store.Noter](k).Note(ctx, r, "late"); err == nil {
		k.Errorf("a lease that was released got a note")
	}
}

func history(k *kit) {
	for _, id := range []string{"a", "b"} {
		k.acquire(k.ref("r", id))
		k.release(k.ref("r", id))
	}
	ctx, cancel := k.within(0)
	defer cancel()
	events, err := with[store.Historian](k).History(ctx, k.res("r"))
	if err != nil {
		k.Fatalf("history: %v", err)
	}
	var got []string
	for _, e := range events {
		if e.Kind == leasehold.Acquired || e.Kind == leasehold.Ended {
			got = append(got, e.Kind.String()+" "+e.ID)
		}
	}
	want := []string{"acquired " + k.id("a"), "ended " + k.id("a"), "acquired " + k.id("b"), "ended " + k.id("b")}
	if !slices.Equal(got, want) {
		k.Errorf("the history is %v, want %v", got, want)
	}
}
