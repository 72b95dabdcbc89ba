package storetest

import (
	"context"
	"errors"
	"strconv"
	"testing"
	"time"

	"github.com/leasehold/leasehold"
	"github.com/leasehold/leasehold/store"
)

// What the harness does to a store: it restarts, is killed, hangs, or denies.

func faultTests() []test {
	return []test{
		{name: "faults/restart", alone: true, run: func(k *kit) { survives(k, k.Restart) },
			lacks: func(c *Config) string {
				if c.Kill != nil && c.short() { // the harder one is enough
					return long
				}
				return unless(c.Restart != nil, "restart")
			}},
		{name: "faults/kill", alone: true, run: func(k *kit) { survives(k, k.Kill) },
			lacks: func(c *Config) string { return unless(c.Kill != nil, "kill") }},
		{name: "faults/hang", alone: true, run: hangs,
			lacks: func(c *Config) string { return unless(c.Hang != nil, "stop") }},
		{name: "faults/denied", run: deniedVerbs,
			lacks: func(c *Config) string { return unless(c.Denied != nil, "take permissions from") }},
		{name: "faults/fail over", own: true, run: failsOver,
			lacks: func(c *Config) string { return unless(c.Standby != nil, "promote a standby of") }},
	}
}

func unless(can bool, what string) string {
	if can {
		return ""
	}
	return "the harness cannot " + what + " the store"
}

// eventually carries out a call until the store answers it.
func (k *kit) eventually(call func() error) error {
	k.Helper()
	began := time.Now()
	for {
		err := call()
		if !store.Transient(err) || time.Since(began) > limit {
			return err
		}
		k.sleep(50 * time.Millisecond)
	}
}

// survives checks that nobody gets what somebody may still hold after a restart, whatever the store
// remembers, and that tokens go on.
func survives(k *kit, disrupt func(testing.TB)) {
	r := k.ref("r", "a")
	sent := time.Now()
	grant := k.acquire(r)
	b := k.ref("released", "b")
	gone := k.acquire(b)
	k.release(b)
	disrupt(k.TB)
	taken := k.afterwards(r, sent, 0)
	least := grant.Token
	if k.features.Tokens.Scope == store.PerNamespace {
		least = max(least, gone.Token)
	}
	k.larger(taken, least, "a restart")
}

// afterwards takes over a resource from a lease that somebody asked for, or renewed, at some time before
// the store was disrupted. It fails if that is too early, or if the old lease lives on.
func (k *kit) afterwards(r store.Ref, sent time.Time, floor leasehold.Token) (taken store.Grant) {
	k.Helper()
	for n := 0; ; n++ {
		request := k.request(store.Ref{Resource: r.Resource, ID: r.ID + "-next-" + strconv.Itoa(n)})
		request.Floor = floor
		err := k.eventually(func() (err error) { taken, err = k.ask(request); return err })
		if err == nil {
			break
		}
		if !errors.Is(err, leasehold.ErrHeld) || time.Since(sent) > 10*k.TTL+2*k.Late+limit {
			k.Fatalf("%v later %s is not granted: %s", time.Since(sent), r.Resource, describe(err))
		}
		k.sleep(k.TTL / 10)
	}
	if early := time.Until(sent.Add(k.TTL)); early > 0 {
		k.Errorf("%s was granted to somebody else %v before the TTL of %v was over", r.Resource, early, k.TTL)
	}
	var old store.Renewal
	err := k.eventually(func() error {
		list, err := k.store.Renew(k.Context(), r)
		if err != nil {
			return err
		}
		old = list[0]
		return old.Err
	})
	if err != nil || old.Ended == nil {
		k.Errorf("somebody else has %s, and the renewal of the old lease: %s, %v", r.Resource, ended(old), err)
	}
	return taken
}

// failsOver promotes a standby that lacks a grant and a renewal. Nobody gets what their holders were told
// that they have.
func failsOver(k *kit) {
	s := k.Standby(k.TB)
	k = k.at(s.Open)
	lost, known := k.ref("lost", "a"), k.ref("known", "b")
	tokens := []leasehold.Token{0, k.acquire(known).Token}
	s.Lag()
	sent := time.Now()
	tokens[0] = k.acquire(lost).Token
	k.alive(known)
	s.Promote()
	floor := leasehold.Token(0)
	if k.features.Tokens.Failover != "" { // it takes a caller that has seen the old tokens
		floor = max(tokens[0], tokens[1])
	}
	k.together(2, func(i int) {
		k.larger(k.afterwards([]store.Ref{lost, known}[i], sent, floor), tokens[i], "a failover")
	})
}

// hangs checks that a call to a silent store ends with its context, and says that nobody knows.
func hangs(k *kit) {
	r := k.ref("r", "a")
	k.acquire(k.ref("before", "before")) // the connections are open
	resume := k.Hang(k.TB)
	ctx, cancel := context.WithTimeout(k.Context(), k.TTL/2)
	sent := time.Now()
	_, err := k.store.Acquire(ctx, k.request(r))
	cancel()
	took := time.Since(sent)
	resume()
	if !store.Transient(err) {
		k.Errorf("an acquire at a silent store: the error is %s", describe(err))
	}
	if errors.Is(err, leasehold.ErrUnavailable) {
		k.Errorf("an acquire at a silent store is unavailable, and it may have happened: %v", err)
	}
	if took > k.TTL/2+k.Slack+time.Second {
		k.Errorf("a call with a limit of %v took %v", k.TTL/2, took)
	}
	if err := k.eventually(func() error {
		ctx, cancel := context.WithTimeout(k.Context(), limit/3)
		defer cancel()
		return k.store.Release(ctx, store.ReleaseRequest{Leases: []store.Ref{r}, Withdraw: true})
	}); err != nil {
		k.Fatalf("release after the store answers again: %v", err)
	}
	k.over(r, 0)
	k.free(r.Resource)
}

// deniedVerbs checks that a missing permission is called that.
func deniedVerbs(k *kit) {
	s := k.Denied(k.TB)
	k.Cleanup(func() { _ = s.Close() })
	ctx, cancel := k.within(0)
	defer cancel()
	r := k.ref("r", "a")
	k.acquire(r)
	_, err := s.Acquire(ctx, k.request(k.ref("r", "b")))
	k.refused(err, leasehold.Denied, "acquire without permission")
	list, err := s.Renew(ctx, r)
	if err == nil && len(list) == 1 {
		err = list[0].Err
	}
	k.refused(err, leasehold.Denied, "renew without permission")
	err = s.Release(ctx, store.ReleaseRequest{Leases: []store.Ref{r}})
	k.refused(err, leasehold.Denied, "release without permission")
	_, err = s.Break(ctx, store.BreakRequest{Ref: r})
	k.refused(err, leasehold.Denied, "break without permission")
	k.alive(r)
}
