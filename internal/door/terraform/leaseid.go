package terraform

import (
	"cmp"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strings"

	"github.com/leasehold/leasehold"
)

// A lock is a lease that has the lock's ID as its foreign id. The lease's own id follows from the
// state and the ID, so that a request which is sent twice asks for one lease; and it may come to
// have others, written with a mark behind it: see takeOver.
const (
	idMark   = '~'
	maxTries = 8 // of ids with a number; then chance makes them
)

// withdrawn is in the ids of leases that were granted to somebody who was gone.
const withdrawn = string(idMark) + "withdrawn" + string(idMark)

// leaseIDs returns the ids that leases of the lock may have.
func (c *call) leaseIDs(id string) []string {
	ids := []string{c.baseID(id)}
	for n := 2; n <= maxTries; n++ {
		ids = append(ids, fmt.Sprintf("%s%c%d", ids[0], idMark, n))
	}
	return ids
}

// baseID is the id of a lock's first lease.
func (c *call) baseID(id string) string {
	sum := sha256.Sum256([]byte(c.path + "\x00" + id))
	return "terraform:" + hex.EncodeToString(sum[:16])
}

// ownLeaseID makes a lease id for an ID that no other request can come to.
func (c *call) ownLeaseID(id string) string {
	return c.baseID(id) + string(idMark) + strings.ToLower(rand.Text()[:10])
}

// lockOf is the ID of the lock that a lease is: that of its client, or the lease's own if
// it came in by another door.
func lockOf(l *leasehold.Lease) string {
	return cmp.Or(l.Foreign, l.ID)
}

// lockEnded reports whether a lease that has ended was the lock of an ID.
func lockEnded(last *leasehold.Ending, id string) bool {
	return last != nil && id != "" && last.Foreign == id
}
