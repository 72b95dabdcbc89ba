package azureblob

import (
	"crypto/sha256"
	"slices"
	"strconv"
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
	guid, ok := ParseGUID(e.Foreign)
	if !ok {
		guid, _, _ = ParseLeaseID(e.ID)
	}
	by, why := strings.ToValidUTF8(e.By, "?"), strings.ToValidUTF8(e.Reason, "?")
	return End{GUID: guid, At: e.At.UTC(), By: by, Why: why}, true
}

// ParseLeaseID reads the GUID and the duration in the id of a lease that the Azure door made below level 4.
// Any other id gets a GUID made of it.
func ParseLeaseID(id string) (guid string, seconds int, ours bool) {
	if parts := strings.Split(id, ":"); len(parts) == 4 && parts[0] == "azure" {
		guid, ok := ParseGUID(parts[1])
		seconds, err := strconv.Atoi(parts[2])
		if ok && err == nil {
			return guid, seconds, true
		}
	}
	sum := sha256.Sum256([]byte(id))
	return GUIDOf(sum[:16]), 0, false
}
