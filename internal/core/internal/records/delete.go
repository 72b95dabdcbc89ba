package records

import (
	"slices"

	"github.com/leasehold/leasehold"
	"github.com/leasehold/leasehold/internal/core/internal/kernel"
)

// Delete deletes one record or a range. To delete what is not there succeeds: an earlier
// attempt may have done it.
func (s *records) Delete(k kernel.Turn, c *kernel.DeleteRecord) kernel.Answer {
	var old *leasehold.Record
	if !c.Range {
		old = s.liveRecord(k, c.Path)
	}
	if _, refused := s.passFence(k, old, c.Path, c.Fence); refused != nil {
		return kernel.Answer{Err: refused}
	}
	if refused := unlessAsExpected(old, c.Path, c.IfRevision, false); refused != nil {
		return kernel.Answer{Err: refused}
	}
	doomed, refused := s.doomed(k, c.Path, c.To, c.Range)
	if refused == nil {
		refused = mayGiveUp(k, doomed)
	}
	if refused != nil {
		return kernel.Answer{Err: refused}
	}
	if slices.ContainsFunc(doomed, k.ChangedNow) {
		k.ReviseLater()
	}
	s.drop(k, doomed)
	answer := &kernel.TxnAnswer{Succeeded: true, Results: []kernel.TxnResult{{Deleted: len(doomed)}}}
	answer.Revision = k.NewestRevision()
	return kernel.Answer{Txn: answer}
}

// deletedPerUnit is how many records are deleted in a unit of work.
const deletedPerUnit = 3

// drop deletes records.
func (s *records) drop(k kernel.Turn, doomed []*leasehold.Record) {
	k.Take(len(doomed) / deletedPerUnit)
	k.RoomForEvents(len(doomed))
	for _, r := range doomed {
		if r.Lease == "" {
			s.dropRecord(k, r, 0)
			continue
		}
		// The end of another's claim may have ended this one, and its record with it.
		if now, ok := s.table.Get(r.Path); ok {
			s.dropRecord(k, now, 0)
			giveUp(k, r.Lease)
		}
	}
}

// remaining returns those of the records that are there yet, in the same memory. What came to be there since they were
// found stays: nobody judged whether it may be deleted.
func (s *records) remaining(found []*leasehold.Record) []*leasehold.Record {
	list := found[:0]
	for _, r := range found {
		if now, ok := s.table.Get(r.Path); ok && now.Create == r.Create {
			list = append(list, now)
		}
	}
	return list
}

// doomed returns the records that a deletion would delete, or a refusal if they are more than
// one command may delete. Records whose sessions are over end first, by that and not by this
// command, which neither counts nor reports them.
func (s *records) doomed(
	k kernel.Turn, path, to string, isRange bool,
) (list []*leasehold.Record, refused *leasehold.Error) {
	if !isRange {
		if r := s.liveRecord(k, path); r != nil {
			list = append(list, r)
		}
		return list, nil
	}
	const most = leasehold.MaxDeletedAtOnce
	s.table.Ascend(path, to, func(r *leasehold.Record) bool {
		list = append(list, r)
		return len(list) <= most
	})
	k.Take(len(list) / kernel.PerUnit)
	if len(list) > most {
		return nil, refuse(leasehold.Limited, "more than %d records are from %q on: delete them in parts", most,
			path)
	}
	// Listed first and settled afterwards: ending a session deletes from the tree that is
	// walked.
	alive := list[:0]
	for _, r := range list {
		if r.Session != "" || r.Lease != "" {
			r = s.liveRecord(k, r.Path)
		}
		if r != nil {
			alive = append(alive, r)
		}
	}
	return alive, nil
}
