package wire

import (
	"github.com/leasehold/leasehold"
	"github.com/leasehold/leasehold/internal/core"
	"github.com/leasehold/leasehold/internal/core/access"
)

// A leader that encoded a command has it already when the log gives it back, and need not decode it. That is only
// right if decoding gives the very same value, since the others decode it.

// Reads reports whether decoding what AppendCommand writes gives a value that is equal to the command, in every
// field and to reflect.DeepEqual. A list that is empty comes back as nil, for example. It knows this of those commands
// only that are frequent.
func Reads(command core.Command) bool {
	switch v := command.(type) {
	case *core.Renew:
		return v.Note == nil // what is behind a pointer may change
	case *core.RenewSession, *core.CloseSession, *core.Release, *core.Break, *core.DeleteRecord:
		return true
	case *core.OpenSession:
		return !isEmpty(v.Labels)
	case *core.Acquire:
		return !isEmpty(v.Labels) && !isEmpty(v.Also) && !v.Selects()
	case *core.PutRecord:
		return v.Large == nil && v.Link == nil
	case *core.Txn:
		return readsTxn(v)
	}
	return false
}

// readsTxn is Reads for a transaction, or one that is nested in another. Doors make the links of its puts for it
// alone, and never change them.
func readsTxn(v *core.Txn) bool {
	if isEmpty(v.If) || isEmpty(v.Then) || isEmpty(v.Else) {
		return false
	}
	for _, list := range [2][]core.Op{v.Then, v.Else} {
		for i := range list {
			o := &list[i]
			if o.Large != nil || o.Acquire != nil || o.Link != nil && isEmpty(o.Link.Labels) ||
				o.Txn != nil && !readsTxn(o.Txn) {
				return false
			}
		}
	}
	return true
}

func isEmpty[S ~[]T, T any](s S) bool { return s != nil && len(s) == 0 }

// DecodeCall reads a command behind its origin and asker, as they are in an entry. Who was met before is not decoded
// again.
func DecodeCall(known *Askers, b []byte) (core.Command, leasehold.Origin, *access.Asker, error) {
	c := codec{b: b}
	origin, err := c.nextOrigin()
	var asker *access.Asker
	if err == nil {
		asker, err = c.nextAsker(known)
	}
	var command core.Command
	if err == nil {
		command, err = c.nextCommand()
	}
	if err == nil && c.left() > 0 {
		err = malformed("command is malformed: %d bytes follow it", c.left())
	}
	return command, origin, asker, err
}

// AskerOf reads who asks for a command, and nothing else of it: nil if nobody was proven to.
func AskerOf(known *Askers, b []byte) (*access.Asker, error) {
	c := codec{b: b}
	if len(b) > 0 && b[0] == kindOrigin {
		if _, _, err := c.nextFrame(); err != nil {
			return nil, err
		}
	}
	return c.nextAsker(known)
}

// Add puts a command behind those that the entry has.
func (e *Entry) Add(command core.Command, origin leasehold.Origin, asker *access.Asker) {
	i := len(e.Commands)
	e.Commands = append(e.Commands, command)
	if e.Origins != nil {
		e.Origins = append(e.Origins, leasehold.Origin{})
	}
	if e.Askers != nil {
		e.Askers = append(e.Askers, nil)
	}
	if origin != (leasehold.Origin{}) {
		e.setOrigin(i, origin)
	}
	if asker != nil {
		e.setAsker(i, asker)
	}
}
