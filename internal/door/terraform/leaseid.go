package terraform

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strings"

	"github.com/leasehold/leasehold"
	"github.com/leasehold/leasehold/internal/core"
)

// A lock is a lease that has the lock's ID as its foreign id. The lease's own id follows from the
// state and the ID, so that a request which is sent twice asks for one lease; and it may come to
// have others, written with a mark behind it: see takeOver.
//
// Below level 4 there are no foreign ids. The lease's id is the lock's ID then, and a label of
// the lease has it too. Such leases are found after the level was raised as well.
const (
	idMark   = '~'
	maxTries = 8 // of ids with a number; then chance makes them
)

// withdrawn is in the ids of leases that were granted to somebody who was gone.
const withdrawn = string(idMark) + "withdrawn" + string(idMark)

// foreignID returns what an acquire or a change says of the lock that it is about.
func (c *call) foreignID(id string) string {
	if c.engine.Level() < core.Level4 {
		return ""
	}
	return id
}

// leaseIDs returns the ids that leases of the lock may have, those for new ones first.
func (c *call) leaseIDs(id string) (fresh, former []string) {
	for n := 1; n <= maxTries; n++ {
		fresh, former = append(fresh, numbered(c.baseID(id), n)), append(former, numbered(id, n))
	}
	if c.engine.Level() < core.Level4 {
		return former, nil
	}
	return fresh, former
}

// baseID is the id of a lock's first lease.
func (c *call) baseID(id string) string {
	if c.engine.Level() < core.Level4 {
		return id
	}
	sum := sha256.Sum256([]byte(c.path + "\x00" + id))
	return "terraform:" + hex.EncodeToString(sum[:16])
}

func numbered(id string, n int) string {
	if n == 1 {
		return id
	}
	return fmt.Sprintf("%s%c%d", id, idMark, n)
}

// ownLeaseID makes a lease id for an ID that no other request can come to.
func (c *call) ownLeaseID(id string) string {
	return c.baseID(id) + string(idMark) + strings.ToLower(rand.Text()[:10])
}

// lockOf is the ID of the lock that a lease is: that of its client, or the lease's own if
// it came in by another door.
func lockOf(l *leasehold.Lease) string {
	if id := lockNamed(l.Foreign, l.Labels); id != "" {
		return id
	}
	return l.ID
}

// lockNamed is the ID of the lock that a lease or a waiter is; empty if it is none.
func lockNamed(foreign string, labels leasehold.Labels) string {
	if foreign != "" {
		return foreign
	}
	return label(labels, labelID)
}

// lockEnded reports whether a lease that has ended was the lock of an ID.
func lockEnded(last *leasehold.Ending, id string) bool {
	if last == nil || id == "" {
		return false
	}
	if last.Foreign != "" {
		return last.Foreign == id
	}
	former, _, _ := strings.Cut(last.ID, string(idMark))
	return former == id
}
