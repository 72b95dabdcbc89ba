package wire

import (
	"fmt"
	"slices"

	"github.com/leasehold/leasehold"
	"github.com/leasehold/leasehold/internal/core"
)

// A command has a kind and a body. Where a field was added to a command, the command got a
// second kind, and the first is still written when the new field is empty: an old server reads
// all that it could always do, and no byte of an old log changes its meaning.

// The kinds of commands. A number is given once and for ever.
const (
	kindOrigin       = 0 // no command: whose the next one is
	kindOpenSession  = 1
	kindRenewSession = 2
	kindCloseSession = 3
	kindAcquire      = 4
	kindRenew        = 5
	kindRelease      = 6
	kindChange       = 7
	kindBreak        = 8
	kindTick         = 9
	kindLead         = 10
	kindPutRecord    = 11
	kindDeleteRecord = 12
	kindTxn          = 13
	kindAsk          = 14
	kindMove         = 15
	kindDefine       = 16
	kindUndefine     = 17
	kindAcknowledge  = 18

	// A break of all who share a resource. Others are as they were before.
	kindBreakAll = 26

	// A put record, or a txn, with a large value, a version to go back to, or a number of
	// versions to keep. Others are as they were before there were any.
	kindPutVersion  = 19
	kindTxnVersions = 20

	kindSetCaps = 21

	// A release that names a session, or withdraws. Others are as they were before.
	kindWithdraw = 22

	// An acquire, a txn or a change with a foreign id. Others are as they were before.
	kindAcquireForeign = 23
	kindTxnForeign     = 24
	kindChangeForeign  = 25

	// A define that changes a part, or that may be refused. Others are as they were before.
	kindDefineChange = 27

	// A close session for a holder that died. Others are as they were before.
	kindAbandonSession = 28

	kindEndQuarantine = 29

	kindRenewNote = 30 // a renew with a note

	// A put record that says who wanted it and why. Others are as they were before.
	kindPutReason = 32

	// A change in which the holder says more about itself.
	kindChangeAbout = 33
)

var commandNames = [...]string{
	kindOrigin:      "origin",
	kindOpenSession: "open session", kindRenewSession: "renew session", kindCloseSession: "close session",
	kindAcquire: "acquire", kindRenew: "renew", kindRelease: "release", kindChange: "change", kindBreak: "break",
	kindBreakAll: "break all",
	kindTick:     "tick", kindLead: "lead",
	kindPutRecord: "put record", kindDeleteRecord: "delete record", kindTxn: "txn", kindAsk: "ask", kindMove: "move",
	kindDefine: "define", kindUndefine: "undefine", kindAcknowledge: "acknowledge",
	kindPutVersion: "put version", kindTxnVersions: "txn versions",
	kindSetCaps: "set caps", kindWithdraw: "withdraw",
	kindAcquireForeign: "acquire foreign", kindTxnForeign: "txn foreign", kindChangeForeign: "change foreign",
	kindAbandonSession: "abandon session", kindEndQuarantine: "end quarantine", kindPutReason: "put reason",
	kindChangeAbout: "change about", kindRenewNote: "renew note", kindDefineChange: "define change",
}

// commandLevel is the feature level that a kind of command came with.
func commandLevel(kind uint64) uint64 {
	switch kind {
	case kindPutVersion, kindTxnVersions:
		return levelValues
	case kindBreakAll:
		return levelStated
	case kindSetCaps, kindWithdraw, kindAcquireForeign, kindTxnForeign, kindChangeForeign,
		kindAbandonSession, kindEndQuarantine, kindRenewNote, kindPutReason, kindChangeAbout, kindDefineChange:
		return levelStated
	}
	return levelFirst
}

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
	case kind == kindOrigin:
		return nil, malformed("command is malformed before byte %d: an origin stands where a command should", c.at)
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

