package consul

import (
	"errors"
	"net/http"
	"strings"

	"github.com/leasehold/leasehold"
	"github.com/leasehold/leasehold/internal/core"
	"github.com/leasehold/leasehold/internal/door"
)

// A transaction of Consul does its operations one after the other, each on what those before it left, and nothing if
// one of them fails. One of ours compares first, and writes each record once. So the operations are tried out on what
// was read, and what comes of that is put in one command which compares that all of it is still so. If it is not,
// others were faster, and it is tried out anew.

// A txnResult is what one operation shows.
type txnResult struct{ KV *entry }

// A txnError is why an operation failed.
type txnError struct {
	OpIndex int
	What    string
}

// A txnAnswer is what a transaction came to: results, or errors.
type txnAnswer struct {
	Results []txnResult
	Errors  []txnError
}

// transact does a transaction.
func (c *call) transact() error {
	ops, err := c.readTxn()
	if err != nil {
		return err
	}
	t := &transaction{call: c, ops: ops, kept: map[int]content{}}
	for i := range ops {
		t.changes = t.changes || writes[ops[i].Verb]
	}
	for i := range ops {
		if what := ops[i].wrong(); what != "" {
			t.failures = append(t.failures, txnError{i, what})
		}
	}
	if len(t.failures) == 0 {
		if err := t.run(); err != nil {
			return err
		}
	}
	return t.answer()
}

// answer tells what the transaction came to. One that only reads is answered like other reads, but in the body.
func (t *transaction) answer() error {
	status, answer := http.StatusOK, txnAnswer{Results: t.results}
	if len(t.failures) > 0 {
		status, answer = http.StatusConflict, txnAnswer{Errors: t.failures}
	}
	if t.changes {
		return t.sendAs(status, answer)
	}
	t.w.Header().Set("X-Consul-Knownleader", "true")
	t.w.Header().Set("X-Consul-Lastcontact", "0")
	return t.sendAs(status, readAnswer{answer, 1, 0, true, "", false, 0, false})
}

// A readAnswer is a txnAnswer with what Consul says of reads.
type readAnswer struct {
	txnAnswer
	Index                 uint64
	LastContact           int
	KnownLeader           bool
	ConsistencyLevel      string
	NotModified           bool
	Backend               int
	ResultsFilteredByACLs bool
}

// A transaction is one on its way.
type transaction struct {
	*call
	ops     []kvOp
	changes bool
	kept    map[int]content // the values of operations
	tries   int             // for a lock that nothing was in the way of

	// What was read.
	now      leasehold.Revision
	drafts   map[string]*draft
	trees    map[string][]*leasehold.Record // by prefix
	sessions map[string]*session

	// What has come of it so far.
	gone     []string // prefixes of which all is deleted
	results  []txnResult
	size     int     // bytes of keys and values that they show
	fresh    []shown // results that show what the transaction writes
	failures []txnError
}

// A shown is a result that shows a key as the transaction leaves it.
type shown struct {
	entry *entry
	draft *draft
}

// A draft is a key as the transaction leaves it.
type draft struct {
	was     *leasehold.Record // nil: it was not there
	entry   entry
	there   bool
	written bool // by the operation op; or deleted
	op      int
	lock    change
	by      *session // that takes the lock
}

// A change is what becomes of a lock.
type change uint8

const (
	keeps change = iota
	takes
	givesUp
)

func newDraft(r *leasehold.Record) *draft {
	d := &draft{was: r, there: r != nil}
	if r != nil {
		d.entry = entryOf(r)
	}
	return d
}

// run tries until nobody else was faster.
func (t *transaction) run() error {
	for range door.MaxLooks {
		if done, err := t.step(); done || err != nil {
			return err
		}
	}
	return busy("what the transaction is about")
}

