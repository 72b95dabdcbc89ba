package wire

import (
	"errors"
	"fmt"

	"github.com/leasehold/leasehold"
	"github.com/leasehold/leasehold/internal/core"
	"github.com/leasehold/leasehold/internal/core/command"
)

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
	row := command.VerbOf(c)
	w := codec{writing: true, b: b}
	body := w.open(uint64(row.Number))
	(*message)(&w).command(c)
	if w.fault != nil {
		return nil, fmt.Errorf("%s cannot be written: %s: %s", row.Name, w.fault.field, w.fault.reason)
	}
	if size := len(w.b) - body; size > maxCommand {
		return nil, fmt.Errorf("%s cannot be written: it has %d bytes, and at most %d are allowed", row.Name, size,
			maxCommand)
	}
	w.shut(body)
	return w.b, nil
}

// DecodeCommand reads what AppendCommand wrote, and nothing that goes beyond it. The
// command shares no memory with b.
func DecodeCommand(b []byte) (core.Command, error) {
	c := codec{b: b}
	command, err := c.nextCommand()
	if err != nil {
		return nil, err
	}
	if c.left() > 0 {
		return nil, malformed("command is malformed: %d bytes follow it", c.left())
	}
	return command, nil
}

// AppendOrigin appends where the command that is appended next came from. Nothing is
// written of an origin that says nothing.
func AppendOrigin(b []byte, o leasehold.Origin) []byte {
	if o == (leasehold.Origin{}) {
		return b
	}
	c := codec{writing: true, b: b}
	body := c.open(kindOrigin)
	(*message)(&c).origin(&o)
	c.shut(body)
	return c.b
}

// nextCommand reads one command; others may follow it.
func (c *codec) nextCommand() (core.Command, error) {
	kind, body, err := c.nextFrame()
	switch {
	case err != nil:
		return nil, err
	case kind == kindOrigin || kind == kindAsker:
		return nil, malformed("command is malformed before byte %d: an %s stands where a command should", c.at,
			kindName(kind))
	}
	row := verbOf(kind)
	command, m := row.New(), (*message)(&body)
	m.command(command)
	m.end()
	c.fields = max(c.fields, body.needed)
	if body.fault != nil {
		return nil, body.refused(row.Name)
	}
	return command, nil
}

// nextOrigin reads the origin of the next command, if it has one.
func (c *codec) nextOrigin() (o leasehold.Origin, err error) {
	if c.left() == 0 || c.b[c.at] != kindOrigin {
		return o, nil
	}
	_, body, err := c.nextFrame()
	if err != nil {
		return o, err
	}
	m := (*message)(&body)
	m.origin(&o)
	m.end()
	if body.fault == nil && o == (leasehold.Origin{}) {
		body.fail("door", "it says nothing, and then it is left out")
	}
	if body.fault != nil {
		return o, body.refused(kindName(kindOrigin))
	}
	return o, nil
}

// nextFrame reads the head of a command or an origin, and returns its body. A kind that is not
// known ends it, and nothing behind it is read: what cannot be carried out must not be skipped,
// or this server would come to another state than the others.
func (c *codec) nextFrame() (kind uint64, body codec, err error) {
	c.unsigned("kind", &kind)
	size := c.length("length")
	switch {
	case c.fault != nil:
		return 0, body, c.refused("command")
	case kindName(kind) == "":
		return 0, body, unknown("command is of kind %d, and verbs up to %d are known here", kind, len(command.Verbs()))
	case size > maxCommand:
		return 0, body, malformed("%s is malformed: it has %d bytes, and at most %d are allowed", kindName(kind), size,
			maxCommand)
	case c.level != 0 && kindLevel(kind) > c.level:
		return 0, body, malformed("%s is malformed: there is none at feature level %d", kindName(kind), c.level)
	}
	c.needed = max(c.needed, kindLevel(kind))
	body = codec{b: c.b[c.at : c.at+size], base: c.base + int64(c.at)}
	c.at += size
	return kind, body, nil
}

func (m *message) origin(o *leasehold.Origin) {
	m.text(1, "actor", &o.Actor)
	m.text(2, "address", &o.Address)
	m.text(3, "door", &o.Door)
}
