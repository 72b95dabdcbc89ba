package storetest

import (
	"time"

	"github.com/leasehold/leasehold"
	"github.com/leasehold/leasehold/store"
)

func idTests() []test {
	return []test{
		{name: "id/an acquire again is no renewal", run: againIsNoRenewal},
		{name: "id/of another holder", run: idOfAnother},
		{name: "id/many at once", run: sameIDAtOnce},
		{name: "id/one holder of many", run: oneOfMany},
	}
}

func againIsNoRenewal(k *kit) {
	r := k.ref("r", "a")
	first := k.acquire(r)
	answered := time.Now()
	k.sleep(k.TTL / 2)
	slept := time.Since(answered)
	again := k.acquire(r)
	if again.Token != first.Token {
		k.Errorf("acquired again, it has token %d, and had %d", again.Token, first.Token)
	}
	if most := k.TTL - k.TTL/2 + k.Slack/5; again.Remaining > most {
		k.Errorf("acquired again %v after the first time, %v remain: a retry is no renewal", slept, again.Remaining)
	}
	k.sleep(time.Until(answered.Add(k.TTL + k.Late + k.Slack + time.Millisecond)))
	k.over(r, leasehold.ByTTL)
}

// An id names one lease: with another resource it is not that lease, and nothing else either.
func idOfAnother(k *kit) {
	r := k.ref("r", "a")
	grant := k.acquire(r)
	k.release(store.Ref{Resource: r.Resource, ID: k.id("b")})
	k.over(store.Ref{Resource: r.Resource, ID: k.id("c")}, 0)
	if now := k.alive(r); now.Token != grant.Token {
		k.Errorf("it has token %d, and had %d", now.Token, grant.Token)
	}
}

// A request that is sent several times at once is one request.
func sameIDAtOnce(k *kit) {
	r := k.request(k.ref("r", "a"))
	const n = 8
	tokens := make([]leasehold.Token, n)
	k.together(n, func(i int) {
		grant, err := k.ask(r)
		if err != nil {
			k.Errorf("one of %d attempts with the same id: %v", n, err)
		}
		tokens[i] = grant.Token
	})
	for _, token := range tokens {
		if token != tokens[0] {
			k.Fatalf("attempts with the same id got the tokens %v", tokens)
		}
	}
}

// Of many who ask at once, one gets it.
func oneOfMany(k *kit) {
	const rounds, n = 5, 8
	for round := range rounds {
		resource := k.res("r" + string(rune('0'+round)))
		granted := make([]bool, n)
		k.together(n, func(i int) {
			r := k.request(store.Ref{Resource: resource, ID: k.id(resource + string(rune('a'+i)))})
			_, err := k.ask(r)
			if granted[i] = err == nil; err != nil {
				k.refused(err, leasehold.Held, "one of %d that ask at once", n)
			}
		})
		count := 0
		for _, yes := range granted {
			if yes {
				count++
			}
		}
		if count != 1 {
			k.Fatalf("%d of %d got it at once", count, n)
		}
	}
}
