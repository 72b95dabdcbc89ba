package sim

import (
	"fmt"
	"strings"

	"github.com/leasehold/leasehold"
	"github.com/leasehold/leasehold/internal/core"
)

// Some clients know leases only as records, like those of etcd and Consul. They take part in the same queues as all
// others. The witness judges what such a record promises: it is there as long as its lease or wait, and no longer; and
// below a mirror prefix all who have or want the resource have one, created in the order of the queue.

// How many mirrored resources there are, and how many whose record stays.
const (
	mirrors = 2
	keys    = 2
)

// byRecord lets a grip ask by a record, or for a resource that others ask for so.
func (g *grip) byRecord() {
	w := g.client.world
	g.slots, g.priority, g.inTxn = 0, 0, false
	g.at.name = fmt.Sprint("mirrored", w.random.IntN(mirrors))
	if w.chance(40) {
		return // as any other client
	}
	if g.linked = true; w.chance(30) {
		g.at.name, g.stays, g.wait = fmt.Sprint("key", w.random.IntN(keys)), true, 0
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
	l := &core.Link{
		Resource: g.at.name, ID: g.id, Holder: g.client.name, TTL: g.ttl, Grace: g.grace, Wait: g.wait > 0, Stay: g.stays,
	}
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
	return &core.Txn{
		Namespace: g.at.space,
		If:        []core.Compare{{What: core.RecordLease, Is: core.Equal, Path: g.face(), Text: g.id}},
		Then:      []core.Op{{Do: core.Put, Path: g.face(), Value: "free"}},
	}
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

// linked follows a put that mirrors a resource: the records of those who are there come before its own.
func (t *witness) linked(c core.Command, e *leasehold.Event) {
	put, ok := c.(*core.PutRecord)
	if !ok || put.Link == nil || put.Link.Mirror == "" {
		return
	}
	mirrored := e.ID == put.Link.ID
	if e.Kind == leasehold.RecordPut {
		p := t.claims[spot{e.Namespace, e.Record.Lease}]
		mirrored = p != nil && p.at.name == put.Link.Resource
	}
	if mirrored {
		t.place(spot{e.Namespace, put.Link.Resource}).mirror = put.Link.Mirror
	}
}

// putByCore checks a record that no command put: it was made for a claim on a mirrored resource, or its claim has
// ended and it stays as it was.
func (t *witness) putByCore(e *leasehold.Event) bool {
	r, before := e.Record, e.Previous
	if e.How != 0 {
		return before != nil && r.Value == before.Value && before.Lease != "" && r.Lease == "" && r.Session == ""
	}
	p := t.claims[spot{e.Namespace, r.Lease}]
	return p != nil && before == nil && t.place(p.at).mirror != "" && strings.HasPrefix(r.Path, p.at.name+"/")
}

// faces checks, after an entry, that records and claims are there together.
func (t *witness) faces() {
	if t.world.Links == 0 {
		return
	}
	shown := map[spot]*leasehold.Record{}
	for _, at := range sortedSpots(t.writings.records) {
		r := t.writings.records[at]
		if r.Lease == "" {
			continue
		}
		if t.claims[spot{at.space, r.Lease}] == nil {
			t.world.violated("%s stands for %s, which is not there", at.name, r.Lease)
		}
		shown[spot{at.space, r.Lease}] = r
	}
	for _, at := range sortedSpots(t.places) {
		if p := t.places[at]; p.mirror != "" {
			t.inOrder(at, p, shown)
		}
	}
}

// inOrder checks that the records of a mirrored resource are those of its holder and its queue, in that order.
func (t *witness) inOrder(at spot, p *place, shown map[spot]*leasehold.Record) {
	last := leasehold.Revision(0)
	for _, list := range [][]*promise{p.holders, p.queue} {
		for _, o := range list {
			r := shown[spot{at.space, o.id}]
			switch {
			case r == nil:
				t.world.violated("%s has or wants %s, which is mirrored, and has no record", o.id, at.name)
				continue
			case r.Create <= last || !strings.HasPrefix(r.Path, p.mirror):
				t.world.violated("%s of %s was created at %d, after one at %d", r.Path, o.id, r.Create, last)
			}
			last = r.Create
		}
	}
}

// gone reports whether a record stands for a lease that is over, though nobody has collected it.
func (t *witness) gone(space string, r *leasehold.Record) bool {
	p := t.claims[spot{space, r.Lease}]
	return r.Lease != "" && (p == nil || p.token != 0 && p.ends() <= t.now)
}
