package client

import (
	"context"
	"os"
	"path/filepath"
	"time"

	"github.com/leasehold/leasehold/store"
)

// LearnedTTL takes the TTL that suits the lease, by what the store learned of leases of its kind: long enough that
// their renewals come in time, and at most 2 minutes, since it is how long others wait for a holder that died. The kind
// is the Label "kind"; or the Label "command" and the holder's name without the number at its end. If neither is given,
// the name of the program is the command. A store that learns nothing leaves Config.TTL.
func LearnedTTL() Option { return func(o *options) { o.learned = true } }

// ttlStep is how far learned TTLs are apart. Leases of one TTL share a session, and each session has its renewals.
const ttlStep = 10 * time.Second

// learnTTL sets the TTL of an acquire to what was learned. That nobody can say it now is no reason not to acquire.
func (c *Client) learnTTL(ctx context.Context, o *options) {
	advisor, ok := c.store.(store.Advisor)
	if !ok || o.session != nil {
		return
	}
	if o.labels["kind"] == "" && o.labels["command"] == "" {
		Label("command", filepath.Base(os.Args[0]))(o)
	}
	query := store.AdviceQuery{Resource: o.items[0].Resource, Holder: o.holder, Labels: store.LabelsOf(o.labels)}
	var ttl time.Duration
	err := once(ctx, callTimeout/3, func(ctx context.Context) (err error) {
		ttl, err = advisor.AdviseTTL(ctx, query)
		return err
	})
	switch {
	case err != nil:
		c.log.Warn("no TTL was learned: the default is used", "resource", query.Resource, "err", err)
	case ttl > ttlStep:
		o.ttl = ttl.Truncate(ttlStep)
	case ttl > 0:
		o.ttl = ttl
	}
}
