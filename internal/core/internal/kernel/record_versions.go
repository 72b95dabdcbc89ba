package kernel

import (
	"fmt"

	"github.com/leasehold/leasehold"
	"github.com/leasehold/leasehold/internal/core/record"
)

// writer returns the holder that writes under a lease that is alive; empty if there is none.
func (s *State) writer(sp *space, f Fence) string {
	if sp == nil || f.Lease == "" {
		return ""
	}
	claim, ok := sp.claims.Get(f.Lease)
	if !ok {
		return ""
	}
	return claim.Holder
}

// rollBack gives a write the value that its record had at a revision; 0 means that the write
// has a value of its own. The value is looked up when the command is applied, so that it is the
// same on every node.
func (s *State) rollBack(sp *space, w *record.Write, from leasehold.Revision) *leasehold.Error {
	if from == 0 || sp.table().RollBack(w, from) {
		return nil
	}
	return noVersion(w.Path, from)
}

func noVersion(path string, revision leasehold.Revision) *leasehold.Error {
	return refuse(leasehold.NotFound, "%s has no version of revision %d: it never had, or has kept newer ones only",
		path, revision).Err
}

// Versions shows at most most versions of a record, the newest first: the current one and the
// former ones that are kept. before is where to continue from, a revision; 0 is the newest.
// next is that of the next page; 0 at the end.
func (v *view) Versions(
	namespace, path string, before leasehold.Revision, most int,
) (list []leasehold.Version, next leasehold.Revision) {
	sp := v.s.space(namespace)
	if sp == nil {
		return nil, 0
	}
	if most <= 0 || most > leasehold.MaxPage {
		most = leasehold.MaxPage
	}
	if now := v.current(sp, path); now != nil && (before == 0 || now.Revision < before) {
		list = append(list, *now)
	}
	sp.records.DescendFormer(path, before, func(former *leasehold.Version) bool {
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
func (v *view) Version(namespace, path string, revision leasehold.Revision) (leasehold.Version, *leasehold.Error) {
	sp := v.s.space(namespace)
	if sp == nil {
		return leasehold.Version{}, noVersion(path, revision)
	}
	if now := v.current(sp, path); now != nil && now.Revision == revision {
		return *now, nil
	}
	former, ok := sp.records.Former(path, revision)
	if !ok {
		return leasehold.Version{}, noVersion(path, revision)
	}
	return *former, nil
}

// Keeps returns how many former versions a record keeps.
func (v *view) Keeps(namespace, path string) int {
	if shelf, ok := v.s.space(namespace).table().Shelf(path); ok {
		return shelf.Keep
	}
	return 0
}

// current returns a record as a version; nil if it is not there.
func (v *view) current(sp *space, path string) *leasehold.Version {
	return sp.records.Current(path, func(r *leasehold.Record) bool { return v.s.recordOver(sp, r) })
}

// restoreRecord takes a piece over that Pieces made.
func (t *turn) restoreRecord(sp *space, r *leasehold.Record) error {
	claim := sp.faceOf(r)
	if r.Lease != "" && (claim.face() == nil || claim.face().Path != r.Path) {
		return fmt.Errorf("snapshot has record %q, which stands for lease %q, and that does not know", r.Path, r.Lease)
	}
	if t.records.Restore(&sp.records, r, sp.loose(r)) {
		return fmt.Errorf("snapshot has record %q twice", r.Path)
	}
	if sp.records.Binds(r) {
		session, ok := sp.sessions.Get(r.Session)
		if !ok && sp.left(r.Session) == nil {
			return fmt.Errorf("snapshot has record %q of session %q, which is not there", r.Path, r.Session)
		}
		if ok {
			session.Claims++ // nobody else has seen it yet
			if session.records++; session.records == 1 {
				sp.moveSessionEnd(sessionEnd{}, session.end())
			}
		}
	}
	return nil
}
