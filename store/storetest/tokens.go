package storetest

import (
	"strconv"

	"github.com/leasehold/leasehold"
	"github.com/leasehold/leasehold/store"
)

func tokenTests() []test {
	return []test{
		{name: "tokens/grow", run: tokensGrow},
		{name: "tokens/grow at once", run: tokensGrowAtOnce},
		{name: "tokens/floor", run: tokensAboveTheFloor},
		{name: "tokens/wipe", run: tokensAfterWipe, alone: true, lacks: func(c *Config) string {
			if c.Wipe == nil {
				return "the harness cannot wipe the store"
			}
			return ""
		}},
	}
}

// larger fails unless a token is larger than the one before it, and returns it.
func (k *kit) larger(grant store.Grant, before leasehold.Token, after string) leasehold.Token {
	k.Helper()
	if grant.Token <= before || grant.Token > leasehold.MaxToken {
		k.Errorf("after %s the token is %d, and it was %d before", after, grant.Token, before)
	}
	return grant.Token
}

func tokensGrow(k *kit) {
	var last leasehold.Token
	for i, s := range []state{released, broken, released, expired, released} {
		r := k.ref("r", strconv.Itoa(i))
		last = k.larger(k.reach(s, r), last, "one that was "+string(s))
	}
	if k.features.Tokens.Scope != store.PerNamespace {
		return
	}
	for i := range 5 {
		last = k.larger(k.acquire(k.ref("other-"+strconv.Itoa(i), "other-"+strconv.Itoa(i))), last,
			"a grant on another resource")
	}
}

// Grants on one resource by many at once have tokens in the order in which they held it.
func tokensGrowAtOnce(k *kit) {
	const n, each = 4, 10
	var guard order
	k.together(n, func(i int) {
		s := k.second()
		for j := range each {
			r := k.request(k.ref("r", strconv.Itoa(i)+"-"+strconv.Itoa(j)))
			r.Wait = 10*k.TTL + limit
			grant, err := k.askOf(s, r)
			if err != nil {
				k.Errorf("%s was not granted: %v", r.ID, err)
				return
			}
			if before, ok := guard.next(grant.Token); !ok {
				k.Errorf("token %d was granted after %d", grant.Token, before)
			}
			k.release(store.Ref{Resource: r.Resource, ID: r.ID})
		}
	})
}

func tokensAboveTheFloor(k *kit) {
	first := k.acquire(k.ref("r", "a"))
	k.release(k.ref("r", "a"))
	for i, above := range []leasehold.Token{1, 1000, 1 << 20} {
		r := k.request(k.ref("r", "floor-"+strconv.Itoa(i)))
		r.Floor = first.Token + above
		grant := k.get(r)
		k.larger(grant, r.Floor, "a floor of that")
		k.release(store.Ref{Resource: r.Resource, ID: r.ID})
		// What was granted once is remembered, also for those who have seen less.
		k.larger(k.free(r.Resource), grant.Token, "a grant with a floor")
	}
	r := k.request(k.ref("other", "b"))
	r.Floor = 1
	k.get(r)
}

func tokensAfterWipe(k *kit) {
	first := k.acquire(k.ref("r", "a"))
	k.Wipe(k.TB)
	r := k.request(k.ref("r", "b"))
	r.Floor = first.Token
	// A store that lost its memory may refuse for a while, rather than grant what somebody may have.
	r.Wait = 10*k.TTL + k.Late + limit
	k.larger(k.get(r), first.Token, "the loss of everything")
}
