package wire

import (
	"encoding/binary"
	"fmt"

	"github.com/leasehold/leasehold"
	"github.com/leasehold/leasehold/internal/core"
	"github.com/leasehold/leasehold/internal/core/access"
	"github.com/leasehold/leasehold/internal/core/command"
	"github.com/leasehold/leasehold/internal/core/tagged"
)

// An entry of the log is a header, and commands behind it. It is written once by a leader and
// read by every server of the cluster, perhaps years later by a newer release: every number
// here is for ever.

// The newest that this server reads.
const (
	Format = 2                        // how bytes are laid out; builds from before the first release wrote 1
	Level  = uint64(core.NewestLevel) // which kinds, fields and enumerations there are
)

// levelFirst is the level of an entry that needs no newer one: an entry has the least level that
// its verbs need. A server that does not know a field of one refuses the field.
const levelFirst = uint64(core.Level1)

// The largest entry that is accepted. What an engine makes of its batches is far
// smaller.
const (
	maxEntry    = 4 << 20 // bytes
	maxCommands = 8192
)

// minCommand is the least that a command takes: a kind and the length of an empty body.
const minCommand = 2

// An Entry is one entry of the log: commands with the time at which they happen.
type Entry struct {
	Term     uint64    // the one it was stamped for; in another it is empty
	Stamp    core.Time // cluster time
	Wall     int64     // the leader's calendar in Unix nanoseconds, for people to read
	Commands []core.Command

	core.From // of each command; its lists are nil if none has one
}

// A Header is an Entry without its commands.
type Header struct {
	Term  uint64
	Stamp core.Time
	Wall  int64
}

// AppendEntry appends an entry.
func AppendEntry(b []byte, e *Entry) ([]byte, error) {
	start := len(b)
	c := writing(b)
	count, level := uint64(len(e.Commands)), levelFirst
	for _, c := range e.Commands {
		level = max(level, uint64(command.VerbOf(c).Since))
	}
	c.header(level, &Header{e.Term, e.Stamp, e.Wall}, &count)
	b = c.B
	for i, c := range e.Commands {
		var err error
		if e.Origins != nil {
			b = AppendOrigin(b, e.Origins[i])
		}
		if e.Askers != nil {
			b = AppendAsker(b, e.Askers[i])
		}
		if b, err = AppendCommand(b, c); err != nil {
			return nil, err
		}
	}
	return sealed(b, len(e.Commands), start)
}

// AppendEncoded appends the entry of commands that AppendCommand encoded, one by one and behind
// their origins and askers, when they arrived. They are copied as they are: nothing is encoded a second
// time while everybody waits for the entry.
func AppendEncoded(b []byte, h Header, commands [][]byte) ([]byte, error) {
	size, level := maxHeader, levelFirst
	for _, command := range commands {
		size += len(command)
		level = max(level, encodedLevel(command))
	}
	if b == nil {
		b = make([]byte, 0, size)
	}
	start := len(b)
	c := writing(b)
	count := uint64(len(commands))
	c.header(level, &h, &count)
	b = c.B
	for _, command := range commands {
		b = append(b, command...)
	}
	return sealed(b, len(commands), start)
}

// Check reports what is wrong with a command that another server encoded, behind its origin and asker
// or without: nothing may go into the log that this server, or one at that level, would not
// read.
func Check(b []byte, at core.Level) error {
	c := reading(b)
	_, err := c.nextOrigin()
	if err == nil {
		_, err = c.nextAsker(nil)
	}
	if err == nil {
		_, err = c.nextCommand()
	}
	switch {
	case err != nil:
		return err
	case c.Left() > 0:
		return malformed("command is malformed: %d bytes follow it", c.Left())
	}
	return atLevel(max(c.Needed, c.fields), at)
}

// AtLevel reports whether a command can be written at a level; if not, the error says so. At the newest all can.
func AtLevel(c core.Command, at core.Level) error {
	if at >= core.NewestLevel {
		return nil
	}
	w := writing(nil)
	w.Needed = uint64(command.VerbOf(c).Since)
	command.Describe(c, w.Message())
	return atLevel(w.Needed, at)
}

func atLevel(needed uint64, at core.Level) error {
	if needed > uint64(at) {
		return &leasehold.Error{Code: leasehold.Refused, Message: fmt.Sprintf(
			"this needs feature level %d, and the cluster is at %d: upgrade all servers, then run "+
				"leasehold cluster upgrade",
			needed, at)}
	}
	return nil
}

// encodedLevel is the feature level of the verb of a command that AppendCommand encoded, behind its origin and asker
// or without.
func encodedLevel(b []byte) uint64 {
	for len(b) > 0 && (b[0] == kindOrigin || b[0] == kindAsker) {
		size, n := binary.Uvarint(b[1:])
		if n <= 0 || size >= uint64(len(b)-1-n) {
			return levelFirst
		}
		b = b[1+n+int(size):]
	}
	kind, _ := binary.Uvarint(b)
	return kindLevel(kind)
}

