package records

import (
	"github.com/leasehold/leasehold"
	"github.com/leasehold/leasehold/internal/core/internal/kernel"
	"github.com/leasehold/leasehold/internal/core/record"
)

// rollBack gives a write the value that its record had at a revision; 0 means that the write
// has a value of its own. The value is looked up when the command is applied, so that it is the
// same on every node.
func (s *records) rollBack(w *record.Write, from leasehold.Revision) *leasehold.Error {
	if from == 0 || s.table.RollBack(w, from) {
		return nil
	}
	return kernel.NoVersion(w.Path, from)
}

// Versions shows at most most versions of a record, the newest first: the current one and the
// former ones that are kept. before is where to continue from, a revision; 0 is the newest.
// next is that of the next page; 0 at the end.
func (s *records) Versions(
	n kernel.Namespace, path string, before leasehold.Revision, most int,
) (list []leasehold.Version, next leasehold.Revision) {
	if most <= 0 || most > leasehold.MaxPage {
		most = leasehold.MaxPage
	}
	if now := s.current(n, path); now != nil && (before == 0 || now.Revision < before) {
		list = append(list, *now)
	}
	s.table.DescendFormer(path, before, func(former *leasehold.Version) bool {
		if len(list) == most {
			next = list[most-1].Revision
			return false
		}
		list = append(list, *former)
		return true
	})
	return list, next
}

// Version shows the version of a record that a revision wrote.
func (s *records) Version(
	n kernel.Namespace, path string, revision leasehold.Revision,
) (leasehold.Version, *leasehold.Error) {
	if now := s.current(n, path); now != nil && now.Revision == revision {
		return *now, nil
	}
	former, ok := s.table.Former(path, revision)
	if !ok {
		return leasehold.Version{}, kernel.NoVersion(path, revision)
	}
	return *former, nil
}

// Keeps returns how many former versions a record keeps.
func (s *records) Keeps(path string) int {
	if shelf, ok := s.table.Shelf(path); ok {
		return shelf.Keep
	}
	return 0
}

// current returns a record as a version; nil if it is not there.
func (s *records) current(n kernel.Namespace, path string) *leasehold.Version {
	return s.table.Current(path, func(r *leasehold.Record) bool { return recordOver(n, r) })
}
