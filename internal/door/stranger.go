package door

import (
	"context"
	"io"
	"net/http"

	"github.com/leasehold/leasehold/internal/limit"
	"github.com/leasehold/leasehold/internal/listen"
	"github.com/leasehold/leasehold/internal/socket"
)

// smallBody is how long a body can be that is read of anybody: a name and a password have less.
const smallBody = 4 << 10

// Strangers is the memory that all connections of all ports share on which nothing was proven. Clients are networks of
// addresses.
func (b *Backend) Strangers() *limit.Budget { return b.strangers }

// LendStranger takes some of the memory that strangers share, for one at an address, or returns the error Limited.
func (b *Backend) LendStranger(address string, bytes int) (giveBack func(), err error) {
	from := socket.Network(address).String()
	if !b.strangers.Take(from, bytes) {
		return nil, listen.ErrStrangers
	}
	return func() { b.strangers.Give(from, bytes) }, nil
}

// ReadStranger reads the body of a request whose sender is not known yet, because it says so there. What is long counts
// as memory of strangers until the request has ended.
func (b *Backend) ReadStranger(w http.ResponseWriter, r *http.Request, most int64) ([]byte, error) {
	bytes := most
	if r.ContentLength >= 0 {
		bytes = min(most, r.ContentLength)
	}
	if bytes > smallBody {
		giveBack, err := b.LendStranger(r.RemoteAddr, int(bytes))
		if err != nil {
			return nil, err
		}
		context.AfterFunc(r.Context(), giveBack)
	}
	return io.ReadAll(http.MaxBytesReader(w, r.Body, most))
}
