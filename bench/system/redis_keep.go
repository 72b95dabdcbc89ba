//go:build linux

package system

import (
	"context"
	"crypto/rand"
	"sync/atomic"
	"time"
)

// NewName returns a name that nobody uses yet.
func NewName(prefix string) string { return prefix + rand.Text() }

// A redisKeeper renews many keys.
type redisKeeper struct {
	client redisClient
	holds  []Hold
	lost   atomic.Int64
}

// renew renews each hold once in an interval, evenly spread over it.
func (k *redisKeeper) renew(ctx context.Context, every time.Duration) {
	gone := make([]bool, len(k.holds))
	for due := time.Now(); ctx.Err() == nil; {
		for i, h := range k.holds {
			time.Sleep(time.Until(due))
			due = due.Add(every / time.Duration(len(k.holds)))
			if gone[i] || ctx.Err() != nil {
				continue
			}
			if err := h.Renew(ctx); err != nil && ctx.Err() == nil {
				gone[i] = true
				k.lost.Add(1)
			}
		}
	}
}
