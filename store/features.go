package store

import (
	"fmt"
	"slices"
	"time"

	"github.com/leasehold/leasehold"
)

// Features are what a store promises. docs/stores has the conditions in full.
type Features struct {
	Store string // its name, such as "redis"

	MinTTL  time.Duration
	MaxTTL  time.Duration
	TTLStep time.Duration // TTLs are multiples of it; 0: any
	Raise   string        // how to get a larger MaxTTL, as an end of its error; empty: there is no way

	Clock      string // whose clock decides when a lease ends
	Durability string // what survives a crash of the store
	Tokens     Tokens
	Powers     []Power
}

// Tokens say how far the tokens of a store reach.
type Tokens struct {
	Scope TokenScope

	// What they survive, that is, after which they still only grow. Empty is yes; else the text says
	// on which condition, or why not.
	Delete   string // of the resource
	Flush    string // of everything the store has
	Failover string
	Restore  string // of an older backup
}

// A TokenScope is among which grants a token is larger than all before it.
type TokenScope string

// The scopes.
const (
	PerNamespace TokenScope = "namespace"
	PerResource  TokenScope = "resource"
)

// Has reports whether the store has a power.
func (f Features) Has(p Power) bool { return slices.Contains(f.Powers, p) }

// CheckTTL returns an error if the store cannot have leases of a TTL. It is not rounded in silence:
// a longer one would make others wait for longer than the program said.
func (f Features) CheckTTL(ttl time.Duration) error {
	switch {
	case ttl < f.MinTTL || f.MaxTTL > 0 && ttl > f.MaxTTL:
		return &leasehold.Error{Code: leasehold.Invalid, Message: fmt.Sprintf(
			"the TTL is %v: %s allows %v to %v%s", ttl, f.Store, f.MinTTL, f.MaxTTL, f.raise(ttl))}
	case f.TTLStep > 0 && ttl%f.TTLStep != 0:
		return &leasehold.Error{Code: leasehold.Invalid, Message: fmt.Sprintf(
			"the TTL is %v: %s allows multiples of %v", ttl, f.Store, f.TTLStep)}
	}
	return nil
}

func (f Features) raise(ttl time.Duration) string {
	if f.Raise == "" || ttl <= f.MaxTTL {
		return ""
	}
	return "; " + f.Raise
}
