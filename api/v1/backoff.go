package v1

import "github.com/leasehold/leasehold/internal/backoff"

// A Backoff says how long to pause before something is tried again: twice as long each time, and never the same for two
// clients.
type Backoff = backoff.Backoff
