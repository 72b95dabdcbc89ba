package wire

import (
	"github.com/leasehold/leasehold"
	"github.com/leasehold/leasehold/internal/core"
	"github.com/leasehold/leasehold/internal/core/access"
	"github.com/leasehold/leasehold/internal/core/command"
)

// A leader that encoded a command has it already when the log gives it back, and need not decode it. That is only
// right if decoding gives the very same value, since the others decode it.

// Encode is AppendCommand that also reports whether decoding gives a value that is equal to the command, in every field
// and to reflect.DeepEqual: a list that is empty comes back as nil, for example. It knows this of those commands only
// that are frequent.
func Encode(b []byte, c core.Command) (encoded []byte, same bool, err error) {
	row := command.VerbOf(c)
	w := writing(b)
	if err := w.write(row, c); err != nil {
		return nil, false, err
	}
	return w.B, row.Often && !w.Loose, nil
}

// DecodeCall reads a command behind its origin and asker, as they are in an entry. Who was met before is not decoded
// again.
func DecodeCall(known *Askers, b []byte) (core.Command, leasehold.Origin, *access.Asker, error) {
	c := reading(b)
	origin, err := c.nextOrigin()
	var asker *access.Asker
	if err == nil {
		asker, err = c.nextAsker(known)
	}
	var command core.Command
	if err == nil {
		command, err = c.nextCommand()
	}
	if err == nil && c.Left() > 0 {
		err = malformed("command is malformed: %d bytes follow it", c.Left())
	}
	return command, origin, asker, err
}

// AskerOf reads who asks for a command, and nothing else of it: nil if nobody was proven to.
func AskerOf(known *Askers, b []byte) (*access.Asker, error) {
	c := reading(b)
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
