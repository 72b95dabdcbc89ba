package storetest

import (
	"strconv"
	"time"

	"github.com/leasehold/leasehold"
	"github.com/leasehold/leasehold/store"
)

func renewTests() []test {
	return []test{
		{name: "renew/none", run: renewNone},
		{name: "renew/many at once", run: renewMany},
	}
}

func renewNone(k *kit) {
	if list := k.renewAll(); len(list) != 0 {
		k.Errorf("the renewal of nothing answers with %d", len(list))
	}
}

// 150 leases are renewed by one call, and answered in their order. The dead among them do not keep
// the others from being renewed.
func renewMany(k *kit) {
	const n = 150
	refs := make([]store.Ref, n)
	tokens := make([]leasehold.Token, n)
	// They last longer than usual: to acquire that many takes a while on a slow machine.
	k.together(15, func(i int) {
		for j := i; j < n; j += 15 {
			refs[j] = k.ref(strconv.Itoa(j), strconv.Itoa(j))
			tokens[j] = k.get(k.longer(refs[j])).Token
		}
	})
	const gone, lost, never = 17, 101, 149
	k.release(refs[gone])
	if _, err := k.breakLease(refs[lost]); err != nil {
		k.Fatalf("break: %v", err)
	}
	refs[never].ID = k.id("never")
	for i, renewal := range k.renewAll(refs...) {
		switch {
		case i == gone || i == lost || i == never:
			if renewal.Ended == nil {
				k.Errorf("number %d has ended, and the renewal says that %s", i, ended(renewal))
			}
		case renewal.Ended != nil || renewal.Err != nil:
			k.Errorf("number %d was not renewed: %s", i, ended(renewal))
		case renewal.ID != refs[i].ID || renewal.Token != tokens[i]:
			k.Fatalf("number %d is %s with token %d, and the answer is about %s with %d", i, refs[i].ID, tokens[i],
				renewal.ID, renewal.Token)
		}
	}
	k.release(refs...)
	for i, renewal := range k.renewAll(refs...) {
		if renewal.Ended == nil {
			k.Errorf("number %d was released with %d others, and %s", i, n-1, ended(renewal))
		}
	}
}

// longer returns a request with a TTL of a minute, or as long as the store allows.
func (k *kit) longer(r store.Ref) store.Request {
	request := k.request(r)
	request.TTL = time.Minute
	if most := k.features.MaxTTL; most > 0 && most < time.Minute {
		request.TTL = most
	}
	return request
}
