package v1

import (
	"crypto/tls"
	"net/http"

	"github.com/leasehold/leasehold/internal/redial"
)

// NewClient returns an HTTP client without a limit on the whole of a request: some
// requests wait, and watches never end. config may be nil.
func NewClient(config *tls.Config) *http.Client { return redial.NewClient(config, nil) }
