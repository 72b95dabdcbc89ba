package consul

import (
	"fmt"
	"slices"
	"strings"
)

// try does an operation on the drafts. It returns in Consul's words why it fails.
func (t *transaction) try(i int) (what string, err error) {
	op := &t.ops[i]
	d := t.drafts[op.Key]
	switch op.Verb {
	case verbGetTree:
		return "", t.showTree(op.Key)
	case verbDeleteTree:
		t.deleteTree(i)
		return "", nil
	case verbGet, verbGetOrEmpty:
		return t.get(d, op)
	case verbDelete, verbDeleteCAS:
		if op.Verb == verbDeleteCAS && d.there && (d.written || d.entry.ModifyIndex != op.Index) {
			return fmt.Sprintf("failed to delete key %q, index is stale", op.Key), nil
		}
		d.delete(i)
		return "", nil
	case verbCheckNotExists:
		if d.there {
			return fmt.Sprintf("key %q exists", op.Key), nil
		}
		return "", nil
	case verbCheckIndex, verbCheckSession:
		if what := checked(d, op); what != "" {
			return what, nil
		}
		return "", t.showWithout(d)
	}
	if what := t.mayWrite(d, op); what != "" {
		return what, nil
	}
	d.write(i, op)
	return "", t.showWithout(d)
}

// mayWrite says why a key cannot be written, and what becomes of its lock.
func (t *transaction) mayWrite(d *draft, op *kvOp) (what string) {
	switch op.Verb {
	case verbCAS:
		same := d.there && !d.written && d.entry.ModifyIndex == op.Index
		if op.Index == 0 && d.there || op.Index != 0 && !same {
			return fmt.Sprintf("failed to set key %q, index is stale", op.Key)
		}
	case verbLock:
		return t.mayLock(d, op)
	case verbUnlock:
		if op.Session == "" {
			return "missing session"
		}
		if !d.there || d.entry.Session != op.Session || d.elsewhere() {
			return fmt.Sprintf("failed to unlock key %q, lock isn't held, or is held by another session", op.Key)
		}
		d.lock, d.by, d.entry.Session = givesUp, nil, ""
	}
	return ""
}

// elsewhere reports whether a key shows a lease of another door, whose id stands in the place of a session.
func (d *draft) elsewhere() bool { return d.lock == keeps && d.was != nil && d.was.Session == "" }

func (t *transaction) mayLock(d *draft, op *kvOp) (what string) {
	by := t.sessions[op.Session]
	switch {
	case op.Session == "":
		return "missing session"
	case by == nil:
		return fmt.Sprintf("invalid session %q", op.Session)
	case d.there && d.entry.Session == op.Session:
		return ""
	case d.there && d.entry.Session != "":
		return fmt.Sprintf("failed to lock key %q, lock is already held", op.Key)
	}
	d.lock, d.by, d.entry.Session = takes, by, op.Session
	return ""
}

// write leaves a key as an operation has it.
func (d *draft) write(i int, op *kvOp) {
	d.there, d.written, d.op = true, true, i
	d.entry.Key, d.entry.Flags, d.entry.Value = op.Key, op.Flags, nil
	if len(op.Value) > 0 {
		d.entry.Value = op.Value
	}
}

// delete leaves no key.
func (d *draft) delete(i int) {
	d.there, d.written, d.op = false, true, i
	d.lock, d.by = givesUp, nil
	d.entry = entry{LockIndex: d.entry.LockIndex}
}

// deleteTree leaves no key with a prefix.
func (t *transaction) deleteTree(i int) {
	prefix := t.ops[i].Key
	for key, d := range t.drafts {
		if strings.HasPrefix(key, prefix) && d.there {
			d.delete(i)
		}
	}
	if !slices.Contains(t.gone, prefix) {
		t.gone = append(t.gone, prefix)
	}
}

// checked says why a key is not as it should be.
func checked(d *draft, op *kvOp) (what string) {
	switch {
	case !d.there && op.Verb == verbCheckIndex:
		return fmt.Sprintf("failed to check index, key %q doesn't exist", op.Key)
	case !d.there:
		return fmt.Sprintf("failed to check session, key %q doesn't exist", op.Key)
	case op.Verb == verbCheckSession && d.entry.Session != op.Session:
		return fmt.Sprintf("failed session check for key %q, current session %q != %q", op.Key, d.entry.Session,
			op.Session)
	case op.Verb == verbCheckIndex && (d.written || d.entry.ModifyIndex != op.Index):
		return fmt.Sprintf("failed index check for key %q, current modify index %d != %d", op.Key,
			d.entry.ModifyIndex, op.Index)
	}
	return ""
}

// get shows a key with its value.
func (t *transaction) get(d *draft, op *kvOp) (what string, err error) {
	switch {
	case d.there:
		return "", t.showKey(d)
	case op.Verb == verbGet:
		return fmt.Sprintf("key %q doesn't exist", op.Key), nil
	}
	t.results = append(t.results, txnResult{&entry{Key: op.Key, Flags: op.Flags, Session: op.Session,
		ModifyIndex: op.Index}})
	return "", nil
}

// showTree shows all keys with a prefix, in order, with their values.
func (t *transaction) showTree(prefix string) error {
	var keys []string
	for key, d := range t.drafts {
		if d.there && strings.HasPrefix(key, prefix) {
			keys = append(keys, key)
		}
	}
	slices.Sort(keys)
	for _, key := range keys {
		if err := t.showKey(t.drafts[key]); err != nil {
			return err
		}
	}
	return nil
}

// showKey shows a key with its value.
func (t *transaction) showKey(d *draft) error {
	if d.written {
		return t.show(d, d.entry)
	}
	e, err := t.door.entry(t.call, d.was)
	if err != nil {
		return err
	}
	return t.show(d, e)
}

// showWithout shows a key without its value.
func (t *transaction) showWithout(d *draft) (err error) {
	e := d.entry
	if !d.written { // its flags are with the value
		if e, err = t.door.entry(t.call, d.was); err != nil {
			return err
		}
	}
	e.Value = nil
	return t.show(d, e)
}

func (t *transaction) show(d *draft, e entry) error {
	t.results = append(t.results, txnResult{&e})
	t.size += len(e.Key) + len(e.Value)
	if d.written {
		t.fresh = append(t.fresh, shown{&e, d})
	}
	return t.grown("of the transaction", t.size)
}
