package storetest

import (
	"errors"
	"slices"
	"strconv"
	"time"

	"github.com/leasehold/leasehold"
	"github.com/leasehold/leasehold/store"
)

// open opens a session.
func (k *kit) open(id string) store.SessionAnswer {
	k.Helper()
	answer, err := with[store.Sessions](k).OpenSession(k.Context(), k.id(id), k.TTL, nil)
	if err != nil {
		k.Fatalf("the session %s was not opened: %v", id, err)
	}
	if answer.Remaining <= 0 || answer.Remaining > k.TTL {
		k.Errorf("%v remain of a session of %v", answer.Remaining, k.TTL)
	}
	return answer
}

// bound returns a request for a lease that is bound to a session.
func (k *kit) bound(r store.Ref, session string) store.Request {
	request := k.request(r)
	request.TTL, request.Session = 0, k.id(session)
	return request
}

// keep renews a session for a while.
func (k *kit) keep(session string, d time.Duration) (last store.SessionAnswer) {
	k.Helper()
	for began := time.Now(); time.Since(began) < d; {
		k.sleep(k.TTL / 4)
		answer, err := with[store.Sessions](k).RenewSession(k.Context(), k.id(session), 0)
		if err != nil {
			k.Fatalf("the session %s was not renewed: %v", session, err)
		}
		last = answer
	}
	return last
}

// One message renews all leases of a session.
func sessionsRenewAll(k *kit) {
	k.open("s")
	k.open("s") // the first answer may have been lost
	const n = 10
	tokens := make([]leasehold.Token, n)
	for i := range n {
		tokens[i] = k.get(k.bound(k.ref(strconv.Itoa(i), strconv.Itoa(i)), "s")).Token
	}
	k.keep("s", 2*k.TTL)
	for i := range n {
		r := k.ref(strconv.Itoa(i), strconv.Itoa(i))
		if again := k.get(k.bound(r, "s")); again.Token != tokens[i] {
			k.Errorf("%s has token %d after two TTLs, and had %d", r.ID, again.Token, tokens[i])
		}
		k.denied(k.request(k.ref(strconv.Itoa(i), "other"+strconv.Itoa(i))), leasehold.Held)
	}
	// What it took back before it came is refused, and what it releases is free.
	ctx, cancel := k.within(0)
	defer cancel()
	refs := []store.Ref{k.ref("0", "0"), k.ref("late", "late")}
	if err := k.store.Release(ctx, store.ReleaseRequest{Leases: refs, Session: k.id("s"), Withdraw: true}); err != nil {
		k.Fatalf("release: %v", err)
	}
	k.denied(k.bound(refs[1], "s"), leasehold.Lost)
	k.free(refs[0].Resource)
	k.free(refs[1].Resource)
	k.alive(k.ref("1", "1"))
}

// The end of a session is the end of all that it has.
func sessionsEndAll(k *kit) {
	for _, s := range []string{"closed", "expired"} {
		k.open(s)
		for i := range 5 {
			name := s + strconv.Itoa(i)
			k.get(k.bound(k.ref(name, name), s))
		}
		if s == "closed" {
			if err := with[store.Sessions](k).CloseSession(k.Context(), k.id(s)); err != nil {
				k.Fatalf("close: %v", err)
			}
		} else {
			k.expire()
		}
		for i := range 5 {
			name := s + strconv.Itoa(i)
			k.over(k.ref(name, name), 0)
			k.free(k.res(name))
		}
		_, err := with[store.Sessions](k).RenewSession(k.Context(), k.id(s), 0)
		if !errors.Is(err, leasehold.ErrLost) && !errors.Is(err, leasehold.ErrNotFound) {
			k.Errorf("the renewal of a session that is %s: %s", s, describe(err))
		}
		_, err = k.ask(k.bound(k.ref("new", "new-"+s), s))
		if !errors.Is(err, leasehold.ErrLost) && !errors.Is(err, leasehold.ErrNotFound) {
			k.Errorf("an acquire for a session that is %s: %s", s, describe(err))
		}
	}
}

// A living session is not a living lease: its renewal says what others did.
func sessionsCount(k *kit) {
	first := k.open("s")
	if !first.Counted {
		k.Skip("the store does not count interventions")
	}
	k.get(k.bound(k.ref("r", "a"), "s"))
	k.get(k.bound(k.ref("q", "b"), "s"))
	before := k.keep("s", k.TTL/4)
	if before.Interventions != first.Interventions {
		k.Errorf("nobody intervened, and the count went from %d to %d", first.Interventions, before.Interventions)
	}
	if _, err := k.breakLease(k.ref("r", "a")); err != nil {
		k.Fatalf("break: %v", err)
	}
	after := k.keep("s", k.TTL/4)
	if after.Interventions <= before.Interventions || !slices.Contains(after.Intervened, k.id("a")) {
		k.Errorf("a lease was broken: the count went from %d to %d, and names %v", before.Interventions,
			after.Interventions, after.Intervened)
	}
	seen, err := with[store.Sessions](k).RenewSession(k.Context(), k.id("s"), after.Interventions)
	if err != nil || len(seen.Intervened) != 0 {
		k.Errorf("the caller knows of all interventions, and is told of %v, %v", seen.Intervened, err)
	}
	k.over(k.ref("r", "a"), leasehold.ByBreak)
	k.alive(k.ref("q", "b"))
}
