package leasehold

import "time"

// Limits of one request and of one thing. They are the same on every server of
// a cluster, since the core decides by them.
const (
	MaxName   = 1024 // bytes of a namespace, path, id, holder or reason
	MaxLabels = 4096 // bytes of all labels together

	MinTTL = 100 * time.Millisecond
	MaxTTL = 30 * 24 * time.Hour

	MaxWait  = 24 * time.Hour
	MaxGrace = 24 * time.Hour
	MaxHold  = 365 * 24 * time.Hour // the largest limit on a hold; a lease without TTL needs none

	MaxClaimsPerSession = 16384  // leases and waiters bound to one session
	MaxQueue            = 100000 // waiters on one resource
	MaxNamespaces       = 4096
	MaxBatch            = 1024 // commands in one request
)

// DefaultTTL is the TTL of a lease whose request named none; ShortTTL is where
// a warning is due: below it an ordinary pause can cost the lease.
const (
	DefaultTTL = 30 * time.Second
	ShortTTL   = 5 * time.Second
)
