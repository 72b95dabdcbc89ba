package wire

import (
	"errors"
	"fmt"

	"github.com/leasehold/leasehold"
	"github.com/leasehold/leasehold/internal/core"
	"github.com/leasehold/leasehold/internal/core/command"
	"github.com/leasehold/leasehold/internal/core/tagged"
)

// A codec visits what is in entries and snapshots.
type codec struct {
	tagged.Codec
	fields uint64 // the level that the fields of commands which were read came with
}

func reading(b []byte) codec { return codec{Codec: tagged.Codec{B: b}} }
func writing(b []byte) codec { return codec{Codec: tagged.Codec{Writing: true, B: b}} }

// The two ways in which bytes are refused, to compare with errors.Is.
var (
	ErrUnknown   = tagged.ErrUnknown
	ErrMalformed = tagged.ErrMalformed
)

func malformed(format string, args ...any) error { return tagged.Malformed(format, args...) }
func unknown(format string, args ...any) error   { return tagged.Unknown(format, args...) }

// A command is a frame: the number of its verb, the length of its body, and a message with its fields. Verbs count up
// from 1, and what may stand before a command is numbered so that no verb ever is.
const (
	kindOrigin = 0   // whose the next command is
	kindAsker  = 127 // who was proven to ask for it
)

// kindName names a kind of frame for messages; empty: it is not known here.
func kindName(kind uint64) string {
	switch kind {
	case kindOrigin:
		return "origin"
	case kindAsker:
		return "asker"
	}
	if row := verbOf(kind); row != nil {
		return row.Name
	}
	return ""
}

// verbOf returns the row of a verb; nil for a kind that is none.
func verbOf(kind uint64) *command.Verb {
	if kind > uint64(len(command.Verbs())) {
		return nil
	}
	return command.VerbNumbered(command.Number(kind))
}

// kindLevel is the feature level that a kind of frame came with.
func kindLevel(kind uint64) uint64 {
	if row := verbOf(kind); row != nil {
		return uint64(row.Since)
	}
	return levelFirst
}

// maxCommand bounds one command. The largest that the core accepts, a transaction, is
// smaller.
const maxCommand = 1 << 20

// AppendCommand appends one command as it is in an entry. It writes whatever the command's own Validate accepts, and
// nothing that DecodeCommand would refuse.
func AppendCommand(b []byte, c core.Command) ([]byte, error) {
	if c == nil {
		return nil, errors.New("no command cannot be written")
	}
	w := writing(b)
	if err := w.write(command.VerbOf(c), c); err != nil {
		return nil, err
	}
	return w.B, nil
}

func (c *codec) write(row *command.Verb, asked core.Command) error {
	body := c.Open(uint64(row.Number))
	command.Describe(asked, c.Message())
	if c.Fault != nil {
		return fmt.Errorf("%s cannot be written: %s: %s", row.Name, c.Fault.Field, c.Fault.Reason)
	}
	if size := len(c.B) - body; size > maxCommand {
		return fmt.Errorf("%s cannot be written: it has %d bytes, and at most %d are allowed", row.Name, size,
			maxCommand)
	}
	c.Shut(body)
	return nil
}

// DecodeCommand reads what AppendCommand wrote, and nothing that goes beyond it. The
// command shares no memory with b.
func DecodeCommand(b []byte) (core.Command, error) {
	c := reading(b)
	command, err := c.nextCommand()
	if err != nil {
		return nil, err
	}
	if c.Left() > 0 {
		return nil, malformed("command is malformed: %d bytes follow it", c.Left())
	}
	return command, nil
}

// AppendOrigin appends where the command that is appended next came from. Nothing is
// written of an origin that says nothing.
func AppendOrigin(b []byte, o leasehold.Origin) []byte {
	if o == (leasehold.Origin{}) {
		return b
	}
	c := writing(b)
	body := c.Open(kindOrigin)
	originFields(&o, c.Message())
	c.Shut(body)
	return c.B
}

// nextCommand reads one command; others may follow it.
func (c *codec) nextCommand() (core.Command, error) {
	kind, body, err := c.nextFrame()
	switch {
	case err != nil:
		return nil, err
	case kind == kindOrigin || kind == kindAsker:
		return nil, malformed("command is malformed before byte %d: an %s stands where a command should", c.At,
			kindName(kind))
	}
	row := verbOf(kind)
	read, m := row.New(), body.Message()
	command.Describe(read, m)
	m.End()
	c.fields = max(c.fields, body.Needed)
	if body.Fault != nil {
		return nil, body.Refused(row.Name)
	}
	return read, nil
}

// nextOrigin reads the origin of the next command, if it has one.
func (c *codec) nextOrigin() (o leasehold.Origin, err error) {
	if c.Left() == 0 || c.B[c.At] != kindOrigin {
		return o, nil
	}
	_, body, err := c.nextFrame()
	if err != nil {
		return o, err
	}
	m := body.Message()
	originFields(&o, m)
	m.End()
	if body.Fault == nil && o == (leasehold.Origin{}) {
		body.Fail("door", "it says nothing, and then it is left out")
	}
	if body.Fault != nil {
		return o, body.Refused(kindName(kindOrigin))
	}
	return o, nil
}

// nextFrame reads the head of a command or an origin, and returns its body. A kind that is not
// known ends it, and nothing behind it is read: what cannot be carried out must not be skipped,
// or this server would come to another state than the others.
func (c *codec) nextFrame() (kind uint64, body codec, err error) {
	c.Unsigned("kind", &kind)
	size := c.Length("length")
	switch {
	case c.Fault != nil:
		return 0, body, c.Refused("command")
	case kindName(kind) == "":
		return 0, body, unknown("command is of kind %d, and verbs up to %d are known here", kind, len(command.Verbs()))
	case size > maxCommand:
		return 0, body, malformed("%s is malformed: it has %d bytes, and at most %d are allowed", kindName(kind), size,
			maxCommand)
	case c.Level != 0 && kindLevel(kind) > c.Level:
		return 0, body, malformed("%s is malformed: there is none at feature level %d", kindName(kind), c.Level)
	}
	c.Needed = max(c.Needed, kindLevel(kind))
	body = codec{Codec: tagged.Codec{B: c.B[c.At : c.At+size], Base: c.Base + int64(c.At)}}
	c.At += size
	return kind, body, nil
}

func originFields(o *leasehold.Origin, m *tagged.Message) {
	m.Text(1, "actor", &o.Actor)
	m.Text(2, "address", &o.Address)
	m.Text(3, "door", &o.Door)
}
