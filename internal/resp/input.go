package resp

import (
	"cmp"
	"errors"
	"fmt"
)

// Limits bound one command.
type Limits struct {
	Arguments int // its name included; 0: 4,096
	Bytes     int // as it comes over the wire; 0: 1 MiB
}

func (l Limits) arguments() int { return cmp.Or(l.Arguments, 4096) }
func (l Limits) bytes() int     { return cmp.Or(l.Bytes, 1<<20) }

const (
	minInput  = 4 << 10  // what an Input begins with
	keptArgs  = 16 << 10 // how many arguments it keeps room for
	tightArgs = 64       // the same of one that is tight
	keptInput = 64 << 10 // what it grows to for long pipelines, and shrinks to after a large command
)

// A ProtocolError says what is wrong with what a client sent. Nothing can be read after it.
type ProtocolError struct{ text string }

// Error returns what Redis would say.
func (e *ProtocolError) Error() string { return "Protocol error: " + e.text }

func protocolError(format string, args ...any) error {
	return &ProtocolError{fmt.Sprintf(format, args...)}
}

// An Input holds what has come on a server's connection, and finds commands in it. The zero
// Input has the default limits.
//
// Its owner reads into Space, says with Filled how much came, calls Next until there is no
// whole command left, answers them all, and then calls Release.
type Input struct {
	Limits Limits

	// Tight says that no more room is kept than a small command needs.
	Tight bool

	buf  []byte
	r, w int  // what is in use of buf
	full bool // the last read filled it: there is more

	// Of the command that begins at r, as far as it has come. Places are counted from r.
	begun bool
	need  int // arguments that are missing
	at    int
	spans []span

	args [][]byte // of all commands since Release
}

type span struct{ from, to int }

// Space returns room to read into. What Next returned stays as it is.
func (in *Input) Space() []byte {
	if in.w == len(in.buf) {
		// A new buffer: arguments that are in use are parts of the old one.
		grown := make([]byte, max(minInput, 2*(in.w-in.r)))
		in.w = copy(grown, in.buf[in.r:in.w])
		in.r, in.buf = 0, grown
	}
	return in.buf[in.w:]
}

// Needs returns how many bytes the Input has once Space was called.
func (in *Input) Needs() int {
	const word, place = 24, 16 // bytes of an argument, and of where one is
	size := max(len(in.buf), minInput)
	if in.w == len(in.buf) {
		size = max(minInput, 2*(in.w-in.r))
	}
	return size + word*cap(in.args) + place*cap(in.spans)
}

// Filled says that n bytes were read into Space.
func (in *Input) Filled(n int) {
	in.w += n
	in.full = in.w == len(in.buf)
}

// Buffered returns how many bytes have come that Next has not returned.
func (in *Input) Buffered() int { return in.w - in.r }

// Release says that nothing is used any more of what Next returned.
func (in *Input) Release() {
	clear(in.args)
	if in.args = in.args[:0]; cap(in.args) > keptArgs {
		in.args = nil
	}
	rest := in.buf[in.r:in.w]
	switch {
	case in.Tight:
		in.tighten(rest)
	case in.full && len(in.buf) < keptInput:
		in.buf = make([]byte, min(2*len(in.buf), keptInput))
	case len(in.buf) > keptInput && len(rest) <= keptInput/2:
		in.buf = make([]byte, keptInput)
	}
	in.full = false
	in.r, in.w = 0, copy(in.buf, rest)
}

// tighten gives up the room of large commands.
func (in *Input) tighten(rest []byte) {
	if cap(in.args) > tightArgs {
		in.args = nil
	}
	if cap(in.spans) > tightArgs && !in.begun {
		in.spans = nil
	}
	if len(in.buf) > minInput && len(rest) <= minInput/2 {
		in.buf = make([]byte, minInput)
	}
}

// Idle gives up the buffer if nothing is in it, and returns it; Use is how to give one back.
func (in *Input) Idle() []byte {
	if in.r != in.w || len(in.args) > 0 {
		return nil
	}
	b := in.buf
	in.buf, in.r, in.w = nil, 0, 0
	return b
}

// Use lends a buffer to an Input, and reports whether it had none.
func (in *Input) Use(buffer []byte) bool {
	if in.buf != nil {
		return false
	}
	in.buf = buffer
	return true
}

// Next returns the next command, its name first, which is valid until Release; nil: no whole
// command is left. After an error there is no next one.
func (in *Input) Next() ([][]byte, error) {
	for {
		whole, err := in.scan()
		if err != nil || !whole {
			return nil, err
		}
		if args := in.take(); len(args) > 0 { // Redis ignores an empty array, too
			return args, nil
		}
	}
}

// take returns the command that scan found.
func (in *Input) take() [][]byte {
	first := len(in.args)
	for _, s := range in.spans {
		from, to := in.r+s.from, in.r+s.to
		in.args = append(in.args, in.buf[from:to:to])
	}
	in.r += in.at
	in.begun, in.at, in.spans = false, 0, in.spans[:0]
	return in.args[first:len(in.args):len(in.args)]
}

// scan goes on where it ended the last time, so that a command that comes byte by byte costs
// no more than one that comes whole.
func (in *Input) scan() (whole bool, err error) {
	b := in.buf[in.r:in.w]
	if !in.begun {
		if ok, err := in.begin(b); err != nil || !ok {
			return false, err
		}
	}
	for in.need > 0 {
		if in.at == len(b) {
			return false, nil
		}
		if b[in.at] != '$' {
			return false, protocolError("expected '$', got '%s'", printable(b[in.at]))
		}
		n, next, err := length(b, in.at+1)
		switch {
		case err != nil || n < 0:
			return false, protocolError("invalid bulk length")
		case n > int64(in.Limits.bytes()) || in.at+int(n) > in.Limits.bytes():
			return false, protocolError("invalid bulk length: a command may have %d bytes", in.Limits.bytes())
		case next == 0 || next+int(n)+2 > len(b):
			return false, nil
		case b[next+int(n)] != '\r' || b[next+int(n)+1] != '\n':
			return false, protocolError("a bulk string does not end with CR LF")
		}
		in.spans = append(in.spans, span{next, next + int(n)})
		in.at = next + int(n) + 2
		in.need--
	}
	return true, nil
}

func (in *Input) begin(b []byte) (bool, error) {
	if len(b) == 0 {
		return false, nil
	}
	if b[0] != '*' {
		return false, protocolError("expected '*', got '%s'", printable(b[0]))
	}
	n, next, err := length(b, 1)
	switch {
	case errors.Is(err, errNumber), errors.Is(err, errLineEnd):
		return false, protocolError("invalid multibulk length")
	case n > int64(in.Limits.arguments()):
		return false, protocolError("invalid multibulk length: a command may have %d arguments", in.Limits.arguments())
	case next == 0:
		return false, nil
	}
	in.begun, in.need, in.at = true, max(0, int(n)), next
	return true, nil
}

func printable(c byte) string {
	if c < ' ' || c > '~' {
		return fmt.Sprintf(`\x%02x`, c)
	}
	return string(rune(c))
}