// step tries the transaction out, and does it.
func (t *transaction) step() (done bool, err error) {
	t.results, t.size, t.fresh, t.failures, t.gone = []txnResult{}, 0, nil, nil, nil
	if done, err := t.read(); !done || err != nil {
		return false, err
	}
	for i := range t.ops {
		what, err := t.try(i)
		if errors.Is(err, errReplaced) {
			return false, nil
		}
		if err != nil {
			return false, err
		}
		if what != "" { // the others are tried all the same, so that all that fail are told
			t.failures = append(t.failures, txnError{i, what})
		}
	}
	switch {
	case len(t.failures) > 0:
		return true, t.failLocks(nil)
	case !t.changes:
		return true, nil
	}
	return t.commit()
}

// read reads all that the operations are about, as of one revision. It reports whether it could.
func (t *transaction) read() (done bool, err error) {
	t.drafts, t.trees, t.sessions = map[string]*draft{}, map[string][]*leasehold.Record{}, map[string]*session{}
	err = t.look(func(v core.View) {
		t.now = v.History(t.namespace()).Revision
		for i := range t.ops {
			op := &t.ops[i]
			if op.Verb != verbGetTree && op.Verb != verbDeleteTree {
				record, _ := v.Record(t.namespace(), op.Key, 0)
				t.drafts[op.Key] = newDraft(record)
			}
			if op.Verb != verbLock || op.Session == "" {
				continue
			}
			if found, missing := v.Session(t.namespace(), op.Session); missing == nil {
				t.sessions[op.Session] = new(sessionOf(found))
			}
		}
	})
	for i := 0; i < len(t.ops) && err == nil; i++ {
		if done, err = t.readTree(i); !done {
			return false, err
		}
		if err = t.mayRead(&t.ops[i]); err != nil {
			return false, err
		}
	}
	return err == nil, err
}

// mayRead returns an error if an operation is about a key that the asker may not read. A look at several keys hides
// such a key, and to delete it would be to do nothing. Whether it may be set, the command decides.
func (t *transaction) mayRead(op *kvOp) error {
	d := t.drafts[op.Key]
	if t.proof == nil || d == nil || d.was != nil || op.Verb == verbSet {
		return nil
	}
	_, _, err := t.record(op.Key)
	return err
}

// readTree reads the keys with the prefix that an operation is about, if it has to know them.
func (t *transaction) readTree(i int) (done bool, err error) {
	op := &t.ops[i]
	_, known := t.trees[op.Key]
	if known || op.Verb != verbGetTree && (op.Verb != verbDeleteTree || !t.overlaps(i)) {
		return true, nil
	}
	records, at, err := t.treeOnce(core.RecordQuery{From: op.Key, To: core.PrefixEnd(op.Key), Revision: t.now})
	switch {
	case errors.Is(err, leasehold.ErrLost), err == nil && at != t.now:
		return false, nil // it is gone from history: all is read anew
	case err != nil:
		return false, err
	case t.changes && len(records) > maxPinned:
		return false, tooWide()
	}
	t.trees[op.Key] = records
	for _, r := range records {
		if t.drafts[r.Path] == nil {
			t.drafts[r.Path] = newDraft(r)
		}
	}
	return true, nil
}

// maxPinned is how many keys a transaction that writes may read by their prefixes: each is compared.
const maxPinned = 96

func tooWide() error {
	return door.Invalidly(http.StatusRequestEntityTooLarge, "a transaction that writes cannot also read more than %d "+
		"keys by their prefixes, nor delete them if it names some of them: do it in parts", maxPinned)
}

// overlaps reports whether another operation writes what an operation deletes by its prefix. One command of ours
// cannot do both, so that the keys are deleted one by one then.
func (t *transaction) overlaps(i int) bool {
	prefix := t.ops[i].Key
	for j := range t.ops {
		op := &t.ops[j]
		within := strings.HasPrefix(op.Key, prefix) || op.Verb == verbDeleteTree && strings.HasPrefix(prefix, op.Key)
		if j != i && writes[op.Verb] && within {
			return true
		}
	}
	return false
}
