package kernel

import (
	"github.com/leasehold/leasehold"
	"github.com/leasehold/leasehold/internal/core/access"
	"github.com/leasehold/leasehold/internal/core/record"
)

// A record may stand for the holder of the resource at its path: a Kubernetes Lease or a Consul key names the holder,
// even one that came through another door. The first put with such a link makes the record stand, and it does so until
// it is deleted. Unlike a mirror it shows only the holder, so the queue may have any order.

// stands reports whether a record stands for the holder of a resource.
func (sp *space) stands(path string) bool {
	own, ok := sp.mirrors.Get(path)
	return ok && own == path
}

// mayStand reports whether a record may stand for the holder of a resource: the asker may see who that is, and there is
// no mirror. A caller that may not see it can still put the record, which then shows no holder.
func (l *look) mayStand(sp *space, path string) bool {
	return sp.mirrored(path) == "" && (l.permit == nil || l.permit.May(access.Read, sp.name, path, nil))
}

// standDown forgets that a record stood for the holders of a resource.
func (sp *space) standDown(path string) {
	if sp.mirrors.Len() > 0 && sp.stands(path) {
		sp.mirrors.Delete(path)
	}
}

// holderChanged notes that a record that stands for the holder of a resource may have to show another holder. That is
// done at the end of the command: until then whatever was worked out about records stays true, and a record that the
// command itself writes or deletes is written or deleted as if it stood for nobody.
// Most resources have no such record.
func (t *turn) holderChanged(sp *space, path string) {
	if sp.mirrors.Len() == 0 || !sp.stands(path) {
		return
	}
	t.work.take(RecordCost)
	t.unshown = append(t.unshown, wakeup{space: sp, path: path})
}

// showHolders lets records show the holders that the command gave the resources they stand for.
func (t *turn) showHolders() {
	for _, at := range t.unshown {
		t.showHolder(at.space, at.path)
	}
	t.unshown = t.unshown[:0]
}

func (t *turn) showHolder(sp *space, path string) {
	holder := sp.unshownHolder(path)
	if holder == nil {
		return
	}
	shown := *holder
	shown.setFace(&Face{Path: path, Stay: true, Made: true})
	t.put(sp, &shown)
	t.showByRecord(sp, &shown)
}

// unshownHolder returns the lease that the record of a path should show and does not; nil if there is none. A record
// that is bound to a session shows nobody: it ends with that.
func (sp *space) unshownHolder(path string) *Claim {
	r, ok := sp.records.Get(path)
	if !ok || r.Lease != "" || r.Session != "" || !sp.stands(path) {
		return nil
	}
	resource, ok := sp.resources.Get(path)
	if !ok {
		return nil
	}
	if c, ok := sp.claims.Get(resource.Claim); ok && c.face() == nil {
		return c
	}
	return nil
}

// showByRecord links the record that stands for a lease to it.
func (t *turn) showByRecord(sp *space, c *Claim) {
	was, _ := sp.records.Get(c.Resource)
	r := t.records.Link(&sp.records, was, c.ID, record.Stamp{Revision: t.reviseRecord(sp, was), Token: c.Token})
	t.emit(sp, &leasehold.Event{
		Kind: leasehold.RecordPut, Resource: r.Path, Token: r.Token, Record: r, Previous: was, Holder: c.Holder,
		Owner: sp.recordOwner(r.Path),
	})
}

// changeFace lets the record of a lease that has another id or holder now follow it.
func (t *turn) changeFace(sp *space, was *Claim) {
	t.endFace(sp, was, leasehold.IDChanged)
	t.holderChanged(sp, was.Resource)
}

// keepHolder lets a put without a link change what a record says, and not whom it shows, if that came without it: the
// writer never had that lease. The holder may have changed since the put was worked out.
func (s *State) keepHolder(sp *space, p *putting) {
	r, _ := sp.records.Get(p.write.Path)
	if c := sp.faceOf(r); c.standing() {
		p.write.Lease, p.write.Loose, p.from.holder = c.ID, true, c.Holder
	}
}

// standing reports whether a claim is shown by a record that stands for the holder of its resource.
func (c *Claim) standing() bool {
	f := c.face()
	return f != nil && f.Made && f.Stay
}

// StandsFor returns the holder of the lease that the record at a path shows, or showed until it ended lately, and
// whether that came without the record; empty if nobody knows.
func (v *view) StandsFor(namespace, path, id string) (holder string, other bool) {
	sp := v.s.space(namespace)
	if sp == nil {
		return "", false
	}
	if c, ok := sp.claims.Get(id); ok && c.face() != nil && c.face().Path == path {
		return c.Holder, c.standing()
	}
	if ended, ok := sp.claims.Ended(id); ok && ended.Resource == path {
		return ended.Holder, false
	}
	return "", false
}
