// Package v1 is Leasehold's own API: the JSON that travels under /v1/, and a
// Caller that sends it. openapi.yaml beside it says the same for other languages.
package v1

// The headers that mean something here.
const (
	// KeyHeader names a request, so that sending it twice does it once. With a
	// SessionHeader it is the number of the request within that session, from 1 on.
	KeyHeader     = "Idempotency-Key"
	SessionHeader = "Leasehold-Session"

	// RevisionHeader comes with what was read: the newest revision of the namespace
	// at that moment. A watch since it misses nothing.
	RevisionHeader = "Leasehold-Revision"

	// LevelHeader comes with every answer: the feature level that all servers of the
	// cluster work at. Fields of a later level must not be sent to it.
	LevelHeader = "Leasehold-Level"
)

// LevelMany is the first level whose servers know ReleaseRequest.IDs and Withdraw.
const LevelMany = 4

// Sizes of requests and of pages.
const (
	MaxBody      = 128 << 10 // bytes of a request's body
	DefaultLimit = 100       // items of a page
	MaxLimit     = 1000
	MaxReleases  = 1024 // ids of one release
)

// DefaultServer is where a server listens unless told otherwise.
const DefaultServer = "http://127.0.0.1:4653"

// Nothing is the answer to what leaves nothing to say: a release, the close of a
// session.
type Nothing struct{}
