package tfstate

import (
	"encoding/json"
	"time"

	"github.com/leasehold/leasehold"
)

// A Permit lets a state be replaced once by one of another lineage. It is a record beside the
// state, bound to a session that nobody renews, so it ends by time.
//
// It names the revision that it was given for. The write that uses it replaces just that
// revision, so a permit cannot be used twice, however the two race.
type Permit struct {
	Revision uint64     `json:"revision"`
	By       string     `json:"by"`
	Reason   string     `json:"reason"`
	Until    *time.Time `json:"until,omitempty"` // for display
}

// MaxPermit is the longest that a permit lasts.
const MaxPermit = 24 * time.Hour

// permits is where permits are. It is as long as the prefix of states, so that every state can
// have one.
const permits = "tflineage/"

// PermitPath returns the path of a state's permit.
func PermitPath(state string) string { return permits + state }

// Check reports what is wrong with a permit that somebody asks for.
func (p *Permit) Check(last time.Duration) error {
	switch {
	case p.Reason == "":
		return invalid("a permit for another lineage needs a reason: others will want to know why")
	case len(p.By) > leasehold.MaxName || len(p.Reason) > leasehold.MaxName:
		return invalid("by and reason have at most %d bytes each", leasehold.MaxName)
	case last < time.Minute || last > MaxPermit:
		return invalid("a permit for another lineage lasts from 1m to 24h")
	}
	return nil
}

// Encode returns the bytes of a permit.
func (p *Permit) Encode() string {
	text, _ := json.Marshal(p) // numbers and strings alone
	return string(text)
}

// ParsePermit reads a permit; nil if there is none in it.
func ParsePermit(text string) *Permit {
	var p Permit
	if json.Unmarshal([]byte(text), &p) != nil || p.Revision == 0 || p.Until == nil {
		return nil
	}
	return &p
}
