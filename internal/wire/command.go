package wire

import (
	"fmt"

	"github.com/leasehold/leasehold"
	"github.com/leasehold/leasehold/internal/core"
)

// A command has a kind and a body. Where a field was added to a command, the command got a
// second kind, and the first is still written when the new field is empty: an old server reads
// all that it could always do, and no byte of an old log changes its meaning.

// maxCommand bounds one command. The largest that the core accepts, a transaction, is
// smaller.
const maxCommand = 1 << 20

// AppendCommand appends one command as it is in an entry: its kind, the length of its body, and
// the body. It writes whatever the command's own Validate accepts, and nothing that
// DecodeCommand would refuse.
func AppendCommand(b []byte, command core.Command) ([]byte, error) {
	kind := kindOf(command)
	if kind == 0 {
		return nil, fmt.Errorf("command %T has no number in the log", command)
	}
	c := codec{writing: true, b: b}
	body := c.open(kind)
	c.command(kind, command)
	if c.fault != nil {
		return nil, fmt.Errorf("%s cannot be written: %s: %s", commandNames[kind], c.fault.field, c.fault.reason)
	}
	if size := len(c.b) - body; size > maxCommand {
		return nil, fmt.Errorf("%s cannot be written: it has %d bytes, and at most %d are allowed", commandNames[kind],
			size, maxCommand)
	}
	c.shut(body)
	return c.b, nil
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
	c.origin(&o)
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
			commandNames[kind])
	}
	command := newCommand(kind)
	body.command(kind, command)
	body.end()
	// A command that would be written with another kind has two encodings, and only one is
	// valid.
	if body.fault == nil && kindOf(command) != kind {
		body.fail("keep", "nothing in it is of this kind")
	}
	if body.fault != nil {
		return nil, body.refused(commandNames[kind])
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
	body.origin(&o)
	body.end()
	if body.fault == nil && o == (leasehold.Origin{}) {
		body.fail("door", "it says nothing, and then it is left out")
	}
	if body.fault != nil {
		return o, body.refused(commandNames[kindOrigin])
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
	case kind >= uint64(len(commandNames)) || commandNames[kind] == "":
		return 0, body, unknown("command is of kind %d, and kinds up to %d are known here", kind, len(commandNames)-1)
	case size > maxCommand:
		return 0, body, malformed("%s is malformed: it has %d bytes, and at most %d are allowed", commandNames[kind],
			size, maxCommand)
	case c.level != 0 && commandLevel(kind) > c.level:
		return 0, body, malformed("%s is malformed: there is none at feature level %d", commandNames[kind], c.level)
	}
	c.needed = max(c.needed, commandLevel(kind))
	body = codec{b: c.b[c.at : c.at+size], base: c.base + int64(c.at)}
	c.at += size
	return kind, body, nil
}

func (c *codec) origin(o *leasehold.Origin) {
	c.text("actor", &o.Actor)
	c.text("address", &o.Address)
	c.text("door", &o.Door)
}

// command is the body of a command. Fields that came later are at the end, and only where the
// kind says so.
func (c *codec) command(kind uint64, command core.Command) {
	switch v := command.(type) {
	case *core.OpenSession:
		c.openSession(v)
	case *core.RenewSession:
		c.text("namespace", &v.Namespace)
		c.text("id", &v.ID)
	case *core.CloseSession:
		c.text("namespace", &v.Namespace)
		c.text("id", &v.ID)
		c.request(&v.Request)
	case *core.Acquire:
		c.acquireOf(kind, v)
	case *core.Renew:
		c.renew(kind, v)
	case *core.Release:
		c.text("namespace", &v.Namespace)
		c.text("id", &v.ID)
		if kind == kindWithdraw {
			c.text("session", &v.Session)
			c.flag("withdraw", &v.Withdraw)
		}
		c.request(&v.Request)
	case *core.Change:
		c.change(kind, v)
	case *core.Break:
		c.breakLease(kind, v)
	case *core.Tick:
	case *core.Lead:
		c.lead(v)
	case *core.PutRecord:
		c.putRecord(kind, v)
	case *core.DeleteRecord:
		c.deleteRecord(v)
	case *core.Txn:
		c.txn(kind, v)
	case *core.Ask:
		c.ask(v)
	case *core.Move:
		c.move(v)
	case *core.Define:
		c.define(kind, v)
	case *core.Undefine:
		c.undefine(v)
	case *core.SetUnits, *core.Drain, *core.ReportUse:
		c.poolCommand(v)
	case *core.Acknowledge:
		c.acknowledge(v)
	case *core.AcknowledgeAlarm:
		c.acknowledgeAlarm(v)
	case *core.SetCaps:
		c.setCaps(v)
	case *core.EndQuarantine:
		c.endQuarantine(v)
	case *core.RaiseTokens:
		c.raiseTokens(v)
	case *core.ChangeAccess:
		c.changeAccess(v)
	default:
		c.taskCommand(v)
		c.reservationCommand(v)
	}
}
