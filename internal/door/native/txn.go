package native

import (
	"errors"
	"reflect"

	v1 "github.com/leasehold/leasehold/api/v1"
	"github.com/leasehold/leasehold/internal/core"
	"github.com/leasehold/leasehold/internal/door/native/encode"
)

func (c *call) txn(command *core.Txn, answer core.Answer) error {
	ops := command.Then
	if answer.Txn != nil && !answer.Txn.Succeeded {
		ops = command.Else
	}
	if answer.Txn == nil || len(answer.Txn.Results) != len(ops) {
		return errors.New("the engine answered without a result for each operation")
	}
	if c.answer != nil {
		c.answer.Shrink(answer.Txn.Shown())
	}
	c.send(func(b *encode.Buffer) { b.Txn(c.namespace, answer.Txn, ops) })
	return nil
}

func (c *call) toTxn(r *v1.TxnRequest) (*core.Txn, error) {
	command := &core.Txn{Namespace: c.namespace, Request: c.once}
	for i := range r.If {
		compare, err := toCompare(&r.If[i])
		if err != nil {
			return nil, within("if", i, err)
		}
		command.If = append(command.If, compare)
	}
	var err error
	if command.Then, err = c.toOps("then", r.Then); err != nil {
		return nil, err
	}
	if command.Else, err = c.toOps("else", r.Else); err != nil {
		return nil, err
	}
	return command, c.hold(command.MostShown())
}

// within says in which part of a transaction something is wrong.
func within(list string, i int, err error) error {
	return invalid("%s %d: %v", list, i+1, err)
}

// The words of comparisons.
var (
	recordFields = map[string]core.What{
		"create_revision": core.RecordCreate, "mod_revision": core.RecordMod, "version": core.RecordVersion,
		"value": core.RecordValue, "session": core.RecordSession,
	}
	leaseFields = map[string]core.What{"id": core.LeaseID, "token": core.LeaseToken, "floor": core.LeaseFloor}
	relations   = map[string]core.Relation{"": core.Equal, "=": core.Equal, "!=": core.NotEqual, "<": core.Less,
		">": core.Greater}
	doings = map[string]core.Do{"put": core.Put, "delete": core.Delete, "get": core.Get,
		"acquire": core.AcquireLease, "release": core.ReleaseLease}
)

func toCompare(r *v1.Compare) (core.Compare, error) {
	c := core.Compare{Path: r.Record + r.Resource, Is: relations[r.Is], Number: r.Number, Text: r.Text}
	fields, what := recordFields, "create_revision, mod_revision, version, value and session"
	if r.Resource != "" {
		fields, what = leaseFields, "id, token and floor"
	}
	c.What = fields[r.Field]
	if c.What == core.RecordValue {
		c.Text = string(r.Value)
	}
	switch {
	case (r.Record == "") == (r.Resource == ""):
		return c, invalid("a comparison names a record or a resource")
	case c.What == 0:
		return c, invalid("field %s is unknown; known are %s", brief(r.Field), what)
	case c.Is == 0:
		return c, invalid(`is %s is unknown; known are =, !=, < and >`, brief(r.Is))
	case c.What == core.RecordValue && r.Text != "", c.What != core.RecordValue && len(r.Value) > 0:
		return c, invalid("value, in base64, is for the field value; text for session and id")
	}
	return c, firstError(checkPath("path", c.Path), checkText("text", r.Text))
}

func (c *call) toOps(list string, ops []v1.Op) (commands []core.Op, err error) {
	for i := range ops {
		op, err := c.toOp(&ops[i])
		if err != nil {
			return nil, within(list, i, err)
		}
		commands = append(commands, op)
	}
	return commands, nil
}

func (c *call) toOp(r *v1.Op) (core.Op, error) {
	switch doings[r.Do] {
	case core.AcquireLease, core.ReleaseLease:
		return c.toLeaseOp(r)
	}
	if r.Acquire != nil || r.ID != "" {
		return core.Op{}, invalid("acquire is to acquire with, id to release")
	}
	return toRecordOp(r)
}

// toLeaseOp reads an operation on a lease.
func (c *call) toLeaseOp(r *v1.Op) (core.Op, error) {
	if rest := (v1.Op{Do: r.Do, Acquire: r.Acquire, ID: r.ID}); !reflect.DeepEqual(rest, *r) {
		return core.Op{}, invalid("to acquire takes acquire, and to release takes id: leave out the rest")
	}
	o := core.Op{Do: doings[r.Do], ID: r.ID}
	if o.Do == core.ReleaseLease {
		return o, checkName("id", r.ID)
	}
	if r.Acquire == nil {
		return o, invalid("to acquire takes acquire, with a resource and a holder")
	}
	var err error
	if o.Acquire, err = c.toAcquire(r.Acquire); err == nil {
		o.Acquire.Request = core.Request{} // the name is that of the transaction
	}
	return o, err
}

func toRecordOp(r *v1.Op) (core.Op, error) {
	o := core.Op{
		Do: doings[r.Do], Path: r.Path, Range: r.Path == "", Value: string(r.Value), Session: r.Session,
		Most: r.Limit, KeysOnly: r.Keys, Count: r.Count,
	}
	if r.Text != "" {
		o.Value = r.Text
	}
	switch {
	case r.Text != "" && len(r.Value) > 0:
		return o, invalid("value, in base64, and text are both given: leave one of them out")
	case r.Text != "" && o.Do != core.Put:
		return o, invalid("text is to put: leave it out")
	case o.Do == 0:
		return o, invalid("do %s is unknown; known are put, delete, get, acquire and release", brief(r.Do))
	case r.Path != "" && r.Prefix+r.From+r.To != "":
		return o, invalid("an operation is on a path, a prefix or a range: give one")
	case r.Path == "" && r.Prefix+r.From+r.To == "":
		return o, invalid("an operation needs a path, a prefix, or from and to")
	case r.Path != "":
		return o, firstError(checkPath("path", r.Path), checkText("session", r.Session))
	}
	var err error
	o.Path, o.To, err = span(r.Prefix, r.From, r.To)
	return o, firstError(err, checkText("session", r.Session))
}
