package azure

import (
	"crypto/rand"
	"fmt"

	"github.com/leasehold/leasehold"
	"github.com/leasehold/leasehold/internal/azureblob"
	"github.com/leasehold/leasehold/internal/core"
)

// An identity is what names a lease: the GUID to Azure's clients, the id to the core. Azure's clients use the same
// GUID again and again, and the core uses an id once, so each grant gets an id of its own. A lease that changes its
// GUID changes its id too: a transaction that compares the id then fails.
type identity struct{ id, foreign string }

// newIdentity returns the identity of a new lease. Below level 4 the core keeps nothing of an ended lease but its
// id, which therefore has the GUID and the duration in it.
func (c *call) newIdentity(guid string, seconds int) identity {
	if c.engine.Level() < core.Level4 {
		return identity{id: encodeLeaseID(guid, seconds)}
	}
	return identity{id: "azure:" + rand.Text(), foreign: guid}
}

// guidOfLease returns the GUID and the duration of a lease that is alive. One that came in by another door is shown
// under a GUID made of its id.
func guidOfLease(l *leasehold.Lease) (guid string, seconds int) {
	guid, seconds, ours := identify(l.ID, l.Foreign, secondsOf(l.TTL))
	if !ours {
		seconds = secondsOf(l.TTL)
	}
	return guid, seconds
}

// guidOfEnding is guidOfLease after the end. It also reports whether the duration is known.
func guidOfEnding(e *leasehold.Ending) (guid string, seconds int, known bool) {
	return identify(e.ID, e.Foreign, secondsOf(e.TTL))
}

// identify returns what a lease of this door is called and how long it lasts, also if it was made below level 4.
func identify(id, foreign string, lasts int) (guid string, seconds int, ours bool) {
	if guid, ok := azureblob.ParseGUID(foreign); ok {
		return guid, lasts, true
	}
	return azureblob.ParseLeaseID(id)
}

// encodeLeaseID writes the id of a lease below level 4.
func encodeLeaseID(guid string, seconds int) string {
	return fmt.Sprintf("azure:%s:%d:%s", guid, seconds, rand.Text()[:16])
}
