package azure

import (
	"crypto/rand"

	"github.com/leasehold/leasehold"
	"github.com/leasehold/leasehold/internal/azureblob"
)

// An identity is what names a lease: the GUID to Azure's clients, the id to the core. Azure's clients use the same
// GUID again and again, and the core uses an id once, so each grant gets an id of its own. A lease that changes its
// GUID changes its id too: a transaction that compares the id then fails.
type identity struct{ id, foreign string }

// newIdentity returns the identity of a new lease.
func newIdentity(guid string) identity {
	return identity{id: "azure:" + rand.Text(), foreign: guid}
}

// guidOfLease returns the GUID and the duration of a lease that is alive. One that came in by another door is shown
// under a GUID made of its id.
func guidOfLease(l *leasehold.Lease) (guid string, seconds int) {
	guid, _ = azureblob.GUIDOfLease(l.ID, l.Foreign)
	return guid, secondsOf(l.TTL)
}

// guidOfEnding is guidOfLease after the end. It also reports whether the lease was one of this door, whose duration is
// known.
func guidOfEnding(e *leasehold.Ending) (guid string, seconds int, known bool) {
	if guid, known = azureblob.GUIDOfLease(e.ID, e.Foreign); known {
		seconds = secondsOf(e.TTL)
	}
	return guid, seconds, known
}
