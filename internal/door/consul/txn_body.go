package consul

import (
	"errors"
	"fmt"
	"io"
	"net/http"

	"github.com/leasehold/leasehold/internal/door"
)

// A txnOp is one operation of a transaction, as it is sent. What is not about a key is for Consul's catalog.
type txnOp struct {
	KV                   *kvOp
	Node, Service, Check *ignored
}

// An ignored is whatever it may be.
type ignored struct{}

// UnmarshalJSON takes everything.
func (*ignored) UnmarshalJSON([]byte) error { return nil }

// A kvOp is an operation on a key.
type kvOp struct {
	Verb                 string
	Key                  string
	Value                []byte
	Flags                uint64
	Index                uint64
	Session              string
	Namespace, Partition string
}

const (
	maxOps = 128       // operations of a transaction, as in Consul
	maxTxn = 512 << 10 // bytes of its body, as in Consul
)

// The verbs.
const (
	verbSet            = "set"
	verbCAS            = "cas"
	verbLock           = "lock"
	verbUnlock         = "unlock"
	verbGet            = "get"
	verbGetOrEmpty     = "get-or-empty"
	verbGetTree        = "get-tree"
	verbCheckIndex     = "check-index"
	verbCheckSession   = "check-session"
	verbCheckNotExists = "check-not-exists"
	verbDelete         = "delete"
	verbDeleteTree     = "delete-tree"
	verbDeleteCAS      = "delete-cas"
)

// writes says of each verb whether it changes something.
var writes = map[string]bool{
	verbSet: true, verbCAS: true, verbLock: true, verbUnlock: true, verbDelete: true, verbDeleteTree: true,
	verbDeleteCAS: true, verbGet: false, verbGetOrEmpty: false, verbGetTree: false, verbCheckIndex: false,
	verbCheckSession: false, verbCheckNotExists: false,
}

// readTxn reads a transaction. Operations on nothing are left out, as Consul does.
func (c *call) readTxn() (ops []kvOp, err error) {
	var sent []txnOp
	err = c.readJSON(&sent, maxTxn, true)
	switch {
	case errors.Is(err, io.EOF):
		return nil, badRequest("Failed to parse body: EOF")
	case err != nil:
		return nil, err
	case len(sent) > maxOps:
		return nil, door.Invalidly(http.StatusRequestEntityTooLarge,
			"Transaction contains too many operations (%d > %d)", len(sent), maxOps)
	}
	for i, op := range sent {
		switch {
		case op.KV != nil:
			if err := op.KV.check(); err != nil {
				return nil, fmt.Errorf("operation %d: %w", i, err)
			}
			ops = append(ops, *op.KV)
		case op.Node != nil || op.Service != nil || op.Check != nil:
			return nil, badRequest("operation %d is not about a key: Leasehold has no catalog to change", i)
		}
	}
	return ops, nil
}

// wrong says in Consul's words what is wrong with an operation whatever is there.
func (o *kvOp) wrong() (what string) {
	_, known := writes[o.Verb]
	switch {
	case o.Key == "" && o.Verb != verbDeleteTree:
		return "Must provide key"
	case !known:
		return "unknown KV operation: " + o.Verb
	}
	return ""
}

// check says for what an operation is refused before Consul would look at it.
func (o *kvOp) check() error {
	switch {
	case o.Namespace != "" && o.Namespace != "default", o.Partition != "" && o.Partition != "default":
		return badRequest("Namespaces and partitions are a Consul Enterprise feature")
	case len(o.Value) > maxValue:
		return door.Invalidly(http.StatusRequestEntityTooLarge, "Value for key %q is too large (%d > %d bytes)", o.Key,
			len(o.Value), maxValue)
	}
	return checkKey(o.Key)
}
