package kernel

import (
	"hash/maphash"

	"github.com/leasehold/leasehold/internal/btree"
)

// ids are the lease ids that a namespace knows: those of its leases and waiters, and those that ended and are
// remembered. An id is one or the other, so a lease that ends is replaced in place, and one search tells all.
//
// Ids are looked up and never listed, so they are kept by their hashes: comparing numbers that are next to each other
// in memory is much cheaper than comparing texts that are not. Each process has a seed of its own, which no client can
// know and which decides nothing. Where two ids have the same hash, the second one gets the next number.
type ids struct {
	known btree.Map[uint64, knownID]
	alive int
	hash  func(id string) uint64
	moved bool // some id has, or had, another number than its hash
}

// A knownID is the lease or waiter that has an id, or how that ended; both are nil for an id that nobody knows.
type knownID struct {
	claim *Claim
	ended *EndedClaim
}

var idSeed = maphash.MakeSeed()

func newIDs() ids { return ids{hash: func(id string) uint64 { return maphash.String(idSeed, id) }} }

func (k knownID) id() string {
	if k.claim != nil {
		return k.claim.ID
	}
	return k.ended.ID
}

// Len returns how many leases and waiters there are.
func (i *ids) Len() int { return i.alive }

func (i *ids) endedLen() int { return i.known.Len() - i.alive }

// find returns what is known of an id, and the number under which that is, or would be.
func (i *ids) find(id string) (knownID, uint64) {
	for at := i.hash(id); ; at++ {
		k, ok := i.known.Get(at)
		if !ok || k.id() == id {
			return k, at
		}
	}
}

// Get returns the lease or waiter of an id.
func (i *ids) Get(id string) (*Claim, bool) {
	k, _ := i.find(id)
	return k.claim, k.claim != nil
}

// Ended returns what is remembered of a lease or waiter that ended.
func (i *ids) Ended(id string) (*EndedClaim, bool) {
	k, _ := i.find(id)
	return k.ended, k.ended != nil
}

// Set stores a claim, and returns the one that had its id.
func (i *ids) Set(c *Claim) (before *Claim, known bool) {
	was := i.put(c.ID, knownID{claim: c})
	if was.claim == nil {
		i.alive++
	}
	return was.claim, was.claim != nil
}

// End stores how the claim of an id ended, and returns that claim; nil if there was none.
func (i *ids) End(e *EndedClaim) (before *Claim) {
	was := i.put(e.ID, knownID{ended: e})
	if was.claim != nil {
		i.alive--
	}
	return was.claim
}

// put stores what is known of an id, and returns what was known before. Hardly ever does another id have the number.
func (i *ids) put(id string, k knownID) (was knownID) {
	at := i.hash(id)
	was, known := i.known.Set(at, k)
	for known && was.id() != id {
		i.known.Set(at, was) // it is another's
		at++
		i.moved = true
		was, known = i.known.Set(at, k)
	}
	return was
}

// forget drops an id that ended. Those after it, up to the next gap, may have been moved on because of it.
func (i *ids) forget(id string) {
	k, at := i.find(id)
	if k.ended == nil {
		return
	}
	i.known.Delete(at)
	for next := at + 1; i.moved; next++ {
		k, ok := i.known.Get(next)
		if !ok {
			return
		}
		i.known.Delete(next)
		i.put(k.id(), k)
	}
}

// Scan calls yield with the leases and waiters, in no particular order, until it returns false.
func (i *ids) Scan(yield func(id string, c *Claim) bool) {
	i.known.Scan(func(_ uint64, k knownID) bool { return k.claim == nil || yield(k.claim.ID, k.claim) })
}

func (i *ids) copy() ids { return ids{*i.known.Copy(), i.alive, i.hash, i.moved} }
