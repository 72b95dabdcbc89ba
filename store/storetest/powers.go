package storetest

import (
	"slices"
	"strings"
	"time"

	"github.com/leasehold/leasehold"
	"github.com/leasehold/leasehold/store"
)

func powerTests() []test {
	one := func(name string, p store.Power, run func(*kit)) test {
		return test{name: "powers/" + name, run: run, needs: []store.Power{p}}
	}
	return []test{
		{name: "powers/are as listed", run: powersAreListed},
		{name: "powers/others are refused", run: othersAreRefused},
		one("sessions", store.SessionPower, sessionsRenewAll),
		one("sessions end all", store.SessionPower, sessionsEndAll),
		one("sessions count interventions", store.SessionPower, sessionsCount),
		one("watch", store.WatchPower, watches),
		one("records", store.RecordPower, records),
		one("change", store.ChangePower, changes),
		one("messages", store.MessagePower, sendsMessages),
		one("notes", store.NotePower, notes),
		one("history", store.HistoryPower, history),
		one("definitions", store.DefinitionPower, definitions),
		{name: "powers/move", run: moves, needs: []store.Power{store.MovePower, store.FairQueue}},
		one("tasks", store.TaskPower, claimsTasks),
		one("learned TTLs", store.AdvicePower, advises),
		one("slots", store.Slots, slots),
		one("several at once", store.Several, several),
		{name: "powers/priority", run: priority, needs: []store.Power{store.Priority, store.FairQueue}},
		one("grace", store.Grace, grace),
		one("hold limit", store.HoldLimit, holdLimit),
		one("deadlock detection", store.Parties, parties),
		one("break period", store.BreakPeriod, breakPeriod),
		one("value", store.ValueInLease, value),
	}
}

// interfaces says whether a store implements what a power needs.
var interfaces = map[store.Power]func(store.Store) bool{
	store.SessionPower:    is[store.Sessions],
	store.WatchPower:      is[store.Watcher],
	store.RecordPower:     is[store.Records],
	store.ChangePower:     is[store.Changer],
	store.MessagePower:    is[store.Messenger],
	store.NotePower:       is[store.Noter],
	store.HistoryPower:    is[store.Historian],
	store.DefinitionPower: is[store.Definer],
	store.MovePower:       is[store.Mover],
	store.TaskPower:       is[store.Tasks],
	store.AdvicePower:     is[store.Advisor],
}

func is[I any](s store.Store) bool {
	_, ok := s.(I)
	return ok
}

// with returns the store as one with a power.
func with[I any](k *kit) I {
	i, ok := k.store.(I)
	if !ok {
		k.Fatalf("the store lists a power and has no method for it")
	}
	return i
}

func powersAreListed(k *kit) {
	f := k.features
	if f.Store == "" || f.Clock == "" || f.Durability == "" || f.Tokens.Scope == "" {
		k.Errorf("the features do not say everything: %+v", f)
	}
	if sorted := slices.Clone(f.Powers); len(slices.Compact(slices.Sorted(slices.Values(sorted)))) != len(f.Powers) {
		k.Errorf("a power is listed twice: %v", f.Powers)
	}
	for p, has := range interfaces {
		if has(k.store) != f.Has(p) {
			k.Errorf("power %q: listed is %v, implemented is %v", p, f.Has(p), has(k.store))
		}
	}
}

// othersAreRefused checks that what a store cannot do is refused with an error that names it, and
// nothing weaker is done in silence.
func othersAreRefused(k *kit) {
	for _, test := range []struct {
		power store.Power
		set   func(*store.Request)
	}{
		{store.SessionPower, func(r *store.Request) { r.TTL, r.Session = 0, k.id("session") }},
		{store.Slots, func(r *store.Request) { r.Shared = true }},
		{store.Slots, func(r *store.Request) { r.Slots, r.Capacity = 1, 3 }},
		{store.Several, func(r *store.Request) { r.Also = []store.Item{{Ref: k.ref("also", "also")}} }},
		{store.Reservations, func(r *store.Request) { r.Reservation = "demo" }},
		{store.Selection, func(r *store.Request) { r.Slots, r.Select = 1, &leasehold.Select{Where: "model=H100"} }},
		{store.Grace, func(r *store.Request) { r.Grace = time.Second }},
		{store.HoldLimit, func(r *store.Request) { r.HoldLimit = time.Hour }},
		{store.Priority, func(r *store.Request) { r.Priority = 1 }},
		{store.ValueInLease, func(r *store.Request) { r.Value = []byte("x") }},
	} {
		want := store.Require(k.store, test.power)
		if want == nil {
			continue
		}
		r := k.request(k.ref("r", string(test.power)))
		test.set(&r)
		e := k.denied(r, leasehold.Refused)
		if !strings.Contains(e.Error(), want.Error()) {
			k.Errorf("without the power %q a request fails with %q, want %q", test.power, e, want)
		}
		k.free(r.Resource)
	}
	if want := store.Require(k.store, store.BreakPeriod); want != nil {
		r := k.ref("r", "held")
		k.acquire(r)
		ctx, cancel := k.within(0)
		defer cancel()
		_, err := k.store.Break(ctx, store.BreakRequest{Ref: r, Period: k.TTL / 2})
		if e := k.refused(err, leasehold.Refused, "a break with a period"); !strings.Contains(e.Error(), want.Error()) {
			k.Errorf("a break with a period fails with %q, want %q", e, want)
		}
		k.alive(r)
	}
}

func value(k *kit) {
	r := k.request(k.ref("r", "a"))
	r.Value = []byte("http://10.0.0.1:8080/\x00\xff")
	k.get(r)
	if got := k.look(r.Resource).Value; string(got) != string(r.Value) {
		k.Errorf("the value is %q, want %q", got, r.Value)
	}
	k.alive(k.ref("r", "a"))
	if got := k.look(r.Resource).Value; string(got) != string(r.Value) {
		k.Errorf("after a renewal the value is %q, want %q", got, r.Value)
	}
	k.release(k.ref("r", "a"))
	if got := k.look(r.Resource).Value; len(got) != 0 {
		k.Errorf("after the release the value is %q", got)
	}
}

func breakPeriod(k *kit) {
	r := k.ref("r", "a")
	sent := time.Now()
	k.acquire(r)
	ctx, cancel := k.within(0)
	defer cancel()
	period := k.TTL / 2
	lease, err := k.store.Break(ctx, store.BreakRequest{Ref: r, By: "operator", Reason: "maintenance", Period: period})
	if err != nil || lease.Remaining > period || lease.State != leasehold.Breaking {
		k.Fatalf("a break after %v: %v with %v left, %v", period, lease.State, lease.Remaining, err)
	}
	broken := time.Now()
	if now := k.alive(r); now.Remaining > period {
		k.Errorf("a renewal makes a lease that is being broken last for %v", now.Remaining)
	}
	k.denied(k.request(k.ref("r", "b")), leasehold.Held)
	_, got := k.takeOver(r.Resource, k.id("c"), 2*k.TTL+k.Late+k.Slack)
	if early := sent.Add(period).Sub(got); early > 0 {
		k.Errorf("it was granted to somebody else %v before the period of %v was over", early, period)
	}
	if late := got.Sub(broken.Add(period)); late > k.Late+k.Slack+k.TTL/10 {
		k.Errorf("it was granted to somebody else %v after the period of %v was over", late, period)
	}
	k.over(r, leasehold.ByBreak)
}
