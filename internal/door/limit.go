package door

import (
	"sync/atomic"

	"github.com/leasehold/leasehold"
)

// A Limit is how many of something there may be at a time. Its zero value lets nothing in.
type Limit struct {
	Most    int
	Message string // what the refused are told; with what to do

	now atomic.Int64
}

// Enter counts one more, or returns the error Limited. Call leave when it ends.
func (l *Limit) Enter() (leave func(), err error) {
	if l.now.Add(1) > int64(l.Most) {
		l.now.Add(-1)
		return nil, &leasehold.Error{Code: leasehold.Limited, Message: l.Message}
	}
	return func() { l.now.Add(-1) }, nil
}

// Now returns how many there are.
func (l *Limit) Now() int { return int(l.now.Load()) }
