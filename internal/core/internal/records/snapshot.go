package records

import (
	"fmt"

	"github.com/leasehold/leasehold"
	"github.com/leasehold/leasehold/internal/core/internal/kernel"
	"github.com/leasehold/leasehold/internal/core/record"
)

// A Mirror is a mirrored resource, in a snapshot.
type Mirror struct {
	Resource string
	Prefix   string
}

// Pieces are which resources are mirrored, and what is in the table.
func (s *records) Pieces(yield func(piece any) bool) (more bool) {
	more = true
	s.mirrors.Scan(func(path, prefix string) bool {
		more = yield(&Mirror{path, prefix})
		return more
	})
	return more && s.table.Scan(yield)
}

func (s *records) Restore(k kernel.Turn, piece any) (known bool, err error) {
	switch v := piece.(type) {
	case *Mirror:
		return true, s.restoreMirror(k, v)
	case *leasehold.Record:
		return true, s.restoreRecord(k, v)
	case *record.Shelf:
		return true, s.restoreShelf(k, v)
	case *leasehold.Version:
		return true, s.store.RestoreVersion(&s.table, v)
	}
	return false, nil
}

func (s *records) restoreMirror(k kernel.Turn, m *Mirror) error {
	// One record that shows who holds a resource may show nobody.
	known := k.Resource(m.Resource) != nil || m.Prefix == m.Resource
	_, twice := s.mirrors.Get(m.Resource)
	if twice || !known || m.Prefix == "" {
		return fmt.Errorf("snapshot has the mirror of %q twice, or of nothing", m.Resource)
	}
	s.setMirror(k, m.Resource, m.Prefix)
	return nil
}

func (s *records) restoreRecord(k kernel.Turn, r *leasehold.Record) error {
	claim := claimOf(k.Namespace, r)
	if r.Lease != "" && (claim.Linked() == nil || claim.Linked().Path != r.Path) {
		return fmt.Errorf("snapshot has record %q, which stands for lease %q, and that does not know", r.Path, r.Lease)
	}
	if s.store.Restore(&s.table, r, loose(k.Namespace, r)) {
		return fmt.Errorf("snapshot has record %q twice", r.Path)
	}
	if !s.table.Binds(r) {
		return nil
	}
	if k.Session(r.Session) == nil && k.Left(r.Session) == nil {
		return fmt.Errorf("snapshot has record %q of session %q, which is not there", r.Path, r.Session)
	}
	k.CountBound(r.Session, 1)
	return nil
}

func (s *records) restoreShelf(k kernel.Turn, v *record.Shelf) error {
	if err := s.store.RestoreShelf(&s.table, v); err != nil {
		return err
	}
	s.timeShelf(k, v.Path)
	return nil
}

// Restored refuses a snapshot that has claims without the records by which they show.
func (s *records) Restored(n kernel.Namespace) error {
	if s.shown == s.table.Linked() {
		return nil
	}
	return fmt.Errorf("snapshot has %d leases with records in namespace %q, and %d records of leases", s.shown,
		n.Name(), s.table.Linked())
}

func (s *records) Timers(see func(path string, t *kernel.Timer, at kernel.Time)) {
	s.table.Scan(func(v any) bool {
		if shelf, ok := v.(*record.Shelf); ok {
			due, _ := s.timers.Get(shelf.Path)
			see(shelf.Path, due, shelf.Due())
		}
		return true
	})
}
