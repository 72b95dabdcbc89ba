package command

import (
	"github.com/leasehold/leasehold"
	"github.com/leasehold/leasehold/internal/core/record"
)

// A TxnAnswer is what a transaction came to.
type TxnAnswer struct {
	Succeeded bool               // Then was done; else Else was
	Revision  leasehold.Revision // of the namespace afterwards
	Results   []TxnResult        // one for each operation
}

// Shown returns how many bytes of names and values the gets show.
func (a *TxnAnswer) Shown() (n int) {
	for i := range a.Results {
		r := &a.Results[i]
		if r.Page != nil {
			n += r.Page.Bytes()
		}
		if r.Txn != nil {
			n += r.Txn.Shown()
		}
	}
	return n
}

// A TxnResult is what one operation came to.
type TxnResult struct {
	Record  *leasehold.Record // of a put: its revisions, version and token, and not what the caller said
	Deleted int
	Page    *record.Page      // of a get
	Lease   *leasehold.Lease  // of an acquire, or of a put with a link
	Also    []leasehold.Lease // of an acquire of several resources

	Waiter *leasehold.Waiter   // of a put with a link whose lease has to wait
	Before []*leasehold.Record // of a put or a delete that asked for it: what was there
	Txn    *TxnAnswer          // of a nested transaction, without a revision
}

// An Answer is what one command came to: Err, or one of the others.
type Answer struct {
	Lease      *leasehold.Lease
	Session    *leasehold.Session
	Also       []leasehold.Lease     // of an Acquire of several resources: the leases after the first
	Waiter     *leasehold.Waiter     // an Acquire that was put in the queue
	Definition *leasehold.Definition // a Define
	Record     *leasehold.Record     // a PutRecord, without the value, which the caller has; beside the claim of a Link
	Txn        *TxnAnswer            // a Txn, or a DeleteRecord with its one result
	Access     *AccessAnswer         // a ChangeAccess
	Err        *leasehold.Error
}

// An AccessAnswer is what a change of access came to.
type AccessAnswer struct {
	Revision uint64 // of the policy afterwards; 0: there is none
}
