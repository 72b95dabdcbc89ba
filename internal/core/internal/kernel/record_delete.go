package kernel

import (
	"slices"

	"github.com/leasehold/leasehold"
)

// deleteRecord deletes one record or a range. To delete what is not there succeeds: an earlier
// attempt may have done it.
func (t *turn) deleteRecord(c *DeleteRecord) Answer {
	sp := t.space(c.Namespace)
	var old *leasehold.Record
	if !c.Range {
		old = t.liveRecord(sp, c.Path)
	}
	if _, refused := t.passFence(sp, old, c.Path, c.Fence); refused != nil {
		return Answer{Err: refused}
	}
	if refused := unlessAsExpected(old, c.Path, c.IfRevision, false); refused != nil {
		return Answer{Err: refused}
	}
	doomed, refused := t.doomed(sp, c.Path, c.To, c.Range)
	if refused == nil {
		refused = t.mayGiveUp(sp, doomed)
	}
	if refused != nil {
		return Answer{Err: refused}
	}
	if slices.ContainsFunc(doomed, func(r *leasehold.Record) bool { return t.changedNow(sp, r) }) {
		sp.touched = 0
	}
	t.drop(sp, doomed)
	answer := &TxnAnswer{Succeeded: true, Results: []TxnResult{{Deleted: len(doomed)}}}
	answer.Revision = t.revisionOf(sp)
	return Answer{Txn: answer}
}

// drop deletes records.
func (t *turn) drop(sp *space, doomed []*leasehold.Record) {
	t.work.take(len(doomed) / deletedPerUnit)
	t.roomForEvents(len(doomed))
	for _, r := range doomed {
		if r.Lease == "" {
			t.dropRecord(sp, r, 0)
			continue
		}
		// The end of another's claim may have ended this one, and its record with it.
		if now, ok := sp.records.Get(r.Path); ok {
			t.dropRecord(sp, now, 0)
			t.giveUp(sp, r.Lease)
		}
	}
}

// still returns those of the records that are there yet, in the same memory. What came to be there since they were
// found stays: nobody judged whether it may be deleted.
func (sp *space) still(found []*leasehold.Record) []*leasehold.Record {
	list := found[:0]
	for _, r := range found {
		if now, ok := sp.records.Get(r.Path); ok && now.Create == r.Create {
			list = append(list, now)
		}
	}
	return list
}

// doomed returns the records that a deletion would delete, or a refusal if they are more than
// one command may delete. Records whose sessions are over end first, by that and not by this
// command, which neither counts nor reports them.
func (t *turn) doomed(sp *space, path, to string, isRange bool) (list []*leasehold.Record, refused *leasehold.Error) {
	if sp == nil {
		return nil, nil
	}
	if !isRange {
		if r := t.liveRecord(sp, path); r != nil {
			list = append(list, r)
		}
		return list, nil
	}
	const most = leasehold.MaxDeletedAtOnce
	sp.records.Ascend(path, to, func(r *leasehold.Record) bool {
		list = append(list, r)
		return len(list) <= most
	})
	t.work.take(len(list) / PerUnit)
	if len(list) > most {
		return nil, refuse(leasehold.Limited, "more than %d records are from %q on: delete them in parts", most,
			path).Err
	}
	// Listed first and settled afterwards: ending a session deletes from the tree that is
	// walked.
	alive := list[:0]
	for _, r := range list {
		if r.Session != "" || r.Lease != "" {
			r = t.liveRecord(sp, r.Path)
		}
		if r != nil {
			alive = append(alive, r)
		}
	}
	return alive, nil
}