// DecodeEntry reads an entry. It shares no memory with b, and what it allocates is
// in proportion to b, whatever b says.
func DecodeEntry(b []byte) (*Entry, error) { return DecodeEntryWith(nil, b) }

// DecodeEntryWith is DecodeEntry with the askers that were met before.
func DecodeEntryWith(known *Askers, b []byte) (*Entry, error) {
	if len(b) > maxEntry {
		return nil, malformed("log entry is malformed: it has %d bytes, and at most %d are allowed", len(b), maxEntry)
	}
	c := reading(b)
	if err := c.version("log entry", 0, Level); err != nil {
		return nil, err
	}
	var h Header
	var count uint64
	c.stamped(&h, &count)
	// Before anything of that size is allocated.
	if count > maxCommands || count > uint64(c.Left()/minCommand) {
		c.Fail("commands", tagged.TooLong)
	}
	if c.Fault != nil {
		return nil, c.Refused("log entry")
	}
	e := &Entry{Term: h.Term, Stamp: h.Stamp, Wall: h.Wall}
	if err := c.commands(e, int(count), known); err != nil {
		return nil, err
	}
	return e, nil
}

// commands reads the commands of an entry, each with where it came from and who asked.
func (c *codec) commands(e *Entry, count int, known *Askers) error {
	if count > 0 {
		e.Commands = make([]core.Command, count)
	}
	for i := range e.Commands {
		origin, err := c.nextOrigin()
		var asker *access.Asker
		if err == nil {
			asker, err = c.nextAsker(known)
		}
		if err == nil {
			e.Commands[i], err = c.nextCommand()
		}
		if err != nil {
			return fmt.Errorf("log entry, command %d of %d: %w", i+1, count, err)
		}
		if origin != (leasehold.Origin{}) {
			e.setOrigin(i, origin)
		}
		if asker != nil {
			e.setAsker(i, asker)
		}
	}
	if c.Left() > 0 {
		return malformed("log entry is malformed: %d bytes follow its last command", c.Left())
	}
	// An entry has one encoding. With a level higher than it needs, servers that could read it
	// would refuse it.
	if c.Level != max(levelFirst, c.Needed) {
		return malformed("log entry is malformed: it has feature level %d, and nothing in it needs more than %d",
			c.Level, max(levelFirst, c.Needed))
	}
	return nil
}

func (e *Entry) setOrigin(i int, o leasehold.Origin) {
	if e.Origins == nil {
		e.Origins = make([]leasehold.Origin, len(e.Commands), cap(e.Commands))
	}
	e.Origins[i] = o
}

// maxHeader is the most that a header takes.
const maxHeader = 1 + 1 + 10 + 10 + 10 + 2

func (c *codec) header(level uint64, h *Header, count *uint64) {
	_ = c.version("log entry", level, Level) // only reading it can fail
	c.stamped(h, count)
}

func (c *codec) stamped(h *Header, count *uint64) {
	c.Unsigned("term", &h.Term)
	c.Signed("stamp", (*int64)(&h.Stamp))
	c.Signed("wall", &h.Wall)
	c.Unsigned("commands", count)
}

// version is the format and the level. Newer ones are refused before anything is read that they
// may have changed; level is the one that is written, and newest the newest that is read.
func (c *codec) version(what string, level, newest uint64) error {
	format := uint64(Format)
	c.Unsigned("format", &format)
	if c.Fault == nil && format > Format {
		return unknown("%s has format %d, and formats up to %d are known here", what, format, Format)
	}
	if c.Fault == nil && format != 0 && format < Format {
		return &tagged.Refusal{Kind: ErrUnknown, Text: fmt.Sprintf("%s has format %d, which only builds from before "+
			"the first release wrote, and this version does not read: start with an empty directory, or use the "+
			"build that wrote it", what, format)}
	}
	c.Unsigned("level", &level)
	switch {
	case c.Fault != nil:
		return c.Refused(what)
	case format == 0 || level == 0:
		return malformed("%s is malformed: its format is %d and its feature level %d, and neither is ever 0", what,
			format, level)
	case level > newest && !c.Writing:
		return unknown("%s has feature level %d, and levels up to %d are known here", what, level, newest)
	}
	c.Level = level
	return nil
}

// sealed returns a finished entry, unless it is one that would not be read back.
func sealed(b []byte, commands, start int) ([]byte, error) {
	if size := len(b) - start; commands > maxCommands || size > maxEntry {
		return nil, fmt.Errorf("log entry has %d commands and %d bytes: at most %d and %d are allowed", commands, size,
			maxCommands, maxEntry)
	}
	return b, nil
}
