package storetest

import (
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/leasehold/leasehold"
	"github.com/leasehold/leasehold/store"
)

func timeTests() []test {
	return []test{
		{name: "time/never before the TTL, and soon after", run: expiresInTime},
		{name: "time/by itself", run: expiresByItself},
		{name: "time/renewals prolong", run: renewalsProlong},
		{name: "time/limits of the TTL", run: limitsOfTTL},
		{name: "time/many at once", run: massExpiry},
	}
}

// takeOver asks for a resource until it is granted. It returns when the last attempt was sent and
// answered.
func (k *kit) takeOver(resource, id string, most time.Duration) (sent, answered time.Time) {
	k.Helper()
	began := time.Now()
	for n := 0; ; n++ {
		sent = time.Now()
		_, err := k.ask(k.request(store.Ref{Resource: resource, ID: fmt.Sprintf("%s-%d", id, n)}))
		answered = time.Now()
		switch {
		case err == nil:
			return sent, answered
		case !errors.Is(err, leasehold.ErrHeld):
			k.Fatalf("a wait for the end of a lease: %v", err)
		case sent.Sub(began) > most:
			k.Fatalf("the lease of %v has not ended after %v", k.TTL, sent.Sub(began))
		}
		k.sleep(k.TTL / 20)
	}
}

func expiresInTime(k *kit) {
	sent := time.Now()
	k.acquire(k.ref("r", "a"))
	answered := time.Now()
	tried, got := k.takeOver(k.res("r"), k.id("b"), 2*k.TTL+k.Late+k.Slack)
	// The store began to count when it received the request, which was not before it was sent.
	if early := sent.Add(k.TTL).Sub(got); early > 0 {
		k.Errorf("it was granted to somebody else %v before its TTL of %v was over", early, k.TTL)
	}
	if late := tried.Sub(answered.Add(k.TTL)); late > k.Late+k.Slack+k.TTL/20 {
		k.Errorf("it was granted to somebody else %v after its TTL of %v was over; said is %v", late, k.TTL, k.Late)
	}
}

// Nobody has to ask for it: a lease that is not renewed is over.
func expiresByItself(k *kit) {
	r := k.ref("r", "a")
	k.acquire(r)
	k.expire()
	status := k.look(r.Resource)
	if status.Holding != 0 || len(status.Holders) != 0 || status.State == leasehold.Leased {
		k.Errorf("after its TTL the resource is %v with %d holders", status.State, status.Holding)
	}
	k.over(r, leasehold.ByTTL)
	k.over(r, leasehold.ByTTL) // a renewal revives nothing
	k.denied(k.request(r), leasehold.Lost)
	k.free(r.Resource)
}

func renewalsProlong(k *kit) {
	r := k.ref("r", "a")
	grant := k.acquire(r)
	began := time.Now()
	for time.Since(began) < k.some(3) {
		k.sleep(k.TTL / 4)
		sent := time.Now()
		now := k.alive(r)
		if now.Token != grant.Token {
			k.Errorf("renewed, it has token %d, and had %d", now.Token, grant.Token)
		}
		if took := time.Since(sent); now.Remaining > k.TTL || now.Remaining < k.TTL-took-k.Slack {
			k.Errorf("%v remain after a renewal of a lease of %v", now.Remaining, k.TTL)
		}
		k.denied(k.request(k.ref("r", "b")), leasehold.Held)
	}
	sent := time.Now()
	k.alive(r)
	_, got := k.takeOver(r.Resource, k.id("c"), 2*k.TTL+k.Late+k.Slack)
	if early := sent.Add(k.TTL).Sub(got); early > 0 {
		k.Errorf("it was granted to somebody else %v before %v had passed since its renewal", early, k.TTL)
	}
}

// limitsOfTTL asks for the shortest and the longest TTL that the store allows, and for one beyond each.
func limitsOfTTL(k *kit) {
	ask := func(name string, ttl time.Duration, code leasehold.Code) {
		r := k.request(k.ref(name, name))
		r.TTL = ttl
		if code != 0 {
			k.denied(r, code)
			return
		}
		if grant := k.get(r); grant.Remaining > ttl {
			k.Errorf("%v remain of a lease of %v", grant.Remaining, ttl)
		}
		k.release(store.Ref{Resource: r.Resource, ID: r.ID})
	}
	f := k.features
	if f.MinTTL <= 0 {
		k.Fatalf("the features name no smallest TTL")
	}
	ask("least", f.MinTTL, 0)
	ask("less", f.MinTTL-1, leasehold.Invalid)
	none := k.request(k.ref("none", "none"))
	none.TTL = 0
	if grant, err := k.ask(none); err == nil && (grant.Remaining != 0 || !grant.Expires.IsZero()) {
		k.Errorf("a lease that was asked for without a TTL ends after %v", grant.Remaining)
	} else if err != nil {
		k.refused(err, leasehold.Invalid, "a lease without a TTL")
	}
	k.release(k.ref("none", "none"))
	if f.MaxTTL > 0 {
		ask("most", f.MaxTTL, 0)
		ask("more", f.MaxTTL+max(f.TTLStep, time.Millisecond), leasehold.Invalid)
	}
	if f.TTLStep > 0 {
		ask("between", k.TTL+f.TTLStep/2, leasehold.Invalid)
	}
}

// Very many leases that end at the same moment all end.
func massExpiry(k *kit) {
	const n = 100
	k.together(10, func(i int) {
		for j := range n / 10 {
			name := strconv.Itoa(i*10 + j)
			k.acquire(k.ref(name, name))
		}
	})
	k.sleep(k.TTL + k.MassLate + k.Slack + time.Millisecond)
	k.together(10, func(i int) {
		for j := range n / 10 {
			k.free(k.res(strconv.Itoa(i*10 + j)))
		}
	})
}
