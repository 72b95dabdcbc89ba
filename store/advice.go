package store

import (
	"context"
	"time"

	"github.com/leasehold/leasehold"
)

// AdvicePower is that of Advisor.
const AdvicePower Power = "learned TTLs"

// Advisor learns from ended leases how long those like them are held, and which TTL suits the next one.
type Advisor interface {
	// AdviseTTL returns the TTL that suits a lease which is renewed; 0 if the store has no opinion.
	AdviseTTL(ctx context.Context, q AdviceQuery) (time.Duration, error)
}

// An AdviceQuery describes a lease that is about to be acquired. It is of a kind by its label "kind", or by its label
// "command" and the name of its holder without the number at its end.
type AdviceQuery struct {
	Resource string
	Holder   string
	Labels   leasehold.Labels
}
