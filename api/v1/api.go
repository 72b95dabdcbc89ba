// Package v1 is Leasehold's own API: the JSON that is sent under /v1/, and a Caller that sends
// it. openapi.yaml describes the same API for other languages.
//
// Each subject has its file, with its types and the methods of Caller: leases.go, sessions.go,
// resources.go, records.go and so on. failover.go decides which server is asked.
package v1

// Headers of requests and answers.
const (
	// KeyHeader makes a request idempotent. With a SessionHeader it is the number of the
	// request within that session, from 1 on.
	KeyHeader     = "Idempotency-Key"
	SessionHeader = "Leasehold-Session"

	// RevisionHeader is in answers to reads: the newest revision of the namespace at that
	// moment. A watch since that revision misses nothing.
	RevisionHeader = "Leasehold-Revision"

	// LevelHeader is in every answer: the active feature level of the cluster. Fields of a
	// later level must not be sent to it.
	LevelHeader = "Leasehold-Level"
)

// Sizes of requests and of pages.
const (
	MaxBody      = 128 << 10 // bytes of a request's body
	DefaultLimit = 100       // items of a page
	MaxLimit     = 1000
	MaxReleases  = 1024 // ids of one release
)

// DefaultServer is where a server listens by default.
const DefaultServer = "http://127.0.0.1:4653"

// Nothing is an answer without content, such as that to a release.
type Nothing struct{}
