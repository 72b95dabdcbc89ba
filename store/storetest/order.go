package storetest

import (
	"sync"

	"github.com/leasehold/leasehold"
)

// An order notices a token that is not larger than those before it.
type order struct {
	mu   sync.Mutex // guards what follows
	last leasehold.Token
}

// next takes a token. It returns the last one, and reports whether this is larger.
func (o *order) next(token leasehold.Token) (leasehold.Token, bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	last := o.last
	o.last = max(last, token)
	return last, token > last
}