// kindOf returns the number under which a command is written: the oldest kind that has all its
// fields.
func kindOf(command core.Command) uint64 {
	switch v := command.(type) {
	case *core.OpenSession:
		return kindOpenSession
	case *core.RenewSession:
		return kindRenewSession
	case *core.CloseSession:
		if v.Abandon {
			return kindAbandonSession
		}
		return kindCloseSession
	case *core.Acquire:
		if v.Foreign != "" {
			return kindAcquireForeign
		}
		return kindAcquire
	case *core.Renew:
		return renewKind(v)
	case *core.Release:
		if v.Session != "" || v.Withdraw {
			return kindWithdraw
		}
		return kindRelease
	case *core.Change:
		switch {
		case v.About != nil:
			return kindChangeAbout
		case v.Foreign != "":
			return kindChangeForeign
		}
		return kindChange
	case *core.Break:
		if v.All {
			return kindBreakAll
		}
		return kindBreak
	case *core.Tick:
		return kindTick
	case *core.Lead:
		return kindLead
	case *core.PutRecord:
		return putKind(v)
	case *core.DeleteRecord:
		return kindDeleteRecord
	case *core.Txn:
		return txnKind(v)
	case *core.Ask:
		return kindAsk
	case *core.Move:
		return kindMove
	case *core.Define:
		return defineKind(v)
	case *core.Undefine:
		return kindUndefine
	case *core.Acknowledge:
		return kindAcknowledge
	case *core.SetCaps:
		return kindSetCaps
	case *core.EndQuarantine:
		return kindEndQuarantine
	}
	return 0
}

// putKind is kindOf for a put record.
func putKind(v *core.PutRecord) uint64 {
	switch {
	case v.By != "" || v.Reason != "":
		return kindPutReason
	case v.Large != nil || v.From != 0 || v.Keep != 0:
		return kindPutVersion
	}
	return kindPutRecord
}

func renewKind(v *core.Renew) uint64 {
	if v.Note != nil {
		return kindRenewNote
	}
	return kindRenew
}

func defineKind(v *core.Define) uint64 {
	if v.IsChange() {
		return kindDefineChange
	}
	return kindDefine
}

// txnKind is kindOf for a transaction. The newest of what its operations need decides for all
// of them.
func txnKind(v *core.Txn) uint64 {
	has := func(is func(core.Op) bool) bool {
		return slices.ContainsFunc(v.Then, is) || slices.ContainsFunc(v.Else, is)
	}
	switch {
	case has(isForeign):
		return kindTxnForeign
	case has(hasVersion):
		return kindTxnVersions
	}
	return kindTxn
}

func isForeign(o core.Op) bool { return o.Acquire != nil && o.Acquire.Foreign != "" }

func hasVersion(o core.Op) bool { return o.Large != nil || o.From != 0 || o.Keep != 0 }

// newCommand returns an empty command of a kind to read into; nil for a kind that is no
// command.
func newCommand(kind uint64) core.Command {
	switch kind {
	case kindOpenSession:
		return new(core.OpenSession)
	case kindRenewSession:
		return new(core.RenewSession)
	case kindCloseSession:
		return new(core.CloseSession)
	case kindAbandonSession:
		return &core.CloseSession{Abandon: true}
	case kindAcquire, kindAcquireForeign:
		return new(core.Acquire)
	case kindRenew:
		return new(core.Renew)
	case kindRenewNote:
		return &core.Renew{Note: new(string)}
	case kindRelease, kindWithdraw:
		return new(core.Release)
	case kindChange, kindChangeForeign, kindChangeAbout:
		return new(core.Change)
	case kindBreak:
		return new(core.Break)
	case kindBreakAll:
		return &core.Break{All: true} // its body is that of a break
	case kindTick:
		return new(core.Tick)
	case kindLead:
		return new(core.Lead)
	case kindPutRecord, kindPutVersion, kindPutReason:
		return new(core.PutRecord)
	case kindDeleteRecord:
		return new(core.DeleteRecord)
	case kindTxn, kindTxnVersions, kindTxnForeign:
		return new(core.Txn)
	case kindAsk:
		return new(core.Ask)
	case kindMove:
		return new(core.Move)
	case kindDefine, kindDefineChange:
		return new(core.Define)
	case kindUndefine:
		return new(core.Undefine)
	case kindAcknowledge:
		return new(core.Acknowledge)
	case kindSetCaps:
		return new(core.SetCaps)
	case kindEndQuarantine:
		return new(core.EndQuarantine)
	}
	return nil
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
		c.acquire(v)
		if kind == kindAcquireForeign {
			c.text("foreign", &v.Foreign)
		}
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
		c.breakLease(v)
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
		c.text("namespace", &v.Namespace)
		c.text("path", &v.Path)
		c.text("by", &v.By)
		c.text("reason", &v.Reason)
		c.request(&v.Request)
	case *core.Acknowledge:
		c.acknowledge(v)
	case *core.SetCaps:
		c.setCaps(v)
	case *core.EndQuarantine:
		c.unsigned("base", &v.Base)
		c.text("by", &v.By)
		c.text("reason", &v.Reason)
	}
}
