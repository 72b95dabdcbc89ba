package storetest

import (
	"errors"
	"slices"
	"time"

	"github.com/leasehold/leasehold"
	"github.com/leasehold/leasehold/store"
)

// What several holders share, wait for, and rest after.

// slots shares a resource of three slots: what fits is granted, what does not is refused.
func slots(k *kit) {
	take := func(id string, n int) store.Request {
		r := k.longer(k.ref("r", id))
		r.Slots, r.Capacity = n, 3
		return r
	}
	k.get(take("a", 2))
	k.get(take("b", 1))
	k.denied(take("c", 1), leasehold.Held)
	k.release(k.ref("r", "a"))
	k.get(take("c", 1))
	k.denied(take("d", 2), leasehold.Held)
	if got := k.look(k.res("r")); got.Used != 2 || got.Capacity != 3 || got.Holding != 2 {
		k.Errorf("%d of %d slots are taken by %d, want 2 of 3 by 2", got.Used, got.Capacity, got.Holding)
	}

	share := func(id string) store.Request {
		r := k.longer(k.ref("shared", id))
		r.Shared = true
		return r
	}
	first := k.get(share("e"))
	second := k.get(share("f"))
	k.larger(second, first.Token, "another share")
	if second.Floor > first.Token {
		k.Errorf("the floor is %d, and somebody has token %d", second.Floor, first.Token)
	}
	k.denied(k.longer(k.ref("shared", "g")), leasehold.Held)
	k.release(k.ref("shared", "e"), k.ref("shared", "f"))
	k.get(k.longer(k.ref("shared", "h")))
	k.denied(share("i"), leasehold.Held)
}

func definitions(k *kit) {
	ctx, cancel := k.within(0)
	defer cancel()
	units := []string{"gpu0", "gpu1"}
	if err := with[store.Definer](k).DefineUnits(ctx, k.res("pool"), units, "ann", k.id("key")); err != nil {
		k.Fatalf("define: %v", err)
	}
	var got []string
	for _, id := range []string{"a", "b"} {
		r := k.longer(k.ref("pool", id))
		r.Slots = 1
		got = append(got, k.get(r).Units...)
	}
	slices.Sort(got)
	if !slices.Equal(got, units) {
		k.Errorf("the units are %v, want %v", got, units)
	}
	r := k.longer(k.ref("pool", "c"))
	r.Slots = 1
	k.denied(r, leasehold.Held)
}

// several checks that of several resources all are granted, or none.
func several(k *kit) {
	all := func(id string) store.Request {
		r := k.longer(k.ref("1", id))
		r.Also = []store.Item{{Ref: k.ref("2", id+"2")}, {Ref: k.ref("3", id+"3")}}
		return r
	}
	grant := k.get(all("a"))
	if len(grant.Also) != 2 || grant.Also[0].ID != k.id("a2") || grant.Also[1].Resource != k.res("3") {
		k.Fatalf("granted %+v", grant)
	}
	k.release(k.ref("1", "a"), k.ref("3", "a3"))
	k.denied(all("b"), leasehold.Held)
	k.free(k.res("1"))
	k.free(k.res("3"))
	k.release(k.ref("2", "a2"))
	k.get(all("c"))
}

func priority(k *kit) {
	k.get(k.longer(k.ref("r", "a")))
	b := k.line("r", "b")[0]
	r := k.request(k.ref("r", "c"))
	r.Wait, r.Priority = k.awhile(), 10
	c := k.begin(k.second(), r)
	k.queued(k.res("r"), 2)
	k.release(k.ref("r", "a"))
	k.waited(c, "r", "c", k.wakes())
	k.pending(b)
}

func moves(k *kit) {
	k.get(k.longer(k.ref("r", "a")))
	tries := k.line("r", "b", "c")
	ctx, cancel := k.within(0)
	defer cancel()
	at, err := with[store.Mover](k).Move(ctx, k.ref("r", "c"), 5, "ann", "urgent")
	if err != nil || at != 1 {
		k.Fatalf("moved to the front, it is at %d, %v", at, err)
	}
	k.release(k.ref("r", "a"))
	k.waited(tries[1], "r", "c", k.wakes())
	k.pending(tries[0])
}

// After an unclean end nobody gets it for the grace; after a clean one at once.
func grace(k *kit) {
	ask := func(id string) store.Request {
		r := k.request(k.ref("r", id))
		r.Grace = k.TTL
		return r
	}
	k.get(ask("a"))
	k.release(k.ref("r", "a"))
	sent := time.Now()
	k.get(ask("b"))
	k.expire()
	k.denied(k.request(k.ref("r", "c")), leasehold.Held)
	_, got := k.takeOver(k.res("r"), k.id("d"), 3*k.TTL+k.Late+k.Slack)
	if early := sent.Add(2 * k.TTL).Sub(got); early > 0 {
		k.Errorf("it was granted %v before the grace was over", early)
	}
}

// Renewals do not make a lease last for longer than its limit.
func holdLimit(k *kit) {
	r := k.request(k.ref("r", "a"))
	r.HoldLimit = 2 * k.TTL
	sent := time.Now()
	k.get(r)
	for {
		k.sleep(k.TTL / 4)
		renewal := k.renew(k.ref("r", "a"))
		held := time.Since(sent)
		if renewal.Ended != nil {
			if held < r.HoldLimit {
				k.Errorf("a lease with a limit of %v ended after %v", r.HoldLimit, held)
			}
			break
		}
		if held > r.HoldLimit+k.Late+k.Slack+k.TTL/2 {
			k.Fatalf("a lease with a limit of %v is held for %v", r.HoldLimit, held)
		}
		if left := r.HoldLimit - held + k.TTL/4 + k.Slack; renewal.Remaining > left {
			k.Errorf("after %v, %v remain of a lease with a limit of %v", held, renewal.Remaining, r.HoldLimit)
		}
	}
	k.over(k.ref("r", "a"), leasehold.ByHoldLimit)
	k.free(k.res("r"))
}

// Two parties that wait for each other would wait for ever.
func parties(k *kit) {
	ask := func(resource, id, party string, wait time.Duration) store.Request {
		r := k.longer(k.ref(resource, id))
		r.Party, r.Wait = party, wait
		return r
	}
	k.get(ask("1", "a1", "ann", 0))
	k.get(ask("2", "b2", "bob", 0))
	waits := k.begin(k.second(), ask("2", "a2", "ann", k.awhile()))
	k.sleep(k.TTL / 4)
	k.pending(waits)
	_, err := k.ask(ask("1", "b1", "bob", k.awhile()))
	e := k.refused(err, leasehold.Refused, "a wait that closes a cycle")
	if len(e.Cycle) < 2 {
		k.Errorf("the refusal does not name the cycle: %+v", e)
	}
	k.release(k.ref("2", "b2"))
	if _, err := k.await(waits, k.wakes()); errors.Is(err, leasehold.ErrHeld) || err != nil {
		k.Errorf("the other wait ended with %s", describe(err))
	}
}
