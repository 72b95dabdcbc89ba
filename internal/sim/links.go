package sim

import (
	"fmt"
	"strings"

	"github.com/leasehold/leasehold"
	"github.com/leasehold/leasehold/internal/core"
)

// Some clients know leases only as records, like those of etcd and Consul. They take part in the same queues as all
// others. Package faces judges what such a record promises.

// byRecord lets a grip ask by a record, or for a resource that others ask for so.
func (g *grip) byRecord() {
	w := g.client.world
	g.slots, g.priority, g.inTxn = 0, 0, false
	g.at.name = fmt.Sprint("mirrored", w.random.IntN(2))
	if w.chance(40) {
		return // as any other client
	}
	if g.linked = true; w.chance(30) {
		g.at.name, g.stays, g.wait = fmt.Sprint("key", w.random.IntN(2)), true, 0
	}
}

// face is the path of the record of a grip.
func (g *grip) face() string {
	if g.stays {
		return g.at.name + "/value"
	}
	return g.at.name + "/" + g.id
}

// put is acquire for those who ask by a record. To put it again renews a lease with a TTL of its own.
func (g *grip) put() *core.PutRecord {
	l := &core.Link{Resource: g.at.name, ID: g.id, Holder: g.client.name, TTL: g.ttl, Grace: g.grace, Wait: g.wait > 0,
		Stay: g.stays}
	if !g.stays {
		l.Mirror = g.at.name + "/"
	}
	return &core.PutRecord{Namespace: g.at.space, Path: g.face(), Value: g.id, Session: g.session, Link: l}
}

// putAway gives back through the record. What stays is put only if it is still one's own.
func (g *grip) putAway() core.Command {
	if !g.stays {
		return &core.DeleteRecord{Namespace: g.at.space, Path: g.face()}
	}
	mine := core.Compare{What: core.RecordLease, Is: core.Equal, Path: g.face(), Text: g.id}
	return &core.Txn{Namespace: g.at.space, If: []core.Compare{mine}, Then: []core.Op{
		{Do: core.Put, Path: g.face(), Value: "free"},
	}}
}

// meddleByRecord is an operator who deletes the record of somebody else.
func (w *World) meddleByRecord(g *grip) bool {
	if w.Links == 0 || !strings.HasPrefix(g.at.name, "mirrored") || !w.chance(50) {
		return false
	}
	g.exempt = true
	w.count("records of others deleted")
	newClient(w, 99).insist(&core.DeleteRecord{Namespace: g.at.space, Path: g.face()}, 1)
	return true
}

// gone reports whether a record stands for a lease that is over, though nobody has collected it.
func (t *witness) gone(space string, r *leasehold.Record) bool {
	p := t.claims[spot{space, r.Lease}]
	return r.Lease != "" && (p == nil || p.token != 0 && p.ends() <= t.now)
}
