package records

import (
	"github.com/leasehold/leasehold"
	"github.com/leasehold/leasehold/internal/core/internal/kernel"
	"github.com/leasehold/leasehold/internal/core/record"
)

// A record may stand for the holder of the resource at its path: a Kubernetes Lease or a Consul key names the holder,
// even one that came through another door. From the first put with such a link on the record does so, until it is
// deleted. Unlike a mirror it shows only the holder, so the queue may have any order.

// ShowsHolder reports whether a record stands for the holder of a resource.
func (s *records) ShowsHolder(path string) bool {
	own, ok := s.mirrors.Get(path)
	return ok && own == path
}

// mayShowHolder reports whether a record may stand for the holder of a resource: the asker may see who that is, and
// there is no mirror. A caller that may not see it can still put the record, which then shows no holder.
func (s *records) mayShowHolder(k kernel.Turn, path string) bool {
	return s.Mirrored(path) == "" && k.MayShow(path)
}

// forgetHolder forgets that a record stood for the holders of a resource.
func (s *records) forgetHolder(k kernel.Turn, path string) {
	if s.mirrors.Len() > 0 && s.ShowsHolder(path) {
		s.mirrors.Delete(path)
		k.CountMirrors(-1)
	}
}

// ShowHolder lets a record show who holds the resource of its path, if it does not. The kernel asks for that at the end
// of a command.
func (s *records) ShowHolder(k kernel.Turn, path string) {
	holder := s.unshownHolder(k.Namespace, path)
	if holder != nil {
		s.ShowAgain(k, k.Link(holder, &kernel.LinkedRecord{Path: path, Stay: true, Made: true}))
	}
}

// unshownHolder returns the lease that the record of a path should show and does not; nil if there is none. A record
// that is bound to a session shows nobody: it ends with that.
func (s *records) unshownHolder(n kernel.Namespace, path string) *kernel.Claim {
	r, ok := s.table.Get(path)
	if !ok || r.Lease != "" || r.Session != "" || !s.ShowsHolder(path) {
		return nil
	}
	resource := n.Resource(path)
	if resource == nil {
		return nil
	}
	if c := n.Claim(resource.Claim); c != nil && c.Linked() == nil {
		return c
	}
	return nil
}

// ShowAgain links the record that stands for a lease to it.
func (s *records) ShowAgain(k kernel.Turn, c *kernel.Claim) {
	was, _ := s.table.Get(c.Resource)
	r := s.store.Link(&s.table, was, c.ID, record.Stamp{Revision: k.ReviseRecord(was), Token: c.Token})
	k.Emit(&leasehold.Event{
		Kind: leasehold.RecordPut, Resource: r.Path, Token: r.Token, Record: r, Previous: was, Holder: c.Holder,
		Owner: k.RecordOwner(r.Path),
	})
}

// keepHolder lets a put without a link change what a record says, and not whom it shows, if that came without it: the
// writer never had that lease. The holder may have changed since the put was worked out.
func (s *records) keepHolder(k kernel.Turn, p *putting) {
	r, _ := s.table.Get(p.write.Path)
	if c := claimOf(k.Namespace, r); c.ShownAsHolder() {
		p.write.Lease, p.write.Loose, p.from.holder = c.ID, true, c.Holder
	}
}
