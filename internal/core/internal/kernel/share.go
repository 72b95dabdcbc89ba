package kernel

import (
	"strconv"

	"github.com/leasehold/leasehold"
	"github.com/leasehold/leasehold/internal/btree"
)

// PoolShares are what the holds that one entry ended had of pools. The journal notes them for reports. They are no part
// of events, because history would keep them too, and it has no use for them.
type PoolShares struct {
	byHold *btree.Map[string, leasehold.Share]
}

// Of returns the share of a hold; the zero one if it was of no pool.
func (s PoolShares) Of(namespace string, token leasehold.Token) leasehold.Share {
	if s.byHold == nil {
		return leasehold.Share{}
	}
	share, _ := s.byHold.Get(holdKey(namespace, token))
	return share
}

// holdKey names a hold. Tokens are counted within a namespace.
func holdKey(namespace string, token leasehold.Token) string {
	return namespace + "\x00" + strconv.FormatUint(uint64(token), 10)
}

// noteShare notes what a hold that is over had of a pool.
func (t *turn) noteShare(sp *space, c *Claim) {
	if !sp.isPool(c.Resource) {
		return
	}
	if t.shares.byHold == nil {
		t.shares.byHold = new(btree.Map[string, leasehold.Share])
	}
	t.shares.byHold.Set(holdKey(sp.name, c.Token), sp.pools.Share(c))
}
