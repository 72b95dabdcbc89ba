package core

import (
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

// standDown forgets that a record stood for the holders of a resource.
func (sp *space) standDown(path string) {
	if sp.mirrors.Len() > 0 && sp.stands(path) {
		sp.mirrors.Delete(path)
	}
}

// standFor gives a new lease its face if a record stands for the resource's holder. Most resources have no such record.
func (s *State) standFor(sp *space, c *Claim) {
	if sp.mirrors.Len() == 0 || c.Slots != 0 || c.face() != nil || !sp.stands(c.Resource) {
		return
	}
	if r, ok := sp.records.Get(c.Resource); ok && r.Lease == "" {
		c.setFace(&Face{Path: r.Path, Stay: true, Made: true})
	}
}

// showHolder writes the record of a lease that it was given by standFor. At one revision a record changes once: if the
// lease before ended by the same command, this has the next one.
func (s *State) showHolder(sp *space, c *Claim) {
	f := c.face()
	if f == nil || !f.Made || !f.Stay {
		return
	}
	r, _ := sp.records.Get(f.Path)
	if s.unlinkedNow(sp, r) {
		s.reviseAgain(sp)
	}
	w := record.Write{Path: r.Path, Value: r.Value, Large: r.Large, Lease: c.ID, Holder: c.Holder, Loose: true}
	s.setRecord(sp, w, writing{token: max(r.Token, c.Token), made: true, holder: c.Holder})
}

// showAgain shows a lease that has another id or holder now, and returns it with its face.
func (s *State) showAgain(sp *space, c *Claim) *Claim {
	shown := *c
	if s.standFor(sp, &shown); shown.face() == nil {
		return c
	}
	s.put(sp, &shown)
	s.showHolder(sp, &shown)
	return &shown
}

// StandsFor returns the holder of a lease, if the record at a path shows it although it came without it; empty if not.
func (v *view) StandsFor(namespace, path, id string) string {
	sp := v.s.space(namespace)
	if sp == nil {
		return ""
	}
	claim, _ := sp.claims.Get(id)
	if f := claim.face(); f == nil || !f.Made || !f.Stay || f.Path != path {
		return ""
	}
	return claim.Holder
}
