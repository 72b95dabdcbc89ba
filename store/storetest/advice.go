package storetest

import (
	"time"

	"github.com/leasehold/leasehold"
	"github.com/leasehold/leasehold/store"
)

// advises asks for the TTL of a lease of some kind, and of one that is of none.
func advises(k *kit) {
	ctx, cancel := k.within(0)
	defer cancel()
	advisor := with[store.Advisor](k)
	labels := leasehold.Labels{{Key: "kind", Value: "evaluation"}}
	ttl, err := advisor.AdviseTTL(ctx, store.AdviceQuery{Resource: k.res("gpu"), Holder: "ann", Labels: labels})
	if err != nil || ttl < k.features.MinTTL || ttl > 2*time.Minute {
		k.Errorf("the TTL is %v: %s", ttl, describe(err))
	}
	ttl, err = advisor.AdviseTTL(ctx, store.AdviceQuery{Resource: k.res("gpu"), Holder: "ann"})
	if err != nil || ttl != 0 {
		k.Errorf("the TTL of no kind is %v: %s", ttl, describe(err))
	}
}
