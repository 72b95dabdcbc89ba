package consul

import (
	"context"
	"time"

	"github.com/leasehold/leasehold"
	"github.com/leasehold/leasehold/internal/core"
	"github.com/leasehold/leasehold/internal/core/access"
	"github.com/leasehold/leasehold/internal/engine"
)

// A session without a TTL lasts in Consul until somebody destroys it, or its node fails. Every session of ours has a
// TTL, so such a one has the largest, and each server renews those of which half is over. Cluster time stands still
// while no server runs, so none of them ends by itself while the door is open.

const (
	keepLook = time.Hour // between two looks
	keepTime = time.Minute
)

// keepLasting renews sessions without a TTL until the server stops.
func (d *Door) keepLasting() {
	for d.backend.Pause(context.Background(), keepLook) {
		if !d.backend.Starting() {
			d.renewLasting()
		}
	}
}

// renewLasting renews those that need it. What cannot be renewed now is renewed by the next look.
func (d *Door) renewLasting() {
	ctx, cancel := context.WithTimeout(engine.WithAsker(d.backend.Stopping(), &access.System), keepTime)
	defer cancel()
	for next, more := "", true; more; more = next != "" {
		var page []leasehold.Session
		err := d.backend.Read(ctx, func(v core.View) {
			page, next = v.Sessions(d.config.Namespace, "", next, leasehold.MaxPage)
		})
		if err != nil {
			return
		}
		for i := range page {
			if isLasting(&page[i]) && page[i].Remaining < lasting/2 {
				_, _ = d.backend.Do(ctx, &core.RenewSession{Namespace: d.config.Namespace, ID: page[i].ID})
			}
		}
	}
}
