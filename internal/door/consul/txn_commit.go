package consul

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/leasehold/leasehold"
	"github.com/leasehold/leasehold/internal/core"
	"github.com/leasehold/leasehold/internal/door"
)

// commit does what was tried out, if what it was tried on is still there. It reports whether that was so.
func (t *transaction) commit() (done bool, err error) {
	command := &core.Txn{Namespace: t.namespace(), If: t.pins()}
	puts, err := t.plan(command)
	if err != nil {
		return false, err
	}
	if len(command.If) > leasehold.MaxOps || len(command.Then) > leasehold.MaxOps {
		return false, tooWide()
	}
	if len(command.Then) == 0 {
		return true, nil // as when something was to be deleted that is not there
	}
	answer, err := t.once(command)
	switch {
	case errors.Is(err, leasehold.ErrHeld), errors.Is(err, leasehold.ErrRefused):
		return t.refused(err)
	case errors.Is(err, leasehold.ErrLost), errors.Is(err, leasehold.ErrNotFound):
		return false, nil // a session has ended: the next try finds it so
	case err != nil:
		return false, err
	case !answer.Txn.Succeeded:
		return false, nil
	}
	t.stamp(puts, answer.Txn)
	return true, nil
}

// pins are the comparisons that all is as it was read.
func (t *transaction) pins() (list []core.Compare) {
	for key, d := range t.drafts {
		pin := core.Compare{What: core.RecordVersion, Is: core.Equal, Path: key}
		if d.was != nil {
			pin.What, pin.Number = core.RecordMod, uint64(d.was.Mod)
		}
		list = append(list, pin)
	}
	for prefix := range t.trees { // nothing has come to it
		list = append(list, core.Compare{What: core.RecordMod, Is: core.Less, Path: prefix, Range: true,
			To: core.PrefixEnd(prefix), Number: uint64(t.now) + 1})
	}
	slices.SortFunc(list, func(a, b core.Compare) int { return strings.Compare(a.Path, b.Path) })
	return list
}

// plan adds the operations that lead to the drafts. It returns those of them that are put, by the place of their
// operation.
func (t *transaction) plan(command *core.Txn) (puts map[int]*draft, err error) {
	puts = map[int]*draft{}
	for _, prefix := range t.gone {
		if _, oneByOne := t.trees[prefix]; !oneByOne {
			command.Then = append(command.Then, core.Op{Do: core.Delete, Path: prefix, Range: true,
				To: core.PrefixEnd(prefix)})
		}
	}
	keys := make([]string, 0, len(t.drafts))
	for key, d := range t.drafts {
		if d.written && (d.there || d.was != nil) {
			keys = append(keys, key)
		}
	}
	slices.Sort(keys)
	for _, key := range keys {
		d := t.drafts[key]
		if !d.there {
			command.Then = append(command.Then, core.Op{Do: core.Delete, Path: key})
			continue
		}
		op, err := t.put(key, d)
		if err != nil {
			return nil, err
		}
		puts[len(command.Then)] = d
		command.Then = append(command.Then, op)
	}
	return puts, nil
}

// put returns the operation that leaves a key as its draft has it.
func (t *transaction) put(key string, d *draft) (core.Op, error) {
	kept, known := t.kept[d.op]
	if !known {
		var err error
		if kept, err = t.contentOf(t.ops[d.op].Value, t.ops[d.op].Flags); err != nil {
			return core.Op{}, err
		}
		t.kept[d.op] = kept
	}
	op := core.Op{Do: core.Put, Path: key, Value: kept.value, Large: kept.large, KeepLink: d.lock == keeps}
	if d.lock == takes {
		op.Session, op.Link = d.by.ID, linkTo(key, newID(), d.by)
		op.Link.Take = d.was != nil && d.was.Lease != "" // from a session that unlocks it in the same transaction
	}
	return op, nil
}

// refused decides which locks could not be had. If none was asked for, the refusal stands.
func (t *transaction) refused(refusal error) (done bool, err error) {
	e := door.Coded(refusal)
	switch err := t.failLocks(e.Lease); {
	case err != nil:
		return false, err
	case len(t.failures) > 0:
		return true, nil
	case e.Code == leasehold.Held && t.tries < maxTries:
		t.tries++
		return false, nil // it is free by now
	}
	return false, refusal
}

// failLocks adds, to the operations that fail, those that take a lock which cannot be had: because of other doors, or
// of what is in the way as the engine says, if it was asked.
func (t *transaction) failLocks(inTheWay *leasehold.Lease) error {
	for i := range t.ops {
		op, d := &t.ops[i], t.drafts[t.ops[i].Key]
		if op.Verb != verbLock || d.lock != takes || t.failed(i) {
			continue
		}
		used, err := t.inUse(op.Key)
		if err != nil {
			return err
		}
		handed := d.was != nil && d.was.Lease != "" // by a session that unlocks it in the same transaction
		switch {
		case used.Holding == 0 && !used.AvailableAt.IsZero():
			t.fail(i, "failed to lock key %q due to lock delay", op.Key)
		case !handed && (used.Holding > 0 || used.Waiting > 0),
			inTheWay != nil && inTheWay.Resource == op.Key:
			t.fail(i, "failed to lock key %q, lock is already held", op.Key)
		}
	}
	slices.SortFunc(t.failures, func(a, b txnError) int { return a.OpIndex - b.OpIndex })
	return nil
}

func (t *transaction) fail(i int, format string, args ...any) {
	t.failures = append(t.failures, txnError{i, fmt.Sprintf(format, args...)})
}

// failed reports whether an operation is among those that fail.
func (t *transaction) failed(i int) bool {
	return slices.ContainsFunc(t.failures, func(f txnError) bool { return f.OpIndex == i })
}

// maxTries is how often a lock is tried again that nothing visible was in the way of.
const maxTries = 3

// stamp puts the indexes of the command into the results.
func (t *transaction) stamp(puts map[int]*draft, answer *core.TxnAnswer) {
	for place, d := range puts {
		if r := answer.Results[place].Record; r != nil {
			d.entry.CreateIndex, d.entry.ModifyIndex = indexOf(r.Create), indexOf(r.Mod)
			d.entry.LockIndex = uint64(r.Token)
		}
	}
	for _, s := range t.fresh {
		s.entry.CreateIndex, s.entry.ModifyIndex = s.draft.entry.CreateIndex, s.draft.entry.ModifyIndex
		if s.entry.Session == s.draft.entry.Session { // else it shows a lock that was given up
			s.entry.LockIndex = s.draft.entry.LockIndex
		}
		if !s.draft.there { // it was deleted later in the same transaction
			s.entry.CreateIndex, s.entry.ModifyIndex = indexOf(answer.Revision), indexOf(answer.Revision)
		}
	}
	t.door.showed(answer.Revision)
}
