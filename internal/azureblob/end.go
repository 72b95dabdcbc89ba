package azureblob

import (
	"crypto/sha256"
	"slices"
	"strings"
	"time"

	"github.com/leasehold/leasehold"
)

// An End is how a lease was broken.
type End struct {
	GUID string    `json:"guid"` // of the lease
	At   time.Time `json:"at"`
	By   string    `json:"by"`
	Why  string    `json:"why,omitempty"`
}

// maxEnds is how many broken leases a blob remembers.
const maxEnds = 8

// Remember notes that the lease which ended last was broken, if it was, and reports whether that is new:
// the next lease that ends makes the core forget how this one did.
func (p *Properties) Remember(last *leasehold.Ending) bool {
	e, ok := BrokenBy(last)
	known := func(k End) bool { return k.GUID == e.GUID && k.At.Equal(e.At) }
	if !ok || slices.ContainsFunc(p.Ends, known) {
		return false
	}
	p.Ends = append(slices.Clone(p.Ends[max(0, len(p.Ends)-maxEnds+1):]), e)
	return true
}

// BrokenBy returns who broke the lease that ended last; false if nobody did.
func BrokenBy(e *leasehold.Ending) (End, bool) {
	if e == nil || e.How != leasehold.ByBreak || e.By == "" {
		return End{}, false
	}
	guid, _ := GUIDOfLease(e.ID, e.Foreign)
	by, why := strings.ToValidUTF8(e.By, "?"), strings.ToValidUTF8(e.Reason, "?")
	return End{GUID: guid, At: e.At.UTC(), By: by, Why: why}, true
}

// GUIDOfLease returns the GUID under which clients know a lease, and reports whether that is what one of them called
// it. A lease that came in by another door gets a GUID made of its id.
func GUIDOfLease(id, foreign string) (guid string, ours bool) {
	if guid, ours = ParseGUID(foreign); ours {
		return guid, true
	}
	sum := sha256.Sum256([]byte(id))
	return GUIDOf(sum[:16]), false
}
