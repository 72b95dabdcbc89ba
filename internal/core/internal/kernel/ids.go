package kernel

import "github.com/tidwall/btree"

// ids are the lease ids that a namespace knows: of the leases and waiters that it has, and of those that ended and are
// remembered. An id is one or the other; so a lease that ends is replaced where it is, and one search tells all.
type ids struct {
	known btree.Map[string, knownID]
	alive int
}

// A knownID is the lease or waiter that has an id, or how that ended; both are nil for an id that nobody knows.
type knownID struct {
	claim *Claim
	ended *EndedClaim
}

// Len returns how many leases and waiters there are.
func (i *ids) Len() int { return i.alive }

func (i *ids) endedLen() int { return i.known.Len() - i.alive }

func (i *ids) find(id string) knownID {
	k, _ := i.known.Get(id)
	return k
}

// Get returns the lease or waiter of an id.
func (i *ids) Get(id string) (*Claim, bool) {
	k, _ := i.known.Get(id)
	return k.claim, k.claim != nil
}

// Ended returns what is remembered of a lease or waiter that ended.
func (i *ids) Ended(id string) (*EndedClaim, bool) {
	k, _ := i.known.Get(id)
	return k.ended, k.ended != nil
}

// Set stores a claim, and returns the one that had its id.
func (i *ids) Set(id string, c *Claim) (before *Claim, known bool) {
	was, _ := i.known.Set(id, knownID{claim: c})
	if was.claim == nil {
		i.alive++
	}
	return was.claim, was.claim != nil
}

// End stores how the claim of an id ended, and returns that claim; nil if there was none.
func (i *ids) End(e *EndedClaim) (before *Claim) {
	was, _ := i.known.Set(e.ID, knownID{ended: e})
	if was.claim != nil {
		i.alive--
	}
	return was.claim
}

// forget drops an id that ended.
func (i *ids) forget(id string) { i.known.Delete(id) }

// Scan calls yield with the leases and waiters in the order of their ids, until it returns false.
func (i *ids) Scan(yield func(id string, c *Claim) bool) {
	i.known.Scan(func(id string, k knownID) bool { return k.claim == nil || yield(id, k.claim) })
}

func (i *ids) copy() ids { return ids{*i.known.Copy(), i.alive} }
