package v1

import "context"

// MaxTxnBody is the largest body of a transaction, in bytes. It is larger than MaxBody because
// values are in base64.
const MaxTxnBody = 1280 << 10

// A TxnRequest compares, then carries out one of two lists of operations, all at one revision or
// none.
type TxnRequest struct {
	If   []Compare `json:"if,omitempty"` // all must be true
	Then []Op      `json:"then,omitempty"`
	Else []Op      `json:"else,omitempty"`
}

// A Compare compares one field of a record, or of the lease on a resource. A record that does
// not exist has revisions and version 0, session "", and no value; a resource that nobody holds has token 0 and id "".
type Compare struct {
	Record   string `json:"record,omitempty"`   // a path; or
	Resource string `json:"resource,omitempty"` // a path
	// Field is create_revision, mod_revision, version, value or session of a record; or id, token
	// or floor of a resource.
	Field  string `json:"field"`
	Is     string `json:"is,omitempty"`     // "=", the default, "!=", "<" or ">"
	Number uint64 `json:"number,omitempty"` // for revisions, version, token and floor
	Text   string `json:"text,omitempty"`   // for session and id
	Value  []byte `json:"value,omitempty"`  // for value, in base64
}

// An Op is one operation of a transaction: on a path, on all paths with a prefix, or on a range.
// A put takes a path.
type Op struct {
	Do      string `json:"do"` // put, delete, get; acquire, release
	Path    string `json:"path,omitempty"`
	Prefix  string `json:"prefix,omitempty"`
	From    string `json:"from,omitempty"`
	To      string `json:"to,omitempty"`
	Value   []byte `json:"value,omitempty"` // to put, in base64
	Text    string `json:"text,omitempty"`  // to put, instead of a value: text as it is
	Session string `json:"session,omitempty"`
	Limit   int    `json:"limit,omitempty"` // to get
	Keys    bool   `json:"keys,omitempty"`  // to get: without values
	Count   bool   `json:"count,omitempty"` // to get: also return how many there are

	Acquire *AcquireRequest `json:"acquire,omitempty"` // to acquire, without a wait
	ID      string          `json:"id,omitempty"`      // to release
}

// A Txn is the outcome of a transaction.
type Txn struct {
	Succeeded bool        `json:"succeeded"` // then was carried out; if false, else was
	Revision  uint64      `json:"revision"`
	Results   []TxnResult `json:"results"` // one for each operation
}

// A TxnResult is the outcome of one operation.
type TxnResult struct {
	Record  *Record  `json:"record,omitempty"`  // of a put
	Deleted *int     `json:"deleted,omitempty"` // of a delete
	Items   []Record `json:"items,omitempty"`   // of a get
	More    bool     `json:"more,omitempty"`    // of a get: more follow
	Count   int      `json:"count,omitempty"`   // of a get, if asked for
	Lease   *Lease   `json:"lease,omitempty"`   // of an acquire
}

// Txn carries out a transaction.
func (c *Caller) Txn(ctx context.Context, r TxnRequest, options ...Option) (Txn, error) {
	return send[Txn](ctx, c, request{method: "POST", path: "/v1/txn", body: r, options: options})
}
